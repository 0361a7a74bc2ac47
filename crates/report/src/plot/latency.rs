//! Latency plot: number of wake-ups per latency, the count on a logarithmic axis, a step line per
//! CPU, in the look that cyclictest's users know.
//!
//! The y axis ends a little below 1, so that a single sample is visible above the axis.

use maud::{Markup, html};

use super::axis::{Scale, Tick, power_label, span_label};
use super::columns::{Columns, choose};
use super::label::{LabelPlace, place_labels};
use super::latency_words::{OF_CYCLES, OF_WAKEUPS, PlotWords, in_words};
use super::line;
use super::line::PlotLine;
use super::modes;
use super::svg;
use super::svg::{FONT, LegendEntry, PathData, Picture, Plot, Size, legend, text, text_over};
use super::theme::{LINES, Theme};
use crate::words;
use crate::words::{several, span};
use model::sort::CompactSort;
use model::units::Nanos;
use stats::modes::Mode;

/// Lower end of the count axis: below 1, as the axis is logarithmic.
const FLOOR: f64 = 0.45;
/// Number of labels of largest values that fit without hiding the data.
const LABELS: usize = 8;

/// Value with a separate name, in the colour of its line.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyMark {
    pub latency: Nanos,
    pub name: String,
    /// Index of its line.
    pub line: usize,
}

/// Plot of some lines, with the run's latency limit if it had one, and with the modes to be named.
pub fn draw(lines: &[PlotLine], limit: Option<Nanos>, modes: &[Mode], size: Size, theme: &Theme) -> Picture {
    let largest = |(line, of): (usize, &PlotLine)| {
        let name = svg::fit(&of.name, 150.0);
        Some(LatencyMark { latency: of.max?, name: format!("{name}: {}", span(of.max?)), line })
    };
    let marks: Vec<LatencyMark> = lines.iter().enumerate().filter_map(largest).collect();
    draw_marked(lines, &line::alone(lines), &marks, limit, modes, size, theme)
}

/// Plot of cycles: their times, with their deadline.
pub fn draw_cycles(lines: &[PlotLine], deadline: Option<Nanos>, size: Size, theme: &Theme) -> Picture {
    let subject = Subject { limit: deadline, modes: &[], words: &OF_CYCLES };
    compose(lines, &line::alone(lines), &[], &subject, size, theme)
}

struct Subject<'a> {
    limit: Option<Nanos>,
    modes: &'a [Mode],
    words: &'a PlotWords,
}

/// Plot with other marks than each line's largest value, and with `shown`, the lines that are drawn
/// separately, each in the next colour.
pub fn draw_marked(
    lines: &[PlotLine],
    singles: &[usize],
    marks: &[LatencyMark],
    limit: Option<Nanos>,
    modes: &[Mode],
    size: Size,
    theme: &Theme,
) -> Picture {
    compose(lines, singles, marks, &Subject { limit, modes, words: &OF_WAKEUPS }, size, theme)
}

fn compose(
    lines: &[PlotLine],
    singles: &[usize],
    marks: &[LatencyMark],
    subject: &Subject,
    size: Size,
    theme: &Theme,
) -> Picture {
    let &Subject { limit, modes, words } = subject;
    let Some((lo, hi)) = line::extent(lines) else { return nothing(size, theme) };
    let columns = choose(lines, lo, hi.max(limit_within(limit, hi)));
    let counts: Vec<Vec<u64>> = lines.iter().map(|line| columns.count(line)).collect();
    let sketch = Sketch::new(&columns, &counts, modes, size);
    let keys = keys(lines, singles, theme);
    let (legend, legend_height) = legend(&keys, &sketch.plot, sketch.plot.bottom + 58.0, theme);
    let body = html! {
        (sketch.axes(&columns, words.value, line::counted(lines), size, theme))
        @if singles.len() < lines.len() { (sketch.envelope(&counts, theme)) }
        @for (colour, &i) in singles.iter().enumerate() {
            path d=(sketch.steps(&counts[i]).0) fill="none" stroke=(theme.lines[colour % LINES])
                stroke-width="1.6" stroke-linejoin="round" { title { (lines[i].words()) } }
            @let dots = sketch.dots(&counts[i]);
            @if !dots.0.is_empty() {
                path d=(dots.0) fill="none" stroke=(theme.lines[colour % LINES])
                    stroke-width="4.5" stroke-linecap="round" {}
            }
        }
        @if let Some(limit) = limit { (sketch.limit(limit, words.limit, modes::room(modes), theme)) }
        (modes::draw(modes, &sketch.plot, &sketch.x, size, theme))
        (sketch.marks(marks, &counts, singles, size, theme))
        (sketch.plot.frame(theme))
        (legend)
    };
    Picture {
        width: size.width(),
        height: sketch.plot.bottom + 58.0 + legend_height,
        body: svg::group(theme, body),
        label: in_words(lines, words, hi),
        notes: modes::note(modes, line::counted(lines))
            .into_iter()
            .chain(notes(lines, limit, &sketch))
            .collect(),
    }
}

