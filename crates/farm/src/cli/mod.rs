//! The command line: one file per subcommand.

mod backup;
mod budget;
mod check;
mod completions;
mod demo;
mod described_program;
mod enrol;
mod export;
mod flags;
mod forget;
mod import;
mod man;
mod output;
mod pin;
mod prune;
mod serve;
mod user;
mod watch_folders;

use std::ffi::OsString;

use clap::{CommandFactory, Parser, Subcommand};
use model::error::{Exit, Failure};
use model::text::excerpt;

use self::output::interruption::until_interrupted;
use crate::objects::ObjectKeys;
use crate::store::{AuditEntry, FarmStore};
use crate::wall_clock::now_ns;

/// Environment variables of the process that are read; no others are.
#[derive(Clone, Debug, Default)]
pub struct FarmEnvironment {
    /// `$XDG_STATE_HOME`.
    pub state_home: Option<OsString>,
    /// `$HOME`.
    pub home: Option<OsString>,
    /// `$TMPDIR`.
    pub temporary: Option<OsString>,
    /// True if there is a display for a browser.
    pub has_display: bool,
    /// True if `$TERM` is a terminal that cannot redraw a line.
    pub dumb: bool,
    /// Keys and place of an object store.
    pub objects: ObjectKeys,
}

/// Stores the runs of many boards and shows them in a browser.
#[derive(Parser)]
#[command(
    name = "onbeat-farm",
    version,
    after_help = "Exit codes: 0 success, 1 internal error, 2 wrong usage or malformed input, 3 `check` found \
                  a fault, 4 not permitted, 5 the store has another schema, 6 interrupted, 7 something was \
                  skipped."
)]
struct FarmCli {
    #[command(subcommand)]
    command: FarmCommand,
}

#[derive(Subcommand)]
enum FarmCommand {
    Demo(demo::Args),
    Serve(serve::Args),
    Import(import::Args),
    Enrol(enrol::Args),
    User(user::Args),
    Budget(budget::Args),
    Check(check::Args),
    Backup(backup::Args),
    Prune(prune::Args),
    Pin(pin::Args),
    Forget(forget::Args),
    Export(export::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Runs the command; the exit code.
pub fn run(args: impl Iterator<Item = OsString>, environment: &FarmEnvironment) -> u8 {
    let cli = match FarmCli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return push::arguments::refused(&error, |why| say(&format!("onbeat-farm: {why}"))),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return ended(Err(Failure::internal(format!("cannot start threads ({error}): try again"))));
        }
    };
    let Some(words) = cli.command.when_interrupted() else {
        let outcome = runtime.block_on(carry_out(&cli.command, environment));
        // A thread that reads a large bundle is not awaited.
        runtime.shutdown_background();
        return ended(outcome);
    };
    let environment = environment.clone();
    let command = move || async move { carry_out(&cli.command, &environment).await };
    ended(until_interrupted(runtime, words, command))
}

async fn carry_out(command: &FarmCommand, environment: &FarmEnvironment) -> model::error::Result<Exit> {
    match command {
        FarmCommand::Demo(args) => demo::run(args, environment).await,
        FarmCommand::Serve(args) => serve::run(args, environment).await,
        FarmCommand::Import(args) => import::run(args, environment).await,
        FarmCommand::Enrol(args) => enrol::run(args, environment).await,
        FarmCommand::User(args) => user::run(args, environment).await,
        FarmCommand::Budget(args) => budget::run(args, environment).await,
        FarmCommand::Check(args) => check::run(args, environment).await,
        FarmCommand::Backup(args) => backup::run(args, environment).await,
        FarmCommand::Prune(args) => prune::run(args, environment).await,
        FarmCommand::Pin(args) => pin::run(args, environment).await,
        FarmCommand::Forget(args) => forget::run(args, environment).await,
        FarmCommand::Export(args) => export::run(args, environment).await,
        FarmCommand::Completions(args) => completions::run(args, FarmCli::command()),
        FarmCommand::Man(args) => man::run(args, FarmCli::command()),
    }
}

impl FarmCommand {
    /// Consequence of an interruption; `None` for a command that ends by a signal regularly.
    fn when_interrupted(&self) -> Option<&'static str> {
        Some(match self {
            FarmCommand::Serve(_) | FarmCommand::Demo(_) => return None,
            FarmCommand::Import(_) => "what was stored stays; repeat the command for the rest",
            FarmCommand::Prune(_) | FarmCommand::Forget(_) => {
                "what was removed stays removed; repeat the command for the rest"
            }
            FarmCommand::Backup(_) => "the backup is incomplete and was not kept: repeat the command",
            FarmCommand::User(_) => "see the accounts with `onbeat-farm user list`",
            FarmCommand::Enrol(_) => "a code that was not printed cannot be used: create another",
            FarmCommand::Budget(_) | FarmCommand::Pin(_) => "what was set stays; the command can be repeated",
            FarmCommand::Check(_)
            | FarmCommand::Export(_)
            | FarmCommand::Completions(_)
            | FarmCommand::Man(_) => "nothing was changed; the output is incomplete",
        })
    }
}

fn ended(outcome: model::error::Result<Exit>) -> u8 {
    match outcome {
        Ok(exit) => exit as u8,
        Err(failure) => {
            say(&format!("onbeat-farm: {failure}"));
            failure.exit as u8
        }
    }
}

/// Adds an entry on this command to the audit log.
async fn note(store: &FarmStore, what: String) -> model::error::Result<()> {
    let entry = AuditEntry { t_ns: now_ns().0, who: "the command line".to_owned(), what };
    store.note(&entry).await
}

/// Limit of noted lines on what a command skipped.
const MOST_NOTED: usize = 20;

/// Notes what a command skipped, so that the farm shows it, too.
async fn note_left_out(store: &FarmStore, command: &str, left_out: &[String]) -> model::error::Result<()> {
    for line in left_out.iter().take(MOST_NOTED) {
        note(store, format!("{command} skipped {}", excerpt(line))).await?;
    }
    match left_out.len().saturating_sub(MOST_NOTED) {
        0 => Ok(()),
        more => note(store, format!("{command} skipped {more} more")).await,
    }
}

/// Refuses a blank name before anything is opened: all entries without a name would be one.
fn check_name(flag: &str, what: &str, name: Option<&String>, remedy: &str) -> model::error::Result<()> {
    match name {
        Some(name) if name.trim().is_empty() => {
            Err(Failure::usage(format!("{flag}: invalid name of a {what}: {remedy}")))
        }
        _ => Ok(()),
    }
}

/// Prints a line to standard error; a failure to write is ignored.
fn say(line: &str) {
    output::progress::write_other(line);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_command_names_the_store_in_the_same_words() {
        let mut helps = BTreeSet::new();
        let about_itself = ["completions", "demo", "man"];
        for command in FarmCli::command().get_subcommands() {
            if about_itself.contains(&command.get_name()) {
                continue;
            }
            let store = command.get_arguments().find(|one| one.get_id() == "store");
            let store = store.unwrap_or_else(|| panic!("{} has no --store", command.get_name()));
            let help = store.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("sqlite:PATH or postgres://.."), "{}: {help}", command.get_name());
            // A server may have no store, and its help mentions that.
            if command.get_name() != "serve" {
                helps.insert(help);
            }
        }
        assert_eq!(helps.len(), 1, "{helps:?}");
    }
}
