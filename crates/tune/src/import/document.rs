//! Files to import, and their kinds.

use std::path::Path;

use host::MachineFiles;
use model::error::{Exit, Failure, Result};
use model::fact::{Fact, errno_name};
use model::text::quoted;

use super::other_files::other_file;
use super::tuned::places::{ProfileFile, ProfilePlaces, ProfileSearch, is_name};

/// Limit of files in a folder of settings.
const FILES_LIMIT: usize = 1000;

/// Kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportKind {
    /// sysctl.d(5)
    Sysctl,
    /// tmpfiles.d(5)
    Tmpfiles,
    /// A tuned profile.
    Tuned,
    /// Values saved by partrt before it changed them.
    Partrt,
}

/// File to import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedFile {
    pub name: String,
    pub kind: ImportKind,
    pub text: String,
}

/// Files, in order of precedence.
#[derive(Default)]
pub struct Documents {
    pub files: Vec<ImportedFile>,
    /// Profiles of tuned, with the places that are searched for included ones.
    pub profiles: Option<(Vec<ProfileFile>, ProfilePlaces)>,
}

/// Machine in whose file system names of profiles are looked up.
pub struct NamingMachine<'a> {
    pub files: &'a MachineFiles,
    /// Root of its file system; none for a capture.
    pub root: Option<&'a Path>,
}

impl Documents {
    pub(super) fn of(&self, kind: ImportKind) -> Vec<&ImportedFile> {
        self.files.iter().filter(|file| file.kind == kind).collect()
    }
}

/// Folders below the root of a file system or of an export, in order of precedence: of files with
/// the same name the first one counts.
const SYSCTL_FOLDERS: &[&str] =
    &["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"];
const TMPFILES_FOLDERS: &[&str] =
    &["/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d"];

/// Reads a file, or the files of a folder: a root with `etc/sysctl.d` and the like, an export of
/// onbeat, a `sysctl.d` or `tmpfiles.d` folder, a tuned profile. Anything but a path is the name of
/// a profile.
///
/// # Errors
/// Usage: there is nothing that can be imported.
pub fn read_documents(path: &Path, machine: &NamingMachine) -> Result<Documents> {
    let is_dir = host::is_dir(path).map_err(|error| {
        let what = format!("cannot read {}", quoted(path));
        Failure::of_call(what, &error, Exit::Usage, EXPECTED)
    })?;
    let found = if is_dir {
        of_folder(path, machine)?
    } else {
        of_names(path, machine.files).map_or_else(|| of_file(path, machine), Ok)?
    };
    if found.files.is_empty() && found.profiles.is_none() {
        Err(Failure::usage(format!("{} holds no settings: {EXPECTED}", quoted(path))))
    } else {
        Ok(found)
    }
}

const EXPECTED: &str = "give a file or folder of sysctl.d, an export of onbeat's, a profile of tuned's by its \
    name, folder or tuned.conf, or a partrt_env";

/// Profiles by their names, of which tuned accepts several separated by spaces; none if there is
/// such a file, or no such profile.
fn of_names(path: &Path, machine: &MachineFiles) -> Option<Documents> {
    let names = path.to_str().filter(|_| host::whole_path(path).is_err())?;
    let places = ProfilePlaces::of_machine(machine);
    let mut profiles = Vec::new();
    for name in names.split_whitespace() {
        match places.find(name, &[]) {
            ProfileSearch::Found(file) if is_name(name) => profiles.push(file),
            _ => return None,
        }
    }
    let profiles = (!profiles.is_empty()).then_some((profiles, places))?;
    Some(Documents { files: Vec::new(), profiles: Some(profiles) })
}