/// A limit far to the right would compress the samples; it is given in words instead.
fn limit_within(limit: Option<Nanos>, hi: i64) -> i64 {
    limit.map_or(0, |limit| if limit.0 / 4 <= hi { limit.0 } else { 0 })
}

fn nothing(size: Size, theme: &Theme) -> Picture {
    let words = "no samples";
    Picture {
        width: size.width(),
        height: 60.0,
        body: svg::group(theme, text(size.width() / 2.0, 34.0, "middle", theme.muted, words)),
        label: words.into(),
        notes: Vec::new(),
    }
}

fn keys(lines: &[PlotLine], singles: &[usize], theme: &Theme) -> Vec<LegendEntry> {
    let line = |(colour, &i): (usize, &usize)| LegendEntry {
        colour: theme.lines[colour % LINES],
        area: false,
        words: lines[i].words(),
    };
    let mut keys: Vec<LegendEntry> = singles.iter().enumerate().map(line).collect();
    if singles.len() < lines.len() {
        let words = format!("all {}, least to most", lines.len());
        keys.push(LegendEntry { colour: theme.band, area: true, words });
    }
    keys
}

fn notes(lines: &[PlotLine], limit: Option<Nanos>, sketch: &Sketch) -> Vec<String> {
    let mut notes = Vec::new();
    let early: u64 = lines.iter().fold(0, |sum, line| sum.saturating_add(line.early));
    if early > 0 {
        notes.push(format!("{} before the time, in the first column.", several(early, "sample", "samples")));
    }
    let beyond: u64 = lines.iter().fold(0, |sum, line| sum.saturating_add(line.overflows));
    if beyond > 0 {
        let what = several(beyond, "sample", "samples");
        let from = lines.iter().filter_map(|line| line.beyond_from).min();
        notes.push(format!("{what} {}: not drawn.", words::beyond(from)));
    }
    if let Some(limit) = limit.filter(|limit| !sketch.x.holds(limit.0 as f64)) {
        notes.push(format!("The limit, {}, lies outside the plot.", span(limit)));
    }
    notes
}

struct Sketch {
    plot: Plot,
    x: Scale,
    y: Scale,
    /// Positions of the columns' edges.
    edges: Vec<f64>,
}

impl Sketch {
    fn new(columns: &Columns, counts: &[Vec<u64>], modes: &[Mode], size: Size) -> Sketch {
        let plot = Plot::new(size, 30.0, if size == Size::Wide { 330.0 } else { 250.0 });
        let (first, last) = (columns.edges[0] as f64, columns.edges[columns.edges.len() - 1] as f64);
        let x = Scale::log(first, last, plot.left, plot.right);
        let most = counts.iter().flatten().copied().max().unwrap_or(1).max(1);
        // Whole decades, so that two plots with similar numbers of samples have the same axis.
        let top = 10f64.powf((most as f64 * 1.05).log10().ceil().max(3.0));
        let y = Scale::log(FLOOR, top, plot.bottom, plot.top + modes::room(modes));
        let edges = columns.edges.iter().map(|&edge| x.at(edge as f64)).collect();
        Sketch { plot, x, y, edges }
    }

