//! The files of a bundle as in its manifest.

use std::collections::BTreeMap;
use std::path::Path;

use bundle::manifest::{
    BundleManifest, DEEPEST, MANIFEST_SCHEMA, MOST_BYTES, MOST_FILES, ManifestFile, PARTS, PIECE, is_part,
    size_words,
};
use host::MachineFiles;
use model::fact::Fact;
use sha2::{Digest, Sha256};

use crate::ingest::environment::hex;

/// Manifest of a bundle in a folder, and the number of files that it omits: links, and files that
/// this user cannot read.
pub fn manifest_of(folder: &Path) -> Result<(BundleManifest, u64), String> {
    let files = MachineFiles::folder(folder);
    let mut walk = FileWalk { files, found: Vec::new(), bytes: 0, left_out: 0 };
    for part in PARTS {
        walk.entry(part, 0)?;
    }
    let manifest = BundleManifest { schema: MANIFEST_SCHEMA.to_owned(), files: walk.found, signature: None };
    encoded(&manifest)?;
    Ok((manifest, walk.left_out))
}

/// Encoded manifest, if it can be decoded again.
pub(super) fn encoded(manifest: &BundleManifest) -> Result<Vec<u8>, String> {
    let bytes = serde_json::to_vec(manifest).map_err(|error| format!("it has no manifest ({error})"))?;
    BundleManifest::read(&bytes).map(|_| bytes)
}

struct FileWalk {
    files: MachineFiles,
    found: Vec<ManifestFile>,
    bytes: u64,
    left_out: u64,
}

impl FileWalk {
    fn entry(&mut self, path: &str, depth: usize) -> Result<(), String> {
        match self.files.size(&format!("/{path}")) {
            Fact::Known(bytes) if is_part(path) => return self.file(path, bytes),
            Fact::Absent => return Ok(()),
            _ => {}
        }
        match self.files.list_as_it_is(&format!("/{path}/.")) {
            Fact::Known(names) if depth < DEEPEST => {
                names.iter().try_for_each(|name| self.entry(&format!("{path}/{name}"), depth + 1))
            }
            // Without one of these parts it would be another run.
            _ if depth == 0 => Err(format!("its {path} cannot be read: check its owner")),
            _ => {
                self.left_out += 1;
                Ok(())
            }
        }
    }

    fn file(&mut self, path: &str, bytes: u64) -> Result<(), String> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.found.len() >= MOST_FILES || self.bytes > MOST_BYTES {
            let most = size_words(MOST_BYTES);
            return Err(format!("it is not a bundle: more than {MOST_FILES} files or {most}"));
        }
        let mut pieces = Vec::new();
        for from in (0..bytes).step_by(PIECE as usize) {
            let length = PIECE.min(bytes - from);
            match self.files.read_part(&format!("/{path}"), from, length as usize) {
                Fact::Known(part) if part.len() as u64 == length => pieces.push(hex(&Sha256::digest(&part))),
                Fact::Known(_) => {
                    return Err(format!("its {path} was truncated while it was read: try again"));
                }
                _ if path.contains('/') => {
                    self.left_out += 1;
                    return Ok(());
                }
                _ => return Err(format!("its {path} cannot be read: check its owner")),
            }
        }
        self.found.push(ManifestFile { path: path.to_owned(), bytes, pieces });
        Ok(())
    }
}

/// Place of a piece's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PiecePlace {
    pub digest: String,
    pub path: String,
    pub from: u64,
    pub bytes: u64,
}

/// The pieces of a manifest, each once, with a place of its bytes.
pub(super) fn piece_places(manifest: &BundleManifest) -> BTreeMap<String, PiecePlace> {
    let mut places = BTreeMap::new();
    for file in &manifest.files {
        for (digest, from) in file.pieces.iter().zip((0..file.bytes).step_by(PIECE as usize)) {
            let bytes = PIECE.min(file.bytes - from);
            let place = PiecePlace { digest: digest.clone(), path: file.path.clone(), from, bytes };
            places.entry(digest.clone()).or_insert(place);
        }
    }
    places
}

impl PiecePlace {
    /// Its bytes, from the folder of its bundle; a fault if they have changed.
    pub(super) fn read(&self, folder: &Path) -> Result<Vec<u8>, String> {
        let path = format!("/{}", self.path);
        match MachineFiles::folder(folder).read_part(&path, self.from, self.bytes as usize) {
            Fact::Known(bytes) if hex(&Sha256::digest(&bytes)) == self.digest => Ok(bytes),
            _ => Err(format!("its {} changed while it was read: try again", self.path)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make files of their own.
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_put_by_its_name_even_where_that_is_an_address() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("host/enx001122aabbcc")).unwrap();
        let paths = ["run.json", "host/enx001122aabbcc/0ffff0123456789abcd"];
        paths.iter().for_each(|path| fs::write(folder.path().join(path), "{}").unwrap());
        let (manifest, left_out) = manifest_of(folder.path()).unwrap();
        let found: Vec<&str> = manifest.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!((found, left_out), (paths.to_vec(), 0));
    }
}
