//! Heat map: latencies over time, and their frequency. Time to the right, latency upwards, the
//! count as colour; even a single sample has a colour that contrasts with the background.
//!
//! The eight largest latencies of each second have separate cells. For the others a block records
//! only the two levels around them: that band is one cell, as high as the uncertainty.

use std::collections::BTreeMap;
use std::ops::Range;

use maud::{Markup, html};
use model::sort::CompactSort;

use super::axis::{Scale, span_label};
use super::columns;
use super::history::{Cells, HeatLane, History};
use super::max_over_time::TimeAxis;
use super::svg;
use super::svg::{PathData, Picture, Plot, Px, Size, text};
use super::theme::{HEATS, Theme};
use crate::words::several;

/// Least height of a cell, at which a single sample is visible.
const MIN_HEIGHT: f64 = 3.5;

/// Range of latencies of a cell, and its count.
type Cell = ((i64, i64), u64);

/// Picture; `None` without blocks. `floor` is the least latency of the run, if known: the lowest
/// band has no other end.
pub fn draw(history: &History, floor: Option<i64>, size: Size, theme: &Theme) -> Option<Picture> {
    let lanes: Vec<(&HeatLane, Vec<Vec<Cell>>)> =
        history.lanes().iter().map(|lane| (lane, lane.columns.iter().map(cells).collect())).collect();
    let all = || lanes.iter().flat_map(|(_, columns)| columns).flatten();
    let most = all().map(|cell| cell.1).max()?;
    let top = all().map(|cell| if cell.0.1 == i64::MAX { cell.0.0 } else { cell.0.1 }).max()?;
    let low = all().map(|cell| if cell.0.0 > 0 { cell.0.0 } else { cell.0.1 / 2 }).min()?;
    let low = floor.filter(|&floor| floor > 0).unwrap_or(low).clamp(1, top.max(1));
    let ends = low as f64..top as f64 * 1.25;
    let (from, to) = columns::decades(low, top);
    let shades = Shades::new(most);
    let height = match (size, lanes.len()) {
        (_, 1) => 230.0,
        (Size::Wide, _) => 150.0,
        (Size::Narrow, _) => 130.0,
    };
    let plot_of = |i: usize| Plot::new(size, 32.0 + i as f64 * (height + 34.0), height);
    let last = plot_of(lanes.len() - 1);
    let time = TimeAxis::new(history, &last, size);
    let (key, key_height) = shades.legend(&last, theme);
    let body = html! {
        (last.x_axis(&time.scale, &time.ticks, &time.title, theme))
        @for (i, (lane, columns)) in lanes.iter().enumerate() {
            @let plot = plot_of(i);
            @let y = Scale::log(from as f64, to as f64, plot.bottom, plot.top);
            @let name = lane.cpu.map_or("all CPUs".to_owned(), |cpu| format!("CPU {cpu}"));
            @let name = format!("latency of {name}");
            (plot.y_axis(&y, &y.ticks(5, span_label), &name, theme))
            (paint(history, columns, &shades, &time.scale, &y, &ends, theme))
            (plot.frame(theme))
        }
        (key)
    };
    let unplaced = history.unplaced();
    let notes = (unplaced > 0).then(|| {
        format!("{} not drawn: the blocks have too many levels.", several(unplaced, "sample", "samples"))
    });
    Some(Picture {
        width: size.width(),
        height: last.bottom + 50.0 + key_height,
        body: svg::group(theme, body),
        label: "Heat map: number of samples by latency, over time.".into(),
        notes: notes.into_iter().collect(),
    })
}

/// Cells of a column: bands, and the exact values that are in none of them.
///
/// An exact value in a band with other samples is counted to the band: a lighter cell on it would
/// look like a hole.
fn cells(column: &Cells) -> Vec<Cell> {
    let mut bands: BTreeMap<(i64, i64), u64> = column.bands.iter().collect();
    let mut alone: Vec<Cell> = Vec::new();
    for (row, n) in column.exact.iter() {
        let around = bands.iter_mut().find(|(band, _)| band.0 < row.1 && row.0 < band.1);
        match around {
            Some((_, count)) => *count = count.saturating_add(n),
            None => alone.push((row, n)),
        }
    }
    // Wide cells first, so that narrow ones are on top.
    let mut cells: Vec<Cell> = bands.into_iter().collect();
    cells
        .compact_sort_by_key(|&((lower, upper), _)| std::cmp::Reverse(i128::from(upper) - i128::from(lower)));
    cells.extend(alone);
    cells
}

