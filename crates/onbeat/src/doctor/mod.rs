//! Ability of each command on this machine, from the needs that it lacks.
//!
//! [`needs`] tries each need with the function by which the command opens it, so that the answer is
//! the command's. The table of commands and the judgement are pure.

pub mod needs;

use std::collections::BTreeMap;

use model::doctor::{CommandAbility, CommandState};
use model::error::{Exit, Failure};

/// Needs of a command, by their names.
pub struct CommandNeeds {
    pub command: &'static str,
    /// Needs without which it is refused; the first missing one gives the exit code.
    pub requires: &'static [&'static str],
    /// Needs without which its result has less, in groups.
    pub uses: &'static [&'static [&'static str]],
}

/// Needs of the measuring threads.
const MEASURING: &[&str] =
    &["rt-policy", "memory-lock", "idle-states", "timers", "clocksource", "kernel-log", "second-cpu"];
/// Needs for names in the events of the kernel.
const NAMING: &[&str] = &["kernel-names", "thread-numbers"];

const fn of(
    command: &'static str,
    requires: &'static [&'static str],
    uses: &'static [&'static [&'static str]],
) -> CommandNeeds {
    CommandNeeds { command, requires, uses }
}

/// All commands but those of the shell, in the order of the help.
pub const COMMANDS: &[CommandNeeds] = &[
    of("measure", &[], &[MEASURING]),
    of("hunt", &["tracing"], &[MEASURING, NAMING]),
    of("explain", &[], &[]),
    of("probe spin", &[], &[MEASURING]),
    of("probe ipc", &[], &[&["rt-policy", "memory-lock", "idle-states", "timers", "kernel-log", "ipc"]]),
    of("probe switch", &[], &[MEASURING]),
    of("probe hw", &[], &[&["hwlat", "journal"]]),
    of("probe pi", &["rt-policy"], &[&["memory-lock", "kernel-log"]]),
    of("probe migrate", &["rt-policy"], &[&["memory-lock", "kernel-log"]]),
    of("probe deadline", &["deadline-policy"], &[&["memory-lock", "kernel-log"]]),
    of(
        "probe net",
        &[],
        &[&["rt-policy", "memory-lock", "idle-states", "timers", "kernel-log", "network-namespaces"]],
    ),
    of("watch", &["recorder"], &[&["bpf"], NAMING]),
    of("top", &["recorder"], &[&["bpf"], NAMING]),
    of("audit", &[], &[&["all-settings"]]),
    of("threads", &["thread-list"], &[]),
    of("irqs", &["interrupt-list"], &[]),
    of("check", &["thread-list"], &[&["program-events", "thread-numbers"]]),
    of("rules", &[], &[]),
    of("capture", &[], &[&["all-settings"]]),
    of("tune plan", &["boot-id"], &[&["all-settings"]]),
    of("tune apply", &["boot-id", "journal"], &[&["all-settings"]]),
    of("isolate create", &["partition", "boot-id", "journal"], &[]),
    of("isolate run", &["boot-id", "journal"], &[&["rt-policy"]]),
    of("load", &[], &[&["second-cpu"]]),
    of("prove", &["boot-id", "journal"], &[MEASURING]),
    of("cure", &["boot-id", "journal", "tracing"], &[MEASURING, NAMING]),
    of("suite", &[], &[MEASURING]),
    of("report", &[], &[]),
    of("bounds", &[], &[]),
    of("compare", &[], &[]),
    of("import", &[], &[]),
    of("farm", &["farm-program"], &[]),
];

/// Outcome of each need, by its name.
pub type Outcomes = BTreeMap<&'static str, Result<(), Failure>>;

/// Abilities of these commands.
pub fn abilities(commands: &[&'static CommandNeeds], outcomes: &Outcomes) -> Vec<CommandAbility> {
    commands.iter().map(|command| ability(command, outcomes)).collect()
}

fn ability(command: &CommandNeeds, outcomes: &Outcomes) -> CommandAbility {
    let refusal = |need: &str| outcomes.get(need)?.as_ref().err().map(|failure| failure.exit);
    let (requires, uses) = (command.requires.to_vec(), command.uses.concat());
    let missing: Vec<&str> =
        requires.iter().chain(&uses).filter(|need| refusal(need).is_some()).copied().collect();
    let state = match command.requires.iter().find_map(|need| refusal(need)) {
        Some(Exit::NotPermitted) => CommandState::NotPermitted,
        Some(_) => CommandState::NotSupported,
        None if missing.is_empty() => CommandState::Works,
        None => CommandState::Partly,
    };
    CommandAbility { command: command.command, state, requires, uses, missing }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn outcomes(missing: &[(&'static str, Failure)]) -> Outcomes {
        let all = needs::ALL.iter().map(|need| (need.name, Ok(())));
        all.chain(missing.iter().map(|(name, failure)| (*name, Err(failure.clone())))).collect()
    }

    fn state(command: &str, outcomes: &Outcomes) -> CommandState {
        let named = COMMANDS.iter().find(|needs| needs.command == command).unwrap();
        ability(named, outcomes).state
    }

    #[test]
    fn every_need_of_a_command_is_tried_and_every_tried_one_is_needed() {
        let tried: BTreeSet<&str> = needs::ALL.iter().map(|need| need.name).collect();
        let of_commands = COMMANDS.iter().flat_map(|needs| [needs.requires, &needs.uses.concat()].concat());
        assert_eq!(of_commands.collect::<BTreeSet<_>>(), tried);
    }

    #[test]
    fn a_required_need_decides_and_another_one_takes_a_part() {
        let all = outcomes(&[]);
        assert!(COMMANDS.iter().all(|needs| ability(needs, &all).state == CommandState::Works));
        let lacking = outcomes(&[
            ("tracing", Failure::not_permitted("as root")),
            ("rt-policy", Failure::not_permitted("as root")),
            ("partition", Failure::not_supported("no cgroup v2")),
        ]);
        assert_eq!(state("measure", &lacking), CommandState::Partly);
        assert_eq!(state("hunt", &lacking), CommandState::NotPermitted);
        assert_eq!(state("isolate create", &lacking), CommandState::NotSupported);
        assert_eq!(state("audit", &lacking), CommandState::Works);
        // The command meets the partition before the journal.
        let both = outcomes(&[
            ("journal", Failure::not_permitted("as root")),
            ("partition", Failure::not_supported("no cgroup v2")),
        ]);
        assert_eq!(state("isolate create", &both), CommandState::NotSupported);
        assert_eq!(state("cure", &both), CommandState::NotPermitted);
    }
}
