//! What a running tuned sets by the profile that is active.

use std::collections::BTreeSet;

use host::MachineFiles;
use model::fact::Fact;
use model::setting::Key;
use rules::competing_tuners::TunedArea;

use super::profile::{TunedProfile, is_true};
use crate::import::pattern::expand;
use crate::import::sysctl_d::{key_of, with_slashes};

/// The keys of a profile, and the areas in which it chooses keys while it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileKeys {
    /// The names of the active profiles.
    pub name: String,
    pub keys: BTreeSet<Key>,
    pub areas: Vec<TunedArea>,
}

/// Where tuned looks for a profile, first place first.
const FOLDERS: &[&str] = &["/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned"];

/// What each plugin sets beyond keys that its section names.
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

/// What the active profile sets; none where that cannot be read: all that tuned can decide is
/// then taken for its own.
pub fn owned(machine: &MachineFiles) -> Option<ProfileKeys> {
    let active = machine.read_text("/etc/tuned/active_profile").known()?.trim().to_owned();
    let mut found = ProfileKeys { name: active.clone(), ..ProfileKeys::default() };
    for name in active.split_whitespace() {
        let text = text_of(machine, &format!("{name}/tuned.conf"))?;
        let mut lacking = false;
        let beside = |path: &str| text_of(machine, path);
        let profile =
            TunedProfile::load(name, &text, &beside, &mut |what, _| lacking |= what.contains("include "));
        if lacking {
            return None;
        }
        add(&profile, machine, &mut found);
    }
    Some(found)
}

fn text_of(machine: &MachineFiles, path: &str) -> Option<String> {
    FOLDERS.iter().find_map(|folder| match machine.read_text(&format!("{folder}/{path}")) {
        Fact::Known(text) => Some(text),
        _ => None,
    })
}

fn add(profile: &TunedProfile, machine: &MachineFiles, found: &mut ProfileKeys) {
    for section in &profile.sections {
        if section.option("enabled").is_some_and(|value| !is_true(value)) {
            continue;
        }
        let kind = section.option("type").unwrap_or(&section.name);
        found.areas.extend(AREAS.iter().filter(|(plugin, _)| *plugin == kind).flat_map(|(_, areas)| *areas));
        for (name, _) in &section.options {
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
