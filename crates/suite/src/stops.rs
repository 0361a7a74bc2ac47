//! Times for which a thread that never sleeps was stopped: the longest gap of each period.
//!
//! The limit of real-time tasks stops them once in each period; interrupts and the like cause many
//! short gaps. The longest gap of each period is the stop if there was one, and noise otherwise; no
//! threshold is needed to separate them.

use model::run::{CpuRun, Run, SpinGap};
use model::suite::SuiteStop;
use model::units::Nanos;

/// The stops of a run of that planned length, per CPU; CPUs that were not measured are omitted.
pub fn stops(run: &Run, length: Nanos, period: Nanos) -> Vec<SuiteStop> {
    let gaps = run.gaps.as_deref().unwrap_or_default();
    run.cpus.iter().filter_map(|cpu| of_cpu(cpu, gaps, length, period)).collect()
}

fn of_cpu(cpu: &CpuRun, gaps: &[SpinGap], length: Nanos, period: Nanos) -> Option<SuiteStop> {
    let (begun, number) = (cpu.t0_mono_ns?, cpu.cpu?);
    // The time after the last whole period may have no stop.
    let periods = usize::try_from(length.0 / period.0.max(1)).ok()?.clamp(1, MOST);
    let mut longest = vec![Nanos(0); periods];
    let own = gaps.iter().filter(|gap| gap.cpu == number);
    for gap in own.clone() {
        let at = (gap.mono_ns.0.saturating_sub(begun.0)).div_euclid(period.0.max(1));
        if let Some(longest_gap) = usize::try_from(at).ok().and_then(|at| longest.get_mut(at)) {
            *longest_gap = gap.ns.max(*longest_gap);
        }
    }
    longest.sort_unstable();
    Some(SuiteStop {
        cpu: number,
        periods: periods as u64,
        median_ns: median(&longest),
        max_ns: own.map(|gap| gap.ns).chain(cpu.max_ns).max().unwrap_or_default(),
    })
}

/// No run has more periods than this: ten seconds of ten milliseconds.
const MOST: usize = 1_000;

/// Median; of an even number the mean of the two in the middle.
fn median(sorted: &[Nanos]) -> Nanos {
    let middle = sorted.len() / 2;
    match (sorted.get(middle), sorted.len() % 2) {
        (None, _) => Nanos(0),
        (Some(&one), 1) => one,
        (Some(&upper), _) => Nanos(sorted[middle - 1].0 + (upper.0 - sorted[middle - 1].0) / 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Cpu;
    use proptest::prelude::*;

    fn run(gaps: &[(i64, i64)]) -> Run {
        let of = |&(at, ns): &(i64, i64)| SpinGap {
            cpu: Cpu(1),
            mono_ns: Nanos(at),
            ns: Nanos(ns),
            ..SpinGap::default()
        };
        let elsewhere =
            SpinGap { cpu: Cpu(2), mono_ns: Nanos(1_000), ns: Nanos(77_777), ..SpinGap::default() };
        let cpu = CpuRun { cpu: Some(Cpu(1)), t0_mono_ns: Some(Nanos(1_000)), ..CpuRun::default() };
        let gaps = gaps.iter().map(of).chain([elsewhere]).collect();
        Run { cpus: vec![cpu, CpuRun::default()], gaps: Some(gaps), ..Run::default() }
    }

    #[test]
    fn the_longest_of_each_period_counts() {
        // Periods of 100 from 1000 on: 9, 30, 7, one without a gap, and a gap after the last.
        let gaps = [(1_001, 9), (1_050, 3), (1_110, 5), (1_199, 30), (1_350, 7), (1_410, 500)];
        let stop = |length| stops(&run(&gaps), Nanos(length), Nanos(100));
        let expected = SuiteStop { cpu: Cpu(1), periods: 4, median_ns: Nanos(8), max_ns: Nanos(500) };
        assert_eq!(stop(450), [expected], "a CPU without a beginning was not measured");
        assert_eq!(stop(250)[0].median_ns, Nanos(19));
    }

    #[test]
    fn a_run_without_gaps_was_not_stopped() {
        let stop = stops(&run(&[]), Nanos(500), Nanos(100));
        assert_eq!((stop[0].median_ns, stop[0].max_ns), (Nanos(0), Nanos(0)));
        assert!(stops(&Run::default(), Nanos(500), Nanos(100)).is_empty());
    }

    proptest! {
        #[test]
        fn any_document_has_stops(
            gaps in proptest::collection::vec((any::<i64>(), any::<i64>()), 0..20),
            length in any::<i64>(), period in any::<i64>(),
        ) {
            let found = stops(&run(&gaps), Nanos(length), Nanos(period));
            prop_assert!(found.len() <= 2);
        }
    }
}
