//! Shortest period that a run supports: the shortest lateness that is reached at most once per
//! horizon, plus the computing time.

use serde::Serialize;

use super::answer::BoundsVerdict;
use model::units::Nanos;

/// Part of each period in which the cycle computes; lateness may take the rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Computing {
    /// Share of the period; at least 0 and less than 1.
    Share(f64),
    Time(Nanos),
}

impl Default for Computing {
    /// Half of the period.
    fn default() -> Computing {
        Computing::Share(0.5)
    }
}

impl Computing {
    /// The shortest period that leaves this lateness.
    pub fn period(self, lateness: Nanos) -> Nanos {
        match self {
            Computing::Share(share) => Nanos((lateness.0 as f64 / (1.0 - share)).ceil() as i64),
            Computing::Time(time) => Nanos(lateness.0.saturating_add(time.0)),
        }
    }
}

/// The shortest period; its numbers are null if no period can be supported.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShortestPeriod {
    pub period_ns: Option<Nanos>,
    /// Part of the period that lateness may take: the claim is about this limit.
    pub lateness_ns: Option<Nanos>,
    /// Part of the period that is left for computing.
    pub computing_ns: Option<Nanos>,
    /// Share of the period for which computing was set; null if it is a time.
    pub computing_share: Option<f64>,
}

impl ShortestPeriod {
    pub fn new(lateness: Option<Nanos>, computing: Computing) -> ShortestPeriod {
        let period = lateness.map(|lateness| computing.period(lateness));
        ShortestPeriod {
            period_ns: period,
            lateness_ns: lateness,
            computing_ns: period.zip(lateness).map(|(period, lateness)| Nanos(period.0 - lateness.0)),
            computing_share: match computing {
                Computing::Share(share) => Some(share),
                Computing::Time(_) => None,
            },
        }
    }
}

/// Shortest limit that is supported, by bisection: all longer ones are supported, too.
pub fn shortest_supported(verdict: impl Fn(Nanos) -> BoundsVerdict) -> Option<Nanos> {
    let is_supported = |limit: i64| verdict(Nanos(limit)) == BoundsVerdict::Supported;
    let (mut short, mut long) = (0, i64::MAX);
    if !is_supported(long) {
        return None;
    }
    while long - short > 1 {
        let middle = short + (long - short) / 2;
        if is_supported(middle) { long = middle } else { short = middle }
    }
    Some(Nanos(long))
}

#[cfg(test)]
mod tests {
    use super::super::{Bounds, BoundsInput, HistogramInput, Question, RunTotals, VerdictBasis, bounds};
    use super::*;
    use crate::rng::Rng;
    use crate::series::{BLOCK, Series};

    fn maxima(n: usize) -> Series {
        let mut rng = Rng::new(3);
        let us = (0..n).map(|_| 20.0 - 2.0 * rng.exponential().ln());
        let list: Vec<Option<Nanos>> = us.map(|us| Some(Nanos(us as i64 * 1_000))).collect();
        Series::of_list(&list, BLOCK, Nanos(1_000))
    }

    fn ask(input: &BoundsInput, horizon_s: i64) -> Bounds {
        let horizon = Nanos(horizon_s * Nanos::SECOND.0);
        let computing = Some(Computing::Time(Nanos(7)));
        bounds(input, &Question { computing, horizon, chosen: true, ..Question::default() })
    }

    fn verdict(input: &BoundsInput, limit: i64, horizon_s: i64) -> BoundsVerdict {
        let horizon = Nanos(horizon_s * Nanos::SECOND.0);
        let limit = Some(Nanos(limit));
        bounds(input, &Question { limit, horizon, chosen: true, ..Question::default() }).verdict
    }

    #[test]
    fn the_shortest_period_is_the_shortest_limit_that_is_supported() {
        let run = maxima(600);
        let input = BoundsInput::of(&run);
        // By counting with limits that some blocks reached, and by extrapolation above all of them.
        for (horizon, basis) in [(60, VerdictBasis::Counting), (3_000, VerdictBasis::Extrapolation)] {
            let found = ask(&input, horizon);
            let period = found.shortest_period.expect("a period was asked for");
            let lateness = period.lateness_ns.expect("one is supported");
            assert_eq!((found.verdict, found.basis), (BoundsVerdict::Supported, basis));
            assert_eq!(found.claim.map(|claim| claim.limit_ns), Some(lateness));
            assert_eq!(period.period_ns, Some(Nanos(lateness.0 + 7)));
            assert_eq!(verdict(&input, lateness.0, horizon), BoundsVerdict::Supported);
            assert_ne!(verdict(&input, lateness.0 - 1, horizon), BoundsVerdict::Supported);
        }
    }

    #[test]
    fn a_run_that_supports_no_limit_supports_no_period() {
        let run = maxima(600);
        let spoiled = ["the machine slept".to_owned()];
        let invalid = BoundsInput {
            run: RunTotals { invalid: &spoiled, ..RunTotals::default() },
            ..BoundsInput::of(&run)
        };
        let nothing = Series::default();
        for (input, horizon) in [
            (invalid, 60),
            (BoundsInput::of(&run), 86_400),
            (BoundsInput::of(&nothing), 60),
            (
                BoundsInput {
                    histogram: HistogramInput { overflows: 9, ..HistogramInput::default() },
                    ..BoundsInput::of(&nothing)
                },
                60,
            ),
        ] {
            let found = ask(&input, horizon);
            let period = found.shortest_period.expect("a period was asked for");
            assert_eq!((period.period_ns, period.computing_ns), (None, None));
            assert_eq!(found.verdict, BoundsVerdict::Inconclusive);
            let later = found.claim.is_none_or(|claim| claim.exceedances_at_most == 0);
            assert!(later, "{:?}", found.counting);
        }
    }

    #[test]
    fn a_period_is_lateness_and_computing() {
        for (computing, period, rest) in [
            (Computing::default(), 200, 100),
            (Computing::Share(0.0), 100, 0),
            (Computing::Share(0.3), 143, 43),
            (Computing::Time(Nanos(25)), 125, 25),
        ] {
            let found = ShortestPeriod::new(Some(Nanos(100)), computing);
            assert_eq!((found.period_ns, found.computing_ns), (Some(Nanos(period)), Some(Nanos(rest))));
        }
        assert_eq!(ShortestPeriod::new(None, Computing::default()).period_ns, None);
        assert_eq!(Computing::Time(Nanos(i64::MAX)).period(Nanos(1)), Nanos(i64::MAX));
    }

    #[test]
    fn the_search_ends_at_the_first_limit_that_is_supported() {
        let from = |first: i64| {
            shortest_supported(|limit| {
                if limit.0 >= first { BoundsVerdict::Supported } else { BoundsVerdict::Failed }
            })
        };
        for first in [1, 2, 33_001, i64::MAX] {
            assert_eq!(from(first), Some(Nanos(first)));
        }
        assert_eq!(shortest_supported(|_| BoundsVerdict::Inconclusive), None);
    }
}
