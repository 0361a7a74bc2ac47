//! Imported values on a machine: their writing and readback, those that it has already, and those
//! that a program must not write.

use model::fact::Fact;
use model::plan::{PlanDocument, PlannedChange};
use model::setting::{Comparison, Key, Risk, Setting};
use model::text::quoted_value;

use rules::controls::{self, Control};

use super::{Collected, ImportTarget, Imported};
use crate::reading;

/// Values that cannot be reverted before the next boot, by the kernel's documents
/// admin-guide/sysctl/{kernel,vm}.rst and networking/ip-sysctl.rst.
const ONE_WAY: &[(&str, &str)] = &[
    ("kernel.modules_disabled", "1"),
    ("kernel.kexec_load_disabled", "1"),
    ("kernel.unprivileged_bpf_disabled", "1"),
    ("kernel.yama.ptrace_scope", "3"),
];

/// Files that trigger an action when written, and are not settings.
const ACTIONS: &[&str] = &[
    "sysctl:vm.drop_caches",
    "sysctl:vm.compact_memory",
    "sysctl:net.ipv4.route.flush",
    "sysctl:net.ipv6.route.flush",
    "sysctl:kernel.sysrq-trigger",
    "sysfs:power/",
    "sysfs:kernel/reboot/",
    "sysfs:firmware/",
    "sysfs:bus/pci/rescan",
];

/// Names of files that act on a device.
const ACTING: &[&str] = &[
    "remove",
    "rescan",
    "reset",
    "bind",
    "unbind",
    "new_id",
    "remove_id",
    "uevent",
    "probe",
    "delete",
    "state",
];

/// Plan of the values that the machine does not have yet.
pub fn plan(collected: Collected, target: ImportTarget, boot: &str) -> PlanDocument {
    let mut changes = Vec::new();
    let (wanted, mut left_out) = collected.in_order();
    let mut leave = |imported: &Imported, why: String| {
        left_out.push(model::plan::LeftOut { rule: imported.key.to_string(), why, instead: String::new() });
    };
    for imported in &wanted {
        if let Some(why) = refused(imported) {
            leave(imported, why.to_owned());
            continue;
        }
        let setting = match setting(imported, target) {
            Ok(setting) => setting,
            Err(why) => {
                leave(imported, why);
                continue;
            }
        };
        let now = match reading_of(target, &setting) {
            Ok(now) => now,
            Err(why) => {
                leave(imported, why);
                continue;
            }
        };
        if setting.readback != Comparison::Unread && setting.is_met_by(&now) {
            continue;
        }
        let mut change = PlannedChange::new(setting, "", now.trim());
        let file = imported.place.split_once(", line ").map_or(&*imported.place, |(file, _)| file);
        change.why = format!("{file} contains it");
        changes.push(change);
    }
    PlanDocument::new(boot, changes, left_out)
}

fn refused(imported: &Imported) -> Option<&'static str> {
    let text = imported.key.to_string();
    let one_way = ONE_WAY.iter().any(|(name, value)| {
        text == format!("sysctl:{name}") && (value.is_empty() || imported.value == *value)
    });
    let is_acting = |file: &str| file.rsplit('/').next().is_some_and(|name| ACTING.contains(&name));
    let acts = ACTIONS.iter().any(|start| text.starts_with(start))
        || matches!(&imported.key, Key::Sysfs(file) if is_acting(file));
    match (one_way, acts) {
        (true, _) => Some("it cannot be undone before the next boot"),
        (_, true) => Some("writing it has an effect once, but sets nothing"),
        _ if imported.value.is_empty() => Some("it has no value"),
        _ if imported.value.contains('\0') => Some("its value has a NUL in it"),
        _ if imported.value.contains('\n') => Some("its value has several lines"),
        _ => None,
    }
}

/// Reason for which no machine takes a value.
pub(super) fn invalid(imported: &Imported, target: ImportTarget) -> Option<String> {
    match refused(imported) {
        Some(why) => imported.value.is_empty().then(|| why.to_owned()),
        None => setting(imported, target).err(),
    }
}

