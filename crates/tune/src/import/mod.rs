//! Other programs' settings as a plan: sysctl.d(5), the lines of tmpfiles.d(5) that write, a tuned
//! profile, what partrt kept. Texts come from anywhere: each parser takes any input, and nothing in
//! one is run.

mod document;
mod partrt_env;
mod pattern;
mod settle;
mod sysctl_d;
mod tmpfiles_d;
mod tuned;

use std::collections::BTreeMap;

use facts::survey::Survey;
use host::MachineFiles;
use model::error::Result;
use model::plan::{LeftOut, PlanDocument};
use model::setting::Key;

pub use settle::setting_of;
pub use tuned::owned::{ProfileKeys, owned};

pub use document::{Documents, ImportKind, ImportedFile, read_documents};

/// More settings than any such file has.
const SETTINGS_LIMIT: usize = 20_000;

/// The machine that a text is for.
#[derive(Clone, Copy)]
pub struct ImportTarget<'a> {
    pub files: &'a MachineFiles,
    pub survey: &'a Survey,
}

/// A value that a text asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Imported {
    key: Key,
    value: String,
    /// Where it is written: `90-x.conf, line 3`.
    place: String,
    /// Whether the kernel may refuse it.
    optional: bool,
}

/// What the texts ask for, in their order, and what is not taken from them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Collected {
    /// Each with the number of its line among all that ask for something.
    wanted: BTreeMap<Key, (usize, Imported)>,
    lines: usize,
    /// How many settings were over the bound.
    beyond: usize,
    left_out: Vec<LeftOut>,
    /// How much that is left out was.
    unnamed: usize,
}

impl Collected {
    /// The last value of a key counts, at its place.
    fn want(&mut self, imported: Imported) {
        self.lines += 1;
        match self.wanted.len() < SETTINGS_LIMIT || self.wanted.contains_key(&imported.key) {
            true => drop(self.wanted.insert(imported.key.clone(), (self.lines, imported))),
            false => self.beyond += 1,
        }
    }

    fn leave(&mut self, what: impl Into<String>, why: impl Into<String>, instead: &str) {
        // A list of what is wrong with a text is no longer than what it can ask for.
        match self.left_out.len() < SETTINGS_LIMIT {
            true => {
                let (rule, why) = (what.into(), why.into());
                self.left_out.push(LeftOut { rule, why, instead: instead.to_owned() });
            }
            false => self.unnamed += 1,
        }
    }

    /// The settings in their order, and what is left out with how much of it is over the bounds.
    fn in_order(self) -> (Vec<Imported>, Vec<LeftOut>) {
        let mut wanted: Vec<(usize, Imported)> = self.wanted.into_values().collect();
        wanted.sort_by_key(|(line, _)| *line);
        let mut left_out = self.left_out;
        let mut bound = |number: usize, what: &str| {
            if number > 0 {
                let why = format!("{number} {what} than the {SETTINGS_LIMIT} that are read of a text");
                left_out.push(LeftOut { rule: "the rest".to_owned(), why, instead: String::new() });
            }
        };
        bound(self.beyond, "settings more");
        bound(self.unnamed, "lines more are left out");
        (wanted.into_iter().map(|(_, imported)| imported).collect(), left_out)
    }
}

/// Makes a plan of texts: what is not so already on that machine. `given` are variables of a tuned
/// profile with the values that a user gave.
///
/// # Errors
/// Usage: the profile says itself that it does not fit.
pub fn import(
    documents: &Documents,
    given: &[(String, String)],
    target: ImportTarget,
    boot: &str,
) -> Result<PlanDocument> {
    let mut collected = Collected::default();
    sysctl_d::collect(&documents.of(ImportKind::Sysctl), target.files, &mut collected);
    tmpfiles_d::collect(&documents.of(ImportKind::Tmpfiles), target.files, &mut collected);
    partrt_env::collect(&documents.of(ImportKind::Partrt), &mut collected);
    if let Some(profile) = documents.of(ImportKind::Tuned).first() {
        tuned::collect(profile, documents, given, target, &mut collected)?;
    }
    Ok(settle::plan(collected, target, boot))
}

#[cfg(test)]
mod tests;
