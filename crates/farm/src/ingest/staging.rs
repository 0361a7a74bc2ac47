//! Pieces that wait until their bundle is complete, separately per board: a piece that another
//! board sent does not count.
//!
//! Those in the board's latest manifest wait until it is stored or refused. Others are of abandoned
//! runs, or of replaced states: the oldest make room for new ones, and a manifest that names them
//! requests them again.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bundle::manifest::{BundleManifest, ManifestFile, PIECE, is_digest};
use host::MachineFiles;
use host::dir::Dir;
use model::fact::Fact;
use sha2::{Digest, Sha256};

use super::environment::hex;

/// Limit of a board's waiting pieces besides those of its latest manifest: as many as in the
/// largest bundle.
const MOST_OTHERS: usize = 256;
/// Prefix of files that are being written; no part of a bundle has it.
const UNFINISHED: &str = ".unfinished";

/// The folders of the pieces and of the bundles.
#[derive(Clone, Debug)]
pub struct Staging {
    bundles: PathBuf,
    /// The pieces of the latest manifest of each board that is sending a run, since the server was
    /// started.
    under_way: Arc<Mutex<BTreeMap<String, Arc<BTreeSet<String>>>>>,
}

impl Staging {
    /// Staging below the folder of bundles.
    pub fn new(bundles: &Path) -> Staging {
        Staging { bundles: bundles.to_owned(), under_way: Arc::default() }
    }

    fn pieces_of(&self, board: &str) -> PathBuf {
        // Ids of runs do not begin with a dot.
        self.bundles.join(".pieces").join(board)
    }

    /// The pieces of a board that are here.
    fn waiting(&self, board: &str) -> BTreeSet<String> {
        let names = Dir::existing(&self.pieces_of(board)).and_then(|folder| folder.names());
        names.unwrap_or_default().into_iter().collect()
    }

    /// The pieces of a manifest that a board has not sent yet. It is the board's latest from here
    /// on: its pieces stay.
    pub fn missing(&self, board: &str, manifest: &BundleManifest) -> Vec<String> {
        let named: BTreeSet<String> = manifest.pieces().into_iter().map(str::to_owned).collect();
        let there = self.waiting(board);
        self.make_room(board, there.difference(&named), MOST_OTHERS);
        let missing = named.difference(&there).cloned().collect();
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.insert(board.to_owned(), Arc::new(named));
        missing
    }

    /// Removes the oldest of some pieces of a board until at most `most` are left.
    fn make_room<'a>(&self, board: &str, of: impl Iterator<Item = &'a String>, most: usize) {
        let folder = self.pieces_of(board);
        let changed = |name: &String| host::file_version(&folder.join(name)).map(|(_, changed)| changed);
        let mut all: Vec<_> = of.map(|name| (changed(name), name)).collect();
        all.sort_unstable();
        if let Ok(folder) = Dir::existing(&folder) {
            let gone = all.len().saturating_sub(most);
            all.iter().take(gone).for_each(|(_, name)| folder.remove(name));
        }
    }

    /// Stores a piece; false if it exists already. Its name has to be its digest.
    pub fn put(&self, board: &str, name: &str, bytes: &[u8]) -> Result<bool, StagingFault> {
        if !is_digest(name) || hex(&Sha256::digest(bytes)) != name {
            return Err(StagingFault::Refused(
                "the SHA-256 of the bytes differs: send the piece again".to_owned(),
            ));
        }
        let there = self.waiting(board);
        if there.contains(name) {
            return Ok(false);
        }
        let named = {
            let under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
            under_way.get(board).cloned().unwrap_or_default()
        };
        if !named.contains(name) {
            self.make_room(board, there.difference(&named), MOST_OTHERS - 1);
        }
        let folder = open(&self.pieces_of(board))?;
        folder.write_atomically(OsStr::new(name), bytes, None).map_err(StagingFault::of)?;
        Ok(true)
    }

    /// The folder of the bundles.
    pub fn folder(&self) -> &Path {
        &self.bundles
    }

    /// Path of a named bundle.
    pub fn place(&self, name: &str) -> PathBuf {
        self.bundles.join(name)
    }

    /// Assembles the bundle from its pieces, `run.json` last; returns its path.
    pub fn assemble(
        &self,
        board: &str,
        name: &str,
        manifest: &BundleManifest,
    ) -> Result<PathBuf, StagingFault> {
        let place = self.place(name);
        let pieces = self.pieces_of(board);
        let target = open(&place)?;
        let (last, first): (Vec<_>, Vec<_>) = manifest.files.iter().partition(|file| file.path == "run.json");
        let mut looked = BTreeSet::new();
        for file in first.into_iter().chain(last) {
            let (above, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
            let mut parts = above.split('/').filter(|part| !part.is_empty());
            let inner = parts.try_fold(None, |outer: Option<Dir>, part| {
                outer.as_ref().unwrap_or(&target).subdir(part).map(Some)
            });
            let inner = inner.map_err(StagingFault::of)?;
            let into = inner.as_ref().unwrap_or(&target);
            if looked.insert(above) {
                remove_unfinished(into);
            }
            join(&pieces, file, into, name)?;
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
        // Deeper folders are later in their order.
        inner.into_iter().rev().for_each(|path| folder.remove_dir(path));
        if let (Ok(bundles), Some(name)) = (Dir::existing(&self.bundles), place.file_name()) {
            bundles.remove_dir(&name.to_string_lossy());
        }
    }

    /// Drops the pieces of a bundle that is stored, or refused for good. A piece that another
    /// bundle shares is requested again.
    pub fn clear(&self, board: &str, manifest: &BundleManifest) {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner).remove(board);
        if let Ok(folder) = Dir::existing(&self.pieces_of(board)) {
            manifest.pieces().into_iter().for_each(|piece| folder.remove(piece));
        }
    }
}

