//! The sections of a profile, by the plugin that they are for, in the order in which tuned takes
//! them.

use host::MachineFiles;
use model::fact::Fact;
use model::setting::Key;
use model::text::quoted_value;

use super::functions::FailedAssertion;
use super::search::{Lines, matches};
use super::unit::TunedUnit;
use super::values::{Values, unquoted};
use super::{bootloader, cpu};
use crate::import::pattern::expand;
use crate::import::sysctl_d::key_of;
use crate::import::{Collected, Imported};

/// Plugins that set nothing here, why, and what to do instead.
const NOT_TAKEN: &[(&str, &str, &str)] = &[
    ("script", "a script is not run", "see what it does, and set that"),
    (
        "irqbalance",
        "it is the configuration of another program",
        "IRQBALANCE_BANNED_CPULIST in /etc/default/irqbalance",
    ),
    (
        "irq",
        "numbers of interrupts depend on the machine",
        "onbeat tune plan irq-affinity default-irq-affinity",
    ),
    ("systemd", "it is the configuration of another program", "CPUAffinity= in /etc/systemd/system.conf"),
    ("service", "it is a service", "systemctl"),
];

/// A reason for which an option is not planned.
pub enum OptionTrouble {
    /// It cannot be, or is not for this machine.
    Left(String),
    /// It cannot be read: without it the plan is less than the profile.
    Unread(String),
    /// The reason, and what to do instead.
    Elsewhere { why: String, instead: &'static str },
}

/// What the sections ask for.
///
/// # Errors
/// An assertion in a value does not hold.
pub fn collect(
    units: Vec<TunedUnit>,
    values: &Values,
    collected: &mut Collected,
) -> Result<(), FailedAssertion> {
    let priority = |unit: &TunedUnit| match &unit.priority {
        Some(text) => text.trim().parse::<i64>().ok(),
        None => Some(0),
    };
    let mut active = Vec::new();
    for unit in units.into_iter().filter(|unit| unit.is_enabled) {
        match conditions(&unit, values)? {
            Conditions::Met => active.push((priority(&unit), unit)),
            Conditions::Unmet => {}
            Conditions::Unknown(why) => collected.lack(format!("[{}]", unit.name), why),
        }
    }
    active.sort_by_key(|(priority, _)| priority.unwrap_or(0));
    let mut claimed = cpu::ClaimedCpus::default();
    for (priority, unit) in &active {
        let shown = format!("[{}]", unit.name);
        if priority.is_none() {
            collected.lack(format!("{shown} priority"), "it is no number");
        }
        let hooks = [("script_pre", &unit.script_pre), ("script_post", &unit.script_post)];
        for (name, _) in hooks.iter().filter(|(_, script)| script.is_some()) {
            collected.leave(format!("{shown} {name}"), "a script is not run", "");
        }
        match unit.kind.as_str() {
            "bootloader" => bootloader::collect(unit, values, collected)?,
            "cpu" => cpu::collect(unit, values, &mut claimed, collected)?,
            _ => options(unit, values, collected)?,
        }
    }
    Ok(())
}

/// How the conditions of a section stand on a machine.
enum Conditions {
    Met,
    Unmet,
    /// They cannot be decided, with the reason.
    Unknown(String),
}

/// The conditions of a section on this machine.
fn conditions(unit: &TunedUnit, values: &Values) -> Result<Conditions, FailedAssertion> {
    let target = values.functions.target;
    let facts = &target.survey.facts;
    for (name, expression) in [("cpuinfo_regex", &unit.cpuinfo_regex), ("uname_regex", &unit.uname_regex)] {
        let Some(expression) = expression else { continue };
        let expression = values.expand(expression)?;
        if let Some(why) = values.functions.trouble(&expression) {
            return Ok(Conditions::Unknown(format!("its condition {name} cannot be decided: {why}")));
        }
        let text = match name {
            "cpuinfo_regex" => target.files.read_text("/proc/cpuinfo").known().cloned(),
            // The name of the node is private, and no kind of machine.
            _ => [&facts.release, &facts.version, &facts.machine]
                .into_iter()
                .try_fold("Linux".to_owned(), |text, fact| Some(format!("{text} {}", fact.known()?))),
        };
        let Some(text) = text else {
            return Ok(Conditions::Unknown(format!(
                "its condition {name} cannot be decided: what it looks at is not known"
            )));
        };
        match matches(&expression, &text, Lines::Each) {
            Ok(true) => {}
            Ok(false) => return Ok(Conditions::Unmet),
            Err(unknown) => return Ok(Conditions::Unknown(unknown.to_string())),
        }
    }
    Ok(Conditions::Met)
}

fn options(unit: &TunedUnit, values: &Values, collected: &mut Collected) -> Result<(), FailedAssertion> {
    for (name, written) in unit.options.in_order() {
        let shown = format!("[{}] {name}", unit.name);
        let written = if unit.kind == "sysctl" { unquoted(written) } else { written };
        if !["sysctl", "sysfs", "vm", "scheduler"].contains(&unit.kind.as_str()) {
            let named = NOT_TAKEN.iter().find(|(plugin, ..)| *plugin == unit.kind);
            let (why, instead) =
                named.map_or(("onbeat sets nothing of this kind", ""), |(_, why, instead)| (*why, *instead));
            collected.leave(format!("{shown} = {}", values.readable(written)?.0), why, instead);
            continue;
        }
        let value = values.expand(written)?;
        let mut option = TunedOption {
            name,
            value: &value,
            shown: &shown,
            machine: values.functions.target.files,
            collected,
        };
        let taken = match values.functions.trouble(&value) {
            Some(why) => option.unread(&unit.kind, why),
            None => match unit.kind.as_str() {
                "sysctl" => option.sysctl(),
                "sysfs" => option.sysfs(),
                "vm" => option.memory(),
                _ => option.scheduler(),
            },
        };
        name_trouble(taken, &shown, &value, collected);
    }
    Ok(())
}

/// Names an option that is not planned.
pub fn name_trouble(taken: Result<(), OptionTrouble>, shown: &str, value: &str, collected: &mut Collected) {
    match taken {
        Ok(()) => {}
        Err(OptionTrouble::Left(why)) => collected.leave(shown, why, ""),
        Err(OptionTrouble::Unread(why)) => collected.lack(shown, why),
        Err(OptionTrouble::Elsewhere { why, instead }) => {
            collected.leave(format!("{shown} = {}", model::text::clean(value)), why, instead);
        }
    }
}

/// An option with its expanded value.
pub struct TunedOption<'a> {
    pub name: &'a str,
    pub value: &'a str,
    /// Its place, for people.
    pub shown: &'a str,
    pub machine: &'a MachineFiles,
    pub collected: &'a mut Collected,
}

