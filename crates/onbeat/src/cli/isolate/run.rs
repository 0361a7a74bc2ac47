//! `onbeat isolate run`: runs a command on the isolated CPUs, or off them.

use std::ffi::OsString;

use super::{isolation, require_in_force};
use crate::cli::flags::cpu_list;
use crate::cli::journal::{self, LockedJournal};
use ::tune::isolate::placing::{inner_group, pin, place};
use host::settings::{Applied, Entry, EntryRecords, GroupProcess, Kernel, take_out};
use host::{process_start, replace_by, rt};
use model::error::{Exit, Failure, Result};
use model::fact::Fact;
use model::plan::PlannedChange;
use model::setting::{Key, TaskSetting};
use model::text::quoted;
use model::units::CpuSet;
use model::vocabulary::Policy;

/// Run a command on the isolated CPUs
///
/// The command replaces onbeat, so its exit code is returned, and no shell interprets its
/// arguments. `onbeat isolate undo` moves it, and the processes that it started, to the previous
/// group and keeps its priority. A command that never sleeps under SCHED_FIFO keeps the kernel's
/// threads (rcuc, ksoftirqd, ktimers) off its CPU until the machine runs out of memory or hangs.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        sudo onbeat isolate run -- ./control\n  \
        sudo onbeat isolate run -c 3 -p 80 -- cyclictest -m -a 3 -t 1\n  \
        sudo onbeat isolate run --outside -- make -j2")]
pub struct Args {
    /// CPU or CPUs for the command; by default the first isolated CPU
    #[arg(short = 'c', long = "cpu", value_name = "CPUS", allow_hyphen_values = true)]
    cpus: Option<String>,
    /// Priority under SCHED_FIFO, 1 to 99; by default the policy is unchanged
    #[arg(short, long, value_name = "PRIORITY", value_parser = clap::value_parser!(u32).range(1..=99))]
    priority: Option<u32>,
    /// Run the command on the other CPUs, outside the partition
    #[arg(long)]
    outside: bool,
    /// Command to run, with its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required = true)]
    command: Vec<OsString>,
}

pub fn run(args: &Args) -> Result<Exit> {
    let asked = args.cpus.as_deref().map(|text| cpu_list("-c", text)).transpose()?;
    let [program, arguments @ ..] = args.command.as_slice() else {
        return Err(Failure::usage("a command is missing: onbeat isolate run -- COMMAND"));
    };
    let mut journal = journal::lock_if_there("placing a process")?;
    let entry = isolation(&mut journal)?;
    if args.outside {
        outside(&mut journal, &entry, asked.as_ref())?;
    } else {
        inside(&mut journal, &entry, asked)?;
    }
    if let Some(priority) = args.priority {
        rt::set_policy(Policy::Fifo, priority).map_err(|error| {
            let what = format!("the command cannot have SCHED_FIFO at priority {priority}");
            Failure::of_call(what, &error, Exit::NotPermitted, "run as root, or omit -p")
        })?;
    }
    // The command may run for any time, in which others may change settings.
    drop(journal);
    let error = replace_by(program, arguments);
    let what = format!("{} cannot be run", quoted(program));
    Err(Failure::of_call(what, &error, Exit::Usage, "give the path of an existing program"))
}

fn inside(journal: &mut LockedJournal, entry: &EntryRecords, asked: Option<CpuSet>) -> Result<()> {
    let document = require_in_force(entry)?;
    let isolated = CpuSet::parse(&document.effective).unwrap_or_default();
    let cpus = asked.unwrap_or_else(|| isolated.iter().take(1).collect());
    if cpus.is_empty() || !cpus.without(&isolated).is_empty() {
        return Err(Failure::usage(format!("invalid -c: expected isolated CPUs, which are {isolated}")));
    }
    let (pid, start) = this_process()?;
    let change = place(&journal.kernel, pid, start, &[(pid, start)]);
    make(journal, entry, &change, "cannot move it to the isolated CPUs")?;
    let key = Key::Task { tid: pid, start, what: TaskSetting::Affinity };
    let now = journal.kernel.read(&key).known().cloned().unwrap_or_default();
    make(journal, entry, &pin(pid, start, &cpus, &now), "cannot bind it to its CPU")
}

