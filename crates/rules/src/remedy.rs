//! What a finding asks for: changes, which of them go together, and the words that are made of them.

use super::Lasts;
use super::change::{Because, Change, sysctl_path};
use super::parameters::{is_given, names, others, spelt};
use facts::cmdline::Cmdline;

/// What is to be done: each part of it, in one of its ways. Empty stands for the rule's usual remedy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remedy {
    /// Each has to be done.
    pub parts: Vec<Part>,
}

/// Ways to the same end, the best first; none stands for the rule's usual remedy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// One of them is enough.
    pub ways: Vec<Way>,
}

/// Changes that are made together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// What is changed.
    pub now: Vec<Change>,
    /// What keeps it over a boot, where that takes another change.
    pub keep: Vec<Change>,
    /// What else there is to say of it, without a full stop; `""` for nothing.
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
        let way = Way { now: now.into_iter().collect(), keep: Vec::new(), note: String::new() };
        Remedy { parts: vec![Part { ways: vec![way] }] }
    }

    /// Words alone, by which a rule that is not about one setting says what to do.
    pub fn advice(because: Because, words: impl Into<String>) -> Remedy {
        Change::advice(because, words).into()
    }

    /// Another change in the last way.
    pub fn and(mut self, change: Change) -> Remedy {
        self.last().now.push(change);
        self
    }

    /// What keeps the last way over a boot.
    pub fn keep(mut self, change: Change) -> Remedy {
        self.last().keep.push(change);
        self
    }

    /// What else there is to say of the last way.
    pub fn note(mut self, note: impl Into<String>) -> Remedy {
        self.last().note = note.into();
        self
    }

    /// Another way to the same end.
    pub fn or(mut self, other: impl Into<Remedy>) -> Remedy {
        let ways = other.into().parts.into_iter().flat_map(|part| part.ways);
        if self.parts.is_empty() {
            self.parts.push(Part::default());
        }
        if let Some(part) = self.parts.last_mut() {
            ways.for_each(|way| part.push(way));
        }
        self
    }

    fn last(&mut self) -> &mut Way {
        if self.parts.is_empty() {
            self.parts.push(Part::default());
        }
        let at = self.parts.len() - 1;
        let ways = &mut self.parts[at].ways;
        if ways.is_empty() {
            ways.push(Way { now: Vec::new(), keep: Vec::new(), note: String::new() });
        }
        let at = ways.len() - 1;
        &mut ways[at]
    }

    /// What takes all of these; one without a remedy of its own takes the rule's usual one.
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
        let usual_alone = parts.iter().all(|part| part.ways.is_empty());
        Remedy { parts: if usual_alone { Vec::new() } else { parts } }
    }

    /// What takes one of these.
    pub fn any(remedies: impl IntoIterator<Item = Remedy>) -> Remedy {
        let mut remedies = remedies.into_iter().filter(|remedy| !remedy.parts.is_empty());
        let first = remedies.next().unwrap_or_default();
        remedies.fold(first, Remedy::or)
    }

    /// With the rule's usual remedy in its place.
    pub fn with_usual(self, usual: fn() -> Remedy) -> Remedy {
        if self.parts.is_empty() {
            return usual();
        }
        let expand = |part: Part| if part.ways.is_empty() { usual().parts } else { vec![part] };
        Remedy::all([Remedy { parts: self.parts.into_iter().flat_map(expand).collect() }])
    }

    /// What is left to do on a machine that was booted with these: no word that is there already is asked for, and
    /// none is taken off that is not there.
    pub fn beside(mut self, booted: &Cmdline) -> Remedy {
        for part in &mut self.parts {
            for way in &mut part.ways {
                // What is so already and does not help has no effect for a reason that the kernel knows.
                let asked =
                    way.now.iter().find_map(word_of).filter(|_| way.now.iter().all(|one| is_so(one, booted)));
                if let Some(word) = asked {
                    let log = "which of them it took is in the kernel's log (dmesg)";
                    way.now = vec![Change::advice(
                        Because::Choice,
                        format!(
                            "see why the kernel goes on as if its command line were not as it is in respect of {word}: {log}"
                        ),
                    )];
                }
                way.now.retain(|change| !is_so(change, booted));
                way.keep.retain(|change| !is_so(change, booted));
            }
            let todo: Vec<Way> = part.ways.iter().filter(|way| !way.now.is_empty()).cloned().collect();
            part.ways = todo;
        }
        self.parts.retain(|part| !part.ways.is_empty());
        self
    }

    /// Says how long what is advised in words lasts.
    pub fn lasting(mut self, lasts: Lasts) -> Remedy {
        for change in self.parts.iter_mut().flat_map(|part| &mut part.ways).flat_map(|way| &mut way.now) {
            if let Change::Advice { lasts: own, .. } = change {
                *own = Some(lasts);
            }
        }
        self
    }

    /// How long the first way of it lasts: as the change that takes most to make.
    pub fn lasts(&self, rule: Lasts) -> Lasts {
        let first = self.parts.first().and_then(|part| part.ways.first());
        let changes = first.map_or(&[][..], |way| &way.now);
        changes.iter().map(|change| change.lasts(rule)).max().unwrap_or(rule)
    }

    /// What to do, in words, on a machine that was booted with these.
    pub fn said(&self, booted: &Cmdline) -> String {
        let parts: Vec<String> = self.parts.iter().map(|part| part.said(booted)).collect();
        parts.join("; ")
    }
}

