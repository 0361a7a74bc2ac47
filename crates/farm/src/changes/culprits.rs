//! A culprit that a board never had before.

use report::words::several;

use super::{ChangeKind, FarmChange};
use crate::words::{date, escaped, known};

/// Minimum number of hunts, or days of a recorder, before the first one with the culprit: on a
/// board with fewer it may have gone unnoticed.
const LEAST_BEFORE: u64 = 10;
/// Minimum number of spikes: fewer may be one bad moment.
pub const LEAST_SPIKES: u64 = 3;
/// A recorder names a culprit for the largest latency of each five minutes, however small: an hour
/// of them is no accident.
pub const LEAST_FIVE_MINUTES: u64 = 12;

/// A culprit on a board.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CulpritSeen {
    pub board: String,
    pub fingerprint: String,
    pub name: String,
    /// Start of the first run with it, or of a recorder's first five minutes with it.
    pub first: i64,
    pub spikes: u64,
    /// Hunts of the board that began before the first run with it.
    pub hunts_before: u64,
    /// The first run with it; empty if no run has it.
    pub run: String,
    /// Number of a recorder's five minutes that name it; the series of the first of them, if no run
    /// precedes it; and the days with names before that one.
    pub five_minutes: u64,
    pub series: String,
    pub days_before: u64,
}

impl CulpritSeen {
    /// True if the board was observed long enough before it, and has it often enough.
    pub fn is_new(&self) -> bool {
        self.is_new_in_hunts() || self.is_new_in_rows()
    }

    fn is_new_in_hunts(&self) -> bool {
        self.spikes >= LEAST_SPIKES && self.hunts_before >= LEAST_BEFORE
    }

    fn is_new_in_rows(&self) -> bool {
        self.five_minutes >= LEAST_FIVE_MINUTES && self.days_before >= LEAST_BEFORE
    }
}

/// New culprits since a time.
pub fn new_culprits(all: &[CulpritSeen], since: i64) -> Vec<FarmChange> {
    all.iter().filter(|one| one.first >= since && one.is_new()).map(change).collect()
}

fn change(one: &CulpritSeen) -> FarmChange {
    let mut evidence = Vec::new();
    if one.spikes > 0 {
        evidence.push(format!("It contributed to {} since then.", several(one.spikes, "spike", "spikes")));
    }
    if one.hunts_before > 0 {
        let hunts = several(one.hunts_before, "hunt", "hunts");
        evidence.push(format!("It is in none of {hunts} of this board before."));
    }
    if one.five_minutes > 0 {
        evidence.push(format!(
            "The recorder named it for the largest latency of a CPU in {} intervals of five minutes since \
             then.",
            one.five_minutes
        ));
    }
    if one.days_before > 0 {
        let days = several(one.days_before, "day", "days");
        evidence.push(format!("It is in none of {days} of the recorder before."));
    }
    FarmChange {
        board: one.board.clone(),
        kind: ChangeKind::NewCulprit,
        t: one.first,
        from: one.first,
        says: format!("Since {}, time is taken by {}.", date(one.first), known(&one.name)),
        claim: format!("new culprit: {}", known(&one.name)),
        evidence,
        p: None,
        settings: Vec::new(),
        address: match one.series.as_str() {
            "" => format!("/runs/{}", escaped(&one.run)),
            series => format!("/b/{}/at/{}?series={}", escaped(&one.board), one.first, escaped(series)),
        },
        subject: format!("culprit {}", one.fingerprint),
        since: None,
        acknowledged: None,
        conditions: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_looked_for_before_and_came_back_is_new() {
        let seen = |hunts_before, spikes, first| CulpritSeen {
            name: "tlb-flush".into(),
            run: "r 1".into(),
            hunts_before,
            spikes,
            first,
            ..CulpritSeen::default()
        };
        let found =
            new_culprits(&[seen(10, 3, 100), seen(9, 3, 100), seen(10, 2, 100), seen(10, 3, 99)], 100);
        assert_eq!(found.len(), 1);
        assert!(found[0].says.ends_with("time is taken by tlb-flush.") && found[0].address == "/runs/r%201");
        assert_eq!(found[0].evidence.len(), 2);
    }

    #[test]
    fn a_recorder_that_names_it_for_an_hour_after_ten_days_without_says_so() {
        let seen = |five_minutes, days_before| CulpritSeen {
            board: "a".into(),
            name: "hog".into(),
            series: "wakeup".into(),
            first: 300,
            five_minutes,
            days_before,
            ..CulpritSeen::default()
        };
        let found = new_culprits(&[seen(12, 10), seen(11, 10), seen(12, 9)], 100);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].address, "/b/a/at/300?series=wakeup");
        let evidence = found[0].evidence.join(" ");
        assert!(
            evidence.contains("12 intervals of five minutes") && evidence.contains("10 days"),
            "{evidence}"
        );
        assert!(!evidence.contains("hunt") && !evidence.contains("spike"), "{evidence}");
    }
}
