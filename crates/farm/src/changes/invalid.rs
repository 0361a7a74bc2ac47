//! Runs that do not count: nothing of them makes a change.
//!
//! Histograms of days have the samples of all runs, so that a day on which such a run was on is
//! left out; maxima of five minutes are kept by recording and need no such care.

use crate::records::{SeriesKey, Tier};

/// A run that does not count, and the days that it was on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidRun {
    pub key: SeriesKey,
    /// When it began and ended, in seconds since 1970.
    pub started: i64,
    pub ended: i64,
}

/// Whether samples of such runs may be in the histogram of a series' day, by its first second.
pub fn is_spoiled(all: &[InvalidRun], key: &SeriesKey, day: i64) -> bool {
    let is_on = |run: &InvalidRun| day + Tier::Day.seconds() > run.started && day <= run.ended;
    all.iter().any(|run| run.key == *key && is_on(run))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_days_of_a_run_are_those_from_its_beginning_to_its_end() {
        let key = |plan: &str| SeriesKey { series: "measure".into(), plan: plan.into() };
        let all = [InvalidRun { key: key("p"), started: 3 * 86_400 + 80_000, ended: 4 * 86_400 + 9 }];
        let days: Vec<i64> = (0..9).filter(|day| is_spoiled(&all, &key("p"), day * 86_400)).collect();
        assert_eq!(days, [3, 4]);
        assert!(!is_spoiled(&all, &key("q"), 3 * 86_400), "another series has none of it");
    }
}
