//! A program's thread that occupies a measured CPU: other CPUs on which it could run.

use host::{MachineFiles, clock};
use model::cure::{CureCandidate, CureThread};
use model::run::{Run, Slice, Spike};
use model::setting::{Key, Risk, TaskSetting};
use model::spike::Culprit;
use model::text::clean;
use model::units::{CpuSet, Nanos};
use rules::culprits::belonging::place_of;
use tune::reading;

/// The rule that names such a thread.
const RULE: &str = "realtime-thread";

/// Limit that stops a real-time thread that never sleeps; -1 for none.
const RT_LIMIT: &str = "/proc/sys/kernel/sched_rt_runtime_us";

/// Unit of a thread's start in `/proc/PID/stat` (USER_HZ, proc_pid_stat(5)).
const USER_TICK: Nanos = Nanos(10_000_000);

/// The move of a culprit's threads to CPUs that are not measured, as one change; `None` if it has
/// no such thread, if that has ended, or if it cannot run anywhere else. The risk is never low, as
/// other people's programs are affected.
pub fn elsewhere(
    run: &Run,
    culprit: &Culprit,
    files: &MachineFiles,
    kernel: &[u32],
    measured: &CpuSet,
) -> Option<CureCandidate> {
    if culprit.rule.as_deref() != Some(RULE) {
        return None;
    }
    // A thread that never stops blocks the CPU that it is moved to, and nothing undoes that.
    if files.read_text(RT_LIMIT).known().is_none_or(|limit| limit.trim() == "-1") {
        return None;
    }
    let online = files.read_text("/sys/devices/system/cpu/online").known().cloned()?;
    let others = CpuSet::parse(online.trim()).ok()?.without(measured);
    let mut candidate = CureCandidate { risk: Risk::Medium, ..CureCandidate::default() };
    let place = run.culprits.iter().position(|other| other == culprit)?;
    for seen in threads(run, place).into_iter().filter(|seen| !kernel.contains(&seen.tid)) {
        let (tid, comm) = (seen.tid, seen.comm.to_owned());
        let Some(start) = still_there(&seen, files) else { continue };
        let key = Key::Task { tid, start, what: TaskSetting::Affinity };
        let Some(now) = reading::read(files, &key).known().cloned() else { continue };
        let Ok(allowed) = CpuSet::parse(&now) else { continue };
        if allowed.without(measured) == allowed {
            continue;
        }
        // The other CPUs of its mask are where it was meant to run.
        let besides = allowed.without(measured);
        let cpus = if besides.is_empty() { others.clone() } else { besides };
        // On a single CPU it would block other work.
        if cpus.iter().count() < 2 {
            continue;
        }
        candidate.changes.push(format!("{key}: {} -> {cpus} ({})", clean(&now), clean(&comm)));
        candidate.threads.push(CureThread { tid, start, comm, cpus: cpus.to_string() });
    }
    (!candidate.threads.is_empty()).then_some(candidate)
}

/// A thread in a culprit's slices.
struct SeenThread<'a> {
    tid: u32,
    comm: &'a str,
    /// Time of its first slice, by CLOCK_MONOTONIC.
    at: Nanos,
}

/// The threads that took the slices of the culprit at this place.
fn threads(run: &Run, place: usize) -> Vec<SeenThread<'_>> {
    let mut seen: Vec<SeenThread> = Vec::new();
    let own = |spike: &'_ Spike, slice: &'_ Slice| {
        let named = !slice.who.comm.is_empty() && slice.who.pid > 0 && spike.latency_ns.0 > 0;
        named && place_of(&run.culprits, slice) == Some(place)
    };
    for spike in &run.spikes {
        for slice in spike.slices.iter().filter(|slice| own(spike, slice)) {
            let Ok(tid) = u32::try_from(slice.who.pid) else { continue };
            match seen.iter_mut().find(|one| one.tid == tid) {
                Some(one) => one.at = one.at.min(slice.start_ns),
                None => seen.push(SeenThread { tid, comm: &slice.who.comm, at: slice.start_ns }),
            }
        }
    }
    seen
}

