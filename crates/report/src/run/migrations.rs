//! Definition and verdict of `probe migrate`.

use crate::words::{or_dash, several, span};
use model::run::{Migration, Run};
use model::units::CpuSet;
use model::vocabulary::{IntegrityKind, Probe};

/// Definition of the measured quantity.
pub fn definition(run: &Run) -> String {
    let work = run.plan.work_ns.map_or_else(String::new, |work| format!(", and compute for {}", span(work)));
    let placed = if run.plan.kind == "bound" { "are bound to" } else { "may run on" };
    format!(
        "migrate: time for which a thread was ready to run while a thread with a lower priority ran; {} \
         with a priority each {placed} the CPUs {}, and in each interval all wake up{work}",
        several(run.cpus.len() as u64, "thread", "threads"),
        run.plan.cpus.iter().copied().collect::<CpuSet>()
    )
}

/// The verdict on the scheduler; none for other runs.
pub fn verdict(run: &Run) -> Option<String> {
    if run.probe() != Some(Probe::Migrate) {
        return None;
    }
    if let Some(failed) = run.integrity.iter().find(|entry| entry.kind == IntegrityKind::Scheduler) {
        return Some(failed.detail.clone());
    }
    let known: Vec<Migration> = run.cpus.iter().filter_map(|cpu| cpu.migration).collect();
    let rounds = run.cpus.iter().filter_map(|cpu| cpu.cycles).max().unwrap_or(0);
    let held: u64 = known.iter().map(|of| of.held).sum();
    let held = match held {
        0 => String::new(),
        n => format!("; in {} the CPU of a thread was held", several(n, "round", "rounds")),
    };
    Some(match run.plan.over_ns {
        _ if known.is_empty() => "not known: the counts are written at the end".into(),
        _ if rounds == 0 => "not known: no round was measured".into(),
        over => format!(
            "the scheduler runs the highest threads: {}, in none of which a thread waited {} for a CPU \
             while a lower one ran{held}",
            several(rounds, "round", "rounds"),
            or_dash(over.map(span))
        ),
    })
}

/// Lines below the table.
pub fn lines(run: &Run) -> Vec<String> {
    let of = |cpu: &model::run::CpuRun| {
        let Migration { priority, mean_start_ns, max_start_ns, .. } = cpu.migration?;
        Some(format!(
            "{}, priority {priority}: its first instruction came {} after its wake-up in the mean, {} at \
             most",
            cpu.name(),
            span(mean_start_ns?),
            span(max_start_ns?)
        ))
    };
    run.cpus.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::{CpuRun, Integrity};
    use model::units::Nanos;

    #[test]
    fn a_violation_is_the_verdict() {
        assert_eq!(verdict(&Run::default()), None);
        let mut run = Run { command: "probe".into(), ..Run::default() };
        (run.plan.probe, run.plan.over_ns) = (Probe::Migrate.into(), Some(Nanos::MILLI));
        assert!(verdict(&run).is_some_and(|words| words.starts_with("not known")) && lines(&run).is_empty());
        let migration = Migration {
            priority: 80,
            mean_start_ns: Some(Nanos(9_000)),
            max_start_ns: Some(Nanos(50_000)),
            ..Migration::default()
        };
        let cpu = CpuRun { thread: 1, cycles: Some(100), migration: Some(migration), ..CpuRun::default() };
        run.cpus = vec![cpu];
        let words = verdict(&run).expect("a verdict");
        assert!(words.starts_with("the scheduler runs the highest threads: 100 rounds"), "{words}");
        let line = "thread 1, priority 80: its first instruction came 9 us after its wake-up in the mean, 50 \
                    us at most";
        assert_eq!(lines(&run), [line]);
        let detail = "it did not".to_owned();
        run.integrity = vec![Integrity { kind: "scheduler".into(), detail, ..Integrity::default() }];
        assert_eq!(verdict(&run).as_deref(), Some("it did not"));
    }
}
