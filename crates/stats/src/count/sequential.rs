//! Early stop of a watched test: Wald's sequential probability ratio test for a Poisson rate.
//!
//! Wald (1945), "Sequential tests of statistical hypotheses"; Dvoretzky, Kiefer and Wolfowitz
//! (1953) for Poisson processes. The target is at most one event per `per_time`; the design is a
//! rate ten times lower. Looking at any time costs 11 % more time than a test of a length fixed
//! before it. Assumption: events come independently at a constant rate: bursts are counted once
//! (declustered).

use std::f64::consts::LN_10;

/// The design rate is the target's divided by this.
const RATIO: f64 = 10.0;
/// Odds of 20 to 1 either way: at most 5 % wrong.
const ODDS: f64 = 20.0;

/// Decision on a watched test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Events come less often than the target: stop.
    Pass,
    /// Events come too often for the design: stop.
    Fail,
    /// Not decided: measure on.
    GoOn,
}

/// The logarithm of the likelihood ratio of the design to the target, after k events in `observed`.
pub fn llr(k: u64, observed: f64, per_time: f64) -> f64 {
    (1.0 - 1.0 / RATIO) * observed / per_time - LN_10 * k as f64
}

/// The time at which a test passes if it then has k events.
pub fn passing_time(k: u64, per_time: f64) -> f64 {
    (ODDS.ln() + LN_10 * k as f64) / (1.0 - 1.0 / RATIO) * per_time
}

/// The time at which a test without any event passes.
pub fn clean_time(per_time: f64) -> f64 {
    passing_time(0, per_time)
}

/// Decides after k events in `observed`; it may be called at any time and as often as wanted.
///
/// The first pass or fail is the one that counts. Without a time nothing is decided.
pub fn decision(k: u64, observed: f64, per_time: f64) -> Decision {
    if !(per_time > 0.0 && observed >= 0.0) {
        return Decision::GoOn;
    }
    let llr = llr(k, observed, per_time);
    // The announced time passes, whatever the last bit of the ratio.
    if llr >= ODDS.ln() || observed >= passing_time(k, per_time) {
        Decision::Pass
    } else if llr <= -ODDS.ln() {
        Decision::Fail
    } else {
        Decision::GoOn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Rng, SEED};
    use proptest::prelude::*;

    #[test]
    fn a_clean_test_passes_where_the_reference_does() {
        assert!((clean_time(1.0) - 3.328_591_4).abs() < 1e-7);
        assert_eq!(decision(0, clean_time(7.0), 7.0), Decision::Pass);
        assert_eq!(decision(0, 3.32 * 7.0, 7.0), Decision::GoOn);
        assert_eq!(decision(1, clean_time(7.0), 7.0), Decision::GoOn);
    }

    #[test]
    fn many_events_fail() {
        // Two at the same time: -2 ln 10 is below -ln 20; spread over two target times it is not.
        assert_eq!((decision(2, 0.0, 1.0), decision(2, 2.0, 1.0)), (Decision::Fail, Decision::GoOn));
        assert!((llr(2, 2.0, 1.0) - (1.8 - 100f64.ln())).abs() < 1e-12);
    }

    /// Watches a Poisson process of a rate per target time until the decision.
    fn watch(rng: &mut Rng, rate: f64) -> Decision {
        let (mut k, mut t) = (0, 0.0);
        loop {
            t += rng.exponential() / rate;
            // It may pass at any moment before the next event.
            if t >= passing_time(k, 1.0) {
                return Decision::Pass;
            }
            k += 1;
            match decision(k, t, 1.0) {
                Decision::GoOn => {}
                decided => return decided,
            }
        }
    }

    #[test]
    fn watching_does_not_pass_what_it_should_not() {
        let mut rng = Rng::new(SEED);
        let reps = 4000;
        let mut passes = |rate| (0..reps).filter(|_| watch(&mut rng, rate) == Decision::Pass).count() as f64;
        let at_target = passes(1.0) / f64::from(reps);
        let error = 3.0 * (0.05 * 0.95 / f64::from(reps)).sqrt();
        assert!((at_target - 0.05).abs() < error, "{at_target}");
        assert!(passes(0.1) / f64::from(reps) > 0.95 - error);
    }

    #[test]
    fn edges_have_answers() {
        for x in [f64::NEG_INFINITY, -1.0, 0.0, 1.0, f64::INFINITY, f64::NAN] {
            assert_eq!(decision(0, x, 0.0), Decision::GoOn);
            assert_eq!(decision(u64::MAX, f64::NAN, x), Decision::GoOn);
            let _ = (llr(3, x, x), passing_time(u64::MAX, x), decision(3, x, x));
        }
    }

    proptest! {
        #[test]
        fn the_result_depends_only_on_the_ratio_of_times(k in 0u64..9, t in 0.0f64..30.0, unit in 1u32..60) {
            let scale = f64::from(1u32 << (unit % 16));
            prop_assert_eq!(decision(k, t, 1.0), decision(k, t * scale, scale));
            prop_assert!(llr(k, t, 1.0) > llr(k + 1, t, 1.0));
        }
    }
}
