//! The remedy of a finding: changes, their combination, and the texts made from them.

use super::change::{AdviceReason, Change, partition_steps, sysctl_path, write_command};
use super::parameters::{as_written, is_given, is_present, other_values};
use super::releases::is_outside;
use crate::change::Persistence;
use facts::cmdline::Cmdline;

/// All parts of a remedy, each in one of its alternatives. Empty means the rule's usual remedy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remedy {
    /// Parts, all of which are needed.
    pub parts: Vec<Part>,
}

/// Alternatives with the same effect, the best first; none means the rule's usual remedy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Alternatives, one of which is enough.
    pub alternatives: Vec<Alternative>,
}

/// Changes that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    pub changes: Vec<Change>,
    /// Further changes that keep it over a boot, if it takes any.
    pub persist: Vec<Change>,
    /// A further remark on it, without a full stop; `""` for none.
    pub note: String,
}

impl From<Change> for Remedy {
    fn from(change: Change) -> Remedy {
        Remedy::of([change])
    }
}

impl Remedy {
    /// A remedy of changes that belong together.
    pub fn of(now: impl IntoIterator<Item = Change>) -> Remedy {
        let way =
            Alternative { changes: now.into_iter().collect(), persist: Vec::new(), note: String::new() };
        Remedy { parts: vec![Part { alternatives: vec![way] }] }
    }

    /// Advice on the step that must come before any setting, if there is one.
    pub fn not_now(&self) -> Option<&str> {
        let changes = self.parts.iter().flat_map(|part| &part.alternatives).flat_map(|way| &way.changes);
        changes.into_iter().find_map(|change| match change {
            Change::Advice { reason: AdviceReason::NotNow, words, .. } => Some(words.as_str()),
            _ => None,
        })
    }

    /// Advice in words, for a rule that is not about one setting.
    pub fn advice(reason: AdviceReason, words: impl Into<String>) -> Remedy {
        Change::advice(reason, words).into()
    }

    /// Adds a change to the last alternative.
    pub fn and(mut self, change: Change) -> Remedy {
        self.last().changes.push(change);
        self
    }

    /// Adds a change that keeps the last alternative over a boot.
    pub fn persist(mut self, change: Change) -> Remedy {
        self.last().persist.push(change);
        self
    }

    /// Sets a further remark on the last alternative.
    pub fn note(mut self, note: impl Into<String>) -> Remedy {
        self.last().note = note.into();
        self
    }

    /// Adds an alternative with the same effect.
    pub fn or(mut self, other: impl Into<Remedy>) -> Remedy {
        let ways = other.into().parts.into_iter().flat_map(|part| part.alternatives);
        if self.parts.is_empty() {
            self.parts.push(Part::default());
        }
        if let Some(part) = self.parts.last_mut() {
            ways.for_each(|way| part.push(way));
        }
        self
    }

    fn last(&mut self) -> &mut Alternative {
        if self.parts.is_empty() {
            self.parts.push(Part::default());
        }
        let at = self.parts.len() - 1;
        let ways = &mut self.parts[at].alternatives;
        if ways.is_empty() {
            ways.push(Alternative { changes: Vec::new(), persist: Vec::new(), note: String::new() });
        }
        let at = ways.len() - 1;
        &mut ways[at]
    }

    /// Combines these remedies; an empty one stands for the rule's usual remedy.
    pub fn all(remedies: impl IntoIterator<Item = Remedy>) -> Remedy {
        let mut parts: Vec<Part> = Vec::new();
        for remedy in remedies {
            let own = if remedy.parts.is_empty() { vec![Part::default()] } else { remedy.parts };
            own.into_iter().for_each(|part| {
                if !parts.contains(&part) {
                    parts.push(part);
                }
            });
        }
        let usual_alone = parts.iter().all(|part| part.alternatives.is_empty());
        Remedy { parts: if usual_alone { Vec::new() } else { parts } }
    }

    /// Combines these remedies as alternatives.
    pub fn any(remedies: impl IntoIterator<Item = Remedy>) -> Remedy {
        let mut remedies = remedies.into_iter().filter(|remedy| !remedy.parts.is_empty());
        let first = remedies.next().unwrap_or_default();
        remedies.fold(first, Remedy::or)
    }

    /// Replaces empty parts by the rule's usual remedy.
    pub fn or_usual(self, usual: fn() -> Remedy) -> Remedy {
        if self.parts.is_empty() {
            return usual();
        }
        let expand = |part: Part| if part.alternatives.is_empty() { usual().parts } else { vec![part] };
        Remedy::all([Remedy { parts: self.parts.into_iter().flat_map(expand).collect() }])
    }

