//! Progress line of a long command on a terminal: the share done, and the time left.
//!
//! A process has one terminal, and so one such line. All other output to standard error goes
//! through [`write_other`], which removes the line before; it is redrawn below.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use host::clock;
use model::units::Nanos;
use tokio::task::AbortHandle;

/// Work that is over sooner needs no progress.
const PATIENCE: Nanos = Nanos(2_000_000_000);
const REDRAWN_EVERY: Duration = Duration::from_millis(300);
/// Columns of the bar that fills, at most.
const BAR: usize = 24;
/// Carriage return, then "erase in line" (ECMA-48), which every terminal has.
const EMPTY_LINE: &str = "\r\x1b[K";

static LINE: Mutex<Line> = Mutex::new(Line { begun: Nanos(0), step: None, is_drawn: false });

/// Progress of a command, shown until it is dropped.
pub struct CommandProgress {
    /// The task that draws it; `None` if it is not shown.
    redrawing: Option<AbortHandle>,
}

impl CommandProgress {
    /// Begins to show progress if standard error is a terminal.
    pub fn begin(is_wanted: bool) -> CommandProgress {
        if !is_wanted || !io::stderr().is_terminal() {
            return CommandProgress { redrawing: None };
        }
        *line() = Line { begun: clock::monotonic(), step: None, is_drawn: false };
        // A separate task, as a single step may take long.
        CommandProgress { redrawing: Some(tokio::spawn(redraw()).abort_handle()) }
    }

    /// Begins a step, with its number of items if known.
    pub fn step(&self, doing: &'static str, total: Option<u64>) {
        if self.redrawing.is_some() {
            line().step = Some(Step { doing, done: 0, total, begun: clock::monotonic() });
        }
    }

    /// Counts one item as done.
    pub fn add(&self) {
        if self.redrawing.is_some()
            && let Some(step) = &mut line().step
        {
            step.done += 1;
        }
    }
}

#[cfg(test)]
impl CommandProgress {
    /// Progress that counts as on a terminal, and is never drawn.
    pub fn undrawn() -> CommandProgress {
        *line() = Line { begun: clock::monotonic(), step: None, is_drawn: false };
        CommandProgress { redrawing: Some(tokio::spawn(std::future::pending::<()>()).abort_handle()) }
    }

    /// Current step, with the number of items done and in total.
    pub fn told(&self) -> Option<(&'static str, u64, Option<u64>)> {
        line().step.as_ref().map(|step| (step.doing, step.done, step.total))
    }
}

impl Drop for CommandProgress {
    fn drop(&mut self) {
        let Some(redrawing) = &self.redrawing else { return };
        redrawing.abort();
        let mut line = line();
        // It may be about to draw all the same.
        line.step = None;
        write(line.removal());
    }
}

/// Prints a line to standard error that stays; a failure to write is ignored.
pub fn write_other(text: &str) {
    let mut line = line();
    write(line.removal());
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}

async fn redraw() {
    loop {
        tokio::time::sleep(REDRAWN_EVERY).await;
        draw();
    }
}

fn draw() {
    let columns = host::terminal_size().map_or(80, |(columns, _)| columns);
    let mut line = line();
    if host::in_foreground() {
        write(&line.drawing(clock::monotonic(), columns));
    } else {
        // By now the shell has written over it.
        line.is_drawn = false;
    }
}

