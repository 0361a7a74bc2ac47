//! The remedy of a finding: changes, which of them go together, and the texts made from them.

use super::change::{AdviceReason, Change, partition_steps, sysctl_path, write_command};
use super::parameters::{as_written, is_given, is_present, other_values};
use super::releases::is_outside;
use crate::change::Persistence;
use facts::cmdline::Cmdline;

/// What has to be done: all parts, each in one of its alternatives. Empty means the rule's usual
/// remedy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remedy {
    /// Each has to be done.
    pub parts: Vec<Part>,
}

/// Alternatives to the same end, the best first; none means the rule's usual remedy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// One of them is enough.
    pub alternatives: Vec<Alternative>,
}

/// Changes that are made together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    pub changes: Vec<Change>,
    /// What keeps it over a boot, where that takes another change.
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
    /// Changes that are made together.
    pub fn of(now: impl IntoIterator<Item = Change>) -> Remedy {
        let way =
            Alternative { changes: now.into_iter().collect(), persist: Vec::new(), note: String::new() };
        Remedy { parts: vec![Part { alternatives: vec![way] }] }
    }

    /// What has to be done before anything of it may be set.
    pub fn not_now(&self) -> Option<&str> {
        let changes = self.parts.iter().flat_map(|part| &part.alternatives).flat_map(|way| &way.changes);
        changes.into_iter().find_map(|change| match change {
            Change::Advice { reason: AdviceReason::NotNow, words, .. } => Some(words.as_str()),
            _ => None,
        })
    }

    /// Text only, for a rule that is not about one setting.
    pub fn advice(reason: AdviceReason, words: impl Into<String>) -> Remedy {
        Change::advice(reason, words).into()
    }

    /// Another change in the last way.
    pub fn and(mut self, change: Change) -> Remedy {
        self.last().changes.push(change);
        self
    }

    /// What keeps the last way over a boot.
    pub fn persist(mut self, change: Change) -> Remedy {
        self.last().persist.push(change);
        self
    }

    /// A further remark on the last alternative.
    pub fn note(mut self, note: impl Into<String>) -> Remedy {
        self.last().note = note.into();
        self
    }

    /// Another way to the same end.
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

    /// All of these together; one without a specific remedy takes the rule's usual one.
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

    /// What takes one of these.
    pub fn any(remedies: impl IntoIterator<Item = Remedy>) -> Remedy {
        let mut remedies = remedies.into_iter().filter(|remedy| !remedy.parts.is_empty());
        let first = remedies.next().unwrap_or_default();
        remedies.fold(first, Remedy::or)
    }

    /// With the rule's usual remedy in its place.
    pub fn or_usual(self, usual: fn() -> Remedy) -> Remedy {
        if self.parts.is_empty() {
            return usual();
        }
        let expand = |part: Part| if part.alternatives.is_empty() { usual().parts } else { vec![part] };
        Remedy::all([Remedy { parts: self.parts.into_iter().flat_map(expand).collect() }])
    }

    /// What is left to do on a machine that was booted with these: no word that is there already is
    /// asked for, and none is taken off that is not there.
    pub fn remaining(mut self, booted: &Cmdline) -> Remedy {
        for part in &mut self.parts {
            for way in &mut part.alternatives {
                // What is so already and does not help has no effect for a reason that the kernel
                // knows.
                let asked = way
                    .changes
                    .iter()
                    .find_map(cmdline_word)
                    .filter(|_| way.changes.iter().all(|one| is_done(one, booted)));
                if let Some(word) = asked {
                    let log = "which of them it took is in the kernel's log (dmesg)";
                    way.changes = vec![Change::advice(
                        AdviceReason::Choice,
                        format!(
                            "see why the kernel goes on as if its command line were not as it is \
                             in respect of {word}: {log}"
                        ),
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

    /// Without the parameters that a kernel of this release does not know, where another way is
    /// left.
    pub fn known_to(mut self, series: (u32, u32)) -> Remedy {
        let is_unknown =
            |change: &Change| matches!(change, Change::CmdlineAdd { word } if is_outside(word, series));
        for ways in self.parts.iter_mut().map(|part| &mut part.alternatives) {
            ways.iter_mut().for_each(|way| way.persist.retain(|change| !is_unknown(change)));
            if ways.iter().any(|way| !way.changes.iter().any(is_unknown)) {
                ways.retain(|way| !way.changes.iter().any(is_unknown));
            }
        }
        self
    }

    /// Sets how long the advice in words lasts.
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

    /// How long the first way of it lasts: as the change that takes most to make.
    pub fn persistence(&self, rule: Persistence, booted: &Cmdline) -> Persistence {
        let first = self.parts.first().and_then(|part| part.alternatives.first());
        let changes = first.map_or(&[][..], |way| &way.changes);
        let of = |change: &Change| match cmdline_word(change) {
            Some(_) if booted.is_built_in => Persistence::Build,
            _ => change.persistence(rule),
        };
        changes.iter().map(of).max().unwrap_or(rule)
    }

    /// What to do, in words, on a machine that was booted with these.
    pub fn text(&self, booted: &Cmdline) -> String {
        let parts: Vec<String> = self.parts.iter().map(|part| part.text(booted)).collect();
        parts.join("; ")
    }
}

impl Part {
    /// The first alternative that consists of changes that `onbeat tune` makes.
    pub fn settable(&self) -> Option<&Alternative> {
        let made =
            |way: &&Alternative| !way.changes.is_empty() && way.changes.iter().all(Change::is_settable);
        self.alternatives.iter().find(made)
    }

    fn push(&mut self, way: Alternative) {
        if !self.alternatives.contains(&way) {
            self.alternatives.push(way);
        }
    }

    fn text(&self, booted: &Cmdline) -> String {
        let mut said = String::new();
        for way in &self.alternatives {
            let words = way.text(booted);
            said = match said.as_str() {
                "" => words,
                // The second way is no other way to keep the first.
                before if before.contains(';') => format!("{before}; or {words}"),
                before => format!("{before}, or {words}"),
            };
        }
        said
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
        let mut said = now.join(", and ");
        // Any one of the first keeps it; what must not be there has to go in any case.
        let off = |change: &&Change| matches!(change, Change::CmdlineRemove { .. });
        let ways = self.persist.iter().filter(|change| !off(change)).map(|change| kept(change, booted));
        // The lines of one way keep it together; what else keeps it is another.
        let lines = together(&self.changes.iter().filter_map(kept_line).collect::<Vec<_>>());
        let ways: Vec<String> = lines.into_iter().chain(ways).collect();
        let gone = self.persist.iter().filter(off).map(|change| kept(change, booted));
        let keep: Vec<String> =
            Some(ways.join(", or ")).filter(|ways| !ways.is_empty()).into_iter().chain(gone).collect();
        if !keep.is_empty() {
            said += &format!("; to keep it, {}", keep.join(", and "));
        }
        if !self.note.is_empty() {
            said += &format!("; {}", self.note);
        }
        said
    }
}

fn cmdline_word(change: &Change) -> Option<&str> {
    match change {
        Change::CmdlineAdd { word } | Change::CmdlineRemove { word } => Some(word),
        _ => None,
    }
}

/// Whether a word is there, or not there, already.
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

/// The line by which a sysctl is set at each boot.
fn kept_line(change: &Change) -> Option<String> {
    match change {
        Change::Sysctl { name, value } => Some(format!("{name} = {value}")),
        _ => None,
    }
}

/// Lines that are all needed, and where they are put.
fn together(lines: &[String]) -> Option<String> {
    (!lines.is_empty()).then(|| format!("{} in /etc/sysctl.d", lines.join(" and ")))
}

/// The place that a kernel takes its words from.
fn line_of(booted: &Cmdline) -> &'static str {
    if booted.is_built_in {
        "the command line of a kernel built anew (CONFIG_CMDLINE; this one ignores its boot loader's)"
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
            format!("take {} off {line}", as_written(booted, word).join(" and "))
        }
        Change::Kconfig { option, value } => format!("boot a kernel built with {}", option_of(option, value)),
        Change::Disable { unit, .. } => format!("systemctl disable --now {unit}"),
        Change::Advice { words, .. } => words.clone(),
    }
}

/// The same in a subordinate place: what keeps something.
fn kept(change: &Change, booted: &Cmdline) -> String {
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