fn of_file(path: &Path, machine: &NamingMachine) -> Result<Documents> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let text = match MachineFiles::folder(parent).read_text(&format!("/{name}")) {
        Fact::Known(text) => text,
        other => {
            let why = match other {
                Fact::Refused(errno) => errno_name(errno),
                Fact::Malformed(what) => what,
                _ => "neither a file nor a profile of this name exists".to_owned(),
            };
            return Err(Failure::usage(format!("cannot read {}: {why}: {EXPECTED}", quoted(path))));
        }
    };
    let folder = parent.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let kind = kind_of(&name, &folder, &text);
    // A kind given by the folder is trusted, unless the file is that of another program.
    let is_certain = !matches!(kind, None | Some(ImportKind::Sysctl));
    if let Some((what, instead)) = other_file(&name, &text).filter(|_| !is_certain) {
        return Err(Failure::usage(format!("{} is {what}: {instead}", quoted(path))));
    }
    let kind = kind.ok_or_else(|| {
        Failure::usage(if text.trim_start().starts_with('{') && text.contains("\"onbeat.plan/") {
            format!("{} is a plan, not settings to import: use `onbeat tune apply --plan`", quoted(path))
        } else {
            format!("{} holds no settings: {EXPECTED}", quoted(path))
        })
    })?;
    if kind == ImportKind::Tuned {
        let (places, file) = ProfilePlaces::of_file(path, &text, machine.files, machine.root);
        return Ok(Documents { files: Vec::new(), profiles: Some((vec![file], places)) });
    }
    Ok(Documents { files: vec![ImportedFile { name, kind, text }], profiles: None })
}

fn of_folder(path: &Path, machine: &NamingMachine) -> Result<Documents> {
    let folder = MachineFiles::folder(path);
    if folder.read("/tuned.conf").known().is_some() {
        return of_file(&path.join("tuned.conf"), machine);
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

/// Files in the order of their names, each from the first place that has it.
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
        // Masks a file of the same name in a later folder.
        if folder.link_path(&path).known().is_some_and(|target| target == "/dev/null") {
            continue;
        }
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
            Fact::NotCaptured | Fact::NotRunning => {}
        }
    }
    Ok(files)
}

/// Kind of a file, by its name and folder, else by its first meaningful line.
fn kind_of(name: &str, folder: &str, text: &str) -> Option<ImportKind> {
    match (name, folder) {
        ("tuned.conf", _) => return Some(ImportKind::Tuned),
        ("partrt_env", _) => return Some(ImportKind::Partrt),
        ("sysctl.conf", _) | (_, "sysctl.d") => return Some(ImportKind::Sysctl),
        (_, "tmpfiles.d") => return Some(ImportKind::Tmpfiles),
        _ => {}
    }
    // JSON: a plan of onbeat, or another program's file.
    if text.trim_start().starts_with('{') {
        return None;
    }
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with(['#', ';']))?;
    let mut words = first.split_whitespace();
    let (word, next) = (words.next()?, words.next().unwrap_or(""));
    match word {
        "partrt_settings:" => Some(ImportKind::Partrt),
        _ if word.starts_with('[') => is_profile(text).then_some(ImportKind::Tuned),
        _ if word.len() <= 4 && next.starts_with(['/', '"']) => Some(ImportKind::Tmpfiles),
        _ if first.contains('=') => Some(ImportKind::Sysctl),
        _ => None,
    }
}

/// True for a text with a section or option specific to profiles: other programs' files have
/// sections, too.
fn is_profile(text: &str) -> bool {
    let mut own_main = false;
    text.lines().map(str::trim).any(|line| {
        let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
            let option = line.split_once('=').map_or("", |(name, _)| name.trim());
            return own_main && ["include", "summary"].contains(&option);
        };
        // Files of many programs have a section with this name.
        own_main = name == "main";
        PROFILE_SECTIONS.contains(&name)
    })
}

/// Sections that each identify a file as a profile.
const PROFILE_SECTIONS: &[&str] = &[
    "variables",
    "sysctl",
    "sysfs",
    "vm",
    "cpu",
    "scheduler",
    "bootloader",
    "irqbalance",
    "script",
    "disk",
    "net",
];

#[cfg(test)]
mod tests {
    use super::{ImportKind, kind_of};

    #[test]
    fn a_section_main_alone_is_no_profile() {
        let kind = |text: &str| kind_of("x.conf", "etc", text);
        assert_eq!(kind("[main]\nplugins=keyfile\n\n[device]\nwifi.scan-rand-mac-address=no\n"), None);
        assert_eq!(kind("[device]\ninclude=x\n"), None);
        assert_eq!(kind("[main]\nplugins=keyfile\n[device]\nsummary=x\n"), None);
        for text in ["[main]\nsummary = mine\n", "[main]\n# x\ninclude=realtime\n", "[main]\n[sysctl]\na=1\n"]
        {
            assert_eq!(kind(text), Some(ImportKind::Tuned), "{text}");
        }
    }
}
