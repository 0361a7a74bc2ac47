//! Maximum over time: the largest latency of each column of seconds, a line per CPU.

use maud::{Markup, html};

use super::axis::{Scale, Tick, span_label, time_ticks};
use super::columns;
use super::history::{History, HistoryColumn};
use super::line;
use super::marks::Marks;
use super::svg;
use super::svg::{LegendEntry, PathData, Picture, Plot, Px, Size, legend, text_over};
use super::theme::{LINES, Theme};
use crate::words::{duration, several, span};
use model::sort::CompactSort;
use model::units::{Cpu, Nanos};

/// Time axis that this picture and the heat map share.
pub struct TimeAxis {
    /// Scale from nanoseconds since the start to positions.
    pub scale: Scale,
    pub ticks: Vec<Tick>,
    pub title: String,
}

impl TimeAxis {
    /// Axis of a history across a plot.
    pub fn new(history: &History, plot: &Plot, size: Size) -> TimeAxis {
        let (from, to) = (history.since_start(0), history.since_start(history.columns().max(1)));
        TimeAxis::along(Scale::linear(from, to, plot.left, plot.right), size)
    }

    /// Axis along a scale of nanoseconds since the start.
    pub fn along(scale: Scale, size: Size) -> TimeAxis {
        let (written, ticks) = time_ticks(&scale, size.x_ticks());
        TimeAxis { scale, ticks, title: format!("time since the start ({written})") }
    }
}

/// Largest latency of one CPU, and its time.
struct Worst {
    latency: Nanos,
    time: Nanos,
}

/// Picture; `None` if no block has a wake-up.
pub fn draw(history: &History, marks: Marks, size: Size, theme: &Theme) -> Option<Picture> {
    let cpus: Vec<(Cpu, &[HistoryColumn])> = history.cpus().collect();
    let maxima = || cpus.iter().flat_map(|(_, slots)| *slots).filter_map(|slot| slot.max);
    let top = maxima().map(|max| max.0).max()?.0.max(2);
    let low = maxima().map(|max| max.0.0.max(1)).min()?;
    let of_slots = cpus.iter().flat_map(|(_, slots)| *slots).filter_map(|slot| slot.missed);
    let missed = of_slots.fold(0, u64::saturating_add);
    let plot = Plot::new(size, 30.0, if size == Size::Wide { 260.0 } else { 220.0 });
    let time = TimeAxis::new(history, &plot, size);
    let (low, top_ns) = columns::decades(low, top);
    // Room for the name of the largest value above it.
    let y = Scale::log(low as f64, top_ns as f64, plot.bottom - 8.0, plot.top + 24.0 + marks.room());
    let worst: Vec<Option<Worst>> = cpus.iter().map(|(_, slots)| worst_of(slots)).collect();
    let singles = alone(&worst);
    let below = plot.bottom + 58.0;
    let mut keys = keys(history, &cpus, &worst, &singles, theme);
    keys.extend(marks.key(&plot, theme));
    let (legend, legend_height) = legend(&keys, &plot, below, theme);
    let sketch = Sketch { history, plot, time: &time.scale, y: &y };
    let body = html! {
        (marks.shade(&plot, &time.scale, theme))
        (plot.x_axis(&time.scale, &time.ticks, &time.title, theme))
        (plot.y_axis(&y, &y.ticks(7, span_label), &every(history), theme))
        @if singles.len() < cpus.len() { (sketch.band(&cpus, theme)) }
        @for (colour, &i) in singles.iter().enumerate() {
            path d=(sketch.steps(cpus[i].1).0) fill="none" stroke=(theme.lines[colour % LINES])
                stroke-width="1.4" stroke-linejoin="round" { title { "CPU " (cpus[i].0) } }
        }
        (marks.rings(history, &plot, &time.scale, &y, theme))
        @if missed > 0 { (sketch.missed(&cpus, theme)) }
        @for (colour, &i) in singles.iter().enumerate() {
            @if let Some(worst) = &worst[i] { (sketch.mark(cpus[i].0, worst, theme.lines[colour % LINES], theme)) }
        }
        (sketch.name_worst(&cpus, &worst, &singles, theme))
        (plot.frame(theme))
        (legend)
    };
    let notes = (missed > 0).then(|| {
        format!(
            "Red strokes above the time axis: {} missed in these columns.",
            several(missed, "slot", "slots")
        )
    });
    Some(Picture {
        width: size.width(),
        height: plot.bottom + 58.0 + legend_height,
        body: svg::group(theme, body),
        label: format!(
            "Largest latency over time, {}. The largest is {}.",
            several(cpus.len() as u64, "CPU", "CPUs"),
            span(Nanos(top))
        ),
        notes: notes.into_iter().chain(marks.note()).collect(),
    })
}

fn every(history: &History) -> String {
    match history.width() {
        Nanos::SECOND => "largest latency of each second".into(),
        width => format!("largest latency of each {}", duration(width).replace(".0 s", " s")),
    }
}

fn worst_of(slots: &[HistoryColumn]) -> Option<Worst> {
    let (latency, time) = slots.iter().filter_map(|slot| slot.max).max_by_key(|max| max.0)?;
    Some(Worst { latency, time })
}

/// Indices of the CPUs drawn separately, as in [`line::alone`].
fn alone(worst: &[Option<Worst>]) -> Vec<usize> {
    if worst.len() <= LINES {
        return (0..worst.len()).collect();
    }
    let mut order: Vec<usize> = (0..worst.len()).collect();
    order.compact_sort_by_key(|&i| std::cmp::Reverse(worst[i].as_ref().map(|worst| worst.latency)));
    order.truncate(line::WORST);
    order.sort_unstable();
    order
}

