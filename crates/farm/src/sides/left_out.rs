//! Days of a side that are compared with nothing, and why.

use model::text::several;
use serde::Serialize;

/// Number of days with maxima of five minutes that match a side, and are omitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOutDays {
    /// Days with an invalid run.
    pub invalid: u64,
    /// Days for which the requested setting is unknown.
    pub unknown: u64,
}

impl LeftOutDays {
    /// Remark on a side that has other days.
    pub fn remark(self, side: &str) -> Option<String> {
        self.words().map(|words| format!("Of {side}, {words}."))
    }

    /// Reason for which a side has no day.
    pub fn nothing_else(self, side: &str) -> Option<String> {
        self.words().map(|words| format!("nothing is left of {side}: {words}"))
    }

    fn words(self) -> Option<String> {
        let reasons =
            [(self.invalid, "because of an invalid run"), (self.unknown, "because the setting is unknown")];
        let words = |(days, why): (u64, &str)| {
            (days > 0).then(|| format!("{} excluded {why}", several(days, "day is", "days are")))
        };
        let all: Vec<String> = reasons.into_iter().filter_map(words).collect();
        (!all.is_empty()).then(|| all.join(", and "))
    }
}

impl std::ops::Add for LeftOutDays {
    type Output = LeftOutDays;

    fn add(self, other: LeftOutDays) -> LeftOutDays {
        LeftOutDays { invalid: self.invalid + other.invalid, unknown: self.unknown + other.unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_that_are_left_out_are_told_with_the_reason() {
        let none = LeftOutDays::default();
        assert_eq!((none.remark("A"), none.nothing_else("A")), (None, None));
        let left_out = LeftOutDays { invalid: 1, ..none } + LeftOutDays { invalid: 2, ..none };
        assert_eq!(left_out.remark("A").unwrap(), "Of A, 3 days are excluded because of an invalid run.");
        assert_eq!(
            left_out.nothing_else("B").unwrap(),
            "nothing is left of B: 3 days are excluded because of an invalid run"
        );
        let both = left_out + LeftOutDays { unknown: 1, ..none };
        assert_eq!(
            both.remark("A").unwrap(),
            "Of A, 3 days are excluded because of an invalid run, and 1 day is excluded because the setting \
             is unknown."
        );
    }
}