impl Part {
    fn push(&mut self, way: Way) {
        if !self.ways.contains(&way) {
            self.ways.push(way);
        }
    }

    fn said(&self, booted: &Cmdline) -> String {
        let mut said = String::new();
        for way in &self.ways {
            let words = way.said(booted);
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

impl Way {
    fn said(&self, booted: &Cmdline) -> String {
        let built = |wanted: bool| {
            let options = self.now.iter().filter_map(move |change| match change {
                Change::Config { option, value } if (value != "n") == wanted => {
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
        let others = self.now.iter().filter(|change| !matches!(change, Change::Config { .. }));
        let now: Vec<String> = kernel.into_iter().chain(others.map(|change| now(change, booted))).collect();
        let mut said = now.join(", and ");
        // Any one of the first keeps it; what must not be there has to go in any case.
        let off = |change: &&Change| matches!(change, Change::BootWithout { .. });
        let ways = self.keep.iter().filter(|change| !off(change)).map(|change| kept(change, booted));
        // The lines of one way keep it together; what else keeps it is another.
        let lines = together(&self.now.iter().filter_map(kept_line).collect::<Vec<_>>());
        let ways: Vec<String> = lines.into_iter().chain(ways).collect();
        let gone = self.keep.iter().filter(off).map(|change| kept(change, booted));
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

fn word_of(change: &Change) -> Option<&str> {
    match change {
        Change::Boot { word } | Change::BootWithout { word } => Some(word),
        _ => None,
    }
}

/// Whether a word is there, or not there, already.
fn is_so(change: &Change, booted: &Cmdline) -> bool {
    match change {
        Change::Boot { word } => is_given(booted, word) && others(booted, word).is_empty(),
        Change::BootWithout { word } => !names(booted, word),
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

const LINE: &str = "the kernel's command line";

fn now(change: &Change, booted: &Cmdline) -> String {
    match change {
        Change::Sysctl { name, value } => format!("echo {value} >{}", sysctl_path(name)),
        Change::Write { called, of, value, .. } if of.is_empty() => format!("echo {value} >{called}"),
        Change::Write { called, of, value, .. } => format!("for {of}, echo {value} >{called}"),
        Change::Boot { word } => match others(booted, word).as_slice() {
            [] if is_given(booted, word) => format!("see what undoes {word}, which is on {LINE}"),
            [] => format!("add {word} to {LINE}"),
            others => format!("replace {} by {word} on {LINE}", others.join(" and ")),
        },
        Change::BootWithout { word } => format!("take {} off {LINE}", spelt(booted, word).join(" and ")),
        Change::Config { option, value } => format!("boot a kernel built with {}", option_of(option, value)),
        Change::Disable { unit, .. } => format!("systemctl disable --now {unit}"),
        Change::Advice { words, .. } => words.clone(),
    }
}

/// The same in a subordinate place: what keeps something.
fn kept(change: &Change, booted: &Cmdline) -> String {
    match change {
        Change::Boot { word } => match others(booted, word).as_slice() {
            [] => format!("{word} on {LINE}"),
            others => format!("{word} on {LINE} instead of {}", others.join(" and ")),
        },
        Change::Sysctl { name, value } => format!("{name} = {value} in /etc/sysctl.d"),
        other => now(other, booted),
    }
}
