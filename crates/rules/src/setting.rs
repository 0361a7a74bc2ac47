//! What is set of a remedy: its changes as settings of the running kernel.

use crate::change::Change;
use crate::knob::Knob;
use crate::remedy::{Alternative, Remedy};
use facts::survey::Survey;
use model::setting::{Key, Setting};

/// The settings of a remedy: of each part the first alternative that can be set now.
///
/// # Errors
/// Why one of its parts cannot be set.
pub fn settings(_survey: &Survey, remedy: &Remedy) -> Result<Vec<Setting>, String> {
    let mut all = Vec::new();
    for part in &remedy.parts {
        let found = part.alternatives.iter().find_map(of_alternative);
        all.extend(found.ok_or("nothing that a running kernel takes cures it")?);
    }
    match all.is_empty() {
        true => Err("what to do depends on the machine".to_owned()),
        false => Ok(all),
    }
}

/// The same with another value.
///
/// # Errors
/// What the setting takes.
pub fn with_value(
    survey: &Survey,
    knob: &Knob,
    remedy: &Remedy,
    value: &str,
) -> Result<Vec<Setting>, String> {
    let usual = (knob.fix)();
    let mut all = settings(survey, if remedy.parts.is_empty() { &usual } else { remedy })?;
    all.iter_mut().for_each(|setting| value.clone_into(&mut setting.wanted));
    Ok(all)
}

fn of_alternative(way: &Alternative) -> Option<Vec<Setting>> {
    let each = way.changes.iter().map(of_change);
    each.collect::<Option<Vec<_>>>().map(|all| all.into_iter().flatten().collect())
}

fn of_change(change: &Change) -> Option<Vec<Setting>> {
    let writes = change.writes();
    let settings = writes.iter().map(|(path, value)| Some(Setting::new(Key::of_path(path)?, *value)));
    settings.collect::<Option<Vec<Setting>>>().filter(|all| !all.is_empty())
}
