//! `onbeat doctor`: the commands that work on this machine, and what each missing need takes.

use super::Environment;
use super::outputs::{OutputFlags, Outputs};
use crate::doctor::{COMMANDS, CommandNeeds, abilities, needs};
use crate::watch::machine::MachineReader;
use model::doctor::{DOCTOR_SCHEMA, DoctorDocument, ExaminedHost, NeedState};
use model::error::{Exit, Failure, Result};
use model::text::clean;
use report::doctor::render;

/// List the commands that work on this machine, and what each missing need takes
///
/// Tries each need with the function by which the commands open it: a trace instance and BPF
/// programs are created and removed again, as by a short watch. Settings stay as they are, and no
/// load is started. With commands, the exit code is that of the first that would be refused.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        onbeat doctor\n  \
        onbeat doctor hunt watch && onbeat hunt -D 10s\n  \
        onbeat doctor --json - | jq -r '.needs[] | select(.found | not) | .why'")]
pub struct Args {
    /// Only these commands, like hunt or "probe ipc"; a first word like tune stands for all of its
    /// commands
    #[arg(value_name = "COMMAND")]
    commands: Vec<String>,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let mut outputs = Outputs::of(&[&args.output.json], environment)?;
    let commands = chosen(&args.commands)?;
    let is_wanted = |need: &str| {
        commands.iter().any(|of| of.requires.contains(&need) || of.uses.concat().contains(&need))
    };
    let outcomes = needs::try_all(is_wanted);
    let host = MachineReader::new().host();
    let tried = needs::ALL.iter().filter_map(|need| Some((need.name, outcomes.get(need.name)?)));
    let document = DoctorDocument {
        schema: DOCTOR_SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        host: ExaminedHost {
            release: host.release,
            machine: host.machine,
            preempt: host.preempt.to_string(),
            virtualization: host.virtualization,
            root: host::is_root(),
        },
        commands: abilities(&commands, &outcomes),
        needs: tried
            .map(|(need, outcome)| NeedState {
                need,
                found: outcome.is_ok(),
                why: outcome.as_ref().err().map(|failure| failure.message.clone()).unwrap_or_default(),
            })
            .collect(),
    };
    outputs.json_pretty(&args.output.json, &document);
    outputs.print(&render(&document, outputs.screen.columns, outputs.screen.color));
    let refused = document.commands.iter().map(|found| found.state.exit()).find(|exit| *exit != Exit::Ok);
    outputs.end(refused.filter(|_| !args.commands.is_empty()).unwrap_or(Exit::Ok))
}

/// Commands of these names, or of these first words; all without a name.
fn chosen(names: &[String]) -> Result<Vec<&'static CommandNeeds>> {
    let is_of = |needs: &CommandNeeds, name: &str| {
        needs.command == name || needs.command.split(' ').next() == Some(name)
    };
    if let Some(name) = names.iter().find(|name| !COMMANDS.iter().any(|needs| is_of(needs, name))) {
        let all: Vec<&str> = COMMANDS.iter().map(|needs| needs.command).collect();
        let (name, all) = (clean(name), all.join(", "));
        return Err(Failure::usage(format!("invalid command '{name}': choose from {all}")));
    }
    let is_named = |needs: &&CommandNeeds| names.is_empty() || names.iter().any(|name| is_of(needs, name));
    Ok(COMMANDS.iter().filter(is_named).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{subcommands, whole};

    #[test]
    fn every_command_is_examined_by_its_name_or_a_part_of_it() {
        const OF_THE_SHELL: [&str; 3] = ["completions", "doctor", "man"];
        let all = subcommands(&whole(), "onbeat");
        let names: Vec<&str> = all.iter().map(|(name, _)| &name["onbeat ".len()..]).collect();
        assert!(COMMANDS.iter().all(|needs| names.contains(&needs.command)));
        let first = |name: &&&str| !name.contains(' ') && !OF_THE_SHELL.contains(*name);
        for name in names.iter().filter(first) {
            assert!(chosen(&[name.to_string()]).is_ok(), "{name} is in no row of COMMANDS");
        }
    }

    #[test]
    fn a_first_word_stands_for_all_of_its_commands() {
        let names = |given: &[&str]| -> Vec<&str> {
            let given: Vec<String> = given.iter().map(|name| name.to_string()).collect();
            chosen(&given).unwrap().iter().map(|needs| needs.command).collect()
        };
        assert_eq!(names(&["probe ipc"]), ["probe ipc"]);
        assert_eq!(names(&["hunt", "tune"]), ["hunt", "tune plan", "tune apply"]);
        assert_eq!(names(&[]).len(), COMMANDS.len());
        let refused = chosen(&["dance".to_owned()]).err().unwrap();
        assert!(refused.message.starts_with("invalid command 'dance': choose from measure, hunt"));
    }
}
