//! Boolean values and numbers as the kernel reads them from its command line.
//!
//! Source: `kstrtobool()`, to which Documentation/admin-guide/kernel-parameters.rst refers for
//! `Format: <bool>`; `kstrtoint()` and `get_option()` for numbers, both with the base that the
//! prefix names.

/// The first letters of a truth value, and the first release that takes them (lib/kstrtox.c,
/// commits 0d6ea3ac94ca of 5.19 and ae5b3500856f of 6.16).
const LETTERS: [(&[u8], bool, (u32, u32)); 6] = [
    (b"y1", true, (0, 0)),
    (b"n0", false, (0, 0)),
    (b"t", true, (5, 19)),
    (b"f", false, (5, 19)),
    (b"e", true, (6, 16)),
    (b"d", false, (6, 16)),
];

/// Parses a value as `kstrtobool()` of a release does: only its first letter counts, or the second
/// of `on` and `off`. An unknown release accepts the letters of 6.1.
///
/// `None` if the kernel refuses it: the previous value stays.
pub fn kbool(value: &str, series: Option<(u32, u32)>) -> Option<bool> {
    let series = series.unwrap_or((6, 1));
    let mut letters = value.bytes().map(|letter| letter.to_ascii_lowercase());
    match (letters.next()?, letters.next()) {
        (b'o', Some(b'n')) => Some(true),
        (b'o', Some(b'f')) => Some(false),
        (first, _) => {
            let known = LETTERS.iter().find(|(all, _, since)| all.contains(&first) && series >= *since);
            known.map(|(_, meaning, _)| *meaning)
        }
    }
}

/// Parses a number as `kstrtoint()` does, which reads the parameters of modules.
///
/// `None` if the kernel refuses it: the previous value stays.
pub fn kint(value: &str) -> Option<i32> {
    let digits = value.strip_suffix('\n').unwrap_or(value);
    let (minus, digits) = match digits.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, digits.strip_prefix('+').unwrap_or(digits)),
    };
    let (base, digits) = radix(digits);
    // No sign may follow, which the conversion would accept.
    if !digits.starts_with(|c: char| c.is_digit(base)) {
        return None;
    }
    let number = i64::from_str_radix(digits, base).ok()?;
    i32::try_from(if minus { -number } else { number }).ok()
}

/// Parses the number at the beginning of a value, as `get_option()` does for early parameters.
///
/// Other text is 0: the value is stored before any digit is found. `None` for an empty value: the
/// previous value stays.
pub fn leading_int(value: &str) -> Option<i32> {
    if value.is_empty() {
        return None;
    }
    let digits = value.strip_prefix('-');
    let (base, text) = radix(digits.unwrap_or(value));
    let end = text.find(|c: char| !c.is_digit(base)).unwrap_or(text.len());
    // A number that is too long for an int keeps its lowest bits.
    let add = |sum: u64, c: char| {
        sum.wrapping_mul(u64::from(base)).wrapping_add(u64::from(c.to_digit(base).unwrap_or_default()))
    };
    let number = text[..end].chars().fold(0, add) as i32;
    Some(if digits.is_some() { number.wrapping_neg() } else { number })
}

/// Base of a number and its digits, as in `_parse_integer_fixup_radix()`.
fn radix(text: &str) -> (u32, &str) {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    match hex.filter(|digits| digits.starts_with(|c: char| c.is_ascii_hexdigit())) {
        Some(digits) => (16, digits),
        None if text.starts_with('0') => (8, text),
        None => (10, text),
    }
}

#[cfg(test)]
mod tests {
    use super::{kbool, kint, leading_int};
    use proptest::prelude::*;

    #[test]
    fn values_as_the_kernel_takes_them() {
        for yes in ["1", "y", "Yes", "on", "ON", "true"] {
            assert_eq!(kbool(yes, None), Some(true), "{yes}");
        }
        for no in ["0", "n", "off", "Off", "false"] {
            assert_eq!(kbool(no, None), Some(false), "{no}");
        }
        for neither in ["", "2", "o", "-1", "enable", " 1"] {
            assert_eq!(kbool(neither, None), None, "{neither}");
        }
        let values = |value| [(5, 18), (5, 19), (6, 15), (6, 16)].map(|series| kbool(value, Some(series)));
        assert_eq!(values("false"), [None, Some(false), Some(false), Some(false)]);
        assert_eq!(values("True"), [None, Some(true), Some(true), Some(true)]);
        assert_eq!(values("Disable"), [None, None, None, Some(false)]);
        assert_eq!(values("enabled"), [None, None, None, Some(true)]);
        assert_eq!(values("off"), [Some(false); 4]);
    }

    #[test]
    fn numbers_as_the_kernel_takes_them() {
        for (text, whole, leading) in [
            ("1", Some(1), Some(1)),
            ("0x1", Some(1), Some(1)),
            ("0X1f", Some(31), Some(31)),
            ("010", Some(8), Some(8)),
            ("-2", Some(-2), Some(-2)),
            ("+2", Some(2), Some(0)),
            ("1,2", None, Some(1)),
            ("08", None, Some(0)),
            ("0x", None, Some(0)),
            ("-", None, Some(0)),
            ("", None, None),
            ("on", None, Some(0)),
            ("--1", None, Some(0)),
            ("4294967297", None, Some(1)),
        ] {
            assert_eq!((kint(text), leading_int(text)), (whole, leading), "{text}");
        }
    }

    proptest! {
        #[test]
        fn it_is_total(text in "\\PC{0,8}") {
            let _ = (kbool(&text, Some((7, 3))), kint(&text), leading_int(&text));
        }
    }
}
