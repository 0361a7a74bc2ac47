//! Manifest of a run: its files, hashed while they are read.

use std::io::{self, Read};

use bundle::manifest::{
    BundleManifest, DEEPEST, MANIFEST_SCHEMA, MOST_BYTES, MOST_FILES, ManifestFile, PARTS, PIECE, RUN_LIMIT,
    size_words,
};
use host::MachineFiles;
use model::fact::{Fact, errno_name, is_of_other_kind};
use model::text::{excerpt, hex};
use sha2::{Digest, Sha256};

use super::parts::FilePart;

/// Reasons that a bundle cannot be sent whole: without a part it would become another run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnreadBundle {
    /// Lasts until the bundle changes.
    Stays(String),
    /// Possibly temporary: too few descriptors, no memory, a disk that does not answer.
    Passes(String),
}

impl UnreadBundle {
    fn of(path: &str, error: &io::Error) -> UnreadBundle {
        let path = excerpt(path);
        let why = error.raw_os_error().map_or_else(|| error.to_string(), errno_name);
        match error.kind() {
            io::ErrorKind::PermissionDenied => {
                UnreadBundle::Stays(format!("its {path} cannot be read ({why}): run this as its owner"))
            }
            _ => UnreadBundle::Passes(format!(
                "its {path} cannot be read now ({why}): if that persists, check the disk and the number of \
                 open files"
            )),
        }
    }
}

/// Manifest of a bundle in its present state.
pub fn manifest_of(files: &MachineFiles) -> Result<BundleManifest, UnreadBundle> {
    let mut manifest = BundleManifest { schema: MANIFEST_SCHEMA.to_owned(), ..BundleManifest::default() };
    // No file is hashed before their number and size are known to be those of a bundle.
    for path in paths_of(files)? {
        let file = hashed(files, path.clone(), &format!("/{path}"));
        manifest.files.push(file.map_err(|error| UnreadBundle::of(&path, &error))?);
    }
    Ok(manifest)
}

/// Reason that a farm would refuse a file of this size, at this total of the bundle.
fn too_large(path: &str, size: u64, bytes: u64) -> Option<String> {
    if path == "run.json" && size > RUN_LIMIT {
        let most = size_words(RUN_LIMIT);
        return Some(format!(
            "its run.json is larger than {most}, the limit of a run: check which program wrote it"
        ));
    }
    let (shown, most) = (excerpt(path), size_words(MOST_BYTES));
    (bytes > MOST_BYTES).then(|| {
        format!(
            "with its {shown} it is larger than {most}, the limit of a run: remove files that do not belong \
             to it"
        )
    })
}

/// Lists the files of a bundle without reading their content.
fn paths_of(files: &MachineFiles) -> Result<Vec<String>, UnreadBundle> {
    let (mut found, mut bytes) = (Vec::new(), 0u64);
    let mut left: Vec<(String, usize)> = PARTS.iter().rev().map(|part| ((*part).to_owned(), 1)).collect();
    while let Some((path, depth)) = left.pop() {
        if depth > DEEPEST || found.len() >= MOST_FILES {
            return Err(UnreadBundle::Stays(
                "it has more files or deeper folders than a run: remove those that do not belong to \
                 it"
                .to_owned(),
            ));
        }
        let inside = format!("/{path}");
        match files.read_part(&inside, 0, 1) {
            Fact::Known(_) => {
                let size = files.size(&inside).known().copied().unwrap_or(0);
                bytes = bytes.saturating_add(size);
                if let Some(why) = too_large(&path, size, bytes) {
                    return Err(UnreadBundle::Stays(why));
                }
                found.push(path);
            }
            Fact::Absent => {}
            other => match (files.list_as_it_is(&format!("{inside}/.")), refusal(&other)) {
                (Fact::Known(names), _) => {
                    left.extend(names.iter().rev().map(|name| (format!("{path}/{name}"), depth + 1)));
                }
                (Fact::Absent, _) => {}
                (listed, read) => {
                    let mut both = [read, refusal(&listed)].into_iter().flatten();
                    if let Some(errno) = both.find(|errno| !is_of_other_kind(*errno)) {
                        return Err(UnreadBundle::of(&path, &io::Error::from_raw_os_error(errno)));
                    }
                    // Neither a file nor a folder, or a link that leads elsewhere: skipped below a
                    // part, refused in place of one.
                    if depth == 1 {
                        return Err(UnreadBundle::Stays(format!(
                            "its {path} is a link out of the folder, or not a file: replace it by the file \
                             itself"
                        )));
                    }
                }
            },
        }
    }
    Ok(found)
}

fn refusal<T>(fact: &Fact<T>) -> Option<i32> {
    match fact {
        Fact::Refused(errno) => Some(*errno),
        _ => None,
    }
}

fn hashed(files: &MachineFiles, path: String, inside: &str) -> io::Result<ManifestFile> {
    let mut file = ManifestFile { path, ..ManifestFile::default() };
    let mut buffer = vec![0; 32 << 10];
    loop {
        let mut part = FilePart::new(files, inside, file.bytes, PIECE);
        let (mut sum, mut length) = (Sha256::new(), 0);
        loop {
            match part.read(&mut buffer)? {
                0 => break,
                n => {
                    sum.update(&buffer[..n]);
                    length += n as u64;
                }
            }
        }
        if length > 0 {
            file.pieces.push(hex(&sum.finalize()));
            file.bytes += length;
        }
        if length < PIECE {
            return Ok(file);
        }
    }
}

