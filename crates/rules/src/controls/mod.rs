//! The kernel's control files as data: accepted values, readback, and side effects.
//!
//! A rule's change consists of a file and a value; the knowledge needed to write, read back and
//! restore it belongs to the file, not to the rule. A record is found by the file's path; its
//! patterns are those of [`facts::texts`].

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

/// A kernel file that accepts a value.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    /// Path, as a pattern of [`facts::texts`].
    pub pattern: &'static str,
    /// Comparison of the value read back with the value written.
    pub readback: Comparison,
    /// Accepted values.
    pub accepts: Accepted,
    /// Risk of a change for others.
    pub risk: Risk,
    /// Values that give up a safeguard or a CPU, with which the risk is high.
    pub gives_up: &'static [&'static str],
    /// Files that the kernel changes with it, if writing them back restores this one.
    pub partners: &'static [&'static str],
    /// Files that are written before it when it is restored, without reading them.
    pub restored_first: &'static [&'static str],
    /// True if it shows several numbers, the first of which is written.
    pub first_of_several: bool,
    /// True if the affinity of threads may change with it.
    pub moves_threads: bool,
    /// True if the kernel may refuse it on some hardware.
    pub optional: bool,
    /// Reason for the values of this record, for its readers.
    pub reason: &'static str,
    /// Source of the reason.
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

    /// Setting that writes a value to the file of this path on a machine.
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

    /// A user's value for the file of this path, in the form in which it is written.
    ///
    /// # Errors
    /// The expected value, or the absence of the file.
    pub fn normalize(&self, path: &str, value: &str, survey: &Survey) -> Result<String, String> {
        if is_absent(survey, path) {
            return Err(format!("this kernel has no {path}"));
        }
        let value = self.accepts.normalize(value, survey)?;
        let choices = survey.texts.one(path).known().copied().filter(|_| self.readback == Comparison::Choice);
        let bare = |word: &str| word.trim_matches(['[', ']', '(', ')']) == value;
        match choices {
            Some(choices) if !choices.split_whitespace().any(bare) => {
                Err(format!("this kernel does not offer {value}, only {}", choices.trim()))
            }
            _ => Ok(value),
        }
    }

    /// The whole text to write: the value, followed by the unchanged numbers after the first.
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

/// True if a text that was looked for does not exist.
fn is_absent(survey: &Survey, path: &str) -> bool {
    survey.texts.one(path) == model::fact::Fact::Absent
}

/// Every control, by area.
pub fn all() -> impl Iterator<Item = &'static Control> {
    [kernel::ALL, memory::ALL, cpus::ALL, power::ALL, interrupts::ALL, devices::ALL].into_iter().flatten()
}

/// Control of a file, by path.
pub fn find(path: &str) -> Option<&'static Control> {
    all().find(|control| matched(control.pattern, path).is_some())
}

/// Control of a pattern, or of the one file that a pattern without wildcards matches.
pub fn of_pattern(pattern: &str) -> Option<&'static Control> {
    all().find(|control| control.pattern == pattern).or_else(|| find(pattern))
}

#[cfg(test)]
mod tests;