/// Another job's terminal is left alone.
fn write(text: &str) {
    if !text.is_empty() && host::in_foreground() {
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

fn line() -> MutexGuard<'static, Line> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The line, and whether it is on the terminal.
struct Line {
    begun: Nanos,
    step: Option<Step>,
    is_drawn: bool,
}

struct Step {
    doing: &'static str,
    done: u64,
    total: Option<u64>,
    begun: Nanos,
}

impl Line {
    /// Output that draws it; empty while the command may be over soon.
    fn drawing(&mut self, now: Nanos, columns: usize) -> String {
        let Some(step) = self.step.as_ref().filter(|_| now - self.begun >= PATIENCE) else {
            return String::new();
        };
        self.is_drawn = true;
        let text = match step.total {
            Some(total) => counted(step.doing, step.done, total, now - step.begun, columns),
            None => step.doing.to_owned(),
        };
        // A wrapped line would be two lines to remove, and a truncated number is wrong.
        let fits = text.chars().count() < columns;
        let text = if fits { text.as_str() } else { text.split(": ").next().unwrap_or_default() };
        EMPTY_LINE.chars().chain(text.chars().take(columns.saturating_sub(1))).collect()
    }

    /// Output that removes it.
    fn removal(&mut self) -> &'static str {
        if std::mem::take(&mut self.is_drawn) { EMPTY_LINE } else { "" }
    }
}

/// Text for the progress of a step after a time.
fn counted(doing: &str, done: u64, total: u64, spent: Nanos, columns: usize) -> String {
    let cells = BAR.min(columns / 5);
    let share = done.min(total) as f64 / total.max(1) as f64;
    let full = (share * cells as f64) as usize;
    let bar = "█".repeat(full) + &"░".repeat(cells - full);
    // With little room, the time left matters most.
    let left = time_left(done, total, spent).map_or_else(String::new, |left| format!("{left} left; "));
    format!("{bar} {left}{doing}: {done} of {total}")
}

/// Estimate by the items done; `None` before the first.
fn time_left(done: u64, total: u64, spent: Nanos) -> Option<String> {
    if done == 0 {
        return None;
    }
    let left = spent.as_secs() / done as f64 * total.saturating_sub(done) as f64;
    let seconds = left.ceil() as i64;
    Some(match seconds {
        ..100 => format!("{seconds} s"),
        _ => Nanos(seconds.saturating_mul(Nanos::SECOND.0)).spoken(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: i64) -> Nanos {
        Nanos(seconds * Nanos::SECOND.0)
    }

    #[test]
    fn time_left_is_by_what_is_done() {
        let left = |done, total, spent| time_left(done, total, seconds(spent));
        assert_eq!(left(0, 9, 7), None);
        assert_eq!(left(1, 4, 5).as_deref(), Some("15 s"));
        assert_eq!(left(4, 4, 5).as_deref(), Some("0 s"));
        assert_eq!(left(3, 4, 4).as_deref(), Some("2 s"), "rounded up");
        assert_eq!(left(1, 26, 5).as_deref(), Some("2 min 5 s"));
        assert_eq!(left(1, 3, 3_600).as_deref(), Some("2 h"));
        assert!(left(1, u64::MAX, 1 << 30).is_some(), "no overflow");
    }

    #[test]
    fn the_bar_fills_with_what_is_done() {
        let text = |done, total, columns| counted("copying runs", done, total, seconds(5), columns);
        assert_eq!(text(1, 4, 40), "██░░░░░░ 15 s left; copying runs: 1 of 4");
        assert_eq!(text(0, 4, 40), "░░░░░░░░ copying runs: 0 of 4");
        assert_eq!(text(4, 4, 40), "████████ 0 s left; copying runs: 4 of 4");
        assert_eq!(text(0, 0, 4), " copying runs: 0 of 0");
        assert!(text(1, 2, 200).starts_with(&("█".repeat(12) + &"░".repeat(12) + " ")));
        // Items added since do not extend the bar.
        assert!(text(5, 4, 40).starts_with("████████ 0 s left"));
    }

    #[test]
    fn it_is_drawn_after_two_seconds_and_removed_once() {
        let step = Step { doing: "copying runs", done: 1, total: Some(2), begun: seconds(10) };
        let mut line = Line { begun: seconds(9), step: Some(step), is_drawn: false };
        assert_eq!(line.drawing(seconds(11) - Nanos(1), 80), "");
        assert_eq!(line.removal(), "", "nothing is there yet");
        let drawn = line.drawing(seconds(11), 80);
        assert_eq!(
            drawn,
            format!("\r\x1b[K{}{} 1 s left; copying runs: 1 of 2", "█".repeat(8), "░".repeat(8))
        );
        assert_eq!(line.drawing(seconds(11), 30), "\r\x1b[K███░░░ 1 s left; copying runs");
        assert_eq!([line.removal(), line.removal()], ["\r\x1b[K", ""]);
        // One column stays free, as a terminal may wrap there.
        assert_eq!(line.drawing(seconds(12), 11), "\r\x1b[K█░ 2 s lef");
        line.step = Some(Step { doing: "copying the database", done: 0, total: None, begun: seconds(12) });
        assert_eq!(line.drawing(seconds(13), 80), "\r\x1b[Kcopying the database");
        line.step = None;
        assert_eq!(line.drawing(seconds(14), 80), "", "the command has no step any more");
        assert_eq!(line.removal(), "\r\x1b[K");
    }
}
