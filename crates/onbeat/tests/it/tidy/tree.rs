//! The files of the repository.

use std::path::{Path, PathBuf};

/// A file, its path relative to the root of the repository.
pub struct Source {
    pub path: String,
    pub text: String,
}

impl Source {
    /// A synthetic file, for the tests of the checks.
    pub fn new(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.into() }
    }
}

/// Root of the repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every tracked file with this extension.
pub fn files(extension: &str) -> Vec<Source> {
    let mut found = paths();
    found.retain(|path| path.extension().is_some_and(|ext| ext == extension));
    let read = |path: &PathBuf| Source {
        path: path.display().to_string(),
        text: std::fs::read_to_string(root().join(path)).unwrap(),
    };
    found.iter().map(read).collect()
}

/// Every Rust file and every Markdown file.
pub fn sources_and_documents() -> impl Iterator<Item = Source> {
    files("rs").into_iter().chain(files("md"))
}

/// The output of a git command; an error with git's message if it fails or is not installed.
pub fn git(arguments: &[&str]) -> std::io::Result<String> {
    let output = std::process::Command::new("git").args(arguments).current_dir(root()).output()?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let message = String::from_utf8_lossy(&output.stderr);
        Err(std::io::Error::other(format!("{}, {}", output.status, message.trim())))
    }
}

/// Every file that git tracks or would; without git, every file outside build output.
pub fn paths() -> Vec<PathBuf> {
    let mut paths = match git(&["ls-files", "-z", "--cached", "--others", "--exclude-standard"]) {
        Ok(listed) if !listed.is_empty() => listed.split('\0').map(PathBuf::from).collect(),
        _ => walk(&root()),
    };
    paths.retain(|path: &PathBuf| root().join(path).is_file());
    paths.sort();
    let own = Path::new("crates/onbeat/tests/it/tidy/tree.rs");
    assert!(paths.iter().any(|path| path == own), "the source tree was not found");
    paths
}

fn walk(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![top.to_path_buf()];
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap_or_default();
            if path.is_dir() && !["target", ".git", "artifacts"].map(Some).contains(&name.to_str()) {
                left.push(path);
            } else if path.is_file() {
                found.push(path.strip_prefix(top).unwrap().to_path_buf());
            }
        }
    }
    found
}