    /// The remaining steps on a machine that was booted with these words: none adds a word that is
    /// there already, and none removes one that is not.
    pub fn remaining(mut self, booted: &Cmdline) -> Remedy {
        for part in &mut self.parts {
            for way in &mut part.alternatives {
                // A word that is set already and does not help has no effect, for a reason that the
                // kernel knows.
                let asked = way
                    .changes
                    .iter()
                    .find_map(cmdline_word)
                    .filter(|_| way.changes.iter().all(|one| is_done(one, booted)));
                if let Some(word) = asked {
                    let log = "the kernel's log (dmesg) shows which of them it took";
                    way.changes = vec![Change::advice(
                        AdviceReason::Choice,
                        format!("see why the kernel does not obey {word} on its command line: {log}"),
                    )];
                }
                way.changes.retain(|change| !is_done(change, booted));
                way.persist.retain(|change| !is_done(change, booted));
            }
            let todo: Vec<Alternative> =
                part.alternatives.iter().filter(|way| !way.changes.is_empty()).cloned().collect();
            part.alternatives = todo;
        }
        self.parts.retain(|part| !part.alternatives.is_empty());
        self
    }

    /// Removes the parameters that a kernel of this release does not know, if there is another
    /// alternative.
    pub fn known_to(mut self, major: u32, minor: u32) -> Remedy {
        let is_unknown =
            |change: &Change| matches!(change, Change::CmdlineAdd { word } if is_outside(word, major, minor));
        for ways in self.parts.iter_mut().map(|part| &mut part.alternatives) {
            ways.iter_mut().for_each(|way| way.persist.retain(|change| !is_unknown(change)));
            if ways.iter().any(|way| !way.changes.iter().any(is_unknown)) {
                ways.retain(|way| !way.changes.iter().any(is_unknown));
            }
        }
        self
    }

    /// Sets the lifetime of the advice in words.
    pub fn with_persistence(mut self, persistence: Persistence) -> Remedy {
        for change in
            self.parts.iter_mut().flat_map(|part| &mut part.alternatives).flat_map(|way| &mut way.changes)
        {
            if let Change::Advice { persistence: own, .. } = change {
                *own = Some(persistence);
            }
        }
        self
    }

    /// Lifetime of the first alternative: that of its change that takes most to make.
    pub fn persistence(&self, rule: Persistence, booted: &Cmdline) -> Persistence {
        let first = self.parts.first().and_then(|part| part.alternatives.first());
        let changes = first.map_or(&[][..], |way| &way.changes);
        let of = |change: &Change| match cmdline_word(change) {
            Some(_) if booted.is_built_in => Persistence::Build,
            _ => change.persistence(rule),
        };
        changes.iter().map(of).max().unwrap_or(rule)
    }

    /// The remedy in words, on a machine that was booted with these.
    pub fn text(&self, booted: &Cmdline) -> String {
        let parts: Vec<String> = self.parts.iter().map(|part| part.text(booted)).collect();
        parts.join("; ")
    }
}

impl Part {
    /// First alternative that `onbeat tune` can make.
    pub fn settable(&self) -> Option<&Alternative> {
        let is_settable =
            |way: &&Alternative| !way.changes.is_empty() && way.changes.iter().all(Change::is_settable);
        self.alternatives.iter().find(is_settable)
    }

    fn push(&mut self, way: Alternative) {
        if !self.alternatives.contains(&way) {
            self.alternatives.push(way);
        }
    }

    fn text(&self, booted: &Cmdline) -> String {
        let mut text = String::new();
        for way in &self.alternatives {
            let words = way.text(booted);
            text = match text.as_str() {
                "" => words,
                // The alternative to the first is not another way to keep it.
                before if before.contains(';') => format!("{before}; or {words}"),
                before => format!("{before}, or {words}"),
            };
        }
        text
    }
}

