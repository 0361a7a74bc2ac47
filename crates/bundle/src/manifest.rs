//! Manifest of a bundle, as a board announces it to a farm: paths, sizes, pieces by SHA-256.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Schema of a manifest.
pub const MANIFEST_SCHEMA: &str = "onbeat.manifest/1";
/// Schema of an answer that acknowledges a run, a piece or an environment by its name.
pub const RECEIVED_SCHEMA: &str = "onbeat.received/1";
/// Size of a piece; the last one of a file may be shorter.
pub const PIECE: u64 = 4 << 20;
/// Maximum number of files of a bundle.
pub const MOST_FILES: usize = 20_000;
/// Maximum size of all files of a bundle.
pub const MOST_BYTES: u64 = 1 << 30;
/// Maximum number of components of a path in a bundle.
pub const DEEPEST: usize = 24;
/// Maximum length of a path in bytes.
const LONGEST: usize = 512;
/// Maximum length of a name in bytes: no file system has longer ones.
const LONGEST_NAME: usize = 255;
/// Size of the largest `run.json` that a farm reads.
pub const RUN_LIMIT: u64 = 8 << 20;
/// Parts of a bundle: files, and folders with their contents. Refusals of the kernel, targets of
/// links and texts for the audit alone are in files next to `host`: without them the audit of a
/// copy knows less.
pub const PARTS: [&str; 10] = [
    "run.json",
    "blocks.jsonl",
    "rows.jsonl",
    "tail",
    "host.errors",
    "host.links",
    "host.lists",
    "host.texts",
    "events",
    "host",
];