    fn axes(&self, columns: &Columns, value: &str, counted: &str, size: Size, theme: &Theme) -> Markup {
        let (ticks, title) = (self.x.ticks(size.x_ticks(), span_label), format!("{value}, logarithmic"));
        let counts: Vec<Tick> =
            self.y.ticks(8, power_label).into_iter().filter(|tick| tick.value >= 0.9).collect();
        let early = (columns.early && size == Size::Wide).then(|| (self.edges[0] + self.edges[1]) / 2.0);
        html! {
            (self.plot.x_axis(&self.x, &ticks, &title, theme))
            (self.plot.y_axis(&self.y, &counts, &format!("{counted} per bin, 50 bins a decade of {value}"), theme))
            @if let Some(x) = early { (text(x, self.plot.bottom + 16.0, "middle", theme.muted, "early")) }
        }
    }

    fn height(&self, count: u64) -> f64 {
        if count == 0 { self.plot.bottom } else { self.y.at(count as f64) }
    }

    /// Dots for single wake-ups without neighbours: as steps they would look like a fence.
    fn dots(&self, counts: &[u64]) -> PathData {
        let mut path = PathData::default();
        for i in (0..counts.len()).filter(|&i| is_alone(counts, i)) {
            path.go((self.edges[i] + self.edges[i + 1]) / 2.0, self.height(1));
            path.0.push_str("h0");
        }
        path
    }

    /// Steps up from the floor and down to it; nothing where there is no sample, and a single
    /// sample is left to the dots.
    fn steps(&self, counts: &[u64]) -> PathData {
        let mut path = PathData::default();
        let mut before = 0;
        for (i, &count) in counts.iter().enumerate() {
            let count = if is_alone(counts, i) { 0 } else { count };
            if count == before {
                continue;
            }
            match before {
                0 => path.go(self.edges[i], self.plot.bottom),
                _ => path.across(self.edges[i]),
            }
            path.down(self.height(count));
            before = count;
        }
        if before > 0 {
            path.across(self.plot.right);
            path.down(self.plot.bottom);
        }
        path
    }

    /// Area between the least and the most of all lines.
    fn envelope(&self, counts: &[Vec<u64>], theme: &Theme) -> Markup {
        let mut path = PathData::default();
        for i in 0..self.edges.len() - 1 {
            let column = || counts.iter().map(|line| line[i]);
            let (least, most) = (column().min().unwrap_or(0), column().max().unwrap_or(0));
            if most > 0 {
                let (top, bottom) = (self.height(most), self.height(least).max(self.height(most) + 1.0));
                path.rect(self.edges[i], top, self.edges[i + 1] - self.edges[i] + 0.1, bottom - top);
            }
        }
        html! { path d=(path.0) fill=(theme.band) {} }
    }

    fn limit(&self, limit: Nanos, name: &str, below: f64, theme: &Theme) -> Markup {
        if !self.x.holds(limit.0 as f64) {
            return html! {};
        }
        let x = self.x.at(limit.0 as f64);
        let path = leader(x, self.plot.top, self.plot.bottom);
        let words = format!("{name} {}", span(limit));
        let anchor = if x - svg::text_width(&words) > self.plot.left { "end" } else { "start" };
        html! {
            path d=(path.0) fill="none" stroke=(theme.alarm) stroke-width="1.4" stroke-dasharray="7 4" {}
            (text_over(if anchor == "end" { x - 5.0 } else { x + 5.0 }, self.plot.top + below + 15.0, anchor, theme.alarm, theme, &words))
        }
    }

