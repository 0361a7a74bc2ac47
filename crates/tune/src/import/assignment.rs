//! Assignments in the syntax of sysctl.d(5), and the names of sysctls.

use model::setting::Key;

/// Folder in which sysctls are files.
pub const ROOT: &str = "/proc/sys/";

/// One assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Name below `/proc/sys`, with slashes; may be a pattern.
    pub name: String,
    /// Value; none for a name that patterns must skip.
    pub value: Option<String>,
    /// True if a refusal is not a failure.
    pub optional: bool,
}

/// Parses a line; none for a comment or an empty line.
///
/// # Errors
/// The line is not an assignment, for the reason in the text.
pub fn assignment(line: &str) -> Result<Option<Assignment>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with(['#', ';']) {
        return Ok(None);
    }
    let (optional, rest) = line.strip_prefix('-').map_or((false, line), |rest| (true, rest));
    let (name, value) = match rest.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim().to_owned())),
        None if optional => (rest.trim(), None),
        None => return Err("it is not an assignment".to_owned()),
    };
    let name = with_slashes(name);
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err("it has no sysctl name".to_owned());
    }
    Ok(Some(Assignment { name, value, optional }))
}

/// Folders of `/proc/sys`; modules may add others.
const FOLDERS: &[&str] =
    &["abi", "crypto", "debug", "dev", "fs", "fscache", "kernel", "net", "sunrpc", "user", "vm", "xen"];

/// True for a name, with slashes, below a folder of `/proc/sys`.
pub fn is_below_root(name: &str) -> bool {
    name.split_once('/').is_some_and(|(folder, rest)| FOLDERS.contains(&folder) && !rest.is_empty())
}

/// Name as a path: if its first separator is a dot, dots and slashes are swapped.
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

/// Key of a path below `/proc/sys`, if it is a valid one.
pub fn key_of(name: &str) -> Option<Key> {
    // Converted through its text, which refuses paths that lead out of the tree.
    Key::of_path(&format!("{ROOT}{name}"))?.to_string().parse().ok()
}
