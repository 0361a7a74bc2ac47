//! Which files are imported, and what each of them is.

use std::path::Path;

use host::MachineFiles;
use model::error::{Exit, Failure, Result};
use model::fact::{Fact, errno_name};
use model::text::quoted;

/// More files than a folder of settings has.
const FILES_LIMIT: usize = 1000;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportKind {
    /// sysctl.d(5)
    Sysctl,
    /// tmpfiles.d(5)
    Tmpfiles,
    /// A profile of tuned's.
    Tuned,
    /// The values that partrt kept before it changed them.
    Partrt,
}

/// A file that is imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedFile {
    pub name: String,
    pub kind: ImportKind,
    pub text: String,
}

/// The files, in the order in which they count, and the folder in which a profile's includes are.
#[derive(Default)]
pub struct Documents {
    pub files: Vec<ImportedFile>,
    /// Where the profile's folder is, and its name.
    pub profiles: Option<(MachineFiles, String)>,
}

impl Documents {
    pub(super) fn of(&self, kind: ImportKind) -> Vec<&ImportedFile> {
        self.files.iter().filter(|file| file.kind == kind).collect()
    }
}

/// Folders below the root of a file system or of an export, the most important first: of files
/// with one name the first counts.
const SYSCTL_FOLDERS: &[&str] =
    &["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"];
const TMPFILES_FOLDERS: &[&str] =
    &["/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d"];

/// Reads a file, or the files of a folder: a root with `etc/sysctl.d` and its like, an export of
/// onbeat's, one `sysctl.d` or `tmpfiles.d`, a profile of tuned's.
///
/// # Errors
/// Usage: there is nothing that can be imported.
pub fn read_documents(path: &Path) -> Result<Documents> {
    let is_dir = host::is_dir(path).map_err(|error| {
        let what = format!("cannot look at {}", quoted(path));
        Failure::of_call(what, &error, Exit::Usage, EXPECTED)
    })?;
    let found = if is_dir { of_folder(path) } else { of_file(path) }?;
    match found.files.is_empty() {
        true => Err(Failure::usage(format!("{} holds no settings: {EXPECTED}", quoted(path)))),
        false => Ok(found),
    }
}

const EXPECTED: &str =
    "give a file or folder of sysctl.d, an export of onbeat's, a tuned.conf, or a partrt_env";

fn of_file(path: &Path) -> Result<Documents> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let text = match MachineFiles::folder(parent).read_text(&format!("/{name}")) {
        Fact::Known(text) => text,
        other => {
            let why = match other {
                Fact::Refused(errno) => errno_name(errno),
                Fact::Malformed(what) => what,
                _ => "it is not there".to_owned(),
            };
            return Err(Failure::usage(format!("cannot read {}: {why}: {EXPECTED}", quoted(path))));
        }
    };
    let folder = parent.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let kind = kind_of(&name, &folder, &text).ok_or_else(|| {
        Failure::usage(match text.trim_start().starts_with('{') {
            true => {
                format!(
                    "{} is a plan, not settings to be imported: give it to `onbeat tune apply --plan`",
                    quoted(path)
                )
            }
            false => format!("{} holds no settings: {EXPECTED}", quoted(path)),
        })
    })?;
    let mut documents = Documents { files: vec![ImportedFile { name, kind, text }], profiles: None };
    if kind == ImportKind::Tuned {
        // Other profiles are folders beside this one's.
        let whole = std::path::absolute(parent).unwrap_or_else(|_| parent.to_path_buf());
        if let (Some(above), Some(own)) = (whole.parent(), whole.file_name()) {
            let own = own.to_string_lossy().into_owned();
            documents.profiles = Some((MachineFiles::folder(above), own));
        }
    }
    Ok(documents)
}

fn of_folder(path: &Path) -> Result<Documents> {
    let folder = MachineFiles::folder(path);
    if folder.read("/tuned.conf").known().is_some() {
        return of_file(&path.join("tuned.conf"));
    }
    let own = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut files = Vec::new();
    for (kind, name, folders) in [
        (ImportKind::Sysctl, "sysctl.d", SYSCTL_FOLDERS),
        (ImportKind::Tmpfiles, "tmpfiles.d", TMPFILES_FOLDERS),
    ] {
        let here = format!("/{name}");
        let mut places: Vec<&str> = folders.to_vec();
        places.push(if own == name { "" } else { &here });
        files.extend(by_precedence(&folder, &places, kind)?);
    }
    Ok(Documents { files, profiles: None })
}

/// The files in the order of their names, each from the first place that has it.
fn by_precedence(folder: &MachineFiles, places: &[&str], kind: ImportKind) -> Result<Vec<ImportedFile>> {
    let mut named = std::collections::BTreeMap::new();
    for place in places {
        let at = if place.is_empty() { "/" } else { place };
        for name in folder.list(at).known().into_iter().flatten().filter(|name| name.ends_with(".conf")) {
            named.entry(name.clone()).or_insert_with(|| format!("{place}/{name}"));
        }
    }
    if named.len() > FILES_LIMIT {
        return Err(Failure::usage(format!(
            "the folder has more than {FILES_LIMIT} files: give one of them"
        )));
    }
    let mut files = Vec::new();
    for (name, path) in named {
        match folder.read_text(&path) {
            Fact::Known(text) => files.push(ImportedFile { name, kind, text }),
            Fact::Absent => {}
            Fact::Refused(errno) => {
                let why = errno_name(errno);
                return Err(Failure::usage(format!("cannot read {}: {why}: give one file", quoted(&path))));
            }
            Fact::Malformed(what) => {
                return Err(Failure::usage(format!("{}: {what}: give one file", quoted(&path))));
            }
            Fact::NotCaptured => {}
        }
    }
    Ok(files)
}

/// What a file is, by its name and folder, else by its first line that says something.
fn kind_of(name: &str, folder: &str, text: &str) -> Option<ImportKind> {
    match (name, folder) {
        ("tuned.conf", _) => return Some(ImportKind::Tuned),
        ("partrt_env", _) => return Some(ImportKind::Partrt),
        ("sysctl.conf", _) | (_, "sysctl.d") => return Some(ImportKind::Sysctl),
        (_, "tmpfiles.d") => return Some(ImportKind::Tmpfiles),
        _ => {}
    }
    // JSON: a plan of onbeat's own, as a rule.
    if text.trim_start().starts_with('{') {
        return None;
    }
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with(['#', ';']))?;
    let mut words = first.split_whitespace();
    let (word, next) = (words.next()?, words.next().unwrap_or(""));
    match word {
        "partrt_settings:" => Some(ImportKind::Partrt),
        _ if word.starts_with('[') => Some(ImportKind::Tuned),
        _ if word.len() <= 4 && next.starts_with(['/', '"']) => Some(ImportKind::Tmpfiles),
        _ if first.contains('=') => Some(ImportKind::Sysctl),
        _ => None,
    }
}
