//! Copies a bundle next to the store, so that the stick it came on may go.
//!
//! What a bundle consists of is copied and nothing else; links in it lead nowhere
//! (`host::beneath`).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use bundle::manifest::{DEEPEST, MOST_BYTES, MOST_FILES, PARTS};
use host::MachineFiles;
use host::dir::Dir;
use model::fact::Fact;

/// Copies a bundle to `kept/ID`; the run's document comes last, so that a copy that was cut is no
/// bundle. Returns where it is and how many files were left out, or why it cannot be kept.
pub fn keep(bundle: &Path, id: &str, kept: &Path) -> Result<(PathBuf, u64), String> {
    let trouble =
        |error: std::io::Error| format!("it cannot be copied ({error}): look at the space next to the store");
    let place = kept.join(id);
    let target = match host::is_dir(&place) {
        Ok(true) => Dir::existing(&place).map_err(trouble)?,
        _ => Dir::create(&place).map_err(trouble)?.0,
    };
    let files = MachineFiles::folder(bundle);
    let mut copy = Copying { files, bytes: 0, count: 0, left_out: 0 };
    for part in PARTS.iter().rev() {
        copy.entry(&format!("/{part}"), &target, part, 0)?;
    }
    Ok((place, copy.left_out))
}

struct Copying {
    files: MachineFiles,
    bytes: u64,
    count: usize,
    /// Links, and what this user cannot read.
    left_out: u64,
}

impl Copying {
    fn entry(&mut self, path: &str, into: &Dir, name: &str, depth: usize) -> Result<(), String> {
        self.count += 1;
        if self.count > MOST_FILES || depth > DEEPEST {
            return Err(format!(
                "it has more than {MOST_FILES} files, or folders {DEEPEST} deep, which no bundle has"
            ));
        }
        let left = MOST_BYTES - self.bytes;
        let trouble = |error: std::io::Error| {
            format!("it cannot be copied ({error}): look at the space next to the store")
        };
        match self.files.read_at_most(path, left) {
            Fact::Known(bytes) => {
                self.bytes += bytes.len() as u64;
                into.write_atomically(OsStr::new(name), &bytes, None).map_err(trouble)
            }
            Fact::Absent => Ok(()),
            Fact::Refused(number) if is_too_large(number) => {
                Err(format!("it has more than {MOST_BYTES} bytes, which no bundle has"))
            }
            _ => {
                let Fact::Known(names) = self.files.list(&format!("{path}/.")) else {
                    // Without one of its own files it would be another run.
                    if depth == 0 {
                        return Err(format!("its {name} cannot be read: look at whose it is"));
                    }
                    self.left_out += 1;
                    return Ok(());
                };
                let inner = into.subdir(name).map_err(trouble)?;
                names
                    .iter()
                    .try_for_each(|name| self.entry(&format!("{path}/{name}"), &inner, name, depth + 1))
            }
        }
    }
}

fn is_too_large(number: i32) -> bool {
    std::io::Error::from_raw_os_error(number).kind() == std::io::ErrorKind::FileTooLarge
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make folders of their own.
mod tests {
    use super::*;
    use crate::ingest::bundle::read;
    use crate::ingest::find::FoundBundle;
    use std::fs;

    #[test]
    fn a_copy_reads_as_its_bundle_and_links_are_not_followed() {
        let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs/hunt");
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        fs::write(&secret, "x").unwrap();
        let bundle = folder.path().join("bundle");
        fs::create_dir(&bundle).unwrap();
        for entry in ["run.json", "blocks.jsonl"] {
            fs::copy(source.join(entry), bundle.join(entry)).unwrap();
        }
        fs::create_dir(bundle.join("host")).unwrap();
        std::os::unix::fs::symlink(&secret, bundle.join("host/leak")).unwrap();
        fs::write(bundle.join("other"), "no part of a bundle").unwrap();
        let (place, left_out) = keep(&bundle, "id", &folder.path().join("kept")).unwrap();
        assert_eq!(left_out, 1);
        let record = |place: &Path| {
            let (mut record, _) = read(&FoundBundle { place: place.to_owned(), board: None }).unwrap();
            record.run.place.clear();
            record
        };
        assert_eq!(record(&place), record(&bundle));
        assert!(!place.join("other").exists() && !place.join("host/leak").exists());
        // One of its own files that leads elsewhere is no file of it.
        fs::remove_file(bundle.join("blocks.jsonl")).unwrap();
        std::os::unix::fs::symlink(&secret, bundle.join("blocks.jsonl")).unwrap();
        assert!(keep(&bundle, "id", &folder.path().join("again")).unwrap_err().contains("blocks.jsonl"));
    }
}
