//! Settling time of a change, determined before the first counted pair: a run is measured right
//! after a switch to each side, and its first blocks are compared with its second half. These runs
//! decide nothing else, so that the time does not favour an arm.

use model::experiment::{ExperimentRun, SettleRun};
use model::sort::CompactSort;
use model::units::Nanos;
use stats::series::BLOCK;

use crate::design::SETTLE;

/// Length of each run of the trial, and limit of the settling time.
pub const TRIAL: Nanos = Nanos(20_000_000_000);

/// Number of consecutive blocks outside of the second half's range that have not settled. Without
/// any change, the four blocks of one place are so in 10 of 1,001 orders, with one of ten values
/// ignored on either side; those of any place in 1 run of 20, where more is ignored than needed.
const WINDOW: usize = 4;

/// Settling of a run, compared with its second half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Settled after this number of blocks.
    After(usize),
    /// Not settled by the end of its first half, of this number of blocks.
    NotWithin(usize),
    /// Unknown, with too few blocks.
    Unseen,
}

/// Settling by the maxima of a run's blocks: after the last four in a row that are all larger, or
/// all smaller, than the second half without its extreme value, which may be a rare event.
pub fn settled(maxima: &[f64]) -> Settled {
    let half = maxima.len() / 2;
    if half < 2 * WINDOW {
        return Settled::Unseen;
    }
    let mut later = maxima[half..].to_vec();
    later.compact_sort_by(f64::total_cmp);
    let (low, high) = (later[1], later[later.len() - 2]);
    let is_beyond =
        |window: &[f64]| window.iter().all(|value| *value > high) || window.iter().all(|value| *value < low);
    let last = maxima[..half].windows(WINDOW).rposition(is_beyond);
    match last.map_or(0, |last| last + WINDOW) {
        // With one block of the half left, it may still be unsettled.
        after if after + 1 >= half => Settled::NotWithin(half),
        after => Settled::After(after),
    }
}

/// Run of the record, with its settling time.
pub fn noted(run: SettleRun, maxima: &[f64]) -> SettleRun {
    let span = |blocks: usize| Some(Nanos((blocks as i64).saturating_mul(BLOCK.0)));
    match settled(maxima) {
        Settled::After(blocks) => SettleRun { altered_ns: span(blocks), ..run },
        Settled::NotWithin(blocks) => SettleRun { altered_ns: span(blocks), unsettled: true, ..run },
        Settled::Unseen => SettleRun { why: "it has too few whole seconds".into(), ..run },
    }
}

/// Time ignored after each switch: until both sides have settled, at least 2 s. If one had not by
/// the middle of its run, the length of the run, which may be too short.
pub fn settling_time(trial: &[SettleRun], length: Nanos) -> Nanos {
    let of = |run: &SettleRun| if run.unsettled { length } else { run.altered_ns.unwrap_or_default() };
    trial.iter().map(of).fold(SETTLE, Nanos::max)
}

