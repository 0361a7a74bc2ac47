//! Results of a phase's run, and of all phases together.

use model::histogram::{Bucket, quantile};
use model::run::Run;
use model::suite::{SuiteDrift, SuitePhase};
use model::units::Nanos;

use crate::phases::SuiteStep;
use crate::recipe_phase::StepKind;
use crate::stops::stops;

/// A step that could not be run.
pub fn not_run(step: &SuiteStep, kernel: &str, why: &str) -> SuitePhase {
    SuitePhase {
        id: step.id.clone(),
        model: step.model.clone(),
        load: step.load.clone(),
        measure: step.kind.name().to_owned(),
        settings: step.settings.iter().map(ToString::to_string).collect(),
        kernel: kernel.to_owned(),
        why: why.to_owned(),
        ..SuitePhase::default()
    }
}

/// Period by which a CPU's stops are counted if no period is set.
const SECOND: Nanos = Nanos::SECOND;

/// Row of a step from its run: all CPUs as one; for a thread that spins, its stops per CPU.
pub fn row(step: &SuiteStep, run: &Run, bundle: &str) -> SuitePhase {
    let mut rows: Vec<Bucket> = run.cpus.iter().flat_map(|cpu| cpu.histogram.iter().copied()).collect();
    rows.sort_unstable();
    let max = run.cpus.iter().filter_map(|cpu| cpu.max_ns).max();
    let at = |per_million| quantile(&rows, max, per_million);
    let invalid = run.integrity.iter().filter(|entry| entry.invalidates).map(|entry| entry.detail.clone());
    let mut why: Vec<String> = invalid.collect();
    let spins = matches!(step.kind, StepKind::Spin { .. });
    if rows.is_empty() && !spins {
        why.push("no wake-up was measured".into());
    }
    // A run that was interrupted has too few samples to be the phase.
    if !run.complete || run.ended == model::vocabulary::Ended::Signal {
        why.push("it was interrupted".into());
    }
    let (mut stopped, mut expected, mut by) = (Vec::new(), None, String::new());
    if let StepKind::Spin { length, .. } = step.kind {
        let limit = step.rt_limit();
        stopped = stops(run, length, limit.map_or(SECOND, |limit| limit.period()));
        expected = limit.map(|limit| limit.stop());
        by = match (limit, run.host.fair_server_runtime_ns) {
            (Some(_), Some(_)) => "fair server",
            (Some(_), None) => "throttling",
            // Without a limit, either may have caused the stops.
            (None, _) => "",
        }
        .to_owned();
    }
    // PREEMPT_RT is reported whatever model is switched below it: the switch's word says more.
    let model = if step.model.is_empty() { run.host.preempt.as_str() } else { &step.model };
    SuitePhase {
        model: model.to_owned(),
        bundle: bundle.to_owned(),
        samples: rows.iter().fold(0, |sum, row| sum.saturating_add(row.count)),
        p50_ns: at(500_000),
        p99_ns: at(990_000),
        p9999_ns: at(999_900),
        max_ns: max,
        stops: stopped,
        expected_ns: expected,
        stopped_by: by,
        valid: why.is_empty(),
        ..not_run(step, &run.host.release, &why.join("; "))
    }
}

/// Difference between the first and the last valid phase without a load, of one kernel and model.
pub fn drift(phases: &[SuitePhase]) -> Option<SuiteDrift> {
    let is_idle = |phase: &&SuitePhase| phase.valid && phase.load.is_empty() && phase.stops.is_empty();
    let idle = || phases.iter().filter(is_idle);
    let (first, last) = (idle().next()?, idle().next_back()?);
    let alike = first.kernel == last.kernel
        && first.model == last.model
        && first.settings == last.settings
        && first.id != last.id;
    // A resumed document may hold any numbers.
    let minus = |a: Option<Nanos>, b: Option<Nanos>| Some(Nanos(a?.0.saturating_sub(b?.0)));
    alike.then_some(SuiteDrift {
        p50_ns: minus(last.p50_ns, first.p50_ns)?,
        max_ns: minus(last.max_ns, first.max_ns)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe_phase::LoadOn;
    use model::run::{CpuRun, Integrity};

    fn step(id: &str, load: &str) -> SuiteStep {
        SuiteStep {
            id: id.into(),
            model: String::new(),
            load: load.into(),
            load_on: LoadOn::Same,
            kind: StepKind::WakeUps { samples: 4 },
            settings: Vec::new(),
        }
    }

    #[test]
    fn a_thread_that_spins_has_stops_and_no_drift() {
        use crate::setting::SuiteSetting;
        use model::run::SpinGap;
        use model::units::Cpu;
        let settings = vec![SuiteSetting::parse("rt-limit=900000/1000000").unwrap()];
        let kind = StepKind::Spin { length: Nanos(2_000_000_000), hog: true };
        let step = SuiteStep { kind, settings, ..step("row-1", "") };
        let gap = |at, ns| SpinGap { cpu: Cpu(0), mono_ns: Nanos(at), ns: Nanos(ns), ..SpinGap::default() };
        let mut run = run(9);
        (run.cpus[0].cpu, run.cpus[0].t0_mono_ns) = (Some(Cpu(0)), Some(Nanos(0)));
        run.gaps = Some(vec![gap(900_000_000, 98_000_000), gap(1_900_000_000, 102_000_000)]);
        let first = row(&step, &run, "");
        assert_eq!(
            (first.expected_ns, first.stops[0].median_ns),
            (Some(Nanos(100_000_000)), Nanos(100_000_000))
        );
        assert_eq!((first.stopped_by.as_str(), first.settings.len(), first.valid), ("throttling", 1, true));
        run.host.fair_server_runtime_ns = Some(100_000_000);
        let again = SuiteStep { id: "row-1.2".into(), ..step };
        let second = row(&again, &run, "");
        assert_eq!(second.stopped_by, "fair server");
        assert_eq!(drift(&[first, second]), None);
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
