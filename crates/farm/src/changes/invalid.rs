//! Invalid runs: they cause no change.
//!
//! Histograms contain the samples of all runs, so that a day with such a run is excluded; maxima of
//! five minutes are kept per recording and are not affected.

use crate::records::{SeriesKey, Tier};

/// A run that does not count, and when it was on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidRun {
    pub id: String,
    pub key: SeriesKey,
    /// Start and end, in seconds since 1970.
    pub started: i64,
    pub ended: i64,
}

/// The first of such runs that was on in a stretch of time, by its first second: its samples may be
/// in the histogram of that.
pub fn invalid_within<'a>(
    all: &'a [InvalidRun],
    key: &SeriesKey,
    tier: Tier,
    t: i64,
) -> Option<&'a InvalidRun> {
    let is_on = |run: &&InvalidRun| t.saturating_add(tier.seconds()) > run.started && t <= run.ended;
    all.iter().filter(|run| run.key == *key).find(is_on)
}

/// True if samples of such runs may be in the histogram of a series' day.
pub fn is_spoiled(all: &[InvalidRun], key: &SeriesKey, day: i64) -> bool {
    invalid_within(all, key, Tier::Day, day).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_days_of_a_run_are_those_from_its_beginning_to_its_end() {
        let key = |plan: &str| SeriesKey { series: "measure".into(), plan: plan.into() };
        let (started, ended) = (3 * 86_400 + 80_000, 4 * 86_400 + 9);
        let all = [InvalidRun { id: "r".into(), key: key("p"), started, ended }];
        let days: Vec<i64> = (0..9).filter(|day| is_spoiled(&all, &key("p"), day * 86_400)).collect();
        assert_eq!(days, [3, 4]);
        assert!(!is_spoiled(&all, &key("q"), 3 * 86_400), "another series has none of it");
        let hours: Vec<i64> = (90..100)
            .filter(|hour| invalid_within(&all, &key("p"), Tier::Hour, hour * 3_600).is_some())
            .collect();
        assert_eq!(hours, [94, 95, 96]);
    }
}
