//! A program's thread that keeps a measured CPU: where else it could run.

use host::MachineFiles;
use model::cure::{CureCandidate, CureThread};
use model::run::Run;
use model::setting::{Key, Risk, TaskSetting};
use model::spike::Culprit;
use model::text::clean;
use model::units::CpuSet;
use tune::reading;

/// The rule that names such a thread.
const RULE: &str = "realtime-thread";

/// The threads of a culprit on CPUs that are not measured, as one change; none where it has no such
/// thread, where that has ended, or where it cannot run anywhere else. What others' programs do is
/// theirs to decide: the risk is never low.
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
    let online = files.read_text("/sys/devices/system/cpu/online").known().cloned()?;
    let others = CpuSet::parse(online.trim()).ok()?.without(measured);
    let mut candidate = CureCandidate { risk: Risk::Medium, ..CureCandidate::default() };
    for tid in threads(run, culprit).into_iter().filter(|tid| !kernel.contains(tid)) {
        let Some(start) = host::process_start(tid) else { continue };
        let key = Key::Task { tid, start, what: TaskSetting::Affinity };
        let Some(now) = reading::read(files, &key).known().cloned() else { continue };
        let Ok(allowed) = CpuSet::parse(&now) else { continue };
        if allowed.without(measured) == allowed {
            continue;
        }
        // Where it may run besides is where it was meant to run.
        let besides = allowed.without(measured);
        let cpus = if besides.is_empty() { others.clone() } else { besides };
        if cpus.is_empty() {
            continue;
        }
        let comm = name(run, tid);
        candidate.changes.push(format!("{key}: {} -> {cpus} ({})", clean(&now), clean(&comm)));
        candidate.threads.push(CureThread { tid, start, comm, cpus: cpus.to_string() });
    }
    (!candidate.threads.is_empty()).then_some(candidate)
}

/// The threads that took the culprit's slices.
fn threads(run: &Run, culprit: &Culprit) -> Vec<u32> {
    let slices = run.spikes.iter().flat_map(|spike| &spike.slices);
    let own = slices.filter(|slice| slice.rule == culprit.rule && culprit.name.ends_with(&slice.who.comm));
    let mut tids: Vec<u32> = own.filter_map(|slice| u32::try_from(slice.who.pid).ok()).collect();
    tids.sort_unstable();
    tids.dedup();
    tids.retain(|tid| *tid > 0);
    tids
}

fn name(run: &Run, tid: u32) -> String {
    let mut slices = run.spikes.iter().flat_map(|spike| &spike.slices);
    let own = slices.find(|slice| u32::try_from(slice.who.pid) == Ok(tid) && !slice.who.comm.is_empty());
    own.map_or_else(String::new, |slice| slice.who.comm.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::Slice;
    use model::spike::{Spike, Who};

    fn run(pid: i32, rule: &str) -> Run {
        let who = Who { comm: "hog".into(), pid, ..Who::default() };
        let slice = Slice { who, rule: Some(rule.into()), ..Slice::default() };
        Run { spikes: vec![Spike { slices: vec![slice], ..Spike::default() }], ..Run::default() }
    }

    fn culprit(rule: &str) -> Culprit {
        Culprit {
            rule: Some(rule.into()),
            name: "another thread goes first: hog".into(),
            ..Culprit::default()
        }
    }

    #[test]
    fn a_thread_that_runs_on_a_measured_cpu_could_run_elsewhere() {
        let files = MachineFiles::live();
        let own = std::process::id();
        let all =
            CpuSet::parse(files.read_text("/sys/devices/system/cpu/online").known().unwrap().trim()).unwrap();
        let first: CpuSet = all.iter().take(1).collect();
        let of = |rule: &str, kernel: &[u32], measured: &CpuSet| {
            elsewhere(&run(own as i32, rule), &culprit(rule), &files, kernel, measured)
        };
        if all.iter().count() > 1 {
            let found = of(RULE, &[], &first).expect("it may run on all CPUs");
            assert_eq!((found.threads[0].tid, found.risk), (own, Risk::Medium));
            assert_eq!(found.threads[0].cpus, all.without(&first).to_string());
        }
        assert_eq!(of(RULE, &[], &all), None, "there is no other CPU");
        assert_eq!(of(RULE, &[own], &first), None, "the kernel's own belong where they are");
        assert_eq!(of("irq-thread", &[], &first), None);
        assert_eq!(elsewhere(&run(-1, RULE), &culprit(RULE), &files, &[], &first), None);
    }
}
