//! Settings of other programs as a plan: sysctl.d(5), lines of tmpfiles.d(5) that write, tuned
//! profiles, values saved by partrt. Texts are untrusted: each parser accepts any input, and no
//! command in one is run.

mod assignment;
mod document;
mod other_files;
mod partrt_env;
mod pattern;
mod settle;
mod sysctl_d;
mod tmpfiles_d;
mod tuned;

use std::collections::BTreeMap;

use facts::survey::Survey;
use host::MachineFiles;
use model::error::{Failure, Result};
use model::plan::{LeftOut, PlanDocument};
use model::setting::Key;
use model::sort::CompactSort;

pub use settle::setting_of;
pub use tuned::owned::{ProfileKeys, owned};

pub use document::{Documents, ImportKind, ImportedFile, NamingMachine, read_documents};
pub use tuned::places::{ProfileFile, ProfilePlaces};

/// Limit of settings of an import.
const SETTINGS_LIMIT: usize = 20_000;

/// Number of unreadable parts that are named in a refusal.
const LACKING_NAMED: usize = 4;

/// Machine that a text is for.
#[derive(Clone, Copy)]
pub struct ImportTarget<'a> {
    pub files: &'a MachineFiles,
    pub survey: &'a Survey,
}

/// User's input in addition to the texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportRequest {
    /// Variables of a tuned profile with their values.
    pub given: Vec<(String, String)>,
    /// True to plan the readable parts of a profile if others are not readable.
    pub partial: bool,
}

/// Value requested by a text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Imported {
    key: Key,
    value: String,
    /// Place in the text: `90-x.conf, line 3`.
    place: String,
    /// True if the kernel may refuse it.
    optional: bool,
}

/// Values requested by the texts, in their order, and the parts that are not imported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Collected {
    /// Requested values, each with its number among the lines that request one.
    wanted: BTreeMap<Key, (usize, Imported)>,
    lines: usize,
    /// Number of settings over the limit.
    beyond: usize,
    left_out: Vec<LeftOut>,
    /// Number of omitted parts that are not listed.
    unnamed: usize,
    /// Unreadable parts with the reasons: without them the plan is incomplete.
    lacking: Vec<(String, String)>,
    /// Unreadable last values of keys, with what and why.
    lacking_values: BTreeMap<Key, (String, String)>,
}

impl Collected {
    /// Adds a value; the last value of a key counts, at its place.
    fn want(&mut self, imported: Imported) {
        self.lines += 1;
        self.lacking_values.remove(&imported.key);
        if self.wanted.len() < SETTINGS_LIMIT || self.wanted.contains_key(&imported.key) {
            self.wanted.insert(imported.key.clone(), (self.lines, imported));
        } else {
            self.beyond += 1;
        }
    }

    /// Drops the value of a key so far.
    fn forget(&mut self, key: &Key) {
        self.wanted.remove(key);
        self.lacking_values.remove(key);
    }

    /// Value of a key so far.
    fn value(&self, key: &Key) -> Option<&str> {
        self.wanted.get(key).map(|(_, imported)| imported.value.as_str())
    }

    fn leave(&mut self, what: impl Into<String>, why: impl Into<String>, instead: &str) {
        // The list of a text's errors has the same limit as its settings.
        if self.left_out.len() < SETTINGS_LIMIT {
            let (rule, why) = (what.into(), why.into());
            self.left_out.push(LeftOut { rule, why, instead: instead.to_owned() });
        } else {
            self.unnamed += 1;
        }
    }

    /// Notes an unreadable part, which makes the plan incomplete.
    fn lack(&mut self, what: impl Into<String>, why: impl Into<String>) {
        if self.lacking.len() < SETTINGS_LIMIT {
            self.lacking.push((what.into(), why.into()));
        } else {
            self.unnamed += 1;
        }
    }

    /// Notes an unreadable value, unless a later one replaces it.
    fn lack_value(&mut self, key: Key, what: &str, why: &str) {
        self.forget(&key);
        if self.lacking_values.len() < SETTINGS_LIMIT {
            self.lacking_values.insert(key, (what.to_owned(), why.to_owned()));
        }
    }

