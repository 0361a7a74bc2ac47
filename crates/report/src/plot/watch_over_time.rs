//! T above W over time: the largest of each column, a line per CPU; on top, the times at which
//! onbeat itself measured or loaded.

use maud::{Markup, html};

use super::axis::{Scale, Tick, span_label};
use super::columns::decades;
use super::line;
use super::svg::{self, LegendEntry, PathData, Picture, Plot, Px, Size, legend, text_over};
use super::theme::{LINES, Theme};
use super::wall_ticks::wall_ticks;
use crate::watch::summary::{CpuColumns, PlacedMark, PlacedWorst, WatchSummary};
use crate::words::{duration, several, span};
use model::sort::CompactSort;
use model::units::Nanos;
use model::watch::{WatchMarkKind, WorstWakeup};

/// Number of the worst that are marked, here, in the histogram and in the table.
pub const MARKED: usize = 3;

/// Part of the wake-up, and the source of its values.
#[derive(Clone, Copy)]
struct Part {
    title: &'static str,
    columns: fn(&CpuColumns) -> &[Option<Nanos>],
    of: fn(&WorstWakeup) -> Option<Nanos>,
}

const PARTS: [Part; 2] = [
    Part { title: "T, lateness of timers", columns: |cpu| &cpu.timer, of: |worst| worst.timer_ns },
    Part {
        title: "W, time that threads then waited for their CPU",
        columns: |cpu| &cpu.wakeup,
        of: |worst| worst.wakeup_ns,
    },
];

/// One of the two plots.
struct Panel<'a> {
    plot: Plot,
    time: &'a Scale,
    y: Scale,
    part: Part,
}

/// Picture; none if nothing was recorded.
pub fn draw(of: &WatchSummary, size: Size, theme: &Theme) -> Option<Picture> {
    let coloured_cpus = coloured(of);
    let holds = |part: &Part| of.columns.iter().any(|cpu| (part.columns)(cpu).iter().any(Option::is_some));
    let held: Vec<Part> = PARTS.into_iter().filter(holds).collect();
    if held.is_empty() {
        return None;
    }
    let own: Vec<&PlacedMark> = of.marks.iter().filter(|mark| mark.is_own()).collect();
    let height = if size == Size::Wide { 170.0 } else { 150.0 };
    let strip = if own.is_empty() { 0.0 } else { 16.0 };
    let first = Plot::new(size, 26.0 + strip, height);
    let time = Scale::linear(of.axis.from.0 as f64, of.axis.to.0 as f64, first.left, first.right);
    let panels: Vec<Panel> = held
        .iter()
        .enumerate()
        .map(|(at, part)| {
            let plot = Plot::new(size, first.top + at as f64 * (height + 40.0), height);
            Panel { plot, time: &time, y: scale(of, *part, &plot), part: *part }
        })
        .collect();
    let last = panels.last()?.plot;
    let (title, ticks) = axis(of, &time, size);
    let keys = keys(of, &coloured_cpus, &own, theme);
    let (legend, legend_height) = legend(&keys, &last, last.bottom + 58.0, theme);
    let body = html! {
        (spans(&own, &panels, &time, strip, theme))
        @for (at, panel) in panels.iter().enumerate() {
            @let bottom = at + 1 == panels.len();
            (panel.axes(&ticks, bottom.then_some(title.as_str()), theme))
            (panel.lines(of, &coloured_cpus, theme))
            (events(of, panel, theme))
            (panel.worst(of, &coloured_cpus, theme))
            (panel.plot.frame(theme))
        }
        (legend)
    };
    Some(Picture {
        width: size.width(),
        height: last.bottom + 58.0 + legend_height,
        body: svg::group(theme, body),
        label: label(of),
        notes: notes(of),
    })
}

fn label(of: &WatchSummary) -> String {
    let worst = of
        .worst
        .first()
        .map_or_else(String::new, |worst| format!(" The longest wake-up took {}.", span(worst.total_ns)));
    format!("Largest T and W over time, {}.{worst}", several(of.columns.len() as u64, "CPU", "CPUs"))
}

