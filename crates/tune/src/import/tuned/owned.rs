//! Settings that a running tuned controls by its active profile.

use std::collections::BTreeSet;

use host::MachineFiles;
use model::setting::Key;
use rules::competing_tuners::TunedArea;

use super::functions::ProfileFunctions;
use super::places::{ProfilePlaces, ProfileSearch};
use super::profile::TunedProfile;
use crate::import::ImportTarget;
use crate::import::assignment::{key_of, with_slashes};
use crate::import::pattern::expand;

/// Keys of a profile, and the areas in which tuned selects keys at run time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileKeys {
    /// Names of the active profiles.
    pub name: String,
    pub keys: BTreeSet<Key>,
    pub areas: Vec<TunedArea>,
}

/// Areas that each plugin controls beyond the keys in its section.
const AREAS: &[(&str, &[TunedArea])] = &[
    ("cpu", &[TunedArea::Governor, TunedArea::Idle]),
    ("scheduler", &[TunedArea::Tasks, TunedArea::Interrupts]),
    ("irq", &[TunedArea::Interrupts]),
    ("irqbalance", &[TunedArea::Interrupts]),
    ("audio", &[TunedArea::Devices]),
    ("scsi_host", &[TunedArea::Devices]),
    ("usb", &[TunedArea::Devices]),
    ("video", &[TunedArea::Devices]),
];

/// Settings of the active profile; none if it is not readable: then everything that tuned can
/// control counts as its own.
pub fn owned(target: ImportTarget) -> Option<ProfileKeys> {
    let machine = target.files;
    let active = machine.read_text("/etc/tuned/active_profile").known()?.trim().to_owned();
    let (places, functions) = (ProfilePlaces::of_machine(machine), ProfileFunctions::new(target));
    let mut files = Vec::new();
    for name in active.split_whitespace() {
        match places.find(name, &[]) {
            ProfileSearch::Found(file) => files.push(file),
            _ => return None,
        }
    }
    let mut lacking = false;
    let profile = TunedProfile::load(files, &places, &functions, &mut |_, _| lacking = true).ok()?;
    if lacking {
        return None;
    }
    let mut found = ProfileKeys { name: active, ..ProfileKeys::default() };
    add(&profile, machine, &mut found);
    Some(found)
}

fn add(profile: &TunedProfile, machine: &MachineFiles, found: &mut ProfileKeys) {
    for unit in profile.units.iter().filter(|unit| unit.is_enabled) {
        let kind = unit.kind.as_str();
        found.areas.extend(AREAS.iter().filter(|(plugin, _)| *plugin == kind).flat_map(|(_, areas)| *areas));
        for (name, _) in unit.options.in_order() {
            match kind {
                "sysctl" => found.keys.extend(key_of(&with_slashes(name))),
                "sysfs" => {
                    let paths = expand(machine, name).unwrap_or_default();
                    found.keys.extend(paths.iter().filter_map(|path| Key::of_path(path)));
                }
                "vm" if name.starts_with("transparent_hugepage") => found.areas.push(TunedArea::HugePages),
                "vm" if name.starts_with("dirty_") => found.areas.push(TunedArea::Writeback),
                _ => {}
            }
        }
    }
}
