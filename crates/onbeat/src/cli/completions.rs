//! `onbeat completions`: the completion script of a shell.

use clap_complete::Shell;

use model::error::{Exit, Result};

/// Print the completion script for a shell
///
/// For example: onbeat completions bash > /etc/bash_completion.d/onbeat
#[derive(clap::Args)]
pub struct Args {
    /// Name of the shell
    shell: Shell,
}

pub fn run(args: &Args, mut command: clap::Command) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "onbeat", &mut script);
    super::outputs::print(&script)?;
    Ok(Exit::Ok)
}