fn keys(
    history: &History,
    cpus: &[(Cpu, &[HistoryColumn])],
    worst: &[Option<Worst>],
    singles: &[usize],
    theme: &Theme,
) -> Vec<LegendEntry> {
    let key = |(colour, &i): (usize, &usize)| {
        let words = match &worst[i] {
            None => format!("CPU {}: no samples", cpus[i].0),
            Some(worst) => {
                format!(
                    "CPU {}: {} at {}",
                    cpus[i].0,
                    span(worst.latency),
                    duration(history.elapsed(worst.time))
                )
            }
        };
        LegendEntry { colour: theme.lines[colour % LINES], area: false, words }
    };
    let mut keys: Vec<LegendEntry> = singles.iter().enumerate().map(key).collect();
    if singles.len() < cpus.len() {
        let words = format!("all {} CPUs, least to most", cpus.len());
        keys.push(LegendEntry { colour: theme.band, area: true, words });
    }
    keys
}

struct Sketch<'a> {
    history: &'a History,
    plot: Plot,
    time: &'a Scale,
    y: &'a Scale,
}

impl Sketch<'_> {
    fn edge(&self, column: usize) -> f64 {
        self.time.at(self.history.since_start(column))
    }

    /// Step per column; a gap if there was no wake-up.
    fn steps(&self, slots: &[HistoryColumn]) -> PathData {
        let mut path = PathData::default();
        let mut drawing = false;
        for (column, slot) in slots.iter().enumerate() {
            match slot.max {
                None => drawing = false,
                Some((max, _)) => {
                    let y = self.y.at(max.0 as f64);
                    if drawing {
                        path.down(y)
                    } else {
                        path.go(self.edge(column), y)
                    }
                    path.across(self.edge(column + 1));
                    drawing = true;
                }
            }
        }
        path
    }

    fn band(&self, cpus: &[(Cpu, &[HistoryColumn])], theme: &Theme) -> Markup {
        let mut path = PathData::default();
        for column in 0..self.history.columns() {
            let maxima =
                || cpus.iter().filter_map(|(_, slots)| slots.get(column)?.max).map(|max| max.0.0 as f64);
            let (low, high) = (maxima().fold(f64::INFINITY, f64::min), maxima().fold(0.0, f64::max));
            if low.is_finite() {
                let (top, left) = (self.y.at(high), self.edge(column));
                path.rect(left, top, self.edge(column + 1) - left + 0.1, (self.y.at(low) - top).max(1.0));
            }
        }
        html! { path d=(path.0) fill=(theme.band) {} }
    }

    fn missed(&self, cpus: &[(Cpu, &[HistoryColumn])], theme: &Theme) -> Markup {
        let bottom = self.plot.bottom;
        let mut path = PathData::default();
        for column in 0..self.history.columns() {
            let slots = cpus.iter().filter_map(|(_, slots)| slots.get(column));
            if slots.filter_map(|slot| slot.missed).any(|missed| missed > 0) {
                let (left, right) = (self.edge(column), self.edge(column + 1));
                path.rect(left, bottom - 7.0, (right - left).max(1.5), 6.5);
            }
        }
        html! { path d=(path.0) fill=(theme.alarm) { title { "slots missed" } } }
    }

    fn mark(&self, cpu: Cpu, worst: &Worst, colour: &str, theme: &Theme) -> Markup {
        let (x, y) = self.point(worst);
        html! {
            circle cx=(Px(x)) cy=(Px(y)) r="4" fill=(colour) stroke=(theme.background) stroke-width="1.2" {
                title { "CPU " (cpu) ": " (span(worst.latency)) " at " (duration(self.history.elapsed(worst.time))) }
            }
        }
    }

    fn point(&self, worst: &Worst) -> (f64, f64) {
        (self.time.at(self.history.elapsed(worst.time).0 as f64), self.y.at(worst.latency.0 as f64))
    }

    /// Name of the largest value of all; the others are in the legend.
    fn name_worst(
        &self,
        cpus: &[(Cpu, &[HistoryColumn])],
        worst: &[Option<Worst>],
        singles: &[usize],
        theme: &Theme,
    ) -> Markup {
        let candidates =
            singles.iter().enumerate().filter_map(|(colour, &i)| Some((colour, i, worst[i].as_ref()?)));
        let Some((colour, i, worst)) = candidates.max_by_key(|(_, _, worst)| worst.latency) else {
            return html! {};
        };
        let (x, y) = self.point(worst);
        let words = format!(
            "CPU {}: {} at {}",
            cpus[i].0,
            span(worst.latency),
            duration(self.history.elapsed(worst.time))
        );
        let half = svg::text_width(&words) / 2.0 + 4.0;
        let x = x.min(self.plot.right - half).max(self.plot.left + half);
        text_over(x, y - 9.0, "middle", theme.lines[colour % LINES], theme, &words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::plot::theme::PAPER;

    fn picture(sample: &fixture::MadeRun) -> Option<String> {
        draw(&sample.history, Marks::default(), Size::Wide, &PAPER).map(|picture| picture.body.into_string())
    }

    #[test]
    fn every_cpu_has_a_line_and_the_worst_its_time() {
        let sample = fixture::spike();
        let text = picture(&sample).unwrap();
        assert_eq!(text.matches("stroke-width=\"1.4\"").count(), 2);
        assert!(text.contains("3.12 ms at 30 min"), "{text}");
        assert!(!text.contains("slots missed"));
    }

    #[test]
    fn missed_slots_are_marked() {
        assert!(picture(&fixture::noisy()).unwrap().contains("slots missed"));
    }

    #[test]
    fn without_blocks_there_is_no_picture() {
        assert!(picture(&fixture::import()).is_none());
    }
}
