//! Histogram of one row.

use model::rows::row_edges;
use model::text::clean;
use model::units::Nanos;

use super::columns::{count, short};
use super::row::LiveRow;

/// Columns before the bar: the lower edge, the number, the share.
const BEFORE: usize = 24;

/// Lines for a row: its values, and a bar for each bin that has samples or lies between such.
pub fn bars(row: &LiveRow, width: usize, height: usize) -> Vec<String> {
    let tally = row.main();
    let of = if row.has_timer() { "T + W" } else { "W" };
    let text = |span: Option<Nanos>| span.map_or_else(|| "-".to_owned(), short);
    let mut lines = vec![
        format!("{}: {} wake-ups, latency {of}", clean(&row.name), tally.n),
        format!(
            "min {}  mean {}  p99 {}  max {}  (T {}, W {})",
            text(tally.min),
            text(tally.mean()),
            text(tally.quantile(990_000)),
            text(row.max()),
            text(row.worst_timer()),
            text(row.worst_wait())
        ),
    ];
    if tally.n == 0 {
        lines.push("no latency is known of this row".into());
        return lines;
    }
    lines.push(String::new());
    let bins = bins(row);
    // If not all fit, the largest latencies are shown.
    let room = height.saturating_sub(lines.len()).max(1);
    let left_out = bins.len().saturating_sub(room);
    let most = bins.iter().map(|(_, n)| *n).max().unwrap_or(1);
    for (edge, n) in &bins[left_out..] {
        let cells = width.saturating_sub(BEFORE + 1);
        let bar = "█".repeat(length(*n, most, cells));
        let share = 100.0 * *n as f64 / tally.n as f64;
        let edge = if edge.0 < 0 { "early".to_owned() } else { format!(">={}", whole(*edge)) };
        lines.push(format!("{edge:>8} {:>6} {share:>6.2}% {bar}", count(*n as f64)).trim_end().to_owned());
    }
    lines
}

/// Length of a bar: logarithmic, so that one sample among millions is seen.
fn length(n: u64, most: u64, cells: usize) -> usize {
    if n == 0 {
        return 0;
    }
    let share = ((n as f64).ln() + 1.0) / ((most as f64).ln() + 1.0);
    ((share * cells as f64).round() as usize).clamp(1, cells.max(1))
}

/// Counts by bins of 1, 2 and 5 per decade, from the first to the last that has samples. A row of
/// the histogram counts where it begins, to within 3 %.
fn bins(row: &LiveRow) -> Vec<(Nanos, u64)> {
    let mut bins: Vec<(Nanos, u64)> = vec![(Nanos(-1), 0), (Nanos(0), 0)];
    bins.extend((0..36).map(|nth| (Nanos([1, 2, 5][nth % 3] * 10i64.pow(nth as u32 / 3)), 0)));
    for (number, n) in row.main().rows.iter() {
        let lower = row_edges(number).0;
        let at = bins.iter().rposition(|(edge, _)| *edge <= lower).unwrap_or(0);
        bins[at].1 += n;
    }
    let first = bins.iter().position(|(_, n)| *n > 0).unwrap_or(0);
    let last = bins.iter().rposition(|(_, n)| *n > 0).map_or(0, |last| last + 1);
    bins[first..last.max(first)].to_vec()
}

fn whole(edge: Nanos) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let (unit, name) = units.into_iter().find(|(unit, _)| edge.0 >= *unit).unwrap_or((1, "ns"));
    format!("{}{name}", edge.0 / unit)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{tally, thread};
    use super::super::{RowKey, RowTick};
    use super::*;
    use model::rows::RowSums;

    fn row(latencies: &[i64]) -> LiveRow {
        let mut row = LiveRow::new(RowKey::Thread(7));
        let tick = RowTick { both: tally(latencies), ..thread(7, "control", 1) };
        row.add(tick, Nanos::SECOND, &mut RowSums::default());
        row
    }

    #[test]
    fn each_bin_has_its_number_and_a_bar() {
        let lines = bars(&row(&[1_500, 1_600, 1_700, 12_000]), 40, 20);
        assert_eq!(lines[0], "control:7: 4 wake-ups, latency T + W");
        assert_eq!(
            lines[3..],
            [
                "   >=1us      3  75.00% ███████████████",
                "   >=2us      0   0.00%",
                "   >=5us      0   0.00%",
                "  >=10us      1  25.00% ███████",
            ]
        );
    }

    #[test]
    fn with_little_room_the_largest_are_shown() {
        let lines = bars(&row(&[-5, 1_500, 12_000_000]), 40, 5);
        assert_eq!((lines.len(), lines[4].trim_start().starts_with(">=10ms")), (5, true), "{lines:?}");
        assert_eq!(bars(&LiveRow::new(RowKey::Thread(7)), 40, 9).len(), 3);
    }
}
