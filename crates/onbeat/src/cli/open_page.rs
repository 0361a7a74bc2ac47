//! Opens a page with the desktop's opener, as the user who called.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Environment;
use super::outputs::remark;
use host::{HeldProgram, find_user, is_root, owned_by_root};
use model::text::quoted;

/// Openers of the desktops (xdg-utils), in folders that only root may write: `$PATH` may name
/// others.
const OPENERS: [&str; 2] = ["/usr/bin/xdg-open", "/usr/local/bin/xdg-open"];

/// Opens the page, or prints its path and the reason; a page that is not shown is not a failure.
pub fn open(page: &Path, environment: &Environment) {
    let page = host::whole_path(page).unwrap_or_else(|_| page.to_owned());
    match started(&page, environment) {
        Ok(()) => remark(&format!("onbeat: the page is {}", quoted(&page))),
        Err(why) => remark(&format!("onbeat: the page is {}: open it in a browser ({why})", quoted(&page))),
    }
}

fn started(page: &Path, environment: &Environment) -> Result<(), String> {
    if !environment.display {
        return Err("no display".to_owned());
    }
    let opener = opener(&OPENERS).ok_or_else(|| "xdg-open is not installed".to_owned())?;
    let caller = environment.invoked_by.as_ref().map(|caller| caller.user.as_str());
    let user = match caller.filter(|name| is_root() && *name != "root") {
        Some(name) => find_user(name).map_err(|error| error.to_string())?,
        None => None,
    };
    let words: [OsString; 2] = [opener.clone().into(), page.into()];
    let mut program = HeldProgram::hold(&opener, &words, user.as_ref()).map_err(|error| error.to_string())?;
    program.go().map_err(|error| format!("{}: {error}", opener.display()))
}

fn opener(places: &[&str]) -> Option<PathBuf> {
    places.iter().map(PathBuf::from).find(|path| owned_by_root(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_screen_nothing_is_started() {
        let why = started(Path::new("/x.html"), &Environment::default()).expect_err("no screen");
        assert_eq!(why, "no display");
    }

    #[test]
    fn what_others_may_write_is_no_opener() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().join("xdg-open");
        host::write_user_file(&own, b"").expect("written");
        assert_eq!(opener(&[own.to_str().expect("text"), "/nonexistent"]), None, "it may not be executed");
        assert!(opener(&["/bin/sh"]).is_some(), "root's");
    }
}
