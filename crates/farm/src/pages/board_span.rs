//! The spans of time that a board's page shows.

use super::parts::{date, escaped};
use crate::records::{SeriesKey, Tier};
use crate::store::TimeStretch;

/// The span of time that is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoardSpan {
    Day,
    Week,
    Month,
    #[default]
    Year,
    All,
}

impl BoardSpan {
    /// All spans, each with its word in an address and its displayed name.
    pub const ALL: [(BoardSpan, &str, &str); 5] = [
        (BoardSpan::Day, "day", "a day"),
        (BoardSpan::Week, "week", "a week"),
        (BoardSpan::Month, "month", "30 days"),
        (BoardSpan::Year, "year", "a year"),
        (BoardSpan::All, "all", "all"),
    ];

    /// Parses the word in an address: empty means the default, `None` an unknown span.
    pub fn of_word(word: &str) -> Option<BoardSpan> {
        match word {
            "" => Some(BoardSpan::default()),
            word => BoardSpan::ALL.into_iter().find(|known| known.1 == word).map(|known| known.0),
        }
    }

    pub fn word(self) -> &'static str {
        BoardSpan::ALL.into_iter().find(|known| known.0 == self).map_or("year", |known| known.1)
    }

    /// Its length in days.
    pub fn days(self) -> i64 {
        match self {
            BoardSpan::Day => 1,
            BoardSpan::Week => 7,
            BoardSpan::Month => 30,
            BoardSpan::Year => 366,
            BoardSpan::All => 36_600,
        }
    }

    /// Possible lengths of a column in its picture: the first that is stored is used.
    pub fn tiers(self) -> &'static [Tier] {
        match self {
            BoardSpan::Day => &[Tier::Slot, Tier::Hour],
            BoardSpan::Week => &[Tier::Hour],
            _ => &[Tier::Day],
        }
    }

    /// True if its columns are shorter than a day.
    pub fn is_fine(self) -> bool {
        matches!(self, BoardSpan::Day | BoardSpan::Week)
    }

    /// Time of the span up to and including a day, given by its first second; by default up to the
    /// last day with samples.
    pub fn stretch(self, until: Option<i64>, last: i64) -> TimeStretch {
        let day = Tier::Day.seconds();
        let to = match until {
            Some(until) => until + day,
            None if self.is_fine() => Tier::Day.begin(last) + day,
            // A run that began in the evening may reach into the next day.
            None => Tier::Day.begin(last) + 2 * day,
        };
        TimeStretch { from: to - self.days() * day, to }
    }

    /// End of a phrase such as `The largest latency`. `to` is the first second after the displayed
    /// time.
    pub fn within(self, until: Option<i64>, to: i64) -> String {
        let length = match self {
            BoardSpan::Day => return format!("of {}", date(to - 1)),
            BoardSpan::Week => return format!("of the seven days up to {}", date(to - 1)),
            BoardSpan::Month => "of 30 days",
            BoardSpan::Year => "of a year",
            BoardSpan::All => "of all",
        };
        until.map_or_else(|| length.to_owned(), |until| format!("{length} up to {}", date(until)))
    }
}

/// Address of a span of a board's series, up to a day if given.
pub fn span_address(board: &str, key: &SeriesKey, span: BoardSpan, until: Option<i64>) -> String {
    let until = until.map_or_else(String::new, |until| format!("&to={}", date(until)));
    let (board, series, plan) = (escaped(board), escaped(&key.series), escaped(&key.plan));
    format!("/b/{board}?series={series}&plan={plan}&span={}{until}", span.word())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_words_and_another_word_is_none() {
        for (span, word, _) in BoardSpan::ALL {
            assert_eq!((BoardSpan::of_word(word), span.word()), (Some(span), word));
        }
        assert_eq!((BoardSpan::of_word(""), BoardSpan::of_word("hour")), (Some(BoardSpan::Year), None));
    }

    #[test]
    fn a_day_is_that_day_and_others_end_with_it() {
        const DAY: i64 = 86_400;
        let of = |span: BoardSpan, until| {
            let TimeStretch { from, to } = span.stretch(until, 20_000 * DAY + 5);
            (from / DAY, to / DAY)
        };
        assert_eq!(of(BoardSpan::Day, None), (20_000, 20_001));
        assert_eq!(of(BoardSpan::Day, Some(19_000 * DAY)), (19_000, 19_001));
        assert_eq!(of(BoardSpan::Week, Some(19_000 * DAY)), (18_994, 19_001));
        assert_eq!(of(BoardSpan::Month, None), (19_972, 20_002));
        let to = 20_001 * DAY;
        assert_eq!(BoardSpan::Day.within(None, to), "of 2024-10-04");
        assert_eq!(BoardSpan::Month.within(None, to), "of 30 days");
        assert_eq!(BoardSpan::Year.within(Some(20_000 * DAY), to), "of a year up to 2024-10-04");
    }
}
