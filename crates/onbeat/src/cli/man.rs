//! `onbeat man`: the manual page, from the same record as `--help`.

use model::error::{Exit, Failure, Result};

/// Print the manual page
///
/// For example: onbeat man measure | man -l -
#[derive(clap::Args)]
pub struct Args {
    /// A command; without it, the page of onbeat itself
    command: Option<String>,
}

/// Prints the page in roff.
pub fn run(args: &Args, mut command: clap::Command) -> Result<Exit> {
    command.build();
    let page = match &args.command {
        None => command,
        Some(name) => {
            let found = command.get_subcommands().find(|sub| sub.get_name() == name).cloned();
            let found = found
                .ok_or_else(|| Failure::usage(format!("there is no command {name:?}: see onbeat --help")))?;
            let title: &'static str = Box::leak(format!("onbeat-{name}").into_boxed_str());
            found.name(title)
        }
    };
    let mut roff = Vec::new();
    clap_mangen::Man::new(page)
        .render(&mut roff)
        .map_err(|error| Failure::internal(format!("cannot render the page: {error}")))?;
    super::outputs::print(&roff)?;
    Ok(Exit::Ok)
}
