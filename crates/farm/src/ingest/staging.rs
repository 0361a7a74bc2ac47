//! Pieces that wait until their bundle is whole, each board's by itself: a piece that another board
//! sent counts for nobody else.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use bundle::manifest::{BundleManifest, ManifestFile, PIECE, is_digest};
use host::MachineFiles;
use host::dir::Dir;
use model::fact::Fact;
use sha2::{Digest, Sha256};

use super::environment::hex;

/// Pieces of a board that may wait: two bundles of the largest size.
const MOST_PIECES: usize = 512;
/// A file that is being written; no part of a bundle is called so.
const UNFINISHED: &str = ".unfinished";

/// The folders of the pieces and of the bundles.
#[derive(Clone, Debug)]
pub struct Staging {
    bundles: PathBuf,
}

impl Staging {
    /// Below the folder in which bundles are kept.
    pub fn new(bundles: &Path) -> Staging {
        Staging { bundles: bundles.to_owned() }
    }

    fn pieces_of(&self, board: &str) -> PathBuf {
        // Ids of runs do not begin with a dot.
        self.bundles.join(".pieces").join(board)
    }

    /// The pieces of a manifest that a board has not sent yet.
    pub fn missing(&self, board: &str, manifest: &BundleManifest) -> Vec<String> {
        let files = MachineFiles::folder(self.pieces_of(board));
        let there = files.list("/.").known().cloned().unwrap_or_default();
        let is_missing = |piece: &&str| there.binary_search_by(|name| name.as_str().cmp(piece)).is_err();
        manifest.pieces().into_iter().filter(is_missing).map(str::to_owned).collect()
    }

    /// Keeps a piece; false where it was there. Its name has to be its content's.
    pub fn put(&self, board: &str, name: &str, bytes: &[u8]) -> Result<bool, StagingFault> {
        if !is_digest(name) || hex(&Sha256::digest(bytes)) != name {
            return Err(StagingFault::Refused(
                "the bytes have another SHA-256: send the piece again".to_owned(),
            ));
        }
        let folder = self.pieces_of(board);
        let there = MachineFiles::folder(&folder).list("/.").known().cloned().unwrap_or_default();
        if there.iter().any(|known| known == name) {
            return Ok(false);
        }
        if there.len() >= MOST_PIECES {
            let detail = format!("{MOST_PIECES} pieces wait already: finish a run first, with its manifest");
            return Err(StagingFault::Full(detail));
        }
        open(&folder)?.write_atomically(OsStr::new(name), bytes, None).map_err(StagingFault::of)?;
        Ok(true)
    }

    /// The folder of the bundles.
    pub fn folder(&self) -> &Path {
        &self.bundles
    }

    /// Where a bundle of a name is.
    pub fn place(&self, name: &str) -> PathBuf {
        self.bundles.join(name)
    }

    /// Makes the bundle of its pieces, `run.json` last; where it is.
    pub fn assemble(
        &self,
        board: &str,
        name: &str,
        manifest: &BundleManifest,
    ) -> Result<PathBuf, StagingFault> {
        let place = self.place(name);
        let pieces = MachineFiles::folder(self.pieces_of(board));
        let target = open(&place)?;
        let (last, first): (Vec<_>, Vec<_>) = manifest.files.iter().partition(|file| file.path == "run.json");
        for file in first.into_iter().chain(last) {
            let mut names: Vec<&str> = file.path.split('/').collect();
            let name = names.pop().unwrap_or_default();
            let inner = names.split_first().map(|(first, rest)| {
                let outer = target.subdir(first);
                rest.iter().fold(outer, |folder, name| folder?.subdir(name)).map_err(StagingFault::of)
            });
            join(&pieces, file, inner.transpose()?.as_ref().unwrap_or(&target), name)?;
        }
        Ok(place)
    }

    /// Removes a bundle that is refused.
    pub fn discard(&self, place: &Path, manifest: &BundleManifest) {
        let Ok(folder) = Dir::existing(place) else { return };
        let mut inner = std::collections::BTreeSet::new();
        for file in &manifest.files {
            folder.remove(&file.path);
            inner.extend(file.path.match_indices('/').map(|(at, _)| &file.path[..at]));
        }
        // What lies deeper comes later in their order.
        inner.into_iter().rev().for_each(|path| folder.remove_dir(path));
        if let (Ok(bundles), Some(name)) = (Dir::existing(&self.bundles), place.file_name()) {
            bundles.remove_dir(&name.to_string_lossy());
        }
    }

