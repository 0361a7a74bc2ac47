//! Truth values as the kernel reads them from its command line.
//!
//! Source: `kstrtobool()`, to which Documentation/admin-guide/kernel-parameters.rst refers for
//! `Format: <bool>`. Kernels differ in letters: t and f, of true and false, came in 5.19; e and d,
//! of enabled and disabled, in 2025, and are not taken here.

/// Takes a value as `kstrtobool()` does: only its first letter counts, and of `on` and `off` the
/// second.
///
/// `None` where the kernel refuses it: the previous value stays.
pub fn kbool(value: &str) -> Option<bool> {
    let mut letters = value.bytes().map(|letter| letter.to_ascii_lowercase());
    match (letters.next()?, letters.next()) {
        (b'y' | b't' | b'1', _) | (b'o', Some(b'n')) => Some(true),
        (b'n' | b'f' | b'0', _) | (b'o', Some(b'f')) => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::kbool;
    use proptest::prelude::*;

    #[test]
    fn values_as_the_kernel_takes_them() {
        for yes in ["1", "y", "Yes", "on", "ON", "true"] {
            assert_eq!(kbool(yes), Some(true), "{yes}");
        }
        for no in ["0", "n", "off", "Off", "false"] {
            assert_eq!(kbool(no), Some(false), "{no}");
        }
        for neither in ["", "2", "o", "-1", "enable", " 1"] {
            assert_eq!(kbool(neither), None, "{neither}");
        }
    }

    proptest! {
        #[test]
        fn it_is_total(text in "\\PC{0,8}") {
            let _ = kbool(&text);
        }
    }
}
