//! Verdict of `probe pi`.

use crate::words::{several, span};
use model::run::{Inversions, Run};
use model::vocabulary::{IntegrityKind, Probe};

/// Counts of all CPUs; `None` if none are known.
fn all(run: &Run) -> Option<Inversions> {
    let counts = run.cpus.iter().filter_map(|cpu| cpu.inversions);
    counts.reduce(|sum, of| Inversions {
        made: sum.made.saturating_add(of.made),
        resolved: sum.resolved.saturating_add(of.resolved),
        longest_hold_ns: sum.longest_hold_ns.max(of.longest_hold_ns),
    })
}

/// The verdict on the kernel's priority inheritance; none for other runs.
pub fn verdict(run: &Run) -> Option<String> {
    if run.probe() != Some(Probe::Pi) {
        return None;
    }
    let Some(of) = all(run) else { return Some("not known: the counts are written at the end".into()) };
    let made = several(of.made, "inversion", "inversions");
    let lock = if run.plan.kind == "plain" { "a mutex without inheritance" } else { "priority inheritance" };
    // A thread that did not get the lock has no sample, and the run failed all the same.
    let failed = run.integrity.iter().find(|entry| entry.kind == IntegrityKind::Scheduler);
    Some(match (of.made, failed) {
        (_, Some(entry)) => {
            let place = entry.cpu.map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
            format!("{lock} failed{place}: {} of {made} resolved", of.resolved)
        }
        (0, None) => "not known: no inversion was made".into(),
        (_, None) => format!("{lock} works: {made}, all resolved"),
    })
}

/// Lines below the table.
pub fn lines(run: &Run) -> Vec<String> {
    let held = all(run).filter(|of| run.probe() == Some(Probe::Pi) && of.made > 0);
    held.map(|of| format!("the low thread held the mutex for at most {}", span(of.longest_hold_ns)))
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::{CpuRun, Integrity};
    use model::units::{Cpu, Nanos};

    #[test]
    fn a_failed_inversion_is_the_verdict() {
        assert_eq!(verdict(&Run::default()), None);
        let mut run = Run { command: "probe".into(), ..Run::default() };
        run.plan.probe = Probe::Pi.into();
        assert!(verdict(&run).is_some_and(|words| words.starts_with("not known")));
        let of = |made, resolved, ns| CpuRun {
            inversions: Some(Inversions { made, resolved, longest_hold_ns: Nanos(ns) }),
            ..CpuRun::default()
        };
        run.cpus = vec![of(0, 0, 0)];
        assert!(verdict(&run).is_some_and(|words| words.starts_with("not known")) && lines(&run).is_empty());
        run.cpus = vec![of(1_000, 1_000, 9_000), of(500, 500, 7_000)];
        assert_eq!(
            verdict(&run).as_deref(),
            Some("priority inheritance works: 1500 inversions, all resolved")
        );
        assert_eq!(lines(&run), ["the low thread held the mutex for at most 9 us"]);
        let cpu = Some(Cpu(1));
        run.integrity = vec![Integrity { kind: "scheduler".into(), cpu, ..Integrity::default() }];
        run.cpus[1] = of(500, 499, 7_000);
        run.plan.kind = "plain".into();
        let words = verdict(&run).expect("a verdict");
        assert_eq!(words, "a mutex without inheritance failed on CPU 1: 1499 of 1500 inversions resolved");
    }
}
