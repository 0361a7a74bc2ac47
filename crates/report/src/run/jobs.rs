//! Definition and verdict of `probe deadline`.

use crate::words::{or_dash, several, span};
use model::run::{DeadlineJobs, Run};
use model::units::Nanos;
use model::vocabulary::Probe;

/// Definition of the measured quantity.
pub fn definition(run: &Run) -> String {
    let plan = &run.plan;
    let of = |value: Option<Nanos>| or_dash(value.map(span));
    format!(
        "deadline: from the start of a period to the first instruction of its job, by SCHED_DEADLINE threads \
         {} with {} in each {}, deadline {}, and jobs of {}",
        if plan.kind == "free" { "that may run on all CPUs" } else { "bound to a CPU each" },
        of(plan.runtime_ns),
        of(plan.interval_ns),
        of(plan.deadline_ns),
        of(plan.work_ns)
    )
}

/// Sums of all threads; `None` if none are known.
fn all(run: &Run) -> Option<DeadlineJobs> {
    let counts = run.cpus.iter().filter_map(|cpu| cpu.deadline);
    let plus = |a: Nanos, b: Nanos| Nanos(a.0.saturating_add(b.0));
    counts.reduce(|sum, of| DeadlineJobs {
        jobs: sum.jobs.saturating_add(of.jobs),
        late: sum.late.saturating_add(of.late),
        overruns: sum.overruns.saturating_add(of.overruns),
        throttled: sum.throttled.saturating_add(of.throttled),
        throttled_ns: plus(sum.throttled_ns, of.throttled_ns),
        preempted: sum.preempted.saturating_add(of.preempted),
        preempted_ns: plus(sum.preempted_ns, of.preempted_ns),
        stopped: sum.stopped.saturating_add(of.stopped),
        stopped_ns: plus(sum.stopped_ns, of.stopped_ns),
        longest_work_ns: sum.longest_work_ns.max(of.longest_work_ns),
        longest_response_ns: sum.longest_response_ns.max(of.longest_response_ns),
    })
}

/// The verdict on the deadlines; none for other runs.
pub fn verdict(run: &Run) -> Option<String> {
    if run.probe() != Some(Probe::Deadline) {
        return None;
    }
    let Some(of) = all(run) else { return Some("not known: the counts are written at the end".into()) };
    let jobs = several(of.jobs, "job", "jobs");
    let missed = run.missed();
    if of.jobs == 0 {
        return Some("not known: no job was measured".into());
    }
    if of.late == 0 && of.overruns == 0 && missed == 0 {
        return Some(format!("all of {jobs} ended before their deadlines, within their runtime"));
    }
    let causes = [
        (of.overruns, "job took", "jobs took", "more CPU time than the runtime (their own work)"),
        (of.throttled, "pause was", "pauses were", "throttling by the kernel"),
        (of.preempted, "pause was", "pauses were", "preemption by another thread"),
        (of.stopped, "pause was", "pauses were", "without a switch: interrupts, firmware or a hypervisor"),
    ];
    let causes = causes.iter().filter(|(count, ..)| *count > 0);
    let causes: Vec<String> =
        causes.map(|(count, one, many, what)| format!("{} {what}", several(*count, one, many))).collect();
    let skipped = if missed > 0 { format!(", {missed} were skipped") } else { String::new() };
    Some(format!("{} of {jobs} ended after their deadlines{skipped}: {}", of.late, causes.join("; ")))
}

/// Lines below the table.
pub fn lines(run: &Run) -> Vec<String> {
    let mut lines = Vec::new();
    let Some(of) = all(run).filter(|of| of.jobs > 0) else { return lines };
    lines.push(format!(
        "longest job: {} of CPU time; longest response: {} from the start of the period",
        span(of.longest_work_ns),
        span(of.longest_response_ns)
    ));
    let pauses = [
        (of.throttled, of.throttled_ns, "throttled"),
        (of.preempted, of.preempted_ns, "preempted"),
        (of.stopped, of.stopped_ns, "stopped without a switch"),
    ];
    let named: Vec<String> = pauses
        .iter()
        .map(|(count, time, what)| format!("{what} {} ({})", several(*count, "time", "times"), span(*time)))
        .collect();
    lines.push(format!("in their jobs the threads were {}", named.join(", ")));
    lines.push(match run.overrun_signals {
        Some(n) => format!("the kernel reported overruns {} (SIGXCPU)", several(n, "time", "times")),
        None => "the kernel's reports of overruns were not counted: there is a limit of CPU time".into(),
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::CpuRun;

    #[test]
    fn late_jobs_have_their_causes() {
        assert_eq!(verdict(&Run::default()), None);
        let mut run = Run { command: "probe".into(), ..Run::default() };
        run.plan.probe = Probe::Deadline.into();
        assert!(verdict(&run).is_some_and(|words| words.starts_with("not known")) && lines(&run).is_empty());
        let of = |late, overruns, throttled| {
            let jobs = DeadlineJobs { jobs: 100, late, overruns, throttled, ..DeadlineJobs::default() };
            CpuRun { deadline: Some(jobs), missed: Some(late / 2), ..CpuRun::default() }
        };
        run.cpus = vec![of(0, 0, 0)];
        let words = verdict(&run).expect("a verdict");
        assert_eq!(words, "all of 100 jobs ended before their deadlines, within their runtime");
        run.cpus.push(of(4, 5, 6));
        run.overrun_signals = Some(3);
        let words = verdict(&run).expect("a verdict");
        assert_eq!(
            words,
            "4 of 200 jobs ended after their deadlines, 2 were skipped: 5 jobs took more CPU time than the \
             runtime (their own work); 6 pauses were throttling by the kernel"
        );
        assert!(lines(&run)[2].contains("overruns 3 times"), "{:?}", lines(&run));
    }
}
