//! Folder for state that onbeat and its programs keep between runs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// State folder by `$XDG_STATE_HOME` and `$HOME`, if they are absolute paths (XDG Base Directory
/// Specification); the machine's if neither is, as in a service.
pub fn state_folder(state_home: Option<&OsStr>, home: Option<&OsStr>) -> PathBuf {
    let whole = |text: &OsStr| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
    let of_home = || Some(home.and_then(whole)?.join(".local/state"));
    let above = state_home.and_then(whole).or_else(of_home);
    above.unwrap_or_else(|| Path::new("/var/lib").to_owned()).join("onbeat")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_paths_alone_are_where_things_are_kept() {
        for (state_home, home, folder) in [
            (Some("/s"), Some("/h"), "/s/onbeat"),
            (Some("s"), Some("/h"), "/h/.local/state/onbeat"),
            (Some(""), Some("/h"), "/h/.local/state/onbeat"),
            (None, Some("/h"), "/h/.local/state/onbeat"),
            (None, Some("h"), "/var/lib/onbeat"),
            (None, None, "/var/lib/onbeat"),
        ] {
            let found = state_folder(state_home.map(OsStr::new), home.map(OsStr::new));
            assert_eq!(found, Path::new(folder), "{state_home:?} {home:?}");
        }
    }
}