impl TunedOption<'_> {
    pub fn want(&mut self, key: Key, value: &str) {
        let (value, place) = (value.to_owned(), self.shown.to_owned());
        self.collected.want(Imported { key, value, place, optional: false });
    }

    /// A value that cannot be read is no matter where a later section sets the same.
    fn unread(&mut self, kind: &str, why: String) -> Result<(), OptionTrouble> {
        let keys: Vec<Key> = match kind {
            "sysctl" => self.sysctl_key().into_iter().collect(),
            "sysfs" => {
                let paths = expand(self.machine, self.name).unwrap_or_default();
                paths.iter().filter_map(|path| Key::of_path(path)?.to_string().parse().ok()).collect()
            }
            _ => Vec::new(),
        };
        if keys.is_empty() {
            return Err(OptionTrouble::Unread(why));
        }
        keys.into_iter().for_each(|key| self.collected.lack_value(key, self.shown, &why));
        Ok(())
    }

    /// Dots and slashes change places, whichever comes first.
    fn sysctl_key(&self) -> Option<Key> {
        let swapped = self.name.chars().map(|c| match c {
            '.' => '/',
            '/' => '.',
            c => c,
        });
        key_of(&swapped.collect::<String>())
    }

    fn sysctl(&mut self) -> Result<(), OptionTrouble> {
        let key = self.sysctl_key();
        let key = key.ok_or_else(|| OptionTrouble::Unread("it is no name of a sysctl".to_owned()))?;
        if let Some(value) = self.modified(&key.path())? {
            self.want(key, &value);
        }
        Ok(())
    }

    /// A value; with `>` or `<` before it only where it is more, or less, than what is there, or
    /// what an earlier section sets.
    pub fn modified(&self, path: &str) -> Result<Option<String>, OptionTrouble> {
        let limit = self.value.strip_prefix(['>', '<']).filter(|limit| !limit.is_empty());
        let Some(limit) = limit else { return Ok(Some(self.value.to_owned())) };
        let number = |text: &str| text.trim().parse::<i128>().ok();
        let before = Key::of_path(path).and_then(|key| self.collected.value(&key));
        let now = match (before, self.machine.read_text(path)) {
            (Some(before), _) => number(before),
            (None, Fact::Known(now)) => number(&now),
            // What is not there is left out by its name.
            (None, Fact::Absent) => return Ok(Some(limit.to_owned())),
            _ => None,
        };
        match (now, number(limit)) {
            (Some(now), Some(wanted)) => {
                let counts = if self.value.starts_with('>') { wanted > now } else { wanted < now };
                Ok(counts.then(|| wanted.to_string()))
            }
            _ => {
                Err(OptionTrouble::Unread(format!("{} is compared with no number", quoted_value(self.value))))
            }
        }
    }

    fn sysfs(&mut self) -> Result<(), OptionTrouble> {
        if !self.name.starts_with("/sys/") {
            return Err(OptionTrouble::Left(
                "it is no file below /sys, and tuned leaves it as well".to_owned(),
            ));
        }
        let value = self.value.to_owned();
        self.files(self.name, |_| Ok(Some(value.clone())))
    }

    /// Writes to the files of a pattern what is to be in each.
    pub fn files(
        &mut self,
        pattern: &str,
        value: impl Fn(&str) -> Result<Option<String>, OptionTrouble>,
    ) -> Result<(), OptionTrouble> {
        let paths = expand(self.machine, pattern).map_err(OptionTrouble::Unread)?;
        if paths.is_empty() {
            return Err(OptionTrouble::Left("no file here is meant by it".to_owned()));
        }
        for path in paths {
            let key = Key::of_path(&path).and_then(|key| key.to_string().parse().ok());
            match key {
                Some(key @ (Key::Sysctl(_) | Key::Sysfs(_) | Key::Irq(_) | Key::IrqDefault)) => {
                    if let Some(value) = value(&path)? {
                        self.want(key, &value);
                    }
                }
                _ => return Err(OptionTrouble::Left("it is no setting of the kernel".to_owned())),
            }
        }
        Ok(())
    }

    /// Writes the value to a file.
    pub fn one_file(&mut self, path: &str) -> Result<(), OptionTrouble> {
        let value = self.modified(path)?;
        self.files(path, |_| Ok(value.clone()))
    }

    fn memory(&mut self) -> Result<(), OptionTrouble> {
        const HUGE: &str = "/sys/kernel/mm/transparent_hugepage";
        match self.name {
            "transparent_hugepages" | "transparent_hugepage" => {
                match self.machine.read_text("/proc/cmdline").known() {
                    Some(words) if words.contains("transparent_hugepage=") => Err(OptionTrouble::Left(
                        "the kernel's command line sets it, and tuned leaves it then".to_owned(),
                    )),
                    _ => self.one_file(&format!("{HUGE}/enabled")),
                }
            }
            "transparent_hugepage.defrag" => self.one_file(&format!("{HUGE}/defrag")),
            "dirty_bytes" | "dirty_background_bytes" | "dirty_ratio" | "dirty_background_ratio" => {
                // Of bytes a share stands for the ratio.
                let (name, value) = match self.value.trim().strip_suffix('%') {
                    Some(share) => (self.name.replace("bytes", "ratio"), share.trim()),
                    None => (self.name.to_owned(), self.value),
                };
                let value = value.to_owned();
                self.files(&format!("/proc/sys/vm/{name}"), |_| Ok(Some(value.clone())))
            }
            _ => Err(OptionTrouble::Left("tuned has no such option of memory".to_owned())),
        }
    }
}
