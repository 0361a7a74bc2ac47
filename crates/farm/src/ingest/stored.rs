//! Download of a stored bundle's files: one, or all as an archive.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use bundle::manifest::is_part;
use bundle::parts::BundleParts;
use host::MachineFiles;
use model::fact::Fact;

use super::tar;

/// The file of a bundle with the windows of its spikes.
pub const WINDOWS: &str = "events/spikes.jsonl";
/// Number of bytes of a file in memory at a time.
const AT_ONCE: u64 = 256 << 10;

/// A file of a bundle, with its length when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    pub path: String,
    pub bytes: u64,
}

/// A file of a bundle by its path there; `None` if that is not a part of a bundle, or a link.
pub fn stored_file(place: &Path, path: &str) -> Option<StoredFile> {
    let files = MachineFiles::folder(place);
    is_part(path)
        .then(|| files.size(&format!("/{path}")).known().copied())
        .flatten()
        .map(|bytes| StoredFile { path: path.to_owned(), bytes })
}

/// The files of a bundle that can be read; other files in its folder are not its.
pub fn stored_files(place: &Path) -> Vec<StoredFile> {
    files_of(BundleParts::of(&MachineFiles::folder(place)))
}

/// All files of a bundle, to be handed out as the whole of it; why these are not all, in a line.
pub fn whole_files(place: &Path) -> Result<Vec<StoredFile>, String> {
    let parts = BundleParts::of(&MachineFiles::folder(place));
    match parts.lacking() {
        Some(why) => Err(why),
        None => Ok(files_of(parts)),
    }
}

fn files_of(parts: BundleParts) -> Vec<StoredFile> {
    let files = parts.found.into_iter().filter(|part| !part.is_folder && is_part(&part.path));
    files.map(|part| StoredFile { path: part.path, bytes: part.bytes }).collect()
}

/// The bytes of files in chunks; in an archive, with the header and padding of each.
pub struct StoredBytes {
    files: MachineFiles,
    left: VecDeque<StoredFile>,
    /// The current file, and the number of bytes read.
    now: Option<(StoredFile, u64)>,
    /// The folder that an archive unpacks to; none for a file by itself.
    folder: Option<String>,
    is_over: bool,
}

impl StoredBytes {
    /// Raw contents of a file.
    pub fn of_file(place: &Path, file: StoredFile) -> StoredBytes {
        StoredBytes { now: Some((file, 0)), is_over: true, ..StoredBytes::of(place, Vec::new(), None) }
    }

    /// A tar archive of files, which unpacks to a folder of this name.
    pub fn of_archive(place: &Path, files: Vec<StoredFile>, folder: &str) -> StoredBytes {
        StoredBytes::of(place, files, Some(folder.to_owned()))
    }

    fn of(place: &Path, files: Vec<StoredFile>, folder: Option<String>) -> StoredBytes {
        let files = files.into();
        StoredBytes { files: MachineFiles::folder(place), left: files, now: None, folder, is_over: false }
    }

    fn part(&mut self, file: StoredFile, from: u64) -> io::Result<Vec<u8>> {
        let wanted = (file.bytes - from).min(AT_ONCE);
        let Fact::Known(mut part) = self.files.read_part(&format!("/{}", file.path), from, wanted as usize)
        else {
            return Err(io::Error::other("a file of the bundle is gone"));
        };
        let read = part.len() as u64;
        if read == 0 && wanted > 0 {
            return Err(io::Error::other("a file of the bundle got shorter"));
        }
        if from + read != file.bytes {
            self.now = Some((file, from + read));
        } else if self.folder.is_some() {
            part.extend(tar::filling(file.bytes));
        }
        Ok(part)
    }
}

impl Iterator for StoredBytes {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<io::Result<Vec<u8>>> {
        if let Some((file, from)) = self.now.take() {
            return Some(self.part(file, from));
        }
        match (self.left.pop_front(), &self.folder) {
            (Some(file), Some(folder)) => {
                let head = tar::head_of(&format!("{folder}/{}", file.path), file.bytes);
                self.now = (file.bytes > 0).then_some((file, 0));
                Some(head)
            }
            _ if self.is_over => None,
            _ => {
                self.is_over = true;
                Some(Ok(tar::END.to_vec()))
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make files of their own.
mod tests {
    use super::*;
    use bundle::manifest::DEEPEST;
    use std::fs;
    use std::io::Read;

    fn all(bytes: StoredBytes) -> Vec<u8> {
        bytes.collect::<io::Result<Vec<_>>>().unwrap().concat()
    }

    #[test]
    fn an_archive_has_the_files_of_a_bundle_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let deep = format!("host/{}/x", vec!["a".repeat(40); 5].join("/"));
        fs::create_dir_all(at.join(&deep).parent().unwrap()).unwrap();
        let large = vec![7u8; AT_ONCE as usize * 2 + 5];
        let wanted = [
            ("run.json", &b"{}"[..]),
            ("blocks.jsonl", &large),
            ("tail", b""),
            (&deep, b"deep"),
            ("host/enx001122aabbcc", b"an interface"),
        ];
        for (path, bytes) in wanted.iter().chain([&("report.html", &b"none of it"[..])]) {
            fs::write(at.join(path), bytes).unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", at.join("host/leak")).unwrap();
        std::os::unix::fs::symlink("/etc", at.join("events")).unwrap();
        let archive = all(StoredBytes::of_archive(at, whole_files(at).unwrap(), "r1"));
        let mut reader = ::tar::Archive::new(&archive[..]);
        let mut entries = reader.entries().unwrap();
        for (path, bytes) in wanted {
            let mut entry = entries.next().unwrap().unwrap();
            assert_eq!(entry.path().unwrap(), Path::new(&format!("r1/{path}")));
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            assert_eq!(content, bytes);
            let one = stored_file(at, path).unwrap();
            assert_eq!(all(StoredBytes::of_file(at, one)), bytes);
        }
        assert!(entries.next().is_none());
        for path in ["host/leak", "report.html", "../x", "events/passwd", "host/../run.json", ""] {
            assert_eq!(stored_file(at, path), None, "{path}");
        }
    }

    #[test]
    fn what_goes_beyond_the_limits_of_a_bundle_is_no_whole_one() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join(format!("host{}", "/a".repeat(DEEPEST)));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("x"), "x").unwrap();
        fs::write(folder.path().join("run.json"), "{}").unwrap();
        let why = whole_files(folder.path()).unwrap_err();
        assert!(why.contains("24 deep") && !why.contains('\n'), "{why}");
        assert_eq!(stored_files(folder.path()), [StoredFile { path: "run.json".into(), bytes: 2 }]);
    }

    #[test]
    fn a_file_that_got_shorter_meanwhile_ends_the_answer() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("tail"), b"12").unwrap();
        let longer = StoredFile { path: "tail".into(), bytes: 5 };
        let parts: Vec<_> = StoredBytes::of_archive(folder.path(), vec![longer], "r").take(4).collect();
        assert!(parts[1].is_ok() && parts[2].is_err(), "{parts:?}");
    }
}
