//! Options of a section, and the settings that they request.

use host::MachineFiles;
use model::fact::Fact;
use model::setting::Key;
use model::text::quoted_value;

use crate::import::assignment::key_of;
use crate::import::pattern::expand;
use crate::import::{Collected, Imported};

/// Reason for which an option is not planned.
pub enum OptionTrouble {
    /// It cannot be planned, or does not apply to this machine.
    Left(String),
    /// It is not readable: without it the plan is less than the profile.
    Unread(String),
    /// The reason, and an alternative.
    Elsewhere { why: String, instead: &'static str },
}

/// Lists an option that is not planned.
pub fn name_trouble(outcome: Result<(), OptionTrouble>, label: &str, value: &str, collected: &mut Collected) {
    match outcome {
        Ok(()) => {}
        Err(OptionTrouble::Left(why)) => collected.leave(label, why, ""),
        Err(OptionTrouble::Unread(why)) => collected.lack(label, why),
        Err(OptionTrouble::Elsewhere { why, instead }) => {
            collected.leave(format!("{label} = {}", model::text::clean(value)), why, instead);
        }
    }
}

/// Option with its expanded value.
pub struct TunedOption<'a> {
    pub name: &'a str,
    pub value: &'a str,
    /// Its place, in readable form.
    pub label: &'a str,
    pub machine: &'a MachineFiles,
    pub collected: &'a mut Collected,
}

impl TunedOption<'_> {
    pub fn want(&mut self, key: Key, value: &str) {
        let (value, place) = (value.to_owned(), self.label.to_owned());
        self.collected.want(Imported { key, value, place, optional: false });
    }

    /// Notes an unreadable value, which does not matter if a later section sets the same key.
    pub fn unread(&mut self, kind: &str, why: String) -> Result<(), OptionTrouble> {
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
        keys.into_iter().for_each(|key| self.collected.lack_value(key, self.label, &why));
        Ok(())
    }

    /// Key of a sysctl; dots and slashes are swapped, whichever comes first.
    fn sysctl_key(&self) -> Option<Key> {
        let swapped = self.name.chars().map(|c| match c {
            '.' => '/',
            '/' => '.',
            c => c,
        });
        key_of(&swapped.collect::<String>())
    }

    pub fn sysctl(&mut self) -> Result<(), OptionTrouble> {
        let key = self.sysctl_key();
        let key = key.ok_or_else(|| OptionTrouble::Unread("it is not a sysctl name".to_owned()))?;
        if let Some(value) = self.modified(&key.path())? {
            self.want(key, &value);
        }
        Ok(())
    }

    /// Value to write; with `>` or `<` before it only if it is greater, or less, than the present
    /// value, or that of an earlier section.
    pub fn modified(&self, path: &str) -> Result<Option<String>, OptionTrouble> {
        let limit = self.value.strip_prefix(['>', '<']).filter(|limit| !limit.is_empty());
        let Some(limit) = limit else { return Ok(Some(self.value.to_owned())) };
        let number = |text: &str| text.trim().parse::<i128>().ok();
        let before = Key::of_path(path).and_then(|key| self.collected.value(&key));
        let now = match (before, self.machine.read_text(path)) {
            (Some(before), _) => number(before),
            (None, Fact::Known(now)) => number(&now),
            // A file that is missing, unreadable or not in a capture is reported later, by its
            // name.
            (None, _) => return Ok(Some(limit.to_owned())),
        };
        match (now, number(limit)) {
            (Some(now), Some(wanted)) => {
                let counts = if self.value.starts_with('>') { wanted > now } else { wanted < now };
                Ok(counts.then(|| wanted.to_string()))
            }
            _ => Err(OptionTrouble::Unread(format!(
                "{} is not compared with a number",
                quoted_value(self.value)
            ))),
        }
    }

    pub fn sysfs(&mut self) -> Result<(), OptionTrouble> {
        if !self.name.starts_with("/sys/") {
            return Err(OptionTrouble::Left(
                "it is not a file below /sys, and tuned ignores it as well".to_owned(),
            ));
        }
        let value = self.value.to_owned();
        self.files(self.name, |_| Ok(Some(value.clone())))
    }

    /// Requests a value for each file of a pattern, by a function of its path.
    pub fn files(
        &mut self,
        pattern: &str,
        value: impl Fn(&str) -> Result<Option<String>, OptionTrouble>,
    ) -> Result<(), OptionTrouble> {
        let paths = expand(self.machine, pattern).map_err(OptionTrouble::Unread)?;
        if paths.is_empty() {
            return Err(OptionTrouble::Left("it matches no file here".to_owned()));
        }
        for path in paths {
            let key = Key::of_path(&path).and_then(|key| key.to_string().parse().ok());
            match key {
                Some(key @ (Key::Sysctl(_) | Key::Sysfs(_) | Key::Irq(_) | Key::IrqDefault)) => {
                    if let Some(value) = value(&path)? {
                        self.want(key, &value);
                    }
                }
                _ => return Err(OptionTrouble::Left("it is not a kernel setting".to_owned())),
            }
        }
        Ok(())
    }

    /// Requests the value for a file.
    pub fn one_file(&mut self, path: &str) -> Result<(), OptionTrouble> {
        let value = self.modified(path)?;
        self.files(path, |_| Ok(value.clone()))
    }

    pub fn memory(&mut self) -> Result<(), OptionTrouble> {
        const HUGE: &str = "/sys/kernel/mm/transparent_hugepage";
        match self.name {
            "transparent_hugepages" | "transparent_hugepage" => {
                match self.machine.read_text("/proc/cmdline").known() {
                    Some(words) if words.contains("transparent_hugepage=") => Err(OptionTrouble::Left(
                        "the kernel's command line sets it, and tuned then leaves it unchanged".to_owned(),
                    )),
                    _ => self.one_file(&format!("{HUGE}/enabled")),
                }
            }
            "transparent_hugepage.defrag" => self.one_file(&format!("{HUGE}/defrag")),
            "dirty_bytes" | "dirty_background_bytes" | "dirty_ratio" | "dirty_background_ratio" => {
                // A share of bytes means the ratio.
                let (name, value) = match self.value.trim().strip_suffix('%') {
                    Some(share) => (self.name.replace("bytes", "ratio"), share.trim()),
                    None => (self.name.to_owned(), self.value),
                };
                let value = value.to_owned();
                self.files(&format!("/proc/sys/vm/{name}"), |_| Ok(Some(value.clone())))
            }
            _ => Err(OptionTrouble::Left("tuned has no such memory option".to_owned())),
        }
    }
}
