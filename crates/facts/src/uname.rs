//! The kernel's identity: the series in its release, and the preemption flag in its build string.
//!
//! Source: `init/Makefile` in the kernel's tree, which puts the build string together, and
//! `/proc/sys/kernel/{osrelease,version,arch}` in Documentation/admin-guide/sysctl/kernel.rst.

/// Preemption flag that the build adds to `uname -v`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// `PREEMPT_RT`, or `PREEMPT RT` in patched kernels up to 5.2.
    Rt,
    /// `PREEMPT_DYNAMIC`: the model is chosen at boot and may be changed later.
    Dynamic,
    /// `PREEMPT`: full; from 5.12 to 5.17 perhaps dynamic, and from 6.13 on full or lazy.
    Preempt,
    /// No flag: voluntary or no preemption.
    Plain,
}

/// Finds the preemption flag in a build string such as `#1 SMP PREEMPT_RT Debian 6.12.9-1
/// (2025-01-10)`.
///
/// The build puts the flags first, so that truncation at 64 characters never affects them.
pub fn preemption_flag(version: &str) -> Flag {
    let mut words = version.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "PREEMPT_RT" => return Flag::Rt,
            "PREEMPT_DYNAMIC" => return Flag::Dynamic,
            "PREEMPT" if words.next() == Some("RT") => return Flag::Rt,
            "PREEMPT" => return Flag::Preempt,
            _ => {}
        }
    }
    Flag::Plain
}

/// Series of a release: `(6, 12)` for `6.12.9-amd64`.
///
/// Only these two numbers are comparable: distributions keep the third at 0 or count their builds
/// in it.
pub fn series(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split('.').map(|part| {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        part[..digits].parse::<u32>().ok()
    });
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn flags_of_build_strings() {
        for (version, flag) in [
            ("#1 SMP PREEMPT_RT Debian 6.1.170-1 (2026-01-01)", Flag::Rt),
            ("#1 SMP PREEMPT RT Mon Jan 1 00:00:00 UTC 2018", Flag::Rt),
            ("#1 SMP PREEMPT_DYNAMIC Debian 6.12.9-1 (2025-01-10)", Flag::Dynamic),
            ("#1 SMP PREEMPT @0", Flag::Preempt),
            ("#1 SMP PREEMPT", Flag::Preempt),
            ("#93-Ubuntu SMP Tue Sep 5 17:16:10 UTC 2023", Flag::Plain),
            ("", Flag::Plain),
        ] {
            assert_eq!(preemption_flag(version), flag, "{version}");
        }
    }

    #[test]
    fn series_of_releases() {
        assert_eq!(series("6.1.0-50-rt-amd64"), Some((6, 1)));
        assert_eq!(series("6.12-rc3"), Some((6, 12)));
        assert_eq!(series("7.0+"), Some((7, 0)));
        assert_eq!((series("6"), series(""), series("99999999999.1")), (None, None, None));
    }

    proptest! {
        #[test]
        fn parsers_are_total(text in "[\\PC .]{0,60}") {
            let _ = (preemption_flag(&text), series(&text));
        }
    }
}