/// Makes a change as one more step of the isolation.
pub fn make(
    journal: &mut LockedJournal,
    entry: &EntryRecords,
    change: &PlannedChange,
    what: &str,
) -> Result<()> {
    let unwritten = |error: &std::io::Error| {
        let what = "cannot write the journal of changes, so nothing is changed";
        Failure::of_call(what, error, Exit::NotPermitted, "free some space")
    };
    // The present steps: one may have been added since.
    let entry =
        host::settings::read_entry(&*journal.store, &entry.opened.id).map_err(|error| unwritten(&error))?;
    let entry =
        entry.ok_or_else(|| Failure::internal("the isolation is missing from the journal of changes"))?;
    let mut resumed =
        Entry::resume(&mut journal.kernel, &mut *journal.store, &entry).map_err(|error| unwritten(&error))?;
    match resumed.make(change).map_err(|error| unwritten(&error))? {
        Applied::Done(_) | Applied::Already => Ok(()),
        Applied::Gone => Err(Failure::usage("the process has ended: give a running one")),
        Applied::Refused(why) => Err(Failure::not_supported(format!(
            "{what} ({why}): see `onbeat isolate list` for the state of the partition"
        ))),
    }
}

fn outside(journal: &mut LockedJournal, entry: &EntryRecords, asked: Option<&CpuSet>) -> Result<()> {
    let (pid, start) = this_process()?;
    let isolated = CpuSet::parse(&entry.opened.cpus).unwrap_or_default();
    if asked.is_some_and(|cpus| cpus.is_empty() || !cpus.and(&isolated).is_empty()) {
        return Err(Failure::usage(format!(
            "invalid -c with --outside: expected CPUs other than {isolated}"
        )));
    }
    let key = Key::Task { tid: pid, start, what: TaskSetting::Group };
    if is_inside(&journal.kernel.read(&key)) {
        let own = journal.kernel.processes_in(&inner_group()).into_iter().find(|process| process.pid == pid);
        leave(
            journal,
            entry,
            &own.unwrap_or(GroupProcess { pid, start, threads: Vec::new(), ancestors: Vec::new() }),
        )?;
    }
    asked.map_or(Ok(()), rt::pin).map_err(|error| {
        Failure::of_call("cannot bind it to these CPUs", &error, Exit::Usage, "give CPUs that are online")
    })
}

/// True if a process's group is the isolated one, or below it.
pub fn is_inside(group: &Fact<String>) -> bool {
    let inner = inner_group();
    let below = |group: &String| {
        group.strip_prefix(&inner).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    group.known().is_some_and(below)
}

/// Takes a process out of the partition.
pub fn leave(journal: &mut LockedJournal, entry: &EntryRecords, process: &GroupProcess) -> Result<()> {
    let refusal = take_out(&mut journal.kernel, &mut *journal.store, entry, process).map_err(|error| {
        let what = "cannot write the journal of changes";
        Failure::of_call(what, &error, Exit::NotPermitted, "free some space")
    })?;
    refusal.map_or(Ok(()), |why| {
        Err(Failure::not_supported(format!("cannot move process {} back: {why}", process.pid)))
    })
}

fn this_process() -> Result<(u32, u64)> {
    let pid = std::process::id();
    let start = process_start(pid);
    start
        .map(|start| (pid, start))
        .ok_or_else(|| Failure::not_supported("cannot read /proc/self/stat: mount /proc"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn a_command_needs_no_separator_and_keeps_its_flags() {
        for line in ["run -c 3 -p 80 stress-ng -c 2 --outside", "run -c 3 -p 80 -- stress-ng -c 2 --outside"]
        {
            let args = Only::try_parse_from(line.split(' ')).expect(line).args;
            assert_eq!(args.command, ["stress-ng", "-c", "2", "--outside"], "{line}");
            assert_eq!((args.cpus.as_deref(), args.priority, args.outside), (Some("3"), Some(80), false));
        }
        let inner = Only::try_parse_from(["run", "a", "--", "b"]).expect("a command").args;
        assert_eq!(inner.command, ["a", "--", "b"]);
        for line in ["run -c 3", "run --unknown a"] {
            assert!(Only::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
