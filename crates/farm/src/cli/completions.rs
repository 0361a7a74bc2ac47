//! `onbeat-farm completions`: the completion script of a shell.

use clap::Command;
use clap_complete::Shell;
use model::error::{Exit, Result};

use crate::cli::described_program::{DescribedProgram, print};

/// Print the completion script of a shell
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  onbeat-farm completions bash > /etc/bash_completion.d/onbeat-farm\n  \
     onbeat-farm completions bash --of push > onbeat-push.bash")]
pub struct Args {
    /// The shell
    shell: Shell,
    /// The program to complete
    #[arg(long, value_name = "PROGRAM", default_value = "farm")]
    of: DescribedProgram,
}

pub fn run(args: &Args, farm: Command) -> Result<Exit> {
    print(&script(args.shell, args.of, farm))?;
    Ok(Exit::Ok)
}

fn script(shell: Shell, of: DescribedProgram, farm: Command) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut of.command(farm), of.name(), &mut script);
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shell_completes_both_programs() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            for (of, flag) in [(DescribedProgram::Farm, "only-here"), (DescribedProgram::Push, "once")] {
                let farm = Command::new("onbeat-farm").arg(clap::Arg::new("only-here").long("only-here"));
                let script = String::from_utf8(script(shell, of, farm)).unwrap();
                assert!(script.contains(of.name()) && script.contains(flag), "{shell}: {script}");
            }
        }
    }
}