    /// Lists unreadable parts among the omitted ones, and refuses an incomplete plan unless
    /// `partial` is set.
    fn settle_lacking(&mut self, partial: bool) -> Result<()> {
        let mut lacking = std::mem::take(&mut self.lacking);
        lacking.extend(std::mem::take(&mut self.lacking_values).into_values());
        let mut seen = std::collections::BTreeSet::new();
        lacking.retain(|one| seen.insert(one.clone()));
        let named = lacking.iter().take(LACKING_NAMED);
        let named = named.map(|(what, why)| model::text::excerpt(&format!("{what}: {why}")));
        let named = named.collect::<Vec<_>>().join("; ");
        let more = match lacking.len().saturating_sub(LACKING_NAMED) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        if !lacking.is_empty() && !partial {
            return Err(Failure::usage(format!(
                "a part of it cannot be read ({named}{more}): --partial plans the rest"
            )));
        }
        lacking.into_iter().for_each(|(what, why)| self.leave(what, why, ""));
        Ok(())
    }

    /// Refuses a text of which no line is valid: no machine has a use for it.
    fn require_valid(&self, target: ImportTarget) -> Result<()> {
        let mut invalid = Vec::new();
        for (_, imported) in self.wanted.values() {
            match settle::invalid(imported, target) {
                None => return Ok(()),
                Some(why) => invalid.push(format!("{}: {}: {why}", imported.place, imported.key)),
            }
        }
        let unread = self.left_out.iter().map(|left| format!("{}: {}", left.rule, left.why));
        match invalid.into_iter().chain(unread).next() {
            None => Ok(()),
            Some(first) => Err(Failure::usage(format!(
                "no line of it can be imported ({}): correct it",
                model::text::excerpt(&first)
            ))),
        }
    }

    /// Settings in their order, and the omitted parts with the numbers over the limits.
    fn in_order(self) -> (Vec<Imported>, Vec<LeftOut>) {
        let mut wanted: Vec<(usize, Imported)> = self.wanted.into_values().collect();
        wanted.compact_sort_by_key(|(line, _)| *line);
        let mut left_out = self.left_out;
        let mut bound = |number: usize, what: &str| {
            if number > 0 {
                let why = format!("{number} {what} than the limit of {SETTINGS_LIMIT} for one text");
                left_out.push(LeftOut { rule: "the rest".to_owned(), why, instead: String::new() });
            }
        };
        bound(self.beyond, "settings more");
        bound(self.unnamed, "more lines are omitted");
        (wanted.into_iter().map(|(_, imported)| imported).collect(), left_out)
    }
}

/// Creates a plan from texts, of the values that the machine does not have yet.
///
/// # Errors
/// Usage: an assertion of a profile fails, or a part of it cannot be read.
pub fn import(
    documents: &Documents,
    request: &ImportRequest,
    target: ImportTarget,
    boot: &str,
) -> Result<PlanDocument> {
    let mut collected = Collected::default();
    sysctl_d::collect(&documents.of(ImportKind::Sysctl), target.files, &mut collected);
    tmpfiles_d::collect(&documents.of(ImportKind::Tmpfiles), target.files, &mut collected);
    partrt_env::collect(&documents.of(ImportKind::Partrt), &mut collected);
    let bare = documents.of(ImportKind::Tuned);
    let bare = bare.iter().map(|file| ProfileFile { text: file.text.clone(), ..ProfileFile::default() });
    let given = &request.given;
    match (&documents.profiles, bare.collect::<Vec<_>>()) {
        (Some((files, places)), _) => tuned::collect(files.clone(), places, given, target, &mut collected)?,
        (None, bare) if !bare.is_empty() => {
            let places = ProfilePlaces::of_machine(target.files);
            tuned::collect(bare, &places, given, target, &mut collected)?;
        }
        _ => {}
    }
    if documents.profiles.is_none() && documents.files.iter().all(|file| file.kind == ImportKind::Sysctl) {
        collected.require_valid(target)?;
    }
    collected.settle_lacking(request.partial)?;
    Ok(settle::plan(collected, target, boot))
}

#[cfg(test)]
mod tests;
