//! Places in which tuned searches profiles and their files.

use std::path::Path;

use host::MachineFiles;
use model::fact::Fact;

use super::ini::bare_options;

/// Folders of profiles in a file system, in order of precedence: those of version 2.23 and later,
/// and older ones.
const FOLDERS: &[&str] = &["/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned"];

/// File of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileFile {
    /// Name of the profile.
    pub name: String,
    pub text: String,
    /// Its folder, the value of `${i:PROFILE_DIR}`.
    pub folder: String,
    /// Its place, unique among files.
    pub place: String,
}

/// Result of the search for a profile.
pub enum ProfileSearch {
    Found(ProfileFile),
    /// All profiles with this name are in use already.
    Taken,
    Missing,
}

/// File systems with folders of profiles, and the profile's own folder.
#[derive(Default)]
pub struct ProfilePlaces {
    /// File systems, in the order of the search.
    trees: Vec<MachineFiles>,
    beside: Option<Beside>,
}

/// Folder of a profile outside of tuned's folders.
struct Beside {
    /// Its parent folder, which may contain other profiles.
    above: MachineFiles,
    /// Name of the folder.
    own: String,
    /// Path of the folder as given by the user.
    path_text: String,
}

impl ProfilePlaces {
    /// Places of a machine.
    pub fn of_machine(machine: &MachineFiles) -> ProfilePlaces {
        ProfilePlaces { trees: vec![machine.unrecorded()], beside: None }
    }

    /// Places for a profile with this file, and the file with its place: the file system that
    /// contains it by its path, and the machine. `root` is the root of the machine's file system.
    pub fn of_file(
        path: &Path,
        text: &str,
        machine: &MachineFiles,
        root: Option<&Path>,
    ) -> (ProfilePlaces, ProfileFile) {
        let mut places = ProfilePlaces::of_machine(machine);
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let parent = whole.parent().unwrap_or(Path::new("/"));
        let name = parent.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = text.to_owned();
        let in_tree = parent.parent().and_then(|above| {
            let above = above.to_string_lossy();
            let folder = FOLDERS.iter().find(|folder| above.ends_with(**folder))?;
            Some((above.strip_suffix(folder)?.to_owned(), *folder))
        });
        if let Some((tree, folder)) = in_tree {
            let tree = if tree.is_empty() { "/" } else { &tree };
            let whole = |path: &Path| host::whole_path(path).ok();
            if root.and_then(whole) != whole(Path::new(tree)) {
                places.trees.insert(0, MachineFiles::tree(tree));
            }
            let folder = format!("{folder}/{name}");
            let place = place_in(0, &folder);
            return (places, ProfileFile { name, text, folder, place });
        }
        if let Some(above) = parent.parent() {
            let given = path.parent().filter(|given| !given.as_os_str().is_empty());
            let path_text = given.unwrap_or(Path::new(".")).to_string_lossy().into_owned();
            let folder = path_text.clone();
            places.beside = Some(Beside { above: MachineFiles::folder(above), own: name.clone(), path_text });
            let place = place_beside(&name);
            return (places, ProfileFile { name, text, folder, place });
        }
        (places, ProfileFile { name, text, ..ProfileFile::default() })
    }

    /// First profile with this name that is not among those `taken`.
    pub fn find(&self, name: &str, read_files: &[String]) -> ProfileSearch {
        // Like tuned, which accepts no paths as names.
        let name = name.rsplit('/').next().unwrap_or(name);
        let mut missing = ProfileSearch::Missing;
        if !is_name(name) {
            return missing;
        }
        if let Some(beside) = &self.beside {
            let place = place_beside(name);
            let text = beside.above.read_text(&format!("/{name}/tuned.conf"));
            if read_files.contains(&place) {
                missing = ProfileSearch::Taken;
            } else if let Fact::Known(text) = text {
                let above = Path::new(&beside.path_text).join("..");
                let folder = above.join(name).to_string_lossy().into_owned();
                return ProfileSearch::Found(ProfileFile { name: name.to_owned(), text, folder, place });
            }
        }
        for (at, tree) in self.trees.iter().enumerate() {
            for folder in folders(tree) {
                let folder = format!("{folder}/{name}");
                let place = place_in(at, &folder);
                if read_files.contains(&place) {
                    missing = ProfileSearch::Taken;
                    continue;
                }
                if let Fact::Known(text) = tree.read_text(&format!("{folder}/tuned.conf")) {
                    return ProfileSearch::Found(ProfileFile { name: name.to_owned(), text, folder, place });
                }
            }
        }
        missing
    }

    /// File of variables by its path in the file system; else, for a profile that was copied
    /// together with it, the file of that name in the profile's folder.
    pub fn variables(&self, path: &str, profile: &ProfileFile) -> Option<String> {
        if let Some(own) = self.beside.as_ref().and_then(|beside| beside.file(path)) {
            return Some(own);
        }
        let read = |tree: &MachineFiles, path: &str| match tree.read_text(path) {
            Fact::Known(text) => Some(text),
            _ => None,
        };
        let whole = normal(path);
        let known = self.trees.iter().find_map(|tree| read(tree, &whole));
        known.or_else(|| {
            let name = path.rsplit('/').next().filter(|name| is_name(name))?;
            let beside = self.beside.as_ref();
            beside.and_then(|beside| read(&beside.above, &format!("/{}/{name}", profile.name)))
        })
    }

    /// Searched folders, for a message.
    pub fn description(&self) -> String {
        let folders = self.trees.first().map(folders).unwrap_or_default().join(", ");
        match &self.beside {
            Some(_) => format!("next to it or in {folders}"),
            None => format!("in {folders}"),
        }
    }
}

impl Beside {
    /// File below the profile's own folder.
    fn file(&self, path: &str) -> Option<String> {
        let below = Path::new(path).strip_prefix(&self.path_text).ok()?;
        let text = self.above.read_text(&normal(&format!("{}/{}", self.own, below.to_str()?)));
        text.known().cloned()
    }
}

/// Absolute path without `.` and `..`.
fn normal(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

fn place_in(tree: usize, folder: &str) -> String {
    format!("{tree}:{folder}")
}

fn place_beside(name: &str) -> String {
    format!("beside:{name}")
}

/// Folders of profiles of a file system, in order of precedence: tuned's configuration may list
/// others.
fn folders(tree: &MachineFiles) -> Vec<String> {
    let usual = || FOLDERS.iter().map(|folder| (*folder).to_owned()).collect();
    let Fact::Known(text) = tree.read_text("/etc/tuned/tuned-main.conf") else { return usual() };
    let named = bare_options(&text).into_iter().find(|(name, _)| name == "profile_dirs");
    let named = named.map(|(_, folders)| {
        let all = folders.split([',', ';']).map(str::trim).filter(|folder| folder.starts_with('/'));
        all.rev().map(str::to_owned).collect::<Vec<_>>()
    });
    named.filter(|named| !named.is_empty()).unwrap_or_else(usual)
}

/// True for a valid name of a profile in tuned.
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 255
        && !matches!(name, "." | "..")
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}
