//! `--of`: the program that a completion script or a manual page is of. A board's own has none of
//! this, so that it stays small.

use std::path::Path;

use clap::Command;
use model::error::{Failure, Result};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum DescribedProgram {
    /// onbeat-farm
    #[default]
    Farm,
    /// onbeat-push, which runs on boards
    Push,
}

impl DescribedProgram {
    pub fn name(self) -> &'static str {
        match self {
            DescribedProgram::Farm => "onbeat-farm",
            DescribedProgram::Push => "onbeat-push",
        }
    }

    /// Arguments of the program; those of the farm are given.
    pub fn command(self, farm: Command) -> Command {
        match self {
            DescribedProgram::Farm => farm,
            DescribedProgram::Push => push::cli::command(),
        }
    }
}

/// Prints a script or a page. A closed pipe is not an error.
pub fn print(text: &[u8]) -> Result<()> {
    host::write_document(Path::new("-"), &String::from_utf8_lossy(text))
        .map_err(|error| Failure::internal(format!("cannot print it ({error}): try again")))
}
