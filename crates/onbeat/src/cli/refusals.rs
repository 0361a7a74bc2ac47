//! Errors of clap as one line with a remedy.

use std::ffi::OsString;

use super::outputs::print;
use model::error::{Exit, Failure, Result};
use model::usage::sentence_of;

/// Command that was called without one of its subcommands: `onbeat tune`.
fn named_command(error: &clap::Error) -> Option<String> {
    let help = error.render().to_string();
    let usage = help.lines().find_map(|line| line.strip_prefix("Usage: "))?;
    let command = usage.split(['<', '[']).next()?.trim();
    command.contains(' ').then(|| command.to_owned())
}

/// Prints help and version; reduces an error to its sentence, and names the help.
pub fn of_clap(error: &clap::Error) -> Result<Exit> {
    use clap::error::ErrorKind::*;
    match error.kind() {
        DisplayHelp | DisplayVersion => {
            print(error.render().to_string().as_bytes())?;
            Ok(Exit::Ok)
        }
        DisplayHelpOnMissingArgumentOrSubcommand => Err(Failure::usage(match named_command(error) {
            Some(command) => {
                format!("`{command}` needs a subcommand: `{command} --help` lists them")
            }
            None => {
                "a command is missing: try `onbeat measure -D 10s`, or `onbeat --help` for all".to_owned()
            }
        })),
        _ => Err(Failure::usage(format!("{} (see --help)", sentence_of(&error.render().to_string())))),
    }
}

/// Refuses a `--` without the program that belongs after it: the command would do something else
/// without one.
pub fn of_empty_program(args: &[OsString], commands: impl Fn() -> clap::Command) -> Result<()> {
    if args.last().is_none_or(|last| last != "--") {
        return Ok(());
    }
    let root = commands();
    let command = args.get(1).and_then(|name| root.find_subcommand(name));
    let mut places = command.into_iter().flat_map(clap::Command::get_positionals);
    let program = places.find(|place| place.is_last_set());
    program.and_then(|place| place.get_value_names()?.first()).map_or(Ok(()), |name| {
        Err(Failure::usage(format!("<{name}> is missing: give a program after `--`, or remove `--`")))
    })
}
