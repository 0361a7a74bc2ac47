//! The manifest of a run: its files, hashed while they are read.

use std::io::{self, Read};

use bundle::manifest::{BundleManifest, DEEPEST, MANIFEST_SCHEMA, MOST_FILES, ManifestFile, PARTS, PIECE};
use host::MachineFiles;
use model::fact::Fact;
use sha2::{Digest, Sha256};

use super::parts::FilePart;

/// What a bundle consists of now.
pub fn manifest_of(files: &MachineFiles) -> io::Result<BundleManifest> {
    let mut manifest = BundleManifest { schema: MANIFEST_SCHEMA.to_owned(), ..BundleManifest::default() };
    let mut left: Vec<(String, usize)> = PARTS.iter().rev().map(|part| ((*part).to_owned(), 1)).collect();
    while let Some((path, depth)) = left.pop() {
        if depth > DEEPEST || manifest.files.len() >= MOST_FILES {
            return Err(io::Error::other("it has more files or deeper folders than a run has"));
        }
        let inside = format!("/{path}");
        match files.read_part(&inside, 0, 1) {
            Fact::Known(_) => manifest.files.push(hashed(files, path, &inside)?),
            // What is not a plain file is a folder, or no part of a bundle.
            _ => {
                let Fact::Known(names) = files.list(&format!("{inside}/.")) else { continue };
                left.extend(names.iter().rev().map(|name| (format!("{path}/{name}"), depth + 1)));
            }
        }
    }
    Ok(manifest)
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

/// Where a piece is: the file, and the bytes before it.
pub fn place_of<'a>(manifest: &'a BundleManifest, piece: &str) -> Option<(&'a str, u64)> {
    manifest.files.iter().find_map(|file| {
        let at = file.pieces.iter().position(|one| one == piece)?;
        Some((file.path.as_str(), at as u64 * PIECE))
    })
}

/// Bytes as letters.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make files of their own.
mod tests {
    use super::*;
    use std::fs;

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
        std::os::unix::fs::symlink("/etc", folder.path().join("events")).unwrap();
        let manifest = manifest_of(&MachineFiles::folder(folder.path())).unwrap();
        let found: Vec<_> =
            manifest.files.iter().map(|file| (file.path.as_str(), file.bytes, file.pieces.len())).collect();
        let wanted = [("run.json", 2, 1), ("blocks.jsonl", PIECE * 2 + 1, 3), ("host/proc/sys/a", 0, 0)];
        assert_eq!(found, wanted);
        // It is one that a farm takes.
        let text = serde_json::to_vec(&manifest).unwrap();
        assert_eq!(BundleManifest::read(&text).unwrap(), manifest);
        let last = manifest.files[1].pieces[2].clone();
        assert_eq!(place_of(&manifest, &last), Some(("blocks.jsonl", PIECE * 2)));
        assert_eq!(place_of(&manifest, "none"), None);
    }
}
