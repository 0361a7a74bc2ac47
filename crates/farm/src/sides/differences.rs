//! In what the environments of two sides differ.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use facts::differences::Difference;

use crate::environments::{KERNEL_CONFIGURATION, read_settings};
use crate::records::EnvironmentRecord;

/// Their differences by name; several values have `|` between. Of an environment whose settings are
/// damaged none is known, and none is said not to be there.
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
    // A recorder tells nothing of the kernel's files: it is not known whether these differ.
    let is_file = |name: &String| name.starts_with('/') || name == KERNEL_CONFIGURATION;
    let tells_files = |side: &BTreeMap<String, BTreeSet<String>>| side.keys().any(is_file);
    let files = tells_files(&a) && tells_files(&b);
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).filter(|name| files || !is_file(name)).collect();
    let shown = |side: &BTreeMap<String, BTreeSet<String>>, name: &String| {
        let Some(values) = side.get(name) else { return String::new() };
        let value = |value: &String| match value.as_str() {
            "" if values.len() > 1 => "(none)".to_owned(),
            value => value.to_owned(),
        };
        values.iter().map(value).collect::<Vec<_>>().join(" | ")
    };
    let one = |name: &String| Difference { what: name.clone(), a: shown(&a, name), b: shown(&b, name) };
    names.into_iter().map(one).filter(|one| one.a != one.b).collect()
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
        // What a recorder says has no files, and no configuration.
        let run = environment(r#"{"/proc/x":"1","kernel configuration":"c","k":"1"}"#);
        let recorded = environment(r#"{"k":"2"}"#);
        let found = differences(std::slice::from_ref(&run), std::slice::from_ref(&recorded));
        assert_eq!(found.iter().map(|one| &*one.what).collect::<Vec<_>>(), ["k"]);
    }
}
