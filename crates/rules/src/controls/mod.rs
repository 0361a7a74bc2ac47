//! The kernel's control files as data: how each takes a value, shows it, and what hangs on it.
//!
//! A change of a rule says which file and which value; what has to be known to write it, to read it
//! back and to restore it is the file's own, not the rule's. A record is found by the file's
//! path, its patterns are those of [`facts::texts`].

pub mod accepted;
mod cpus;
mod devices;
mod interrupts;
mod kernel;
mod memory;
mod power;

use accepted::Accepted;
use facts::survey::Survey;
use facts::texts::{filled, matched};
use model::setting::{Comparison, Key, Risk, Setting, same};

/// A file of the kernel's that a value is written to.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    /// Its path, as in [`facts::texts`].
    pub pattern: &'static str,
    /// How what is read back is compared with what was written.
    pub readback: Comparison,
    /// What it takes.
    pub accepts: Accepted,
    /// What a change can cost others.
    pub risk: Risk,
    /// The values with which a safeguard or a CPU is lost: the risk is high then.
    pub gives_up: &'static [&'static str],
    /// What the kernel changes with it, where that restores what cannot be written here.
    pub partners: &'static [&'static str],
    /// What is written before it when it is restored, unread.
    pub restored_first: &'static [&'static str],
    /// Whether it shows several numbers, of which the first is written.
    pub first_of_several: bool,
    /// Whether the affinity of threads may change with it.
    pub moves_threads: bool,
    /// Whether the kernel may refuse it on some hardware.
    pub optional: bool,
    /// Why it is as this record says, for its readers.
    pub reason: &'static str,
    /// Where that is written.
    pub source: &'static str,
}

impl Control {
    const DEFAULT: Control = Control {
        pattern: "",
        readback: Comparison::Number,
        accepts: Accepted::SWITCH,
        risk: Risk::Low,
        gives_up: &[],
        partners: &[],
        restored_first: &[],
        first_of_several: false,
        moves_threads: false,
        optional: false,
        reason: "",
        source: "",
    };

    /// The setting that gives the file of this path a value, on a machine.
    pub fn setting(&self, path: &str, value: &str, survey: &Survey) -> Option<Setting> {
        let names = matched(self.pattern, path)?;
        let high = self.gives_up.iter().any(|given_up| same(self.readback, given_up, value));
        let keys = |patterns: &[&str]| -> Vec<Key> {
            let paths = patterns.iter().map(|pattern| filled(pattern, &names));
            paths.filter(|path| !is_absent(survey, path)).filter_map(|path| Key::of_path(&path)).collect()
        };
        Some(Setting {
            readback: self.readback,
            risk: if high { Risk::High } else { self.risk },
            partners: keys(self.partners),
            restored_first: keys(self.restored_first),
            moves_threads: self.moves_threads,
            optional: self.optional,
            ..Setting::new(Key::of_path(path)?, self.whole(path, value, survey))
        })
    }

    /// A user's value for the file of this path as it is written.
    ///
    /// # Errors
    /// What is taken instead, or that there is no such file.
    pub fn taken(&self, path: &str, value: &str, survey: &Survey) -> Result<String, String> {
        if is_absent(survey, path) {
            return Err(format!("this kernel has no {path}"));
        }
        let value = self.accepts.taken(value, survey)?;
        let shown = survey.texts.one(path).known().copied().filter(|_| self.readback == Comparison::Choice);
        let bare = |word: &str| word.trim_matches(['[', ']', '(', ')']) == value;
        match shown {
            Some(shown) if !shown.split_whitespace().any(bare) => {
                Err(format!("this kernel offers no {value}, but {}", shown.trim()))
            }
            _ => Ok(value),
        }
    }

    /// What is written: with the numbers behind the first as they are.
    fn whole(&self, path: &str, value: &str, survey: &Survey) -> String {
        let others = survey.texts.one(path);
        match others.known() {
            Some(text) if self.first_of_several => {
                let others = text.split_whitespace().skip(1);
                std::iter::once(value).chain(others).collect::<Vec<_>>().join(" ")
            }
            _ => value.to_owned(),
        }
    }
}

/// Whether a text that was looked for is not there.
fn is_absent(survey: &Survey, path: &str) -> bool {
    survey.texts.one(path) == model::fact::Fact::Absent
}

/// Every control, by area.
pub fn all() -> impl Iterator<Item = &'static Control> {
    [kernel::ALL, memory::ALL, cpus::ALL, power::ALL, interrupts::ALL, devices::ALL].into_iter().flatten()
}

/// The control of a file.
pub fn find(path: &str) -> Option<&'static Control> {
    all().find(|control| matched(control.pattern, path).is_some())
}

/// The control of a pattern, or of the one file that a pattern without wildcards is.
pub fn of_pattern(pattern: &str) -> Option<&'static Control> {
    all().find(|control| control.pattern == pattern).or_else(|| find(pattern))
}

#[cfg(test)]
mod tests;
