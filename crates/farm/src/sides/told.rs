//! Comparison of an environment's setting with the query of a side. A missing setting is neither
//! set nor unset if it is unknown: a recorder has none of the kernel's files.

use crate::environments::{CPU_LISTS, LOOKED_AT, SettingsByName, WORD, is_for_root};

/// True if a setting has a value, or, for an empty one, is unset; `None` if unknown.
pub fn is_set_to(settings: &SettingsByName, name: &str, value: &str) -> Option<bool> {
    match settings.get(name) {
        Some(set) => Some(set == value),
        None => tells(settings, name).then_some(value.is_empty()),
    }
}

/// True if a missing setting is known to be unset.
fn tells(settings: &SettingsByName, name: &str) -> bool {
    let tells_any = |begin: &str| settings.keys().any(|told| told.starts_with(begin));
    match name {
        _ if is_for_root(name) => false,
        word if word.starts_with(WORD) => tells_any(WORD),
        file if file.starts_with('/') => tells_any("/"),
        list => CPU_LISTS.contains(&list) && settings.contains_key(LOOKED_AT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environments::settings_of;

    #[test]
    fn what_is_not_told_is_neither_set_nor_not_set() {
        let run = r#"{"cmdline quiet":"given","host.clocksource":"tsc","/proc/x":"1"}"#;
        let recorder = r#"{"cmdline quiet":"given","host.clocksource":"tsc","host.isolated":"2-3"}"#;
        for (settings, name, value, wanted) in [
            (run, "/proc/x", "1", Some(true)),
            (run, "/proc/x", "", Some(false)),
            (run, "/proc/y", "", Some(true)),
            (run, "/proc/y", "1", Some(false)),
            (recorder, "/proc/x", "", None),
            (recorder, "/proc/x", "1", None),
            (recorder, "cmdline isolcpus", "", Some(true)),
            ("{}", "cmdline isolcpus", "", None),
            // Settings that only root can read, or that not every machine has.
            (run, "/sys/kernel/debug/x", "", None),
            (run, "kernel configuration", "", None),
            (run, "host.governor", "", None),
            (run, "host.isolated", "", Some(true)),
            (recorder, "host.isolated", "", Some(false)),
            ("{}", "host.isolated", "", None),
        ] {
            assert_eq!(is_set_to(&settings_of(settings), name, value), wanted, "{settings} {name}={value}");
        }
    }
}