/// File of a piece, and its offset there in bytes.
pub fn place_of<'a>(manifest: &'a BundleManifest, piece: &str) -> Option<(&'a str, u64)> {
    manifest.files.iter().find_map(|file| {
        let at = file.pieces.iter().position(|one| one == piece)?;
        Some((file.path.as_str(), at as u64 * PIECE))
    })
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make files of their own.
mod tests {
    use super::*;

    use host::access::Access;
    use std::fs;

    /// Error numbers, the same on each architecture of Linux.
    const EIO: i32 = 5;
    const EACCES: i32 = 13;
    const EMFILE: i32 = 24;

    #[test]
    fn a_manifest_names_what_is_there_and_follows_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let large = vec![7u8; PIECE as usize * 2 + 1];
        fs::create_dir_all(folder.path().join("host/proc/sys")).unwrap();
        for (path, bytes) in
            [("run.json", &b"{}"[..]), ("blocks.jsonl", &large), ("host/proc/sys/a", b""), ("other", b"x")]
        {
            fs::write(folder.path().join(path), bytes).unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("host/leak")).unwrap();
        let manifest = manifest_of(&MachineFiles::folder(folder.path())).unwrap();
        let found: Vec<_> =
            manifest.files.iter().map(|file| (file.path.as_str(), file.bytes, file.pieces.len())).collect();
        let wanted = [("run.json", 2, 1), ("blocks.jsonl", PIECE * 2 + 1, 3), ("host/proc/sys/a", 0, 0)];
        assert_eq!(found, wanted);
        // A farm accepts it.
        let text = serde_json::to_vec(&manifest).unwrap();
        assert_eq!(BundleManifest::read(&text).unwrap(), manifest);
        let last = manifest.files[1].pieces[2].clone();
        assert_eq!(place_of(&manifest, &last), Some(("blocks.jsonl", PIECE * 2)));
        assert_eq!(place_of(&manifest, "none"), None);
        // A link in place of a part does not count as a missing part.
        std::os::unix::fs::symlink("/etc", folder.path().join("events")).unwrap();
        let fault = manifest_of(&MachineFiles::folder(folder.path())).unwrap_err();
        assert!(matches!(&fault, UnreadBundle::Stays(why) if why.contains("its events is a link")));
    }

    #[test]
    fn what_is_too_large_is_refused_by_its_size() {
        let of_all = "with its host/x it is larger than 1 GiB, the limit of a run: remove files that do not \
                      belong to it";
        let of_run = "its run.json is larger than 8 MiB, the limit of a run: check which program wrote it";
        for (path, bytes, refused) in [
            ("host/x", MOST_BYTES - 2, None),
            ("host/x", MOST_BYTES - 1, Some(of_all)),
            ("host/x", 16 * MOST_BYTES, Some(of_all)),
            ("run.json", RUN_LIMIT, None),
            ("run.json", RUN_LIMIT + 1, Some(of_run)),
        ] {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir(folder.path().join("host")).unwrap();
            fs::write(folder.path().join("run.json"), "{}").unwrap();
            // A hole: nothing is written.
            fs::File::create(folder.path().join(path)).unwrap().set_len(bytes).unwrap();
            let outcome = paths_of(&MachineFiles::folder(folder.path()));
            let told = match &outcome {
                Err(UnreadBundle::Stays(why)) => Some(why.as_str()),
                _ => None,
            };
            assert_eq!(told, refused, "{path} {bytes} {outcome:?}");
            assert_eq!(outcome.is_err(), refused.is_some(), "{path} {bytes} {outcome:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_taken_for_what_is_not_there() {
        let names = ["link", "x"].map(str::to_owned).to_vec();
        let with = |path: &str, errno: i32| {
            let answers = [
                ("/run.json", Access::File(b"{}".to_vec())),
                ("/blocks.jsonl", Access::File(b"x".to_vec())),
                ("/tail", Access::Absent),
                ("/host", Access::List(names.clone())),
                ("/host/.", Access::List(names.clone())),
                ("/host/link", Access::Link("elsewhere".into())),
                ("/host/x", Access::File(b"x".to_vec())),
                (path, Access::Refused(errno)),
            ];
            let answers = answers.map(|(path, seen)| (path.to_owned(), seen)).into();
            manifest_of(&MachineFiles::in_memory(answers))
        };
        let whole = with("/other", EACCES).unwrap();
        let paths: Vec<&str> = whole.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["run.json", "blocks.jsonl", "host/x"]);
        for path in ["/run.json", "/blocks.jsonl", "/tail", "/events", "/host/x", "/host/link"] {
            let named = format!("its {} cannot be read", &path[1..]);
            let (of_user, of_now) = (with(path, EACCES).unwrap_err(), with(path, EMFILE).unwrap_err());
            let remedy = "run this as its owner";
            assert!(
                matches!(&of_user, UnreadBundle::Stays(why) if why.contains(&named) && why.contains(remedy)),
                "{of_user:?}"
            );
            assert!(matches!(&of_now, UnreadBundle::Passes(why) if why.contains(&named)), "{of_now:?}");
        }
        assert!(matches!(with("/tail", EIO), Err(UnreadBundle::Passes(_))));
    }
}