/// Text of one of these limits.
pub fn size_words(bytes: u64) -> String {
    match (bytes >> 30, bytes >> 20) {
        (0, 0) => format!("{bytes} bytes"),
        (0, mib) => format!("{mib} MiB"),
        (gib, _) => format!("{gib} GiB"),
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleManifest {
    pub schema: String,
    pub files: Vec<ManifestFile>,
    /// Reserved for a signature over the rest.
    #[serde(default)]
    pub signature: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestFile {
    pub path: String,
    pub bytes: u64,
    /// SHA-256 of each piece, as 64 letters.
    pub pieces: Vec<String>,
}

impl BundleManifest {
    /// Reads and checks a manifest; the error is a line with the remedy.
    pub fn read(bytes: &[u8]) -> Result<BundleManifest, String> {
        let manifest: BundleManifest = serde_json::from_slice(bytes).map_err(|error| {
            model::text::excerpt(&format!("no manifest ({error}): send {MANIFEST_SCHEMA}"))
        })?;
        if manifest.schema != MANIFEST_SCHEMA {
            let schema = model::text::excerpt(&manifest.schema);
            return Err(format!(
                "schema {schema:?} instead of {MANIFEST_SCHEMA:?}: written by another version, update \
                 onbeat-farm"
            ));
        }
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), String> {
        if self.files.len() > MOST_FILES || self.bytes() > MOST_BYTES {
            let most = size_words(MOST_BYTES);
            return Err(format!("more than {MOST_FILES} files or {most}: too large for a bundle"));
        }
        let paths: BTreeSet<&str> = self.files.iter().map(|file| file.path.as_str()).collect();
        if paths.len() < self.files.len() {
            return Err("duplicate path: name each file once".to_owned());
        }
        if !paths.contains("run.json") {
            return Err("run.json is missing: send the whole bundle".to_owned());
        }
        self.files.iter().try_for_each(ManifestFile::check)?;
        let mut folders =
            paths.iter().flat_map(|path| path.match_indices('/').map(move |(at, _)| &path[..at]));
        match folders.find(|folder| paths.contains(folder)) {
            Some(both) => {
                let excerpt = model::text::excerpt(both);
                Err(format!("{excerpt:?} is both a file and a folder: name the existing files"))
            }
            None => Ok(()),
        }
    }

    /// Total size of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }

    /// Digest of `run.json`, if that is one piece.
    pub fn run_digest(&self) -> Option<&str> {
        let file = self.files.iter().find(|file| file.path == "run.json")?;
        if file.pieces.len() == 1 { file.pieces.first().map(String::as_str) } else { None }
    }

    /// Digests of the pieces, each once.
    pub fn pieces(&self) -> Vec<&str> {
        let mut all: Vec<&str> =
            self.files.iter().flat_map(|file| &file.pieces).map(String::as_str).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl ManifestFile {
    fn check(&self) -> Result<(), String> {
        let excerpt = model::text::excerpt(&self.path);
        if self.path.split('/').any(|name| name.len() > LONGEST_NAME) {
            return Err(format!(
                "{excerpt:?} has a name of more than {LONGEST_NAME} bytes: send only files that onbeat writes"
            ));
        }
        if !is_part(&self.path) {
            return Err(format!("{excerpt:?} is not part of a bundle: send only files that onbeat writes"));
        }
        if self.path == "run.json" && self.bytes > RUN_LIMIT {
            return Err(format!("run.json is larger than {}, the limit for a run", size_words(RUN_LIMIT)));
        }
        if self.pieces.len() as u64 != self.bytes.div_ceil(PIECE)
            || !self.pieces.iter().all(|one| is_digest(one))
        {
            return Err(format!(
                "{excerpt:?}: its pieces do not match its size: expected one SHA-256 for each {PIECE} bytes"
            ));
        }
        Ok(())
    }
}

/// True if a text is a SHA-256.
pub fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// True if a path belongs to a bundle, and leads nowhere else.
pub fn is_part(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let plain = |part: &&str| {
        (1..=LONGEST_NAME).contains(&part.len())
            && *part != "."
            && *part != ".."
            && !part.contains(model::text::steers)
    };
    let place = match parts.as_slice() {
        [name] => PARTS.contains(name) && !matches!(*name, "events" | "host"),
        ["events", _] => true,
        ["host", _, ..] => parts.len() <= DEEPEST,
        _ => false,
    };
    place && path.len() <= LONGEST && parts.iter().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(path: &str, bytes: u64) -> ManifestFile {
        ManifestFile {
            path: path.into(),
            bytes,
            pieces: vec!["a".repeat(64); bytes.div_ceil(PIECE) as usize],
        }
    }

    fn read(files: Vec<ManifestFile>) -> Result<BundleManifest, String> {
        let manifest = BundleManifest { schema: MANIFEST_SCHEMA.into(), files, signature: None };
        BundleManifest::read(&serde_json::to_vec(&manifest).unwrap())
    }

    #[test]
    fn a_bundle_is_announced() {
        let files = vec![
            file("run.json", 9),
            file("blocks.jsonl", PIECE + 1),
            file("host/proc/a", 0),
            file("events/0.jsonl", 1),
            file("host.errors", 0),
            file("host.links", 0),
            file("host.lists", 0),
            file("host.texts", 1),
        ];
        assert_eq!(read(files).unwrap().pieces().len(), 1);
    }

    #[test]
    fn what_leads_elsewhere_is_refused() {
        for path in [
            "../run.json",
            "host/../../x",
            "/etc/passwd",
            "host//x",
            "host",
            "events/a/b",
            "other",
            "host/\u{202e}x",
            "host/a\nb",
            "",
            "run.json/x",
        ] {
            let refused = read(vec![file("run.json", 1), file(path, 1)]).unwrap_err();
            assert!(!refused.contains('\n'), "{refused}");
        }
        let deep = format!("host{}", "/a".repeat(DEEPEST));
        assert!(read(vec![file("run.json", 1), file(&deep, 1)]).is_err());
    }

    #[test]
    fn paths_are_those_of_a_tree_that_can_be_written() {
        let run = || file("run.json", 1);
        // Names between them, in any order.
        for paths in [["host/a", "host/a/b", "host/a.b"], ["host/a/b/c/d", "host/a.b", "host/a/b"]] {
            let of = paths.map(|path| file(path, 1)).into_iter().chain([run()]).collect();
            let refused = read(of).unwrap_err();
            assert!(refused.contains("is both a file and a folder"), "{refused}");
        }
        assert!(read(vec![run(), file("host/a.b", 1), file("host/a/b", 1), file("host/ab", 1)]).is_ok());
        let name = "n".repeat(LONGEST_NAME);
        for path in [format!("host/{name}"), format!("host/{name}/x")] {
            assert!(read(vec![run(), file(&path, 1)]).is_ok() && is_part(&path));
            let path = path.replace(&name, &format!("n{name}"));
            let refused = read(vec![run(), file(&path, 1)]).unwrap_err();
            assert!(refused.contains("more than 255 bytes") && !is_part(&path), "{refused}");
        }
    }

    #[test]
    fn sizes_and_digests_have_to_fit() {
        assert!(read(vec![]).is_err() && read(vec![file("run.json", 1), file("run.json", 1)]).is_err());
        let refused = read(vec![file("run.json", RUN_LIMIT + 1)]).unwrap_err();
        assert_eq!(refused, "run.json is larger than 8 MiB, the limit for a run");
        let refused = read(vec![file("run.json", 1), file("tail", MOST_BYTES)]).unwrap_err();
        assert_eq!(refused, "more than 20000 files or 1 GiB: too large for a bundle");
        let upper = ManifestFile { pieces: vec!["A".repeat(64)], ..file("run.json", 1) };
        let few = ManifestFile { pieces: vec![], ..file("run.json", 1) };
        assert!(read(vec![upper]).is_err() && read(vec![few]).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_manifest_or_a_refusal(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = BundleManifest::read(&bytes);
        }
    }
}
