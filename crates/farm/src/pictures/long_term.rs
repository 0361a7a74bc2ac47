//! Years of a board: which latencies there were on which day as a heat map, and on it the exact
//! maxima as dots, which are seen however few they are.

use std::collections::BTreeMap;

use maud::html;
use model::units::Nanos;
use report::plot::axis::{Scale, span_label};
use report::plot::columns::decades;
use report::plot::heatmap::Shades;
use report::plot::svg::{self, PathData, Picture, Plot, Size};
use report::plot::theme::{HEATS, Theme};
use report::plot::wall_ticks::wall_ticks;
use report::words::{several, us};

use super::cells::{cells, early_note, edges};
use crate::changes::{InvalidRun, invalid_within};
use crate::records::{SeriesKey, Tier, TierRow};

/// Minimum width of dots and columns, so that one day in many years is visible.
const LEAST_WIDTH: f64 = 3.0;
/// Height of the mark of a column.
const MARK: f64 = 5.0;

/// Days, hours or five minutes of a board, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LongTerm {
    /// Length of a row.
    pub tier: Tier,
    /// First second that is shown.
    pub from: i64,
    /// First second after.
    pub to: i64,
    pub rows: Vec<TierRow>,
    /// Rows in which a run was on that does not count, by their first second: its id.
    pub spoiled: BTreeMap<i64, String>,
}

impl LongTerm {
    /// Marks rows that may have samples of invalid runs; they are of one series.
    pub fn mark(&mut self, key: &SeriesKey, invalid: &[InvalidRun]) {
        let spoiled = |row: &TierRow| {
            let run = invalid_within(invalid, key, self.tier, row.t)?;
            Some((row.t, run.id.clone()))
        };
        self.spoiled = self.rows.iter().filter_map(spoiled).collect();
    }

    fn notes(&self) -> Vec<String> {
        let rows = self.rows.iter().flat_map(|row| &row.cpus).flat_map(|cpu| cpu.rows.iter());
        let marked = (!self.spoiled.is_empty()).then(|| {
            "A mark on the lower edge is an invalid run, whose samples are in the column.".to_owned()
        });
        early_note(rows).into_iter().chain(marked).collect()
    }
}

/// The picture; none without samples.
pub fn draw(of: &LongTerm, size: Size, theme: &Theme) -> Option<Picture> {
    let column = |row: &TierRow| (row.t, cells(row.cpus.iter().flat_map(|cpu| cpu.rows.iter())));
    let columns: Vec<(i64, BTreeMap<usize, u64>)> = of.rows.iter().map(column).collect();
    let all = || columns.iter().flat_map(|(_, cells)| cells);
    let lowest = all().map(|(&cell, _)| edges(cell).0).min()?;
    let exact = of.rows.iter().filter_map(|row| row.max_ns).max().map_or(1, |max| max.0);
    let top = all().map(|(&cell, _)| edges(cell).1).max()?.max(exact);
    let shades = Shades::new(all().map(|(_, &count)| count).max()?);
    let plot = Plot::new(size, 32.0, if size == Size::Wide { 300.0 } else { 240.0 });
    let second = Nanos::SECOND.0 as f64;
    let x = Scale::linear(of.from as f64 * second, of.to as f64 * second, plot.left, plot.right);
    let (floor, ceiling) = decades(lowest, top);
    let y = Scale::log(floor as f64, ceiling as f64, plot.bottom, plot.top);
    let mut paths: Vec<PathData> = (0..HEATS).map(|_| PathData::default()).collect();
    for (t, cells) in &columns {
        let (left, width) = place(of.tier, *t, &x, &plot);
        // Neighbours of one shade form one rectangle.
        let mut runs: Vec<(usize, i64, i64)> = Vec::new();
        for (&cell, &count) in cells {
            let ((lower, upper), shade) = (edges(cell), shades.of(count));
            match runs.last_mut().filter(|run| (run.0, run.2) == (shade, lower)) {
                Some(run) => run.2 = upper,
                None => runs.push((shade, lower, upper)),
            }
        }
        for (shade, lower, upper) in runs {
            let (bottom, over) = (y.at(lower.max(1) as f64), y.at(upper as f64));
            // A trifle higher than it is, so that the background does not show through between
            // neighbours.
            paths[shade].rect(left, over - 0.3, width, (bottom - over + 0.6).max(LEAST_WIDTH));
        }
    }
    let mut dots = PathData::default();
    for row in &of.rows {
        let Some(max) = row.max_ns else { continue };
        let (left, width) = place(of.tier, row.t, &x, &plot);
        let (middle, at) = (left + width / 2.0, y.at(max.0 as f64));
        dots.rect(middle - 2.5, at - 2.5, 5.0, 5.0);
    }
    let marks = marks(of, &x, &plot);
    let (key, key_height) = shades.legend(&plot, theme);
    let title = if of.tier == Tier::Day { "day (UTC)" } else { "time (UTC)" };
    let body = html! {
        (plot.x_axis(&x, &wall_ticks(&x, size.x_ticks()), title, theme))
        (plot.y_axis(&y, &y.ticks(6, span_label), "latency, logarithmic", theme))
        @for (shade, path) in paths.iter().enumerate().rev() {
            @if !path.0.is_empty() { path d=(path.0) fill=(theme.heat[shade]) shape-rendering="crispEdges"
                {} }
        }
        @if !marks.0.is_empty() { path d=(marks.0) fill=(theme.alarm) {} }
        path d=(dots.0) fill=(theme.ink) stroke=(theme.background) stroke-width="1" {}
        (plot.frame(theme))
        (key)
    };
    Some(Picture {
        width: size.width(),
        height: plot.bottom + 50.0 + key_height,
        body: svg::group(theme, body),
        label: format!(
            "Latency over {}: how many wake-ups had which latency when, the largest {} us.",
            match of.tier {
                Tier::Day => several(of.rows.len() as u64, "day", "days"),
                Tier::Hour => several(of.rows.len() as u64, "hour", "hours"),
                Tier::Slot => several(5 * of.rows.len() as u64, "minute", "minutes"),
            },
            us(Nanos(exact))
        ),
        notes: of.notes(),
    })
}

