//! Assignments as sysctl.d(5) has them, and the names of sysctls.

use model::setting::Key;

/// The folder in which sysctls are files.
pub const ROOT: &str = "/proc/sys/";

/// One assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Below `/proc/sys`, with slashes; may be a pattern.
    pub name: String,
    /// None of a name that no pattern is to stand for.
    pub value: Option<String>,
    /// True if a refusal is not a failure.
    pub optional: bool,
}

/// Reads a line; none where it says nothing.
///
/// # Errors
/// The line is not an assignment; the text says why.
pub fn assignment(line: &str) -> Result<Option<Assignment>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with(['#', ';']) {
        return Ok(None);
    }
    let (optional, rest) = line.strip_prefix('-').map_or((false, line), |rest| (true, rest));
    let (name, value) = match rest.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim().to_owned())),
        None if optional => (rest.trim(), None),
        None => return Err("it is no assignment".to_owned()),
    };
    let name = with_slashes(name);
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err("it has no name of a sysctl".to_owned());
    }
    Ok(Some(Assignment { name, value, optional }))
}

/// Folders of `/proc/sys`; modules may add others.
const FOLDERS: &[&str] =
    &["abi", "crypto", "debug", "dev", "fs", "fscache", "kernel", "net", "sunrpc", "user", "vm", "xen"];

/// True for a name, with slashes, that is below a folder of `/proc/sys`.
pub fn is_below_root(name: &str) -> bool {
    name.split_once('/').is_some_and(|(folder, rest)| FOLDERS.contains(&folder) && !rest.is_empty())
}

/// A name as a path: where its first separator is a dot, dots and slashes change places.
pub fn with_slashes(name: &str) -> String {
    let swapped: String = match name.find(['.', '/']).map(|at| name.as_bytes()[at]) {
        Some(b'.') => name
            .chars()
            .map(|c| {
                if c == '.' {
                    '/'
                } else if c == '/' {
                    '.'
                } else {
                    c
                }
            })
            .collect(),
        _ => name.to_owned(),
    };
    let path = swapped.trim_start_matches('/');
    path.strip_prefix(&ROOT[1..]).unwrap_or(path).to_owned()
}

/// The key of a path below `/proc/sys`, where it is one.
pub fn key_of(name: &str) -> Option<Key> {
    // Back through its text, which refuses what leads out of the tree.
    Key::of_path(&format!("{ROOT}{name}"))?.to_string().parse().ok()
}