/// Reason that a piece or a bundle is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StagingFault {
    Refused(String),
    Failed(String),
}

impl StagingFault {
    fn of(error: std::io::Error) -> StagingFault {
        StagingFault::Failed(format!(
            "it cannot be written ({error}): check the free space next to the store"
        ))
    }
}

fn open(folder: &Path) -> Result<Dir, StagingFault> {
    match host::is_dir(folder) {
        Ok(true) => Dir::existing(folder),
        _ => Dir::create(folder).map(|(dir, _)| dir),
    }
    .map_err(StagingFault::of)
}

/// Removes a killed server's leftovers from a bundle's folder: they would count as parts of it.
fn remove_unfinished(folder: &Dir) {
    let names = folder.names().unwrap_or_default();
    names.iter().filter(|name| name.starts_with(UNFINISHED)).for_each(|name| folder.remove(name));
}

/// Joins a file from its pieces, under a temporary name until it is complete.
fn join(pieces: &Path, file: &ManifestFile, into: &Dir, name: &str) -> Result<(), StagingFault> {
    let unfinished = format!("{UNFINISHED}.{:016x}", host::random_u64());
    let placed = write_pieces(pieces, file, into, &unfinished)
        .and_then(|()| into.rename(&unfinished, name, false).map_err(StagingFault::of));
    if placed.is_err() {
        into.remove(&unfinished);
    }
    placed
}

