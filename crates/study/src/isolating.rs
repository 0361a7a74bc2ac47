//! CPUs to be isolated: the plan for it, and the users of those that are isolated.

use facts::groups::read_groups;
use facts::irqs::read_irqs;
use facts::line::parse_cpus;
use facts::survey::survey;
use facts::tasks::parse_task_stat;
use facts::threads_on::read_threads_on;
use host::settings::EntryRecords;
use host::{MachineFiles, clock};
use model::error::{Failure, Result};
use model::isolation::IsolationDocument;
use model::plan::PlanDocument;
use model::units::CpuSet;
use rules::audit::{Finding, audit};
use rules::intent::{Profile, intent};
use rules::judgement::AuditVerdict;
use tune::isolate::list::IsolationState;
use tune::isolate::refusal::require_separable;
use tune::isolate::steps::{IsolationRequest, arrange, rules_request};
use tune::isolate::{arrivals, list};
use tune::plan::plan;
use tune::status::undone_in;
use tune::{reading, rivals};

use crate::audit::{MachineSource, survey_request};
use crate::tuning::boot_id;

/// Plans an isolation of the running machine; nothing is written.
pub fn plan_isolation(profile: Profile, wanted: &IsolationRequest, take_over: bool) -> Result<PlanDocument> {
    let files = MachineSource::Live.open()?;
    let survey = survey(&files, &survey_request());
    require_separable(&survey, &wanted.cpus)?;
    let intent = intent(&survey, profile, Some(&wanted.cpus)).map_err(Failure::usage)?;
    let audit = audit(&survey, &intent);
    let now = |key: &_| reading::read(&files, key);
    let mut document = plan(&survey, &audit, &rules_request(wanted)?, &boot_id()?, &now)?;
    // A step that is already in effect, or does not apply, is not listed as omitted.
    let fails = |rule: &str| {
        let of = |finding: &&Finding| finding.rule == rule;
        let verdict = audit.findings.iter().find(of).map(|finding| finding.verdict);
        matches!(verdict, Some(AuditVerdict::Fail | AuditVerdict::Unknown))
    };
    document.left_out.retain(|left| fails(&left.rule));
    rivals::leave_out(&survey, &files, &mut document, take_over);
    arrange(&survey, &mut document, wanted, &now)?;
    Ok(document)
}

/// Threads and interrupts of the isolated CPUs, for a machine and the journal's entry for it.
pub fn isolation_of(machine: MachineSource, entry: Option<&EntryRecords>) -> Result<IsolationDocument> {
    let files = machine.open()?;
    let state = state_of(&files, entry);
    let threads = read_threads_on(&files, Some(&state.cpus));
    let threads = threads.known().map_or(&[][..], |found| found.threads.as_slice());
    let mut document = list::document(&state, entry, threads, read_irqs(&files).known());
    let now = clock::monotonic() + clock::boot_offset();
    document.undone_in_ns = entry.and_then(|entry| undone_in(entry, now.0));
    document.confirmable =
        document.undone_in_ns.is_some() && entry.is_some_and(|entry| entry.opened.confirmable);
    Ok(document)
}

/// State of a machine's isolated CPUs, for the journal's entry for them.
pub fn state_of(files: &MachineFiles, entry: Option<&EntryRecords>) -> IsolationState {
    let at_boot = files.read_text("/sys/devices/system/cpu/isolated").parse(|text| parse_cpus(&text));
    let at_boot = at_boot.known().cloned().unwrap_or_default();
    list::state(read_groups(files).known(), &at_boot, entry)
}

/// Counts arrivals on the document's CPUs while `wait` waits.
///
/// # Errors
/// Not supported: the kernel shows no interrupts.
pub fn count_arrivals(document: &mut IsolationDocument, wait: impl FnOnce() -> i64) -> Result<()> {
    let files = MachineFiles::live();
    let cpus = CpuSet::parse(&document.cpus).unwrap_or_default();
    let count = || {
        arrivals::counts(&files, &cpus)
            .ok_or_else(|| Failure::not_supported("cannot read /proc/interrupts: mount /proc"))
    };
    let before = count()?;
    let span = wait();
    document.arrivals = arrivals::arrivals(&before, &count()?);
    document.counted_ns = Some(span);
    Ok(())
}

/// A process with its threads, each with its start.
pub struct MovableProcess {
    pub pid: u32,
    pub start: u64,
    pub threads: Vec<(u32, u64)>,
}

/// The process with this number.
///
/// # Errors
/// Usage: no such process, a thread of another process, or a kernel thread.
pub fn movable_process(pid: u32) -> Result<MovableProcess> {
    let files = MachineFiles::live();
    let stat = |tid: u32| {
        let read = files.read(&format!("/proc/{pid}/task/{tid}/stat"));
        read.parse(|bytes| parse_task_stat(&bytes)).known().cloned()
    };
    let gone = || Failure::usage(format!("no process {pid}: give the number of a running one"));
    let process = stat(pid).ok_or_else(gone)?;
    if process.kernel {
        return Err(Failure::usage(format!(
            "{} (process {pid}) is a kernel thread, which belongs to no group: leave it where it is",
            process.comm
        )));
    }
    let status = files.read_text(&format!("/proc/{pid}/status"));
    let leader = status.known().and_then(|text| text.lines().find_map(|line| line.strip_prefix("Tgid:")));
    match leader.map(str::trim).and_then(|leader| leader.parse::<u32>().ok()) {
        Some(leader) if leader != pid => {
            return Err(Failure::usage(format!("{pid} is a thread of process {leader}: move that one")));
        }
        _ => {}
    }
    let names = files.list(&format!("/proc/{pid}/task")).known().cloned().unwrap_or_default();
    let tids = names.iter().filter_map(|name| name.parse().ok());
    let threads = tids.filter_map(|tid| Some((tid, stat(tid)?.start_ticks))).collect();
    Ok(MovableProcess { pid, start: process.start_ticks, threads })
}
