//! `onbeat-farm man`: the manual page, from the same record as `--help`.

use clap::Command;
use model::error::{Exit, Failure, Result};

use crate::cli::described_program::{DescribedProgram, print};

/// Print the manual page
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat-farm man serve | man -l -\n  onbeat-farm man --of push | man -l -"
)]
pub struct Args {
    /// A command, such as `serve` or `user add`; without it, print the page of the program
    command: Vec<String>,
    /// The program
    #[arg(long, value_name = "PROGRAM", default_value = "farm")]
    of: DescribedProgram,
}

/// Prints the page in roff.
pub fn run(args: &Args, farm: Command) -> Result<Exit> {
    print(&page(&args.command, args.of, farm)?)?;
    Ok(Exit::Ok)
}

fn page(words: &[String], of: DescribedProgram, farm: Command) -> Result<Vec<u8>> {
    let mut page = of.command(farm);
    page.build();
    let mut title = of.name().to_owned();
    for name in words {
        let found = page.get_subcommands().find(|sub| sub.get_name() == name).cloned();
        page = found
            .ok_or_else(|| Failure::usage(format!("unknown command {name:?}: see {} --help", of.name())))?;
        title = format!("{title}-{name}");
    }
    let title: &'static str = Box::leak(title.into_boxed_str());
    let mut roff = Vec::new();
    clap_mangen::Man::new(page.name(title))
        .render(&mut roff)
        .map_err(|error| Failure::internal(format!("cannot render the page: {error}")))?;
    Ok(roff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_and_each_of_its_commands_has_a_page() {
        let farm = || {
            let add = Command::new("add").about("Add a user");
            Command::new("onbeat-farm").subcommand(Command::new("user").subcommand(add))
        };
        let of = |words: &[&str], of| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            page(&words, of, farm()).map(|roff| String::from_utf8(roff).unwrap())
        };
        let add = of(&["user", "add"], DescribedProgram::Farm).unwrap();
        assert!(add.contains(".TH onbeat-farm-user-add") && add.contains("Add a user"), "{add}");
        let push = of(&[], DescribedProgram::Push).unwrap();
        assert!(push.contains(".TH onbeat-push") && push.contains("enrol"), "{push}");
        assert!(of(&["enrol"], DescribedProgram::Push).is_ok());
        let refused = of(&["users"], DescribedProgram::Farm).err().unwrap();
        assert!(refused.exit == Exit::Usage && refused.message.contains("users"), "{refused}");
    }
}