/// Writes one piece at a time, to bound the memory. Each is compared with its digest, so that the
/// acknowledged data are those of the board.
fn write_pieces(
    pieces: &Path,
    file: &ManifestFile,
    into: &Dir,
    unfinished: &str,
) -> Result<(), StagingFault> {
    // A part of a file is read verbatim; addresses are masked in a whole one.
    let from = MachineFiles::folder(pieces);
    let mut to = into.new_file(unfinished).map_err(StagingFault::of)?;
    let mut written = 0;
    for piece in &file.pieces {
        let part = match from.read_part(&format!("/{piece}"), 0, PIECE as usize) {
            Fact::Known(part) if hex(&Sha256::digest(&part)) == *piece => part,
            _ => {
                // Removed, so that it is requested again.
                if let Ok(folder) = Dir::existing(pieces) {
                    folder.remove(piece);
                }
                let detail = "a piece is missing or was damaged here: send the manifest again";
                return Err(StagingFault::Failed(detail.to_owned()));
            }
        };
        written += part.len() as u64;
        to.write_all(&part).map_err(StagingFault::of)?;
    }
    if written != file.bytes {
        let detail = format!("the bytes of {:?} do not match the manifest: send it again", file.path);
        return Err(StagingFault::Refused(detail));
    }
    to.sync_all().map_err(StagingFault::of)
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

    fn piece(bytes: &[u8]) -> String {
        hex(&Sha256::digest(bytes))
    }

    fn of(files: &[(&str, &[u8])]) -> BundleManifest {
        let file = |(path, bytes): &(&str, &[u8])| ManifestFile {
            path: (*path).to_owned(),
            bytes: bytes.len() as u64,
            pieces: vec![piece(bytes)],
        };
        let files = files.iter().map(file).collect();
        BundleManifest { schema: MANIFEST_SCHEMA.into(), files, signature: None }
    }

    #[test]
    fn what_is_assembled_is_what_was_sent_or_is_asked_for_again() {
        let folder = tempfile::tempdir().unwrap();
        let staging = Staging::new(folder.path());
        // Text that reads like an address is not secret here.
        let address = b"at ffffffff81000000 of enx001122aabbcc";
        let files: [(&str, &[u8]); 2] = [("run.json", b"{}"), ("host/proc/x", address)];
        let manifest = of(&files);
        for (_, bytes) in files {
            staging.put("a", &piece(bytes), bytes).unwrap();
        }
        std::fs::create_dir_all(folder.path().join("id/host/proc")).unwrap();
        std::fs::write(folder.path().join("id/host/proc/.unfinished"), b"half").unwrap();
        std::fs::write(folder.path().join("id/host/proc/.unfinished.0123456789abcdef"), b"half").unwrap();
        let place = staging.assemble("a", "id", &manifest).unwrap();
        assert_eq!(std::fs::read(place.join("host/proc/x")).unwrap(), address);
        assert_eq!(std::fs::read_dir(place.join("host/proc")).unwrap().count(), 1);
        // Same length, other bytes: the bundle keeps its contents.
        let damaged = folder.path().join(".pieces/a").join(piece(address));
        std::fs::write(&damaged, vec![b'x'; address.len()]).unwrap();
        let fault = staging.assemble("a", "id", &manifest).unwrap_err();
        assert!(matches!(&fault, StagingFault::Failed(why) if why.contains("damaged")), "{fault:?}");
        assert_eq!(std::fs::read(place.join("host/proc/x")).unwrap(), address);
        assert_eq!(std::fs::read_dir(place.join("host/proc")).unwrap().count(), 1);
        assert_eq!(staging.missing("a", &manifest), [piece(address)]);
    }

    #[test]
    fn a_piece_whose_name_looks_like_an_address_is_there_once_it_was_sent() {
        let folder = tempfile::tempdir().unwrap();
        let staging = Staging::new(folder.path());
        let is_alike = |bytes: &String| piece(bytes.as_bytes())[..52].contains("ffff");
        let bytes = (0..).map(|n: u32| n.to_string()).find(is_alike).unwrap().into_bytes();
        let manifest = of(&[("run.json", &bytes)]);
        assert!(staging.put("a", &piece(&bytes), &bytes).unwrap());
        assert!(!staging.put("a", &piece(&bytes), &bytes).unwrap());
        assert_eq!(staging.missing("a", &manifest), [""; 0]);
    }

    #[test]
    fn what_no_manifest_followed_makes_room_the_oldest_first() {
        let folder = tempfile::tempdir().unwrap();
        let staging = Staging::new(folder.path());
        let (from, to) = (MOST_OTHERS, MOST_OTHERS + 20);
        let bytes: Vec<String> = (0..=to).map(|n| n.to_string()).collect();
        let put = |n: usize| staging.put("a", &piece(bytes[n].as_bytes()), bytes[n].as_bytes()).unwrap();
        let paths: Vec<String> = (0..=to).map(|n| format!("host/{n}")).collect();
        let named = |from: usize, to: usize| {
            let file = |n: usize| (paths[n].as_str(), bytes[n].as_bytes());
            of(&(from..to).map(file).collect::<Vec<_>>())
        };
        let lacks = |from: usize, to: usize| {
            let there = staging.waiting("a");
            (from..to).filter(|n| !there.contains(&piece(bytes[*n].as_bytes()))).count()
        };
        // Files of one tick of the file system's clock have the same age.
        let tick = || std::thread::sleep(std::time::Duration::from_millis(30));
        // A run is given up half sent, and then the next has all the room that it needs.
        assert!((0..10).all(put));
        tick();
        assert!((10..from).all(put));
        tick();
        assert_eq!(staging.missing("a", &named(from, to)).len(), to - from);
        assert!((from..to).all(put));
        assert_eq!(lacks(0, to), 0);
        tick();
        // One more that no manifest names: one of the oldest is removed.
        assert!(put(to));
        assert_eq!((lacks(0, 10), lacks(0, to + 1)), (1, 1));
        // Given up as well, and the next state has two of its pieces.
        assert_eq!(staging.missing("a", &named(to - 2, to)), [""; 0]);
        assert_eq!((lacks(0, 10), lacks(0, from), lacks(from, to + 1)), (10, 19, 0));
        assert_eq!(staging.waiting("a").len(), MOST_OTHERS + 2);
        // Removed pieces are requested again.
        assert_eq!(staging.missing("a", &named(0, 10)).len(), 10);
        // A restarted server knows no manifest.
        let staging = Staging::new(folder.path());
        let other = |n: usize| {
            let bytes = format!("other {n}");
            staging.put("a", &piece(bytes.as_bytes()), bytes.as_bytes()).unwrap()
        };
        assert!((0..MOST_OTHERS + 5).all(other));
        assert_eq!(staging.waiting("a").len(), MOST_OTHERS);
    }
}