/// Start of the process, if it is still the one that was seen: its name is the same, and it did not
/// start later.
fn still_there(seen: &SeenThread, files: &MachineFiles) -> Option<u64> {
    let start = host::process_start(seen.tid)?;
    let comm = files.read_text(&format!("/proc/{}/comm", seen.tid)).known().cloned()?;
    let started = i64::try_from(start).ok()?.checked_mul(USER_TICK.0)?;
    let at = seen.at.0.saturating_add(clock::boot_offset().0);
    (comm.trim() == seen.comm && started <= at).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::Who;
    use model::slice::SliceKind;

    /// A hunt whose only culprit is a running thread.
    fn run(pid: i32, comm: &str, rule: &str) -> Run {
        let who = Who { comm: comm.into(), pid, ..Who::default() };
        let kind = SliceKind::Thread.into();
        let start_ns = clock::monotonic();
        let slice = Slice { who, kind, start_ns, ns: Nanos(9), rule: Some(rule.into()), ..Slice::default() };
        let spike = Spike { slices: vec![slice], latency_ns: Nanos(9), ..Spike::default() };
        let title = rules::culprits::find(rule).map_or("", |rule| rule.title);
        let culprit =
            Culprit { rule: Some(rule.into()), name: format!("{title}: {comm}"), ..Culprit::default() };
        Run { spikes: vec![spike], culprits: vec![culprit], ..Run::default() }
    }

    fn own_name() -> String {
        let files = MachineFiles::live();
        files.read_text(&format!("/proc/{}/comm", std::process::id())).known().unwrap().trim().to_owned()
    }

    #[test]
    fn a_thread_that_runs_on_a_measured_cpu_could_run_elsewhere() {
        let files = MachineFiles::live();
        let own = std::process::id();
        let online = files.read_text("/sys/devices/system/cpu/online").known().unwrap().trim().to_owned();
        let all = CpuSet::parse(&online).unwrap();
        let first: CpuSet = all.iter().take(1).collect();
        let of = |run: &Run, kernel: &[u32], measured: &CpuSet| {
            elsewhere(run, &run.culprits[0], &files, kernel, measured)
        };
        let this = run(own as i32, &own_name(), RULE);
        let limited = files.read_text(RT_LIMIT).known().is_some_and(|limit| limit.trim() != "-1");
        let found = of(&this, &[], &first);
        assert_eq!(found.is_some(), limited && all.iter().count() > 2, "two others at least: {found:?}");
        if let Some(found) = found {
            assert_eq!((found.threads[0].tid, found.risk), (own, Risk::Medium));
            assert_eq!(found.threads[0].cpus, all.without(&first).to_string());
        }
        assert_eq!(of(&this, &[], &all), None, "there is no other CPU");
        assert_eq!(of(&this, &[own], &first), None, "the kernel's own belong where they are");
        assert_eq!(of(&run(own as i32, &own_name(), "irq-thread"), &[], &first), None);
    }

    #[test]
    fn a_thread_is_the_one_that_was_seen() {
        let files = MachineFiles::live();
        let own = std::process::id();
        let seen = |run: &Run| threads(run, 0).first().and_then(|seen| still_there(seen, &files));
        let this = run(own as i32, &own_name(), RULE);
        assert_eq!(seen(&this), host::process_start(own));
        assert_eq!(seen(&run(own as i32, "another", RULE)), None, "its number belongs to another");
        let mut early = this.clone();
        early.spikes[0].slices[0].start_ns = Nanos(-clock::boot_offset().0);
        assert_eq!(seen(&early), None, "it began after that");
        let mut other = this.clone();
        other.culprits[0].name = format!("{}-more", other.culprits[0].name);
        assert!(threads(&other, 0).is_empty(), "a culprit of a longer name");
        assert!(threads(&run(-1, "x", RULE), 0).is_empty() && threads(&run(9, "", RULE), 0).is_empty());
    }
}