/// Draws one path per shade; neighbours of the same shade and range become one rectangle. A band
/// that is open to one side ends at the extreme value.
fn paint(
    history: &History,
    columns: &[Vec<Cell>],
    shades: &Shades,
    time: &Scale,
    y: &Scale,
    ends: &Range<f64>,
    theme: &Theme,
) -> Markup {
    let mut paths: Vec<PathData> = (0..HEATS).map(|_| PathData::default()).collect();
    let mut open: BTreeMap<((i64, i64), usize), usize> = BTreeMap::new();
    let mut close = |(band, shade): ((i64, i64), usize), from: usize, to: usize| {
        // Slightly wider, so that the background does not show between neighbours.
        let (left, right) = (time.at(history.since_start(from)), time.at(history.since_start(to)));
        let (top, bottom) = (y.at((band.1 as f64).min(ends.end)), y.at((band.0 as f64).max(ends.start)));
        let missing = (MIN_HEIGHT - (bottom - top)).max(0.0) / 2.0;
        paths[shade].rect(left, top - missing, (right - left + 0.4).max(1.5), bottom - top + 2.0 * missing);
    };
    for (i, column) in columns.iter().enumerate() {
        let now: Vec<((i64, i64), usize)> = column.iter().map(|&(band, n)| (band, shades.of(n))).collect();
        open.retain(|&key, &mut from| {
            let goes_on = now.contains(&key);
            if !goes_on {
                close(key, from, i);
            }
            goes_on
        });
        for key in now {
            open.entry(key).or_insert(i);
        }
    }
    for (key, from) in open {
        close(key, from, columns.len());
    }
    html! {
        // Full cells first: single samples must not be hidden below them.
        @for (shade, path) in paths.iter().enumerate().rev() {
            @if !path.0.is_empty() { path d=(path.0) fill=(theme.heat[shade]) shape-rendering="crispEdges" {} }
        }
    }
}

/// Colours of counts: equal steps of the logarithm.
pub struct Shades {
    /// Largest count of each shade but the last.
    upto: Vec<u64>,
    most: u64,
}

impl Shades {
    /// Shades for counts up to this.
    pub fn new(most: u64) -> Shades {
        let steps = HEATS as f64 - 1.0;
        let mut upto: Vec<u64> = vec![1];
        for i in 1..HEATS - 1 {
            let next = (most as f64).powf(i as f64 / steps) as u64;
            upto.push(next.max(upto[i - 1].saturating_add(1)));
        }
        Shades { upto, most }
    }

    /// Shade of a count that is not zero.
    pub fn of(&self, n: u64) -> usize {
        self.upto.iter().position(|&upto| n <= upto).unwrap_or(HEATS - 1)
    }

    /// Legend of the shades that occur, with their counts, and its height.
    pub fn legend(&self, plot: &Plot, theme: &Theme) -> (Markup, f64) {
        let used = self.of(self.most) + 1;
        let width = (plot.right - plot.left) / HEATS as f64;
        let y = plot.bottom + 52.0;
        let markup = html! {
            (text(plot.left, y, "start", theme.ink, "samples per cell, up to"))
            @for shade in 0..used {
                @let x = plot.left + shade as f64 * width;
                @let count = self.upto.get(shade).map_or(self.most, |&upto| upto.min(self.most));
                rect x=(Px(x)) y=(Px(y + 7.0)) width=(Px(width - 2.0)) height="11" fill=(theme.heat[shade]) {}
                (text(x + width / 2.0 - 1.0, y + 31.0, "middle", theme.muted, &short(count)))
            }
        };
        (markup, 40.0)
    }
}

/// Count in few letters.
fn short(n: u64) -> String {
    match n {
        0..10_000 => n.to_string(),
        10_000..10_000_000 => format!("{}k", n / 1_000),
        10_000_000..10_000_000_000 => format!("{}M", n / 1_000_000),
        _ => format!("{:.0e}", n as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::plot::theme::PAPER;
    use model::units::{Cpu, Nanos};

    #[test]
    fn one_has_its_own_shade_and_the_largest_count_the_last() {
        for most in [1, 2, 7, 1_000, 5_000_000, u64::MAX] {
            let shades = Shades::new(most);
            assert_eq!(shades.of(1), 0);
            assert!(most < 100 || (shades.of(2) > 0 && shades.of(most) == HEATS - 1), "{most}");
        }
    }

    #[test]
    fn a_single_sample_is_a_cell_that_can_be_seen() {
        let mut history = History::new(Nanos(0), Nanos(100_000_000_000), 240);
        for second in 0..100 {
            let mut values = vec![3_000; 50];
            values.extend((second == 40).then_some(3_100_000));
            history.add(&fixture::block_of(Cpu(0), Nanos(second * 1_000_000_000), &values));
        }
        let text = draw(&history, Some(2_000), Size::Wide, &PAPER).unwrap().body.into_string();
        let at = text.find(&format!("fill=\"{}\" shape", PAPER.heat[0])).expect("a path of single samples");
        let path = &text[text[..at].rfind("d=\"M").unwrap() + 4..at];
        let numbers: Vec<f64> =
            path.split(|c: char| !c.is_ascii_digit() && c != '.').filter_map(|n| n.parse().ok()).collect();
        let [x, y, width, height, ..] = numbers[..] else { panic!("{path}") };
        assert_eq!(path.matches('z').count(), 1, "{path}");
        assert!(
            (400.0..420.0).contains(&x) && (56.0..64.0).contains(&y) && width >= 1.5 && height >= MIN_HEIGHT,
            "{path}"
        );
    }

    #[test]
    fn an_exact_value_within_a_band_is_part_of_it() {
        let mut column = Cells::default();
        column.bands.add((0, 1_000), 5);
        column.exact.add((500, 520), 2);
        column.exact.add((7_000, 7_100), 1);
        assert_eq!(cells(&column), [((0, 1_000), 7), ((7_000, 7_100), 1)]);
    }

    #[test]
    fn without_samples_there_is_no_picture() {
        assert!(draw(&History::new(Nanos(0), Nanos(1), 4), None, Size::Wide, &PAPER).is_none());
        let mut history = History::new(Nanos(0), Nanos(1), 4);
        history.add(&fixture::block_of(Cpu(0), Nanos(0), &[]));
        assert!(draw(&history, None, Size::Wide, &PAPER).is_none());
    }
}