    /// Drops the pieces of a bundle that is stored.
    pub fn clear(&self, board: &str, manifest: &BundleManifest) {
        if let Ok(folder) = Dir::existing(&self.pieces_of(board)) {
            manifest.pieces().into_iter().for_each(|piece| folder.remove(piece));
        }
    }
}

/// Why a piece or a bundle is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StagingFault {
    Refused(String),
    Full(String),
    Failed(String),
}

impl StagingFault {
    fn of(error: std::io::Error) -> StagingFault {
        StagingFault::Failed(format!("it cannot be written ({error}): look at the space next to the store"))
    }
}

fn open(folder: &Path) -> Result<Dir, StagingFault> {
    match host::is_dir(folder) {
        Ok(true) => Dir::existing(folder),
        _ => Dir::create(folder).map(|(dir, _)| dir),
    }
    .map_err(StagingFault::of)
}

/// Writes a file piece by piece, so that no more than one is in memory.
fn join(pieces: &MachineFiles, file: &ManifestFile, into: &Dir, name: &str) -> Result<(), StagingFault> {
    into.remove(UNFINISHED);
    let mut to = into.new_file(UNFINISHED).map_err(StagingFault::of)?;
    let mut written = 0;
    for piece in &file.pieces {
        let Fact::Known(part) = pieces.read_at_most(&format!("/{piece}"), PIECE) else {
            return Err(StagingFault::Refused("a piece is missing: send the manifest again".to_owned()));
        };
        written += part.len() as u64;
        to.write_all(&part).map_err(StagingFault::of)?;
    }
    if written != file.bytes {
        let detail = format!("{:?} has other bytes than its manifest says: send it again", file.path);
        return Err(StagingFault::Refused(detail));
    }
    to.sync_all().map_err(StagingFault::of)?;
    into.rename(UNFINISHED, name, false).map_err(StagingFault::of)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests look at what was written.
mod tests {
    use super::*;
    use bundle::manifest::MANIFEST_SCHEMA;

    #[test]
    fn a_bundle_is_made_of_its_pieces_and_of_no_other_boards() {
        let folder = tempfile::tempdir().unwrap();
        let staging = Staging::new(folder.path());
        let (run, large) = (b"{}".to_vec(), vec![7u8; PIECE as usize + 3]);
        let piece = |bytes: &[u8]| hex(&Sha256::digest(bytes));
        let cut: Vec<&[u8]> = large.chunks(PIECE as usize).collect();
        let pieces = cut.iter().map(|part| piece(part)).collect();
        let files = vec![
            ManifestFile { path: "run.json".into(), bytes: 2, pieces: vec![piece(&run)] },
            ManifestFile { path: "host/proc/x".into(), bytes: large.len() as u64, pieces },
            ManifestFile { path: "host/empty".into(), bytes: 0, pieces: vec![] },
        ];
        let manifest = BundleManifest { schema: MANIFEST_SCHEMA.into(), files, signature: None };
        assert_eq!(staging.missing("a", &manifest).len(), 3);
        for part in [&run[..]].into_iter().chain(cut) {
            assert!(
                staging.put("a", &piece(part), part).unwrap()
                    && !staging.put("a", &piece(part), part).unwrap()
            );
        }
        assert!(staging.missing("a", &manifest).is_empty() && staging.missing("b", &manifest).len() == 3);
        assert!(staging.assemble("b", "id", &manifest).is_err());
        let place = staging.assemble("a", "id", &manifest).unwrap();
        assert_eq!(std::fs::read(place.join("host/proc/x")).unwrap(), large);
        assert_eq!(std::fs::read(place.join("run.json")).unwrap(), run);
        assert!(place.join("host/empty").exists());
        staging.discard(&place, &manifest);
        assert!(!place.exists());
        staging.clear("a", &manifest);
        assert_eq!(staging.missing("a", &manifest).len(), 3);
        assert!(matches!(staging.put("a", &piece(b"x"), b"y"), Err(StagingFault::Refused(_))));
    }
}