/// Marks of the columns that have samples of invalid runs.
fn marks(of: &LongTerm, x: &Scale, plot: &Plot) -> PathData {
    let mut marks = PathData::default();
    for t in of.spoiled.keys() {
        let (left, width) = place(of.tier, *t, x, plot);
        marks.rect(left, plot.bottom - MARK, width, MARK);
    }
    marks
}

/// Left edge and width of a period's column within the plot.
fn place(tier: Tier, t: i64, x: &Scale, plot: &Plot) -> (f64, f64) {
    let second = Nanos::SECOND.0 as f64;
    let (left, right) = (x.at(t as f64 * second), x.at((t + tier.seconds()) as f64 * second));
    let width = (right - left).max(LEAST_WIDTH);
    (left.min(plot.right - width), width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::CpuRows;
    use model::rows::{EARLY_ROW, ROWS, RowCounts, row_edges, row_of};
    use model::units::Cpu;
    use report::plot::theme::PAPER;

    fn days(count: i64, rows: Vec<TierRow>) -> LongTerm {
        LongTerm { tier: Tier::Day, from: 0, to: count * 86_400, rows, ..LongTerm::default() }
    }

    fn day(at: i64, counts: &[(usize, u64)]) -> TierRow {
        let cpus = vec![CpuRows { cpu: Cpu(0), rows: RowCounts::of_rows(counts.iter().copied()) }];
        let max_ns = counts.iter().map(|(row, _)| Nanos(row_edges(*row).0.0.max(0))).max();
        TierRow { t: at * 86_400, n: 1, max_ns, cpus, ..TierRow::default() }
    }

    #[test]
    fn one_sample_in_ten_years_has_its_cell_and_its_dot() {
        let mut rows: Vec<TierRow> =
            (0..3_650).map(|at| day(at, &[(row_of(Nanos(20_000)), 1_000)])).collect();
        rows[1_800] = day(1_800, &[(row_of(Nanos(9_000_000)), 1)]);
        let of = days(3_650, rows);
        for size in [Size::Wide, Size::Narrow] {
            let picture = draw(&of, size, &PAPER).unwrap();
            let text = picture.body.into_string();
            assert!(text.contains(PAPER.heat[0]) && text.contains(PAPER.ink));
            assert!(picture.label.contains("9000.0 us") || picture.label.contains("89"), "{}", picture.label);
        }
    }

    #[test]
    fn a_day_of_a_run_that_does_not_count_is_marked() {
        let mut of = days(9, (0..9).map(|at| day(at, &[(row_of(Nanos(20_000)), 1_000)])).collect());
        let key = SeriesKey { series: "measure".into(), plan: "p".into() };
        let drawn = |of: &LongTerm| {
            let picture = draw(of, Size::Wide, &PAPER).unwrap();
            (picture.body.into_string().contains(PAPER.alarm), picture.notes.join(" "))
        };
        assert_eq!(drawn(&of), (false, String::new()));
        let run = InvalidRun { id: "r".into(), key: key.clone(), started: 86_000, ended: 87_000 };
        of.mark(&SeriesKey { plan: "q".into(), ..key.clone() }, std::slice::from_ref(&run));
        assert!(of.spoiled.is_empty(), "another series has none of it");
        of.mark(&key, &[run]);
        assert_eq!(of.spoiled.keys().copied().collect::<Vec<_>>(), [0, 86_400]);
        let (is_marked, notes) = drawn(&of);
        assert!(is_marked && notes.contains("is an invalid run"), "{notes}");
    }

    #[test]
    fn without_samples_there_is_no_picture_and_the_ends_of_the_scale_are_drawn() {
        assert!(draw(&days(0, Vec::new()), Size::Wide, &PAPER).is_none());
        assert!(draw(&days(1, vec![day(0, &[(EARLY_ROW, 3)])]), Size::Wide, &PAPER).is_none());
        let of = days(1, vec![day(0, &[(EARLY_ROW, 3), (1, 1), (ROWS - 1, 1)])]);
        let picture = draw(&of, Size::Narrow, &PAPER).unwrap();
        assert!(picture.notes[0].contains("3 wake-ups") && !picture.body.into_string().contains("NaN"));
    }
}