/// Total time ignored after all switches of the pairs.
pub fn discarded(run: &ExperimentRun) -> Nanos {
    let of = |settled: Nanos| if settled.0 > 0 { settled } else { run.plan.settle_ns };
    run.segments.iter().fold(Nanos(0), |sum, segment| Nanos(sum.0.saturating_add(of(segment.settled_ns).0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::experiment::{ExperimentPlan, ExperimentSegment};
    use stats::rng::Rng;

    const BLOCKS: usize = 20;

    /// Maxima around 100 with a scatter of a tenth, and larger ones at first.
    fn drawn(rng: &mut Rng, more: impl Fn(f64) -> f64) -> Vec<f64> {
        (0..BLOCKS).map(|at| 100.0 + 10.0 * rng.normal() + more(at as f64)).collect()
    }

    fn share(draws: usize, mut of: impl FnMut() -> bool) -> f64 {
        (0..draws).filter(|_| of()).count() as f64 / draws as f64
    }

    #[test]
    fn what_settles_at_once_is_seldom_held_for_longer() {
        let mut rng = Rng::new(4);
        let heavy = |rng: &mut Rng| (0..BLOCKS).map(|_| rng.exponential().powi(3)).collect::<Vec<f64>>();
        for is_heavy in [false, true] {
            let at_once = share(2_000, || {
                let series = if is_heavy { heavy(&mut rng) } else { drawn(&mut rng, |_| 0.0) };
                settled(&series) == Settled::After(0)
            });
            assert!(at_once > 0.93, "{at_once}");
        }
    }

    #[test]
    fn an_exponential_approach_is_left_out_as_far_as_it_shows() {
        let mut rng = Rng::new(5);
        // The excess at first, in units of the scatter, is visible until it is about two.
        for (constant, from, to) in [(1.5, 4, 7), (2.0, 5, 8)] {
            let fits = share(500, || match settled(&drawn(&mut rng, |at| 300.0 * (-at / constant).exp())) {
                Settled::After(blocks) => (from..=to).contains(&blocks),
                _ => false,
            });
            assert!(fits > 0.8, "{constant}: {fits}");
        }
    }

    #[test]
    fn what_does_not_settle_in_its_run_is_told_from_what_does() {
        let mut rng = Rng::new(6);
        for more in [|at: f64| 300.0 * (-at / 30.0).exp(), |at: f64| 40.0 * at] {
            let unsettled = share(200, || settled(&drawn(&mut rng, more)) == Settled::NotWithin(BLOCKS / 2));
            assert!(unsettled > 0.9, "{unsettled}");
        }
    }

    #[test]
    fn what_grows_counts_as_what_falls() {
        let rises: Vec<f64> =
            (0..BLOCKS).map(|at| if at < 6 { at as f64 } else { 100.0 + at as f64 }).collect();
        assert_eq!(settled(&rises), Settled::NotWithin(10), "it rises to the end");
        let steps: Vec<f64> =
            (0..BLOCKS).map(|at| if at < 6 { 5.0 } else { 100.0 + (at % 3) as f64 }).collect();
        assert_eq!(settled(&steps), Settled::After(6));
    }

    #[test]
    fn one_rare_event_hides_nothing_and_little_data_says_nothing() {
        let mut series: Vec<f64> =
            (0..BLOCKS).map(|at| if at < 5 { 900.0 } else { 100.0 + (at % 4) as f64 }).collect();
        series[15] = 5_000.0;
        assert_eq!(settled(&series), Settled::After(5));
        assert_eq!(settled(&[7.0; BLOCKS]), Settled::After(0), "all alike");
        assert_eq!((settled(&[]), settled(&[1.0; 15])), (Settled::Unseen, Settled::Unseen));
        assert_eq!(settled(&[f64::NAN; BLOCKS]), Settled::After(0));
    }

    #[test]
    fn what_is_left_out_is_the_longer_of_both_within_bounds() {
        let second = Nanos::SECOND.0;
        let run = |blocks: i64, unsettled| SettleRun {
            altered_ns: Some(Nanos(blocks * second)),
            unsettled,
            ..SettleRun::default()
        };
        let time = |trial: &[SettleRun]| settling_time(trial, TRIAL).0 / second;
        assert_eq!([time(&[]), time(&[run(0, false), run(1, false)])], [2, 2]);
        assert_eq!([time(&[run(5, false), run(9, false)]), time(&[run(10, true), run(0, false)])], [9, 20]);
        let unseen = noted(SettleRun::default(), &[1.0]);
        assert!(time(std::slice::from_ref(&unseen)) == 2 && unseen.why.contains("too few"));
        let late = noted(SettleRun::default(), &(0..20).map(f64::from).collect::<Vec<_>>());
        assert!(late.unsettled && late.altered_ns == Some(Nanos(10 * second)));
    }

    #[test]
    fn all_that_was_left_out_is_counted() {
        let segment = |ms: i64| ExperimentSegment { settled_ns: Nanos(ms * 1_000_000), ..Default::default() };
        let plan = ExperimentPlan { settle_ns: Nanos(2_000_000_000), ..ExperimentPlan::default() };
        // A segment of an older record does not have the time.
        let run = ExperimentRun { plan, segments: vec![segment(2_500), segment(0)], ..Default::default() };
        assert_eq!(discarded(&run), Nanos(4_500_000_000));
    }
}
