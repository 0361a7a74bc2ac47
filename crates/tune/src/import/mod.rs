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
    wanted: Vec<Imported>,
    left_out: Vec<LeftOut>,
}

impl Collected {
    /// The last value of a key counts, at its place.
    fn want(&mut self, imported: Imported) {
        self.wanted.retain(|other| other.key != imported.key);
        self.wanted.push(imported);
        if self.wanted.len() > SETTINGS_LIMIT {
            self.wanted.pop();
            if !self.left_out.iter().any(|left| left.rule == "the rest") {
                self.leave("the rest", format!("more than {SETTINGS_LIMIT} settings"), "");
            }
        }
    }

    fn leave(&mut self, what: impl Into<String>, why: impl Into<String>, instead: &str) {
        // A list of what is wrong with a text is no longer than what it can ask for.
        if self.left_out.len() < SETTINGS_LIMIT {
            self.left_out.push(LeftOut { rule: what.into(), why: why.into(), instead: instead.to_owned() });
        }
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
