//! Loop of `onbeat top`: keys, seconds of a source, and the screen.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use crate::top::draw::draw;
use crate::top::keys::{KeyReader, PressedKey};
use crate::top::paint::{PER_SECOND, Painter};
use crate::top::state::{TopAction, TopState};
use host::rt::OwnUse;
use host::{ConsoleEvent, ScreenConsole, clock, resident_kib};
use model::error::{Exit, Failure, Result};
use model::units::Nanos;

/// Time in which the rest of a key's sequence follows its first byte on a slow line.
const REST_OF_KEY: Nanos = Nanos(50_000_000);

/// Number of seconds over which the own cost is averaged.
const COST_SECONDS: usize = 10;

/// Source of the seconds.
pub trait TopSource {
    /// Descriptor that can be read when a second has come; `None` if the source is to be asked once
    /// a second.
    fn wake(&self) -> Option<BorrowedFd<'_>>;

    /// Adds the last second; false if the source has ended.
    fn second(&mut self, state: &mut TopState) -> Result<bool>;

    /// Forgets the counts so far.
    fn reset(&mut self);

    /// Stores the counts; returns a line about it.
    fn save(&mut self, state: &TopState) -> Result<String>;

    /// CPU time and sleeps of onbeat's own threads, without those that measure.
    fn spent(&self) -> OwnUse;
}

/// View on a terminal.
pub struct TopView<'a> {
    pub console: &'a ScreenConsole,
    pub source: &'a mut dyn TopSource,
    pub state: &'a mut TopState,
    pub color: bool,
    /// End of the view, if one was given.
    pub until: Option<Nanos>,
}

/// Screens of one size; their memory is reused, as freed memory may be unmapped, which interrupts
/// measured CPUs.
struct Canvas {
    screen: Buffer,
    painter: Painter,
    bytes: Vec<u8>,
}

impl Canvas {
    fn of(console: &ScreenConsole, color: bool) -> Canvas {
        let (columns, rows) = console.size();
        let screen = Buffer::empty(Rect::new(0, 0, columns, rows));
        Canvas { screen, painter: Painter::new(columns, rows, color), bytes: Vec::new() }
    }
}

impl TopView<'_> {
    /// Shows the source until a key, a signal or its end.
    pub fn run(&mut self) -> Result<Exit> {
        let mut canvas = Canvas::of(self.console, self.color);
        let mut keys = KeyReader::default();
        let mut cost = VecDeque::from([(clock::monotonic(), self.source.spent())]);
        let mut due = clock::monotonic() + Nanos::SECOND;
        self.show(&mut canvas, usize::MAX)?;
        loop {
            let asked = self.source.wake().is_none().then_some(due);
            let rest = keys.is_pending().then(|| clock::monotonic() + REST_OF_KEY);
            let until = [asked, rest, self.until].into_iter().flatten().min();
            let event = self.console.wait(until, self.source.wake());
            let mut limit = usize::MAX;
            match event {
                ConsoleEvent::Stop => return Ok(Exit::Interrupted),
                ConsoleEvent::Resized => {
                    canvas = Canvas::of(self.console, self.color);
                    self.write(b"\x1b[0m\x1b[2J")?;
                }
                ConsoleEvent::Input => {
                    let mut bytes = [0u8; 256];
                    let read = self.console.read(&mut bytes).unwrap_or(0);
                    // The terminal is gone.
                    if read == 0 || self.press(keys.take(&bytes[..read])) {
                        return Ok(Exit::Ok);
                    }
                }
                ConsoleEvent::Time if rest.is_some() => {
                    if self.press(keys.flush().into_iter().collect()) {
                        return Ok(Exit::Ok);
                    }
                }
                ConsoleEvent::Time | ConsoleEvent::Ready => {
                    let is_due = event == ConsoleEvent::Ready || clock::monotonic() >= due;
                    if is_due && !self.source.second(self.state)? {
                        return Ok(Exit::Ok);
                    }
                    while due <= clock::monotonic() {
                        due = due + Nanos::SECOND;
                    }
                    self.note_cost(&mut cost);
                    limit = PER_SECOND;
                }
            }
            if self.until.is_some_and(|until| clock::monotonic() >= until) {
                return Ok(Exit::Ok);
            }
            self.show(&mut canvas, limit)?;
        }
    }

    /// Follows keys; true if one ends the view.
    fn press(&mut self, keys: Vec<PressedKey>) -> bool {
        for key in keys {
            match self.state.press(key) {
                Some(TopAction::Quit) => return true,
                Some(TopAction::Reset) => self.source.reset(),
                Some(TopAction::Save) => {
                    self.state.message = match self.source.save(self.state) {
                        Ok(line) => {
                            self.state.saved.push(line);
                            "saved; the folder is printed at the end".into()
                        }
                        Err(failure) => format!("not saved: {}", failure.message),
                    };
                }
                None => {}
            }
        }
        false
    }

    fn note_cost(&mut self, cost: &mut VecDeque<(Nanos, OwnUse)>) {
        let (now, spent) = (clock::monotonic(), self.source.spent());
        cost.push_back((now, spent));
        while cost.len() > COST_SECONDS {
            cost.pop_front();
        }
        if let Some((since, before)) = cost.front() {
            let span = (now - *since).as_secs();
            let of = |more: f64| (span > 0.0).then_some(more / span);
            self.state.cost.cpu = of((spent.cpu - before.cpu).as_secs());
            self.state.cost.wakeups = of(spent.sleeps.saturating_sub(before.sleeps) as f64);
        }
        self.state.cost.resident_kib = resident_kib();
    }

    fn show(&mut self, canvas: &mut Canvas, limit: usize) -> Result<()> {
        draw(self.state, &mut canvas.screen);
        canvas.bytes.clear();
        canvas.painter.paint(&canvas.screen, limit, &mut canvas.bytes);
        self.write(&canvas.bytes)
    }

    fn write(&self, bytes: &[u8]) -> Result<()> {
        self.console.write(bytes).map_err(|error| {
            Failure::of_call("cannot write to the terminal", &error, Exit::Internal, "open a new one")
        })
    }
}