fn notes(of: &WatchSummary) -> Vec<String> {
    let mut notes = vec![format!(
        "A step is the largest of {}, or of the stored interval, hour or day.",
        duration(column_width(of))
    )];
    if !of.axis.wall {
        notes.push("The clock was not set: time runs from the start of the record.".into());
    }
    if of.marks_dropped > 0 {
        notes.push(format!("{} not drawn.", several(of.marks_dropped, "mark is", "marks are")));
    }
    notes
}

fn column_width(of: &WatchSummary) -> Nanos {
    let columns = of.columns.first().map_or(1, |cpu| cpu.wakeup.len().max(1));
    Nanos((of.axis.to.0 - of.axis.from.0) / columns as i64)
}

/// Title and ticks: dates, or time since the record began.
fn axis(of: &WatchSummary, time: &Scale, size: Size) -> (String, Vec<Tick>) {
    if of.axis.wall {
        let clock = of.clock();
        let ahead = clock.ahead().0 as f64;
        let local = Scale::linear(time.lo() + ahead, time.hi() + ahead, 0.0, 1.0);
        let ticks = wall_ticks(&local, size.x_ticks()).into_iter();
        let ticks = ticks.map(|tick| Tick { value: tick.value - ahead, ..tick }).collect();
        return (format!("date and time, {}", clock.zone()), ticks);
    }
    let since = Scale::linear(0.0, time.hi() - time.lo(), 0.0, 1.0);
    let (written, ticks) = super::axis::time_ticks(&since, size.x_ticks());
    let ticks = ticks.into_iter().map(|tick| Tick { value: tick.value + time.lo(), ..tick }).collect();
    (format!("time since the record began ({written})"), ticks)
}

fn scale(of: &WatchSummary, part: Part, plot: &Plot) -> Scale {
    let values = || of.columns.iter().flat_map(|cpu| (part.columns)(cpu)).flatten().map(|ns| ns.0.max(1));
    let (low, high) = (values().min().unwrap_or(1), values().max().unwrap_or(1));
    let (low, high) = decades(low, high);
    Scale::log(low as f64, high as f64, plot.bottom - 4.0, plot.top + 14.0)
}

/// Indices of the CPUs with a colour, the same in all pictures and in the table: all of few; of
/// many those of the marked wake-ups, then the worst.
pub fn coloured(of: &WatchSummary) -> Vec<usize> {
    let mut order: Vec<usize> = (0..of.columns.len()).collect();
    if order.len() > LINES {
        let marked =
            |cpu: &CpuColumns| of.worst.iter().take(MARKED).any(|worst| worst.wakeup.cpu == Some(cpu.cpu));
        let worst = |cpu: &CpuColumns| cpu.timer.iter().chain(&cpu.wakeup).flatten().max().copied();
        order.compact_sort_by_key(|&at| std::cmp::Reverse((marked(&of.columns[at]), worst(&of.columns[at]))));
        order.truncate(line::WORST);
        order.sort_unstable();
    }
    order
}

fn keys(of: &WatchSummary, coloured_cpus: &[usize], own: &[&PlacedMark], theme: &Theme) -> Vec<LegendEntry> {
    let largest = |values: &[Option<Nanos>]| {
        values.iter().flatten().max().map_or_else(|| "none".to_owned(), |ns| span(*ns))
    };
    let mut keys: Vec<LegendEntry> = coloured_cpus
        .iter()
        .enumerate()
        .map(|(colour, &at)| {
            let cpu = &of.columns[at];
            let words = format!("CPU {}: T {}, W {}", cpu.cpu, largest(&cpu.timer), largest(&cpu.wakeup));
            LegendEntry { colour: theme.lines[colour % LINES], area: false, words }
        })
        .collect();
    if coloured_cpus.len() < of.columns.len() {
        let words = format!("all {} CPUs, least to most", of.columns.len());
        keys.push(LegendEntry { colour: theme.band, area: true, words });
    }
    for (kind, words) in [(WatchMarkKind::Measure, "onbeat measured"), (WatchMarkKind::Load, "onbeat loaded")]
    {
        if own.iter().any(|mark| mark.mark.kind == kind) {
            keys.push(LegendEntry { colour: colour_of(kind, theme), area: true, words: words.into() });
        }
    }
    keys
}