/// Setting of a value from any source, with the properties of its file.
///
/// # Errors
/// The reason for which it must not be written.
pub fn setting_of(key: &Key, value: &str, target: ImportTarget) -> Result<Setting, String> {
    let (place, optional) = (String::new(), false);
    let imported = Imported { key: key.clone(), value: value.to_owned(), place, optional };
    match refused(&imported) {
        Some(why) => Err(why.to_owned()),
        None => setting(&imported, target),
    }
}

/// Present value of a setting.
fn reading_of(target: ImportTarget, setting: &Setting) -> Result<String, String> {
    const ABSENT: &str = "this machine has no such setting";
    // Reading some files has an effect; a held value belongs to a program.
    if setting.readback == Comparison::Unread || matches!(setting.key, Key::Hold(_)) {
        let path = setting.key.path();
        let (folder, name) = path.rsplit_once('/').unwrap_or_default();
        let is_absent = match target.files.list_as_it_is(folder) {
            Fact::Known(names) => !names.iter().any(|own| own == name),
            other => other == Fact::Absent,
        };
        let is_file = setting.readback == Comparison::Unread;
        return if is_file && is_absent { Err(ABSENT.to_owned()) } else { Ok(String::new()) };
    }
    match reading::read(target.files, &setting.key) {
        Fact::Known(now) => Ok(now),
        Fact::Absent => Err(ABSENT.to_owned()),
        Fact::Refused(errno) => Err(format!("it cannot be read ({})", model::fact::errno_name(errno))),
        Fact::Malformed(what) => Err(format!("it cannot be read: {what}")),
        Fact::NotCaptured => Err("whether it exists is not in this capture".to_owned()),
        Fact::NotRunning => Err("only a running kernel has it".to_owned()),
    }
}

/// Properties needed to write a value, from its control. A value without a control is compared as
/// text.
fn setting(imported: &Imported, target: ImportTarget) -> Result<Setting, String> {
    if let Some(control) = controls::find(&imported.key.path()) {
        return controlled(imported, target, control);
    }
    let mut setting = Setting::new(imported.key.clone(), imported.value.clone());
    setting.optional = imported.optional;
    match &imported.key {
        Key::Hold(_) => setting.readback = Comparison::Number,
        Key::Sysctl(_) => setting.risk = Risk::Medium,
        // Such a file can be anything, so it needs --yes.
        _ => {
            setting.risk = Risk::High;
            if let Fact::Known(now) = reading::read(target.files, &imported.key) {
                if let Some(words) = choices(&now) {
                    setting.readback = Comparison::Choice;
                    if !words.iter().any(|word| *word == imported.value) {
                        return Err(format!(
                            "it takes {}, not {}",
                            words.join(", "),
                            quoted_value(&imported.value)
                        ));
                    }
                }
            }
        }
    }
    Ok(setting)
}

fn controlled(imported: &Imported, target: ImportTarget, control: &Control) -> Result<Setting, String> {
    let first = imported.value.split_whitespace().next().unwrap_or_default();
    let several = control.first_of_several && first != imported.value;
    let value = control.accepts.normalize(if several { first } else { &imported.value }, target.survey)?;
    let path = imported.key.path();
    let setting = control.setting(&path, &value, target.survey).ok_or("it is not a kernel setting")?;
    Ok(Setting {
        wanted: if several { imported.value.clone() } else { setting.wanted.clone() },
        optional: setting.optional || imported.optional,
        ..setting
    })
}

/// Words that a file offers, one of them in brackets.
fn choices(text: &str) -> Option<Vec<&str>> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let bare = |word: &&str| word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).is_some();
    (words.iter().filter(|word| bare(word)).count() == 1)
        .then(|| words.iter().map(|word| word.trim_start_matches('[').trim_end_matches(']')).collect())
}