    /// Marks of the lines that are drawn, each name next to a leader above it.
    fn marks(
        &self,
        marks: &[LatencyMark],
        counts: &[Vec<u64>],
        singles: &[usize],
        size: Size,
        theme: &Theme,
    ) -> Markup {
        let mut marks: Vec<(f64, String, usize)> = marks
            .iter()
            .filter_map(|mark| {
                let colour = singles.iter().position(|line| *line == mark.line)?;
                Some((self.x.at(mark.latency.0 as f64), mark.name.clone(), colour))
            })
            .collect();
        marks.compact_sort_by(|a, b| a.0.total_cmp(&b.0));
        let fitting = if size == Size::Wide { LABELS } else { 3 };
        let named = marks.split_off(marks.len().saturating_sub(fitting));
        let anchors: Vec<(f64, &str)> = named.iter().map(|mark| (mark.0, mark.1.as_str())).collect();
        let places = place_labels(&anchors, &self.plot, |place| self.is_free(place, counts, singles));
        let y = self.plot.bottom;
        html! {
            @for ((x, words, colour), place) in named.iter().zip(&places) {
                @let colour = theme.lines[colour % LINES];
                path d=(leader(*x, y - 7.0, place.y - FONT + 2.0).0) fill="none" stroke=(colour)
                    stroke-width="1" stroke-dasharray="2 2" {}
                (text_over(place.x, place.y, "end", colour, theme, words))
            }
            @for (x, words, colour) in marks.iter().chain(&named) {
                path d=(pointer(*x, y).0) fill=(theme.lines[colour % LINES]) stroke=(theme.background)
                    stroke-width="0.7" { title { (words) } }
            }
        }
    }

    /// True if nothing is drawn at the place of a label.
    fn is_free(&self, place: &LabelPlace, counts: &[Vec<u64>], singles: &[usize]) -> bool {
        let first = self.edges.partition_point(|&edge| edge <= place.left()).saturating_sub(1);
        let last = self.edges.partition_point(|&edge| edge < place.x + 5.0).min(self.edges.len() - 1);
        let meets = |top: f64, bottom: f64| top < place.bottom() && place.top() < bottom;
        let at = |line: &[u64], i: usize| self.height(line.get(i).copied().unwrap_or(0));
        let line_meets = |line: &Vec<u64>| {
            // The height of a step is the difference to its neighbour.
            (first..last).any(|i| {
                meets(at(line, i).min(at(line, i + 1)) - 2.0, at(line, i).max(at(line, i + 1)) + 2.0)
            })
        };
        if singles.iter().any(|&i| line_meets(&counts[i])) {
            return false;
        }
        let whole = singles.len() == counts.len();
        whole || !(first..last).any(|i| counts.iter().any(|line| at(line, i) < place.bottom()))
    }
}

/// True for a column with one sample whose neighbours have at most one.
fn is_alone(counts: &[u64], i: usize) -> bool {
    let at = |i: Option<usize>| i.and_then(|i| counts.get(i)).copied().unwrap_or(0);
    counts[i] == 1 && at(i.checked_sub(1)) <= 1 && at(Some(i + 1)) <= 1
}

fn leader(x: f64, from: f64, to: f64) -> PathData {
    let mut path = PathData::default();
    path.go(x, from);
    path.down(to);
    path
}

/// Triangle that points down to the axis.
fn pointer(x: f64, y: f64) -> PathData {
    let mut path = PathData::default();
    path.go(x, y);
    path.to(x - 4.5, y - 8.0);
    path.to(x + 4.5, y - 8.0);
    path.0.push('z');
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_one_is_visible_above_the_axis() {
        let columns = Columns::of(1_000, 100_000, false);
        let counts = vec![vec![0, 1, 5_000_000]];
        let sketch = Sketch::new(&columns, &counts, &[], Size::Wide);
        assert!(sketch.plot.bottom - sketch.height(1) >= 8.0);
        assert_eq!(sketch.height(0), sketch.plot.bottom);
    }

    #[test]
    fn single_wake_ups_are_dots_and_no_fence() {
        let columns = Columns::of(1_000, 100_000, false);
        let counts = [0, 5, 9, 1, 0, 1, 0, 1, 1, 0];
        let sketch = Sketch::new(&columns, &[counts.to_vec()], &[], Size::Wide);
        let dots = sketch.dots(&counts).0;
        assert_eq!(dots.matches("h0").count(), 3, "that next to many is a step: {dots}");
        assert_eq!(sketch.steps(&counts).0.matches('M').count(), 1);
    }
}
