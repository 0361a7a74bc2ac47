//! Program of `onbeat hunt -- PROGRAM`: its file, its user, its process.

use std::ffi::OsString;
use std::path::Path;

use crate::hunt::followed_program::FollowedProgram;
use host::{HeldProgram, ProgramUser, find_program, find_user, is_dir, is_root, sets_ids};
use model::error::{Exit, Failure, Result, run_with};
use model::text::quoted;

/// Program that waits for its start, and remarks about it.
pub struct ChosenProgram {
    pub followed: FollowedProgram,
    pub notes: Vec<String>,
}

/// Creates its process, before this process changes anything; none if no program was given.
pub fn choose(words: &[OsString], user: Option<&str>) -> Result<Option<ChosenProgram>> {
    let Some(name) = words.first() else { return Ok(None) };
    let file = find_program(name).map_err(|error| {
        // Execution of a folder is refused, which is not a missing permission.
        let refused = error.kind() == std::io::ErrorKind::PermissionDenied;
        if refused && is_dir(Path::new(name)).unwrap_or(false) {
            return Failure::usage(format!("{} is a folder: give a program in it", quoted(Path::new(name))));
        }
        let what = format!("{} cannot be run", quoted(Path::new(name)));
        let remedy = match error.kind() {
            std::io::ErrorKind::PermissionDenied => "make it executable (chmod +x), or give another program",
            _ => "give the path of an existing program",
        };
        Failure::of_call(what, &error, Exit::Usage, remedy)
    })?;
    let user = user.map(named_user).transpose()?;
    let failed = |error: std::io::Error| {
        let what = format!("no process for {}", quoted(Path::new(name)));
        Failure::of_call(what, &error, Exit::Usage, "give arguments without zero bytes")
    };
    let program = HeldProgram::hold(&file, words, user.as_ref()).map_err(failed)?;
    let mut notes = Vec::new();
    if sets_ids(&file) {
        let note = "the program's file is setuid or setgid: it runs with the rights of the file's owner or \
                    group";
        notes.push(note.to_owned());
    }
    let name = file.file_name().unwrap_or(name).to_string_lossy().into_owned();
    let user = user.map(|user| user.name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Some(ChosenProgram { followed: FollowedProgram::new(program, name, user), notes }))
}

fn named_user(name: &str) -> Result<ProgramUser> {
    let found = find_user(name).map_err(|error| {
        Failure::of_call("cannot read the list of users", &error, Exit::Internal, "remove --user")
    })?;
    let user = found.ok_or_else(|| {
        Failure::usage(format!("invalid --user {name}: expected a name that `getent passwd` lists"))
    })?;
    if !is_root() {
        let remedy = run_with("CAP_SETUID") + ", or remove it";
        return Err(Failure::not_permitted(format!("--user {name}: {remedy}")));
    }
    Ok(user)
}