impl Alternative {
    fn text(&self, booted: &Cmdline) -> String {
        let built = |wanted: bool| {
            let options = self.changes.iter().filter_map(move |change| match change {
                Change::Kconfig { option, value } if (value != "n") == wanted => {
                    Some(option_of(option, value))
                }
                _ => None,
            });
            options.collect::<Vec<_>>().join(", ")
        };
        let kernel = match (built(true).as_str(), built(false).as_str()) {
            ("", "") => None,
            (with, "") => Some(format!("boot a kernel built with {with}")),
            ("", without) => Some(format!("boot a kernel built without {without}")),
            (with, without) => Some(format!("boot a kernel built with {with} and without {without}")),
        };
        let others = self.changes.iter().filter(|change| !matches!(change, Change::Kconfig { .. }));
        let now: Vec<String> = kernel.into_iter().chain(others.map(|change| now(change, booted))).collect();
        let mut text = now.join(", and ");
        // One of the changes keeps it; a word that must not be there is removed in any case.
        let off = |change: &&Change| matches!(change, Change::CmdlineRemove { .. });
        let ways =
            self.persist.iter().filter(|change| !off(change)).map(|change| lasting_clause(change, booted));
        // The lines of one alternative keep it together; each further change is another way.
        let lines = together(&self.changes.iter().filter_map(kept_line).collect::<Vec<_>>());
        let ways: Vec<String> = lines.into_iter().chain(ways).collect();
        let gone = self.persist.iter().filter(off).map(|change| lasting_clause(change, booted));
        let keep: Vec<String> =
            Some(ways.join(", or ")).filter(|ways| !ways.is_empty()).into_iter().chain(gone).collect();
        if !keep.is_empty() {
            text += &format!("; to keep it, {}", keep.join(", and "));
        }
        if !self.note.is_empty() {
            text += &format!("; {}", self.note);
        }
        text
    }
}

fn cmdline_word(change: &Change) -> Option<&str> {
    match change {
        Change::CmdlineAdd { word } | Change::CmdlineRemove { word } => Some(word),
        _ => None,
    }
}

/// True if a word to add is present, or a word to remove is not.
fn is_done(change: &Change, booted: &Cmdline) -> bool {
    match change {
        Change::CmdlineAdd { word } => is_given(booted, word) && other_values(booted, word).is_empty(),
        Change::CmdlineRemove { word } => !is_present(booted, word),
        _ => false,
    }
}

fn option_of(option: &str, value: &str) -> String {
    if matches!(value, "y" | "n") { format!("CONFIG_{option}") } else { format!("CONFIG_{option}={value}") }
}

/// Line that sets a sysctl at each boot.
fn kept_line(change: &Change) -> Option<String> {
    match change {
        Change::Sysctl { name, value } => Some(format!("{name} = {value}")),
        _ => None,
    }
}

/// Lines that are all needed, with their place.
fn together(lines: &[String]) -> Option<String> {
    (!lines.is_empty()).then(|| format!("{} in /etc/sysctl.d", lines.join(" and ")))
}

/// Place of a kernel's command line.
fn line_of(booted: &Cmdline) -> &'static str {
    if booted.is_built_in {
        "the command line of a kernel built anew (CONFIG_CMDLINE; this one ignores the boot loader's)"
    } else {
        "the kernel's command line"
    }
}

fn now(change: &Change, booted: &Cmdline) -> String {
    let line = line_of(booted);
    match change {
        Change::Sysctl { name, value } => format!("echo {value} >{}", sysctl_path(name)),
        Change::Write { paths, shown_as, scope, value } => {
            let named = || match scope.as_str() {
                "" => format!("echo {value} >{shown_as}"),
                _ => format!("for {scope}, echo {value} >{shown_as}"),
            };
            write_command(paths, value).unwrap_or_else(named)
        }
        Change::Affinity { shown_as, cpus, .. } => format!("taskset -pc {cpus} PID for {shown_as}"),
        Change::Policy { shown_as, fifo: Some(priority), .. } => {
            format!("chrt -f -p {priority} PID for {shown_as}")
        }
        Change::Policy { shown_as, fifo: None, .. } => format!("chrt -o -p 0 PID for {shown_as}"),
        Change::Partition { cpus, root, nested } => partition_steps(root, cpus, *nested),
        Change::CmdlineAdd { word } => match other_values(booted, word).as_slice() {
            [] if is_given(booted, word) => format!("see what undoes {word}, which is on {line}"),
            [] => format!("add {word} to {line}"),
            others => format!("replace {} by {word} on {line}", others.join(" and ")),
        },
        Change::CmdlineRemove { word } => {
            format!("remove {} from {line}", as_written(booted, word).join(" and "))
        }
        Change::Kconfig { option, value } => format!("boot a kernel built with {}", option_of(option, value)),
        Change::Disable { unit, .. } => format!("systemctl disable --now {unit}"),
        Change::Advice { words, .. } => words.clone(),
    }
}

/// A change in words, as a clause that describes a lasting setting.
fn lasting_clause(change: &Change, booted: &Cmdline) -> String {
    let line = line_of(booted);
    match change {
        Change::CmdlineAdd { word } => match other_values(booted, word).as_slice() {
            [] => format!("{word} on {line}"),
            others => format!("{word} on {line} instead of {}", others.join(" and ")),
        },
        Change::Sysctl { name, value } => format!("{name} = {value} in /etc/sysctl.d"),
        other => now(other, booted),
    }
}
