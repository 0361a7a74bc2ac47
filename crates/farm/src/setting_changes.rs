//! In what an environment of a board differs from another.

use std::collections::BTreeSet;

use crate::environments::{SettingsByName, is_for_root, settings_of, told_by_both};
use crate::records::BoardEnvironment;

/// A setting that changed; `""` where it was not there.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SettingChange {
    pub what: String,
    pub before: String,
    pub after: String,
}

/// In what an environment differs from the one before, by name; where a recorder says the one and a
/// run the other, in what both tell.
pub fn changed(before: &BoardEnvironment, after: &BoardEnvironment) -> Vec<SettingChange> {
    let [told_before, told_after] = [before, after].map(|side| settings_of(&side.record.settings));
    let mut all = changes(&told_before, &told_after);
    // A run of another user could not read it.
    all.retain(|one| !is_for_root(&one.what) || !(one.before.is_empty() || one.after.is_empty()));
    if before.recorded != after.recorded {
        let told = told_by_both(&told_before, &told_after);
        all.retain(|one| told.contains(&one.what));
    }
    all
}

/// In what two environments differ, by name.
fn changes(before: &SettingsByName, after: &SettingsByName) -> Vec<SettingChange> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let value = |side: &SettingsByName, name: &String| side.get(name).cloned().unwrap_or_default();
    names
        .into_iter()
        .map(|name| SettingChange {
            what: name.clone(),
            before: value(before, name),
            after: value(after, name),
        })
        .filter(|change| change.before != change.after)
        .collect()
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
        let found = of(r#"{"a":"1","b":"2"}"#, r#"{"a":"1","b":"3","c":"<b>"}"#);
        assert_eq!(found.iter().map(|one| one.what.as_str()).collect::<String>(), "bc");
        assert_eq!((found[1].before.as_str(), found[0].after.as_str()), ("", "3"));
        assert_eq!(of("no JSON", "").len(), 0);
        // A recorder tells less than a run.
        let run = environment(r#"{"/proc/x":"1","host.release":"6.1","cmdline quiet":"given"}"#);
        let settings = r#"{"host.release":"6.12","cmdline quiet":"given","cmdline isolcpus":"2"}"#;
        let recorded = BoardEnvironment { runs: 0, recorded: true, ..environment(settings) };
        let told: Vec<String> = changed(&run, &recorded).into_iter().map(|one| one.what).collect();
        assert_eq!(told, ["cmdline isolcpus", "host.release"]);
        assert_eq!(changed(&run, &environment(settings)).len(), 3);
        let root = environment(r#"{"host.hz":"250","host.release":"6.1","/proc/x":"1"}"#);
        let user = environment(r#"{"host.release":"6.12"}"#);
        let told: Vec<String> = changed(&root, &user).into_iter().map(|one| one.what).collect();
        assert_eq!(told, ["/proc/x", "host.release"]);
    }
}
