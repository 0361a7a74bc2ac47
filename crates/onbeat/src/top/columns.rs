//! Columns of the list: as many as fit, the most useful first, each of a fixed width.

use model::sort::CompactSort;
use model::units::Nanos;

use super::row::LiveRow;
use super::{RowKey, history};

/// TopColumn of the list, in the order on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TopColumn {
    Name,
    Priority,
    Cpu,
    Last,
    Min,
    Mean,
    P99,
    Max,
    Timer,
    Wait,
    Rate,
    Missed,
    Minute,
    Culprit,
}

use TopColumn::{Cpu, Culprit, Last, Max, Mean, Min, Minute, Missed, Name, P99, Priority, Rate, Timer, Wait};

/// Columns in the order in which they are given room, with their least width.
const WANTED: [(TopColumn, usize); 14] = [
    (Name, 15),
    (Last, 6),
    (Max, 6),
    (P99, 6),
    (Rate, 6),
    (Culprit, 11),
    (Missed, 6),
    (Mean, 6),
    (Minute, 10),
    (Timer, 6),
    (Wait, 6),
    (Min, 6),
    (Priority, 3),
    (Cpu, 3),
];

/// Widest useful name, culprit and minute.
const WIDEST: [(TopColumn, usize); 3] = [(Culprit, 40), (Minute, history::SECONDS), (Name, 24)];

/// Columns with their widths for a screen; each is followed by a blank. `has_missed` is false if
/// the source knows no slots.
pub fn fitted(width: usize, has_missed: bool) -> Vec<(TopColumn, usize)> {
    let mut left = width.saturating_sub(1);
    let mut columns: Vec<(TopColumn, usize)> = Vec::new();
    for (column, least) in WANTED {
        if column == Missed && !has_missed {
            continue;
        }
        // A narrow column behind one that does not fit would be at an unexpected place.
        if least + 1 > left {
            break;
        }
        left -= least + 1;
        columns.push((column, least));
    }
    for (wide, widest) in WIDEST {
        if let Some((_, width)) = columns.iter_mut().find(|(column, _)| *column == wide) {
            let more = left.min(widest - *width);
            (*width, left) = (*width + more, left - more);
        }
    }
    columns.compact_sort_by_key(|(column, _)| *column);
    columns
}

impl TopColumn {
    pub fn title(self) -> &'static str {
        match self {
            Name => "cpu, thread",
            Priority => "pri",
            Cpu => "cpu",
            Last => "last",
            Min => "min",
            Mean => "mean",
            P99 => "p99",
            Max => "max",
            Timer => "T",
            Wait => "W",
            Rate => "wake/s",
            Missed => "missed",
            Minute => "minute",
            Culprit => "culprit",
        }
    }

    /// True if its texts begin at the left.
    pub fn is_text(self) -> bool {
        matches!(self, Name | Minute | Culprit)
    }

    /// Text of a cell; empty if it is unknown.
    pub fn text(self, row: &LiveRow, width: usize) -> String {
        let of = |span: Option<Nanos>| span.map(short).unwrap_or_default();
        let number = |number: Option<u32>| number.map(|number| number.to_string()).unwrap_or_default();
        match self {
            Name => row.name.clone(),
            Priority => number(row.priority.filter(|priority| *priority > 0)),
            Cpu => number(row.cpu.filter(|_| matches!(row.key, RowKey::Thread(_))).map(|cpu| cpu.0)),
            Last => of(row.last),
            Min => of(row.main().min),
            Mean => of(row.main().mean()),
            P99 => of(row.main().quantile(990_000)),
            Max => of(row.max()),
            Timer => of(row.worst_timer()),
            Wait => of(row.worst_wait()),
            Rate if row.ended_for.is_some() => "ended".into(),
            Rate => row.rate.map(rate).unwrap_or_default(),
            Missed => row.missed.map(|missed| count(missed as f64)).unwrap_or_default(),
            Minute => row.history.text(width),
            Culprit => row.culprit().to_owned(),
        }
    }
}

/// Span in at most six characters, with its unit; seven if it is negative.
pub fn short(span: Nanos) -> String {
    let size = span.0.unsigned_abs() as f64;
    let sign = if span.0 < 0 { "-" } else { "" };
    if size < 999.5 {
        return format!("{sign}{size:.0}ns");
    }
    // The next unit from where rounding would need a fourth digit.
    let units = [(1e3, "us"), (1e6, "ms"), (1e9, "s")];
    let (unit, name) = units.into_iter().find(|(unit, _)| size / unit < 999.5).unwrap_or((1e9, "s"));
    match size / unit {
        value if value < 9.995 => format!("{sign}{value:.2}{name}"),
        value if value < 99.95 => format!("{sign}{value:.1}{name}"),
        value if value < 99_999.5 => format!("{sign}{value:.0}{name}"),
        _ => format!("{sign}>99ks"),
    }
}

/// Rate in at most six characters.
fn rate(rate: f64) -> String {
    if rate > 0.0 && rate < 9.95 { format!("{rate:.1}") } else { count(rate) }
}

/// Number in at most six characters.
pub fn count(number: f64) -> String {
    for (unit, name) in [(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")] {
        if number / unit < 9_999.5 {
            return format!("{:.0}{name}", number / unit);
        }
    }
    ">9999G".into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spans_have_three_digits_and_a_unit() {
        let texts = [0, 999, 1_000, 9_994, 9_995, 99_949, 999_499, 999_500, 68_700_000_000]
            .map(|ns| short(Nanos(ns)));
        assert_eq!(
            texts,
            ["0ns", "999ns", "1.00us", "9.99us", "10.0us", "99.9us", "999us", "1.00ms", "68.7s"]
        );
        assert_eq!([9.0, 1_000.0, 123_456.0, 0.4].map(rate), ["9.0", "1000", "123k", "0.4"]);
    }

    #[test]
    fn the_columns_of_a_width_are_these() {
        let titles = |width, missed| {
            fitted(width, missed).iter().map(|(column, _)| column.title()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(titles(60, false), "cpu, thread last p99 max wake/s culprit");
        assert_eq!(titles(80, false), "cpu, thread last mean p99 max wake/s minute culprit");
        assert_eq!(titles(80, true), "cpu, thread last mean p99 max wake/s missed culprit");
        assert_eq!(
            titles(120, true),
            "cpu, thread pri cpu last min mean p99 max T W wake/s missed minute culprit"
        );
    }

    proptest! {
        #[test]
        fn no_number_is_wider_than_its_column(ns: i64, number in 0u64..) {
            prop_assert!(short(Nanos(ns)).len() <= 7, "{}", short(Nanos(ns)));
            prop_assert!(short(Nanos(ns.saturating_abs())).len() <= 6);
            prop_assert!(count(number as f64).len() <= 6, "{}", count(number as f64));
        }

        #[test]
        fn columns_fit_the_screen(width in 0usize..400, missed: bool) {
            let columns = fitted(width, missed);
            let used: usize = columns.iter().map(|(_, width)| width + 1).sum();
            prop_assert!(used <= width);
        }
    }
}
