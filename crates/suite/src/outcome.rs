//! What a phase's run came to, and what the phases come to together.

use model::histogram::{Bucket, quantile};
use model::run::Run;
use model::suite::{SuiteDrift, SuitePhase};
use model::units::Nanos;

use crate::phases::SuiteStep;

/// A step that could not be run.
pub fn not_run(step: &SuiteStep, kernel: &str, why: &str) -> SuitePhase {
    SuitePhase {
        id: step.id.clone(),
        model: step.model.clone(),
        load: step.load.clone(),
        kernel: kernel.to_owned(),
        why: why.to_owned(),
        ..SuitePhase::default()
    }
}

/// The row of a step from its run: all CPUs as one.
pub fn row(step: &SuiteStep, run: &Run, bundle: &str) -> SuitePhase {
    let mut rows: Vec<Bucket> = run.cpus.iter().flat_map(|cpu| cpu.histogram.iter().copied()).collect();
    rows.sort_unstable();
    let max = run.cpus.iter().filter_map(|cpu| cpu.max_ns).max();
    let at = |per_million| quantile(&rows, max, per_million);
    let invalid = run.integrity.iter().filter(|entry| entry.invalidates).map(|entry| entry.detail.clone());
    let mut why: Vec<String> = invalid.collect();
    if rows.is_empty() {
        why.push("no wake-up was measured".into());
    }
    // A run that was interrupted has too few samples to be the phase.
    if !run.complete || run.ended == model::vocabulary::Ended::Signal {
        why.push("it was interrupted".into());
    }
    // PREEMPT_RT stays that whatever is switched below it: the switch's own word says more.
    let model = if step.model.is_empty() { run.host.preempt.as_str() } else { &step.model };
    SuitePhase {
        model: model.to_owned(),
        bundle: bundle.to_owned(),
        samples: rows.iter().fold(0, |sum, row| sum.saturating_add(row.count)),
        p50_ns: at(500_000),
        p99_ns: at(990_000),
        p9999_ns: at(999_900),
        max_ns: max,
        valid: why.is_empty(),
        ..not_run(step, &run.host.release, &why.join("; "))
    }
}

/// The difference of the first and the last valid phase without a load, of one kernel and model.
pub fn drift(phases: &[SuitePhase]) -> Option<SuiteDrift> {
    let idle = || phases.iter().filter(|phase| phase.valid && phase.load.is_empty());
    let (first, last) = (idle().next()?, idle().next_back()?);
    let alike = first.kernel == last.kernel && first.model == last.model && first.id != last.id;
    // A document that is gone on with may hold any numbers.
    let minus = |a: Option<Nanos>, b: Option<Nanos>| Some(Nanos(a?.0.saturating_sub(b?.0)));
    alike.then_some(SuiteDrift {
        p50_ns: minus(last.p50_ns, first.p50_ns)?,
        max_ns: minus(last.max_ns, first.max_ns)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::{CpuRun, Integrity};

    fn step(id: &str, load: &str) -> SuiteStep {
        SuiteStep { id: id.into(), model: String::new(), load: load.into(), samples: 4 }
    }

    fn run(max: i64) -> Run {
        let bucket = |lower, count| Bucket::new(Nanos(lower), Nanos(lower + 1), count);
        let cpu = |rows: Vec<Bucket>, max| CpuRun {
            histogram: rows,
            max_ns: Some(Nanos(max)),
            ..CpuRun::default()
        };
        let cpus = vec![cpu(vec![bucket(5, 3)], 5), cpu(vec![bucket(4, 2), bucket(max, 1)], max)];
        Run { cpus, complete: true, ..Run::default() }
    }

    #[test]
    fn all_cpus_of_a_phase_are_one_row() {
        let row = row(&step("idle", ""), &run(90), "phases/1");
        assert_eq!((row.samples, row.p50_ns, row.max_ns), (6, Some(Nanos(6)), Some(Nanos(90))));
        assert!(row.valid && row.why.is_empty());
    }

    #[test]
    fn an_invalid_run_is_a_hole_with_its_reason() {
        let broken =
            Integrity { detail: "the load stopped".into(), invalidates: true, ..Integrity::default() };
        let row = row(&step("cpu", "cpu"), &Run { integrity: vec![broken], ..run(9) }, "");
        assert!(!row.valid && row.why == "the load stopped");
        assert!(!super::row(&step("cpu", ""), &Run::default(), "").valid);
    }

    #[test]
    fn drift_is_between_phases_without_a_load() {
        let rows = [
            row(&step("idle", ""), &run(90), ""),
            row(&step("cpu", "cpu"), &run(900), ""),
            row(&step("idle-again", ""), &run(70), ""),
        ];
        assert_eq!(drift(&rows).map(|drift| drift.max_ns), Some(Nanos(-20)));
        assert_eq!(drift(&rows[..2]), None);
        let [mut first, _, last] = rows;
        (first.max_ns, first.p50_ns) = (Some(Nanos(i64::MIN)), Some(Nanos(i64::MAX)));
        assert!(drift(&[first, last]).is_some(), "any number of a document");
    }
}
