//! Live view on a terminal: for each CPU the worst of the last second and of the run, a histogram
//! of blocks, and the time left.
//!
//! Drawn once a second on standard error by the housekeeping thread, when it receives blocks. The
//! terminal is not queried and no key is read; Ctrl-C ends the run.

use std::io::{self, Write};

use super::Environment;

use crate::measure::sink::{Progress, SpikeProgress, ThreadProgress};
use crate::measure::total::Total;
use crate::plan::MeasurePlan;
use model::sort::CompactSort;
use model::text::{clean, several};
use model::units::Nanos;
use report::palette::{DIM, PLAIN, Palette, Style, YELLOW};

/// Lower edges of the histogram's columns, in us; the first includes all latencies below 2.
const EDGES_US: [i64; 16] =
    [0, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000];

/// Heights of the columns, one more for each power of ten or so; the first is for one sample.
const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Interval in seconds of the lines that are added to another program's output.
const ADDED_EVERY: u64 = 10;

/// Columns up to the histogram of a row.
const NUMBERS: usize = 35;

/// Maximum number of columns of the bar that shows the time.
const BAR: usize = 24;

/// View during a run; dropping it clears it.
pub struct Live {
    title: String,
    color: bool,
    /// Number of lines on the screen, above the cursor.
    drawn: usize,
    /// Seconds up to now, if lines are added to another program's output.
    adding: Option<u64>,
}

impl Live {
    /// A view for a plan, which takes some lines of the terminal.
    pub fn new(plan: &MeasurePlan, environment: &Environment) -> Live {
        let MeasurePlan { policy, priority, interval, wake, .. } = plan;
        Live::draws(format!("{} {priority}, every {interval}, {}", policy.name(), wake.name()), environment)
    }

    /// A view with another title.
    pub fn titled(title: String, environment: &Environment) -> Option<Live> {
        Some(Live::draws(title, environment))
    }

    /// A view that draws over nothing, and adds a line per thread every ten seconds.
    pub fn adding(environment: &Environment) -> Live {
        let color = environment.color(&io::stderr());
        Live { title: String::new(), color, drawn: 0, adding: Some(0) }
    }

    fn draws(title: String, environment: &Environment) -> Live {
        let mut live = Live { title, color: environment.color(&io::stderr()), drawn: 0, adding: None };
        live.draw(&[(format!("{}: getting ready", live.title), PLAIN)]);
        live
    }

    /// Shows the last second.
    pub fn show(&mut self, tick: &Progress) {
        if let Some(seconds) = &mut self.adding {
            *seconds += 1;
            if *seconds % ADDED_EVERY == 0 && host::in_foreground() {
                let lines = tick.threads.iter().map(|thread| format!("onbeat: {}\n", thread_line(thread)));
                let _ = io::stderr().write_all(lines.collect::<String>().as_bytes());
            }
            return;
        }
        let (columns, rows) = host::terminal_size().unwrap_or((80, 24));
        self.draw(&lines(&self.title, tick, columns, rows.saturating_sub(7).max(1)));
    }

