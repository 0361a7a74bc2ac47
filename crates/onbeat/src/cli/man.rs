//! `onbeat man`: the manual page, from the same record as `--help`.

use model::error::{Exit, Failure, Result};

/// Print a manual page
///
/// For example: onbeat man measure | man -l -
#[derive(clap::Args)]
pub struct Args {
    /// Command, such as `measure` or `tune apply`; without it, the page of onbeat itself
    command: Vec<String>,
}

/// Prints the page in roff.
pub fn run(args: &Args, command: clap::Command) -> Result<Exit> {
    let mut page = command;
    let mut title = "onbeat".to_owned();
    for name in &args.command {
        let found = page.get_subcommands().find(|sub| sub.get_name() == name).cloned();
        page = found.ok_or_else(|| Failure::usage(format!("unknown command {name:?}: see onbeat --help")))?;
        title = format!("{title}-{name}");
    }
    let title: &'static str = Box::leak(title.into_boxed_str());
    let page = page.name(title);
    let mut roff = Vec::new();
    clap_mangen::Man::new(page)
        .render(&mut roff)
        .map_err(|error| Failure::internal(format!("cannot render the page: {error}")))?;
    super::outputs::print(&roff)?;
    Ok(Exit::Ok)
}
