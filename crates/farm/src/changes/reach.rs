//! Smallest detectable change of a rate: a board without reports may be one on which no change
//! could be detected.

use model::rows::row_edges;
use model::units::Nanos;
use report::words::{several, span};
use schemars::JsonSchema;
use serde::Serialize;
use stats::pair::conditional_binomial::Exposure;
use stats::time::onset::{LEAST, RECENT, onsets, smallest_factor, usual_rate};

use super::rate::{RateHistory, a_day, counted, level};
use crate::records::SeriesKey;
use crate::words::date;

/// Detectable change in the rate of late wake-ups of a series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct RateReach {
    #[serde(flatten)]
    pub key: SeriesKey,
    /// Days in the test: those with samples, since the last change of the rate, if any.
    pub days: usize,
    /// True if there was such a change.
    pub changed: bool,
    /// The day that is excluded because it is not over.
    #[serde(skip)]
    pub left_out: Option<i64>,
    /// Latencies from here on are late; `None` with too few days or wake-ups.
    #[schemars(with = "Option<i64>")]
    pub limit_ns: Option<Nanos>,
    /// Number of late wake-ups per day; `None` with too few days.
    pub a_day: Option<f64>,
    /// Smallest factor that would be detected within a week in 95 of 100 cases; `None` if not even
    /// a factor of a hundred would.
    pub factor: Option<f64>,
}

/// Detectable change of a series by its days.
pub fn rate_reach(of: &RateHistory) -> RateReach {
    let mut reach = RateReach { key: of.key.clone(), days: of.days.len(), ..RateReach::default() };
    let Some(level) = level(of.days) else { return reach };
    let days: Vec<Exposure> = counted(of.days, level).into_iter().map(|day| day.1).collect();
    let changed = onsets(&days).last().map(|onset| onset.from);
    reach.limit_ns = Some(row_edges(level).0);
    reach.changed = changed.is_some();
    reach.days = days.len() - changed.unwrap_or(0);
    if let Some(usual) = usual_rate(&days, changed.unwrap_or(0)) {
        reach.a_day = Some(usual.rate);
        reach.factor = smallest_factor(usual.rate, usual.phi);
    }
    reach
}

impl RateReach {
    /// Sentence for a page.
    pub fn says(&self) -> String {
        if self.days < LEAST + RECENT {
            let since = if self.changed { " since it changed" } else { "" };
            let mut says = format!(
                "The rate of late wake-ups of this series cannot be judged yet: it has {} with \
                 samples{since}; {} are needed, {LEAST} of them to find the usual rate.",
                several(self.days as u64, "day", "days"),
                LEAST + RECENT
            );
            if let Some(day) = self.left_out {
                let day = date(day);
                says += &format!(" The last day with samples, {day}, is excluded: it may be incomplete.");
            }
            return says;
        }
        let (Some(limit), Some(rate)) = (self.limit_ns, self.a_day) else {
            return "The rate of late wake-ups of this series cannot be judged: it has fewer than ten \
                    wake-ups a day."
                .to_owned();
        };
        let at = format!("At {} late wake-ups a day (from {} on), ", a_day(rate), span(limit));
        match self.factor {
            Some(factor) => format!("{at}an increase to {factor:.1} times is detected within a week."),
            None => format!(
                "{at}which vary widely from day to day, even an increase to 100 times may go undetected for \
                 a week."
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rate::tests::history;
    use super::*;
    use crate::records::TierRow;

    fn reach(days: &[TierRow]) -> RateReach {
        let key = SeriesKey { series: "wakeup".into(), plan: "p".into() };
        rate_reach(&RateHistory { board: "a", key: &key, name: "", days })
    }

    #[test]
    fn what_can_be_seen_is_told_also_where_nothing_was() {
        let steady = reach(&history(&[(15.0, 112)]));
        assert_eq!((steady.days, steady.changed), (112, false));
        assert!(steady.a_day.is_some_and(|rate| (13.0..17.0).contains(&rate)), "{steady:?}");
        assert!(steady.factor.is_some_and(|factor| (1.3..2.1).contains(&factor)), "{steady:?}");
        let says = steady.says();
        assert!(says.starts_with("At 1") && says.ends_with(" times is detected within a week."));
        // The more there are, the smaller a change is seen.
        assert!(reach(&history(&[(400.0, 112)])).factor < steady.factor);
        let wild = RateReach { factor: None, ..steady };
        assert!(wild.says().ends_with("an increase to 100 times may go undetected for a week."));
    }

    #[test]
    fn what_is_not_judged_says_why() {
        let few = reach(&history(&[(15.0, 30)]));
        assert_eq!((few.days, few.limit_ns, few.a_day, few.factor), (30, None, None, None));
        assert!(few.says().contains("30 days with samples; 56 are needed, 42 of them"), "{}", few.says());
        assert!(few.says().ends_with("to find the usual rate."), "{}", few.says());
        let left_out = RateReach { left_out: Some(30 * 86_400), ..few }.says();
        assert!(
            left_out.ends_with(" The last day with samples, 1970-01-31, is excluded: it may be incomplete.")
        );
        let before = reach(&history(&[(15.0, 55)]));
        assert!(before.a_day.is_none() && before.says().contains("55 days with samples"), "{before:?}");
        assert!(reach(&history(&[(15.0, 56)])).a_day.is_some());
        // After a change, the days since then define the usual rate.
        let changed = reach(&history(&[(15.0, 100), (60.0, 20)]));
        assert!(changed.changed && changed.days.abs_diff(20) < 4, "{changed:?}");
        assert!(changed.says().contains(" since it changed; 56 are needed"), "{}", changed.says());
        let empty = vec![TierRow::default(); 112];
        assert!(reach(&empty).says().contains("fewer than ten wake-ups a day"));
    }
}
