//! The live view on a terminal: per CPU the last second's worst and the run's, a histogram of blocks, time left.
//!
//! Drawn once a second, when the blocks come, by the housekeeping thread; no key is read, Ctrl-C ends the run.

use std::io::{self, Stderr};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::terminal;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Gauge, Paragraph};
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};

use super::Environment;
use crate::measure::sink::Tick;
use crate::measure::total::Total;
use crate::plan::Plan;
use crate::units::Nanos;

/// Lower edges of the histogram's columns, in us; the first column has what lies below the second.
const EDGES_US: [i64; 16] =
    [0, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000];

/// The columns' heights, one more for each power of ten or so; one sample is the first of them.
const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The view, as long as the run is on; dropping it clears it away.
pub struct Live {
    terminal: Option<Terminal<CrosstermBackend<Stderr>>>,
    title: String,
    rows: usize,
    color: bool,
}

impl Live {
    /// Takes some lines of the terminal; shows nothing where it cannot.
    pub fn new(plan: &Plan, environment: &Environment) -> Live {
        let lines = terminal::size().map_or(24, |(_, lines)| usize::from(lines));
        let rows = plan.cpus.len().min(lines.saturating_sub(6).max(1));
        let height = (rows + 3 + usize::from(rows < plan.cpus.len())) as u16;
        let backend = CrosstermBackend::new(io::stderr());
        let options = TerminalOptions { viewport: Viewport::Inline(height) };
        let title = format!(
            "{} {}, every {}, {}",
            plan.policy.name(),
            plan.priority,
            plan.interval,
            plan.wake.name()
        );
        let color = environment.color(&io::stderr());
        let mut live = Live { terminal: Terminal::with_options(backend, options).ok(), title, rows, color };
        live.draw(|frame, _, title| {
            frame.render_widget(Paragraph::new(format!("{title}: the first second is on")), frame.area());
        });
        live
    }

    /// Shows the last second.
    pub fn show(&mut self, tick: &Tick) {
        let color = self.color;
        self.draw(|frame, rows, title| draw(frame, rows, title, tick, color));
    }

    fn draw(&mut self, f: impl FnOnce(&mut Frame, usize, &str)) {
        let (rows, title) = (self.rows, self.title.as_str());
        let drawn =
            self.terminal.as_mut().map(|terminal| terminal.draw(|frame| f(frame, rows, title)).map(drop));
        if let Some(Err(_)) = drawn {
            // The terminal has gone away; measuring goes on.
            self.terminal = None;
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(terminal) = &mut self.terminal {
            let _ = terminal.clear();
            let _ = terminal.show_cursor();
        }
    }
}

fn draw(frame: &mut Frame, rows: usize, title: &str, tick: &Tick, color: bool) {
    let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(frame.area());
    frame.render_widget(gauge(title, tick, color), head);
    let mut lines = vec![Line::styled(heading(), Style::new().add_modifier(Modifier::DIM))];
    let mut order: Vec<usize> = (0..tick.totals.len()).collect();
    if rows < order.len() {
        // Where not all fit, those with the worst are the ones to see.
        order.sort_by_key(|&index| std::cmp::Reverse(worst_of(&tick.totals[index])));
        order.truncate(rows);
        order.sort_unstable();
    }
    let worst = tick.totals.iter().filter_map(worst_of).max();
    lines.extend(order.iter().map(|&index| row(&tick.totals[index], tick, worst, color)));
    if rows < tick.totals.len() {
        lines.push(Line::raw(format!("{} more CPUs, none worse than those above", tick.totals.len() - rows)));
    }
    frame.render_widget(Paragraph::new(lines), body);
}

fn gauge<'a>(title: &str, tick: &Tick, color: bool) -> Gauge<'a> {
    let whole = |span: Nanos| Nanos(span.0 / Nanos::SECOND.0 * Nanos::SECOND.0);
    let worst = tick.totals.iter().filter_map(worst_of).max().unwrap_or_default();
    let (ratio, left) = match tick.duration {
        Some(duration) => {
            let left = Nanos((duration.0 - tick.elapsed.0).max(0) + Nanos::SECOND.0 / 2);
            (
                (tick.elapsed.as_secs() / duration.as_secs()).clamp(0.0, 1.0),
                format!("{} left", words(whole(left))),
            )
        }
        None => (0.0, format!("{} so far, Ctrl-C ends it", words(whole(tick.elapsed)))),
    };
    let style = if color { Style::new().fg(Color::Cyan) } else { Style::new() };
    Gauge::default().ratio(ratio).gauge_style(style).label(format!("{title} · worst {worst} · {left}"))
}

/// A span of whole seconds in the units that people count it in.
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
        // Every second label only, or they would run into each other.
        if matches!(edge, 10 | 1_000 | 100_000) {
            name.chars()
                .enumerate()
                .for_each(|(i, c)| axis[column.min(EDGES_US.len()) + i - usize::from(edge > 10)] = c);
        }
    }
    format!(
        "{:>4} {:>9} {:>9} {:>8}  {}",
        "cpu",
        "last 1s",
        "worst",
        "missed",
        axis.iter().collect::<String>()
    )
}

fn row<'a>(total: &Total, tick: &Tick, worst: Option<Nanos>, color: bool) -> Line<'a> {
    let last = tick.blocks.iter().rev().find(|block| block.cpu == total.cpu).and_then(|block| block.max_ns);
    let text = |span: Option<Nanos>| span.map_or_else(|| "-".into(), |span| span.to_string());
    let own = worst_of(total);
    let style = if color && own.is_some() && own == worst {
        Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD)
    } else {
        Style::new()
    };
    Line::from(vec![
        Span::raw(format!("{:>4} {:>9} ", total.cpu, text(last))),
        Span::styled(format!("{:>9}", text(own)), style),
        Span::raw(format!(" {:>8}  {}", total.missed, bars(total))),
    ])
}

fn worst_of(total: &Total) -> Option<Nanos> {
    total.worst.first().map(|(sample, _)| sample.latency)
}

fn bars(total: &Total) -> String {
    let above: Vec<u64> = EDGES_US.iter().map(|us| total.at_or_above(Nanos(us * 1_000))).chain([0]).collect();
    above.windows(2).map(|pair| HEIGHTS[height(pair[0] - pair[1])]).collect()
}

/// Logarithmic, so that one sample among millions has a block of its own.
fn height(count: u64) -> usize {
    if count == 0 { 0 } else { (1 + count.ilog10() as usize).min(HEIGHTS.len() - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn time_left_is_said_in_people_s_units() {
        let said = |seconds: i64| words(Nanos(seconds * 1_000_000_000));
        assert_eq!([said(9), said(61), said(7_260)], ["9 s", "1 min 01 s", "2 h 01 min"]);
    }
}