fn colour_of(kind: WatchMarkKind, theme: &Theme) -> &'static str {
    if kind == WatchMarkKind::Load { theme.heat[1] } else { theme.heat[5] }
}

/// Stretches of onbeat's measurements and loads: a bar on top, and a tint down both plots.
fn spans(own: &[&PlacedMark], panels: &[Panel], time: &Scale, strip: f64, theme: &Theme) -> Markup {
    let (Some(first), Some(last)) = (panels.first(), panels.last()) else { return html! {} };
    html! {
        @for (from, to, load, detail) in joined(own) {
            @let kind = if load { WatchMarkKind::Load } else { WatchMarkKind::Measure };
            @let (left, right) = (time.at(from.0 as f64), time.at(to.0 as f64));
            @let (width, colour) = ((right - left).max(2.0), colour_of(kind, theme));
            // In two rows, because a load runs during a measurement.
            @let y = if load { 3.0 + strip / 2.0 } else { 3.0 };
            rect x=(Px(left)) y=(Px(y)) width=(Px(width)) height=(Px(strip / 2.0 - 1.5))
                fill=(colour) {
                title { (kind.name()) " " (crate::words::clean(&detail)) }
            }
            rect x=(Px(left)) y=(Px(first.plot.top)) width=(Px(width))
                height=(Px(last.plot.bottom - first.plot.top)) fill=(colour) fill-opacity="0.10" {}
        }
    }
}

/// Joins overlapping marks of a kind: the tints of separate ones would add up, and look like more
/// work than there was.
fn joined(own: &[&PlacedMark]) -> Vec<(Nanos, Nanos, bool, String)> {
    let mut joined: Vec<(Nanos, Nanos, bool, String)> = Vec::new();
    let mut sorted = own.to_vec();
    sorted.compact_sort_by_key(|mark| mark.from);
    for mark in sorted {
        let load = mark.mark.kind == WatchMarkKind::Load;
        match joined.iter_mut().rev().find(|last| last.2 == load).filter(|last| mark.from <= last.1) {
            Some(last) => {
                last.1 = last.1.max(mark.to);
                if !last.3.contains(&mark.mark.detail) {
                    last.3 = format!("{}, {}", last.3, mark.mark.detail);
                }
            }
            None => joined.push((mark.from, mark.to, load, mark.mark.detail.clone())),
        }
    }
    joined
}

/// Events of the machine: a stroke each, with a tooltip.
fn events(of: &WatchSummary, panel: &Panel, theme: &Theme) -> Markup {
    html! {
        @for mark in of.marks.iter().filter(|mark| !mark.is_own()) {
            @let x = panel.time.at(mark.from.0 as f64);
            path d=(svg::stroke(x, panel.plot.top, panel.plot.bottom)) fill="none" stroke=(theme.muted)
                stroke-width="1" stroke-dasharray="3 3" {
                title { (mark.mark.kind) " " (crate::words::clean(&mark.mark.detail)) }
            }
        }
    }
}

