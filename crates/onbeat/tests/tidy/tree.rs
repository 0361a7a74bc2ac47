//! The source tree as values: files with their text, and Rust text with its comments and strings blanked.

use std::path::{Path, PathBuf};

/// A file, its path relative to the root of the repository.
pub struct Source {
    pub path: String,
    pub text: String,
}

impl Source {
    /// A made-up file, for the tests of the checks.
    pub fn new(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.into() }
    }

    /// The text without comments and the content of strings, before the tests at its end.
    ///
    /// A file that is only compiled for tests, or is one, has none.
    pub fn product_code(&self) -> String {
        let is_test = self.path.starts_with("tests/")
            || self.path.ends_with("/tests.rs")
            || self.path.ends_with("/fixture.rs");
        let code = code_of(&self.text);
        let tests = tests_begin(&code);
        if is_test { String::new() } else { code[..tests].to_owned() }
    }
}

/// Where the tests at a file's end begin: at a module with a body, for the attribute alone can stand on a `mod` line.
pub fn tests_begin(text: &str) -> usize {
    let bodies = [
        "#[cfg(test)]\nmod tests {",
        "#[cfg(test)]\npub(super) mod tests {",
        "#[cfg(test)]\npub mod tests {",
    ];
    bodies.iter().filter_map(|body| text.find(body)).min().unwrap_or(text.len())
}

/// The root of the repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every Rust file of the workspace and the fuzz targets.
pub fn rust_files() -> Vec<Source> {
    files("rs")
}

/// Every Markdown file.
pub fn documents() -> Vec<Source> {
    files("md")
}

fn files(extension: &str) -> Vec<Source> {
    let root = root();
    let mut found = paths();
    found.retain(|path| path.extension().is_some_and(|ext| ext == extension));
    let read = |path: &PathBuf| Source {
        path: path.display().to_string(),
        text: String::from_utf8(std::fs::read(root.join(path)).unwrap()).unwrap(),
    };
    found.iter().map(read).collect()
}

/// Every file that git tracks or would; without git, every file outside build output.
pub fn paths() -> Vec<PathBuf> {
    let git = std::process::Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output();
    let mut paths = match git {
        Ok(output) if output.status.success() && !output.stdout.is_empty() => output
            .stdout
            .split(|&byte| byte == 0)
            .map(String::from_utf8_lossy)
            .map(|p| p.as_ref().into())
            .collect(),
        _ => walk(&root()),
    };
    paths.retain(|path: &PathBuf| root().join(path).is_file());
    paths.sort();
    assert!(paths.iter().any(|path| path == Path::new("src/lib.rs")), "the source tree was not found");
    paths
}

fn walk(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![top.to_path_buf()];
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap_or_default();
            if path.is_dir() && !["target", ".git", "corpus", "artifacts"].map(Some).contains(&name.to_str())
            {
                left.push(path);
            } else if path.is_file() {
                found.push(path.strip_prefix(top).unwrap().to_path_buf());
            }
        }
    }
    found
}

/// Rust text with comments and the content of strings and characters made blank; lines stay where they are.
pub fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let before = code.chars().next_back().unwrap_or(' ');
        let length = literal_or_comment(rest, before);
        let (taken, left) = rest.split_at(length.unwrap_or(first.len_utf8()));
        if length.is_some() {
            code.extend(taken.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        } else {
            code.push(first);
        }
        rest = left;
    }
    code
}

/// The length in bytes of the comment, string or character that the text begins with.
fn literal_or_comment(text: &str, before: char) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(text.find("*/").map_or(text.len(), |end| end + 2));
    }
    if text.starts_with('"') {
        return Some(quoted(text, '"'));
    }
    if text.starts_with('r') && !(before.is_alphanumeric() && before != 'b') {
        let hashes = text[1..].chars().take_while(|&c| c == '#').count();
        if text[1 + hashes..].starts_with('"') {
            let close = format!("\"{}", "#".repeat(hashes));
            let body = 2 + hashes;
            return Some(text[body..].find(&close).map_or(text.len(), |end| body + end + close.len()));
        }
    }
    if let Some(inside) = text.strip_prefix('\'') {
        // A lifetime has no second quote after its first character.
        let mut chars = inside.chars();
        return match (chars.next(), chars.next()) {
            (Some('\\'), _) | (Some(_), Some('\'')) => Some(quoted(text, '\'')),
            _ => None,
        };
    }
    None
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[test]
fn comments_and_strings_are_blank() {
    let text = "a // x\nb /* y\n */ c \"d\\\"e\" r#\"f\"g\"# 'h' '\\'' &'i j b\"k\" for l";
    let words: Vec<String> = code_of(text).split_whitespace().map(str::to_owned).collect();
    assert_eq!(words, ["a", "b", "c", "&'i", "j", "b", "for", "l"]);
    assert_eq!(code_of(text).lines().count(), text.lines().count());
}

#[test]
fn tests_at_the_end_are_no_product() {
    let text = "mod a;\n#[cfg(test)]\nmod b;\nfn f() {}\n#[cfg(test)]\nmod tests {\n  fn g() {}\n}\n";
    let code = Source::new("src/a.rs", text).product_code();
    assert!(code.contains("fn f") && !code.contains("fn g"));
    assert_eq!(Source::new("tests/a.rs", text).product_code(), "");
}
