//! Differences between the environments of two sides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use facts::differences::{Difference, joined, sides_first};

use crate::environments::{KERNEL_CONFIGURATION, read_settings};
use crate::records::EnvironmentRecord;

/// Differences by name, followed by settings that are mixed on both sides; several values are
/// separated by `|`. An environment with damaged settings contributes none, and none counts as
/// absent there.
pub fn differences(a: &[Arc<EnvironmentRecord>], b: &[Arc<EnvironmentRecord>]) -> Vec<Difference> {
    let values = |side: &[Arc<EnvironmentRecord>]| {
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let settings: Vec<_> = side.iter().filter_map(|one| read_settings(&one.settings)).collect();
        let names: BTreeSet<&String> = settings.iter().flat_map(BTreeMap::keys).collect();
        for (name, of) in names.into_iter().flat_map(|name| settings.iter().map(move |of| (name, of))) {
            all.entry(name.clone()).or_default().insert(of.get(name).cloned().unwrap_or_default());
        }
        all
    };
    let (a, b) = (values(a), values(b));
    // A recorder has none of the kernel's files: their differences are unknown.
    let is_file = |name: &String| name.starts_with('/') || name == KERNEL_CONFIGURATION;
    let tells_files = |side: &BTreeMap<String, BTreeSet<String>>| side.keys().any(is_file);
    let files = tells_files(&a) && tells_files(&b);
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).filter(|name| files || !is_file(name)).collect();
    let shown = |side: &BTreeMap<String, BTreeSet<String>>, name: &String| {
        side.get(name).map_or_else(String::new, joined)
    };
    let is_several = |name: &String| a.get(name).is_some_and(|values| values.len() > 1);
    let one = |name: &String| Difference { what: name.clone(), a: shown(&a, name), b: shown(&b, name) };
    let told = |name: &String| Some(one(name)).filter(|one| !one.is_mixed() || is_several(name));
    let mut found: Vec<Difference> = names.into_iter().filter_map(told).collect();
    sides_first(&mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(settings: &str) -> Arc<EnvironmentRecord> {
        Arc::new(EnvironmentRecord { settings: settings.into(), ..EnvironmentRecord::default() })
    }

    #[test]
    fn sides_differ_in_what_their_environments_do() {
        let one = environment(r#"{"k":"1","same":"x"}"#);
        let two = environment(r#"{"k":"2","same":"x"}"#);
        let third = environment(r#"{"k":"3","same":"x","new":"y"}"#);
        let damaged = environment(r#"{"k":"4"#);
        let found = differences(std::slice::from_ref(&one), &[two, third, damaged]);
        let shown: Vec<_> = found.iter().map(|one| (&*one.what, &*one.a, &*one.b)).collect();
        assert_eq!(shown, [("k", "1", "2 | 3"), ("new", "", "(none) | y")]);
        assert!(differences(std::slice::from_ref(&one), std::slice::from_ref(&one)).is_empty());
        // A setting mixed on both sides alike is not a condition common to all.
        let mixed = [environment(r#"{"a":"1","k":"1"}"#), environment(r#"{"a":"2","k":"1"}"#)];
        let other = [environment(r#"{"a":"1","k":"2"}"#), environment(r#"{"a":"2","k":"2"}"#)];
        let found = differences(&mixed, &other);
        let shown: Vec<_> = found.iter().map(|one| (&*one.what, &*one.a, &*one.b)).collect();
        assert_eq!(shown, [("k", "1", "2"), ("a", "1 | 2", "1 | 2")]);
        // An environment of a recorder has no files, and no configuration.
        let run = environment(r#"{"/proc/x":"1","kernel configuration":"c","k":"1"}"#);
        let recorded = environment(r#"{"k":"2"}"#);
        let found = differences(std::slice::from_ref(&run), std::slice::from_ref(&recorded));
        assert_eq!(found.iter().map(|one| &*one.what).collect::<Vec<_>>(), ["k"]);
    }
}