impl Panel<'_> {
    fn axes(&self, ticks: &[Tick], title: Option<&str>, theme: &Theme) -> Markup {
        let unnamed: Vec<Tick> =
            ticks.iter().map(|tick| Tick { value: tick.value, label: String::new() }).collect();
        html! {
            @match title {
                Some(title) => (self.plot.x_axis(self.time, ticks, title, theme)),
                None => (self.plot.x_axis(self.time, &unnamed, "", theme)),
            }
            (self.plot.y_axis(&self.y, &self.y.ticks(5, span_label), self.part.title, theme))
        }
    }

    fn edge(&self, column: usize, columns: usize) -> f64 {
        let share = column as f64 / columns.max(1) as f64;
        self.plot.left + (self.plot.right - self.plot.left) * share
    }

    fn lines(&self, of: &WatchSummary, coloured_cpus: &[usize], theme: &Theme) -> Markup {
        html! {
            @if coloured_cpus.len() < of.columns.len() { path d=(self.band(of).0) fill=(theme.band) {} }
            @for (colour, &at) in coloured_cpus.iter().enumerate() {
                path d=(self.steps((self.part.columns)(&of.columns[at])).0) fill="none"
                    stroke=(theme.lines[colour % LINES]) stroke-width="1.3" stroke-linejoin="round" {
                    title { "CPU " (of.columns[at].cpu) }
                }
            }
        }
    }

    /// Step per column; a gap if there was no wake-up.
    fn steps(&self, values: &[Option<Nanos>]) -> PathData {
        let mut path = PathData::default();
        let mut before = None;
        for (column, value) in values.iter().enumerate() {
            if let Some(ns) = value {
                let y = self.y.at(ns.0 as f64);
                match before {
                    Some(_) => path.down(y),
                    None => path.go(self.edge(column, values.len()), y),
                }
                path.across(self.edge(column + 1, values.len()));
            }
            before = *value;
        }
        path
    }

    fn band(&self, of: &WatchSummary) -> PathData {
        let mut path = PathData::default();
        let columns = of.columns.iter().map(|cpu| (self.part.columns)(cpu).len()).max().unwrap_or(0);
        for column in 0..columns {
            let values = || of.columns.iter().filter_map(|cpu| *(self.part.columns)(cpu).get(column)?);
            if let (Some(low), Some(high)) = (values().min(), values().max()) {
                let (top, left) = (self.y.at(high.0 as f64), self.edge(column, columns));
                let height = (self.y.at(low.0 as f64) - top).max(1.0);
                path.rect(left, top, self.edge(column + 1, columns) - left + 0.1, height);
            }
        }
        path
    }

    /// Worst wake-ups of the table, by their numbers in it.
    fn worst(&self, of: &WatchSummary, coloured_cpus: &[usize], theme: &Theme) -> Markup {
        let mut named: Vec<(f64, f64)> = Vec::new();
        let mut places = Vec::new();
        for (at, worst) in of.worst.iter().take(MARKED).enumerate() {
            let Some(ns) = (self.part.of)(&worst.wakeup) else { continue };
            let (x, y) = (self.time.at(worst.at.0 as f64), self.y.at(ns.0 as f64));
            // Numbers that would overlap are moved up.
            let mut above = y - 7.0;
            while named.iter().any(|place| (place.0 - x).abs() < 9.0 && (place.1 - above).abs() < 12.0) {
                above -= 1.0;
            }
            named.push((x, above));
            places.push((at + 1, span(ns), x, y, above, colour_of_worst(of, worst, coloured_cpus, theme)));
        }
        html! {
            @for (number, words, x, y, above, colour) in places {
                circle cx=(Px(x)) cy=(Px(y)) r="3.6" fill=(colour) stroke=(theme.background)
                    stroke-width="1.2" {
                    title { (number) ": " (words) }
                }
                (text_over(x, above, "middle", colour, theme, &number.to_string()))
            }
        }
    }
}

/// Colour of its CPU's line, the same in all pictures and in the table.
pub fn colour_of_worst(
    of: &WatchSummary,
    worst: &PlacedWorst,
    coloured_cpus: &[usize],
    theme: &Theme,
) -> &'static str {
    let line = coloured_cpus.iter().position(|&at| Some(of.columns[at].cpu) == worst.wakeup.cpu);
    line.map_or(theme.ink, |line| theme.lines[line % LINES])
}