    /// Overwrites the earlier lines. Ignores a terminal that is gone or belongs to another job.
    fn draw(&mut self, lines: &[(String, Style)]) {
        let Some((columns, _)) = host::terminal_size() else { return };
        if !host::in_foreground() {
            self.drawn = 0;
            return;
        }
        let screen = compose(self.drawn, lines, columns, Palette(self.color));
        if io::stderr().write_all(screen.as_bytes()).is_ok() {
            self.drawn = lines.len();
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if self.adding.is_none() {
            self.draw(&[]);
        }
    }
}

/// Text of a screen. Cursor moves are ECMA-48's CPL, EL and ED, which every terminal has.
fn compose(drawn: usize, lines: &[(String, Style)], columns: usize, palette: Palette) -> String {
    let mut screen = String::with_capacity(8 << 10);
    if drawn > 0 {
        screen += &format!("\x1b[{drawn}F");
    }
    for (text, style) in lines {
        // A line that wraps would be two lines to move back over.
        let (text, room) = (clean(text), columns.saturating_sub(1));
        let text: String = if text.chars().count() > room && room > 3 {
            text.chars().take(room - 3).chain("...".chars()).collect()
        } else {
            text.chars().take(room).collect()
        };
        screen += &format!("\x1b[K{}\n", palette.paint(*style, &text));
    }
    screen + "\x1b[J"
}

/// Screen for one second, of this width, with rows for at most this number of CPUs.
fn lines(title: &str, tick: &Progress, columns: usize, rows: usize) -> Vec<(String, Style)> {
    let worst = tick.totals.iter().filter_map(worst_of).max();
    if !tick.threads.is_empty() {
        return thread_lines(title, tick, columns, rows);
    }
    let mut lines = vec![(time_line(title, tick, worst, columns), PLAIN)];
    lines.extend(tick.spikes.map(|spikes| (spike_line(spikes), PLAIN)));
    // A part of a histogram would be misleading.
    let heading = heading();
    let fits = columns > heading.chars().count();
    let whole = |line: String| if fits { line } else { numbers(&line) };
    lines.push((whole(heading), DIM));
    let mut order: Vec<usize> = (0..tick.totals.len()).collect();
    if rows < order.len() {
        // If not all fit, those with the worst latencies are shown.
        order.compact_sort_by_key(|&index| std::cmp::Reverse(worst_of(&tick.totals[index])));
        order.truncate(rows);
        order.sort_unstable();
    }
    for &index in &order {
        let total = &tick.totals[index];
        let style = if worst.is_some() && worst_of(total) == worst { YELLOW } else { PLAIN };
        lines.push((whole(row(total, tick)), style));
    }
    if rows < tick.totals.len() {
        let left_out = tick.totals.len() - rows;
        lines.push((
            format!("{}, none worse than those above", several(left_out as u64, "more CPU", "more CPUs")),
            DIM,
        ));
    }
    lines
}

/// Row without its histogram.
fn numbers(line: &str) -> String {
    line.chars().take(NUMBERS).collect::<String>().trim_end().to_owned()
}

/// Screen of a hunt that follows threads: a row for each, or for those with the worst response if
/// not all fit.
fn thread_lines(title: &str, tick: &Progress, columns: usize, rows: usize) -> Vec<(String, Style)> {
    let worst = tick.threads.iter().filter_map(|thread| thread.worst).max();
    let head =
        format!("{:<22} {:>9} {:>9} {:>7} {:>9}  top culprit", "thread", "period", "cycles", "late", "worst");
    let mut lines = vec![(time_line(title, tick, worst, columns), PLAIN)];
    lines.extend(tick.spikes.map(|spikes| (spike_line(spikes), PLAIN)));
    lines.push((head, DIM));
    let mut order: Vec<_> = tick.threads.iter().collect();
    order.compact_sort_by_key(|thread| std::cmp::Reverse(thread.worst));
    for thread in order.iter().take(rows) {
        let late = thread.late.is_some_and(|late| late > 0);
        lines.push((thread_row(thread), if late { YELLOW } else { PLAIN }));
    }
    if rows < order.len() {
        let left_out = several((order.len() - rows) as u64, "more thread", "more threads");
        lines.push((format!("{left_out}, none worse than those above"), DIM));
    }
    lines
}

fn thread_row(thread: &ThreadProgress) -> String {
    let ThreadProgress { name, period, cycles, late, worst, culprit } = thread;
    let text = |span: &Option<Nanos>| span.map_or_else(|| "-".to_owned(), |span| span.to_string());
    let late = late.map_or_else(|| "-".to_owned(), |late| late.to_string());
    let (period, worst) = (text(period), text(worst));
    format!("{name:<22} {period:>9} {cycles:>9} {late:>7} {worst:>9}  {culprit}")
}

/// The values of a row as a separate line.
fn thread_line(thread: &ThreadProgress) -> String {
    let ThreadProgress { name, period, cycles, late, worst, culprit } = thread;
    let every = period.map_or_else(String::new, |period| format!(" every {period}"));
    let late = late.map_or_else(String::new, |late| format!(", {late} late"));
    let worst = worst.map_or_else(String::new, |worst| format!(", worst {worst} ({culprit})"));
    clean(&format!("{name}{every}: {}{late}{worst}", several(*cycles, "cycle", "cycles")))
}

/// Number of spikes up to now, and the largest culprit.
fn spike_line(spikes: &SpikeProgress) -> String {
    let many = several(spikes.count, "spike", "spikes");
    match spikes.top.as_str() {
        "" => many,
        top => format!("{many}; top culprit: {top}"),
    }
}

fn time_line(title: &str, tick: &Progress, worst: Option<Nanos>, columns: usize) -> String {
    let worst = worst.unwrap_or_default();
    let Some(duration) = tick.duration else {
        return format!("{title}; worst {worst}; {} so far, Ctrl-C ends it", words(tick.elapsed));
    };
    // The present second is nearly over when it is shown.
    let left = Nanos((duration.0 - tick.elapsed.0).max(0) + Nanos::SECOND.0 / 2);
    let share = (tick.elapsed.as_secs() / duration.as_secs()).clamp(0.0, 1.0);
    // With little room, the time left and the worst latency come first.
    let cells = BAR.min(columns / 5);
    let full = (share * cells as f64).round() as usize;
    let bar = "█".repeat(full) + &"░".repeat(cells - full);
    format!("{bar} {} left; worst {worst}; {title}", words(left))
}

/// Span in whole seconds, minutes and hours.
fn words(span: Nanos) -> String {
    let seconds = span.0 / Nanos::SECOND.0;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

fn heading() -> String {
    let mut axis = vec![' '; EDGES_US.len() + 4];
    for (name, edge) in [("10us", 10), ("100us", 100), ("1ms", 1_000), ("10ms", 10_000), ("100ms", 100_000)] {
        let column = EDGES_US.iter().position(|&us| us == edge).unwrap_or(0);
        // Only every second label, or they would overlap.
        if matches!(edge, 10 | 1_000 | 100_000) {
            name.chars()
                .enumerate()
                .for_each(|(i, c)| axis[column.min(EDGES_US.len()) + i - usize::from(edge > 10)] = c);
        }
    }
    format!(
        "{:>4} {:>9} {:>9} {:>8}  {}",
        "cpu",
        "last 1 s",
        "worst",
        "missed",
        axis.iter().collect::<String>()
    )
}

fn row(total: &Total, tick: &Progress) -> String {
    let last = tick.blocks.iter().rev().find(|block| block.cpu == total.cpu).and_then(|block| block.max_ns);
    let text = |span: Option<Nanos>| span.map_or_else(|| "-".into(), |span| span.to_string());
    let own = worst_of(total);
    let missed = total.slots_missed().map_or_else(|| "-".into(), |missed| missed.to_string());
    let name = if total.thread == 0 { total.cpu.to_string() } else { format!("t{}", total.thread) };
    format!("{name:>4} {:>9} {:>9} {missed:>8}  {}", text(last), text(own), bars(total))
}

fn worst_of(total: &Total) -> Option<Nanos> {
    total.worst.first().map(|(sample, _)| sample.latency)
}

fn bars(total: &Total) -> String {
    let above: Vec<u64> = EDGES_US.iter().map(|us| total.at_or_above(Nanos(us * 1_000))).chain([0]).collect();
    above.windows(2).map(|pair| HEIGHTS[height(pair[0] - pair[1])]).collect()
}

/// Height of a column: logarithmic, so that one sample among millions is still visible.
fn height(count: u64) -> usize {
    if count == 0 { 0 } else { (1 + count.ilog10() as usize).min(HEIGHTS.len() - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_is_written_over_line_by_line_and_without_colours_if_so_wanted() {
        let lines = [("one".to_owned(), YELLOW), ("a long line".to_owned(), PLAIN)];
        assert_eq!(compose(0, &lines, 8, Palette(false)), "\x1b[Kone\n\x1b[Ka lo...\n\x1b[J");
        let expected = "\x1b[2F\x1b[K\x1b[33mone\x1b[0m\n\x1b[Ka long line\n\x1b[J";
        assert_eq!(compose(2, &lines, 80, Palette(true)), expected);
    }

    #[test]
    fn a_narrow_terminal_shows_the_worst_and_no_part_of_a_histogram() {
        let duration = Some(Nanos(3 * Nanos::SECOND.0));
        let tick = Progress {
            blocks: &[],
            closed: &[],
            totals: &[],
            elapsed: Nanos::SECOND,
            duration,
            threads: &[],
            spikes: None,
        };
        let shown = lines("fifo 80", &tick, 40, 3);
        assert!(shown[0].0.chars().take(36).collect::<String>().contains("worst 0 ns;"), "{}", shown[0].0);
        assert!(shown[1].0.ends_with("missed"), "{}", shown[1].0);
        assert!(lines("fifo 80", &tick, 80, 3)[1].0.contains("100ms"));
    }

    #[test]
    fn spikes_so_far_are_counted_and_the_first_culprit_named() {
        let top = "hog, 5 us".to_owned();
        assert_eq!(spike_line(&SpikeProgress { count: 1, top: String::new() }), "1 spike");
        assert_eq!(spike_line(&SpikeProgress { count: 7, top }), "7 spikes; top culprit: hog, 5 us");
    }

    #[test]
    fn a_single_sample_is_seen() {
        assert_eq!([0, 1, 9, 10, 99, 100, u64::MAX].map(height), [0, 1, 1, 2, 2, 3, 8]);
    }

    #[test]
    fn the_axis_names_its_columns() {
        let heading = heading();
        let start = heading.len() - EDGES_US.len() - 4;
        assert_eq!(&heading[start + 3..start + 7], "10us");
        assert!(heading.contains("1ms") && heading.contains("100ms"));
    }

    #[test]
    fn a_followed_thread_has_a_row_and_a_line() {
        let thread = ThreadProgress {
            name: "ctl:7".to_owned(),
            period: Some(Nanos(1_000_000)),
            cycles: 10,
            late: Some(2),
            worst: Some(Nanos(1_200_000)),
            culprit: "its own 1 ms".to_owned(),
        };
        assert!(thread_row(&thread).starts_with("ctl:7 ") && thread_row(&thread).ends_with("its own 1 ms"));
        let line = thread_line(&thread);
        assert!(line.starts_with("ctl:7 every 1") && line.contains("10 cycles, 2 late, worst 1.2"), "{line}");
        let new = ThreadProgress { period: None, late: None, worst: None, cycles: 0, ..thread };
        assert_eq!(thread_line(&new), "ctl:7: 0 cycles");
    }

    #[test]
    fn time_left_is_in_readable_units() {
        let said = |seconds: i64| words(Nanos(seconds * 1_000_000_000));
        assert_eq!([said(9), said(61), said(7_260)], ["9 s", "1 min 01 s", "2 h 01 min"]);
    }
}
