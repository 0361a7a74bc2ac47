//! Differences between environments of a board.

use std::collections::BTreeSet;

use crate::environments::{SettingsByName, differing, settings_of, told_of, value_of};
use crate::history::BoardEnvironment;

/// A setting that changed; `""` if it was absent.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct SettingChange {
    pub what: String,
    pub before: String,
    pub after: String,
}

/// Differences between an environment and the previous one, by name, for settings known in both.
pub fn changed(before: &BoardEnvironment, after: &BoardEnvironment) -> Vec<SettingChange> {
    let [before, after] = [before, after].map(|side| told_of(settings_of(&side.record.settings)));
    changes(&before, &after)
}

fn changes(before: &SettingsByName, after: &SettingsByName) -> Vec<SettingChange> {
    let names: BTreeSet<&String> = differing(before, after).collect();
    let one = |name: &String| SettingChange {
        what: name.clone(),
        before: value_of(before, name).to_owned(),
        after: value_of(after, name).to_owned(),
    };
    names.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environments::EnvironmentRecord;
    use std::sync::Arc;

    fn environment(settings: &str) -> BoardEnvironment {
        let record = EnvironmentRecord { settings: settings.into(), ..EnvironmentRecord::default() };
        BoardEnvironment { record: Arc::new(record), ..BoardEnvironment::default() }
    }

    #[test]
    fn only_what_differs_is_listed() {
        let of = |before, after| changes(&settings_of(before), &settings_of(after));
        let before = r#"{"a":"1","b":"2","cmdline quiet":"given"}"#;
        let found = of(before, r#"{"a":"1","b":"3","c":"not told before","cmdline isolcpus":"<b>"}"#);
        let words: Vec<(&str, &str, &str)> =
            found.iter().map(|one| (&*one.what, &*one.before, &*one.after)).collect();
        // A word of the command line that is not there was not given.
        assert_eq!(words, [("b", "2", "3"), ("cmdline isolcpus", "", "<b>"), ("cmdline quiet", "given", "")]);
        assert_eq!(of("no JSON", "").len(), 0);
    }

    #[test]
    fn what_one_of_two_does_not_tell_is_no_change() {
        let run = environment(r#"{"/proc/x":"1","host.release":"6.1","cmdline quiet":"given"}"#);
        let settings = r#"{"host.release":"6.12","cmdline quiet":"given","cmdline isolcpus":"2"}"#;
        let recorded = BoardEnvironment { runs: 0, recorded: true, ..environment(settings) };
        let names = |before: &BoardEnvironment, after: &BoardEnvironment| -> Vec<String> {
            changed(before, after).into_iter().map(|one| one.what).collect()
        };
        for after in [recorded, environment(settings)] {
            assert_eq!(names(&run, &after), ["cmdline isolcpus", "host.release"]);
        }
        // For another tool's result the kernel may be known, and no word of its command line.
        let imported = environment(r#"{"host.release":"6.12","host.siblings":"[]"}"#);
        assert_eq!(names(&run, &imported), ["host.release"]);
        // A record made on the machine itself knows that it has no isolated CPUs.
        let looked = environment(r#"{"host.clocksource":"tsc"}"#);
        let isolated = environment(r#"{"host.clocksource":"tsc","host.isolated":"2-3"}"#);
        let found = changed(&looked, &isolated);
        assert_eq!((found.len(), found[0].before.as_str(), found[0].after.as_str()), (1, "", "2-3"));
    }
}
