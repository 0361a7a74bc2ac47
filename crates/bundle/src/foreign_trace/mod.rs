//! Traces that other tools recorded: each container's events as those of a hunt.
//!
//! A file is recognised by what it says of itself. Whatever bytes come in, an error of one line
//! comes out at worst; a trace is read in parts, and no part is larger than some megabytes.

mod auto_analysis;
pub mod facts;
mod ftrace_text;
mod input;
mod interned;
mod lines;
mod perf_data;
mod refused;
#[cfg(test)]
mod tests;
mod timerlat_text;
mod trace_dat;

use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use self::facts::TraceFacts;
use self::input::TraceInput;
use model::run::Spike;
use model::units::{Cpu, Nanos};
use trace::catalog::EventSpec;
use trace::event::Raw;
use trace::names::Names;

/// The reason for which a trace cannot be read.
#[derive(Debug)]
pub enum TraceError {
    /// The file cannot.
    File(io::Error),
    /// Its content cannot: one line, with what was expected and what to do.
    Content(String),
}

impl TraceError {
    fn new(message: impl Into<String>) -> TraceError {
        TraceError::Content(message.into())
    }

    fn corrupt(found: &str) -> TraceError {
        TraceError::Content(format!(
            "invalid trace: expected what its tool writes, found {found}; record it again"
        ))
    }

    fn cut() -> TraceError {
        TraceError::corrupt("an end within it")
    }

    /// Of a part that is read in order.
    fn of_read(error: io::Error) -> TraceError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => TraceError::cut(),
            _ => TraceError::File(error),
        }
    }
}

impl From<io::Error> for TraceError {
    fn from(error: io::Error) -> TraceError {
        TraceError::File(error)
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::File(error) => write!(f, "{}", model::error::reason(error)),
            TraceError::Content(message) => f.write_str(message),
        }
    }
}

/// The next step in a trace.
#[derive(Clone, Copy, Debug)]
pub enum TraceStep<'a> {
    Event(&'a Raw),
    /// So many events of a CPU were lost before that time.
    Lost(Cpu, Nanos, u64),
}

/// The taker of a trace's steps, until it breaks.
pub type StepSink<'a> = dyn FnMut(TraceStep<'_>) -> ControlFlow<()> + 'a;

/// The part of a trace that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracePart {
    /// All of it, the events that show wake-ups alone.
    Wakeups,
    /// All events from that time on, and before it those since the last switch of each CPU; where
    /// a container has no index, from its begin.
    From(Nanos),
}

/// A trace that another tool recorded.
pub trait ForeignTrace {
    /// The facts that it states of itself; its events are known once it was read as a whole.
    fn facts(&self) -> TraceFacts;

    /// Hands out a part of it in the order of time.
    fn each(&mut self, part: TracePart, sink: &mut StepSink) -> Result<(), TraceError>;

    /// True if parts are read without what is before them.
    fn has_index(&self) -> bool {
        true
    }

    /// Late wake-ups that the tool itself took apart; to be asked once.
    fn explained(&mut self) -> Vec<Spike> {
        Vec::new()
    }

    /// The names of what its events point at; to be asked once.
    fn names(&mut self) -> Names;
}

/// True for an event that is needed to find late wake-ups.
fn shows_wakeups(event: &EventSpec) -> bool {
    matches!(
        event.event,
        "sched_switch"
            | "sched_waking"
            | "sched_wakeup"
            | "hrtimer_start"
            | "hrtimer_expire_entry"
            | "hrtimer_expire_exit"
            | "print"
            | "sys_enter"
    )
}

/// The bytes of a file by which it is recognised.
const HEAD: usize = 64 << 10;

/// Name of a file that is a trace, or an archive of others, and what to do with it.
pub fn name(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    let head = &bytes[..bytes.len().min(HEAD)];
    let is_trace = head.starts_with(trace_dat::MAGIC)
        || perf_data::recognise(head)
        || ftrace_text::recognise(&String::from_utf8_lossy(head));
    if is_trace { Some(("a trace", "onbeat explain reads it")) } else { refused::archive(head) }
}

/// Opens a trace by what it says of itself.
pub fn open(path: &Path) -> Result<Box<dyn ForeignTrace>, TraceError> {
    let input = TraceInput::open(path)?;
    let mut head = vec![0; HEAD];
    let read = input.read_at(0, &mut head)?;
    head.truncate(read);
    if head.starts_with(trace_dat::MAGIC) {
        return Ok(Box::new(trace_dat::TraceDat::open(input)?));
    }
    if perf_data::recognise(&head) {
        return Ok(Box::new(perf_data::PerfData::open(input)?));
    }
    let text = String::from_utf8_lossy(&head);
    // Behind the screens of `rtla timerlat top` it may be far from the begin.
    let behind = text.contains("Timer Latency");
    if auto_analysis::recognise(&text) {
        return Ok(Box::new(auto_analysis::AutoAnalysis::open(&input)?));
    }
    if let Some(Ok(analysis)) = behind.then(|| auto_analysis::AutoAnalysis::open(&input)) {
        return Ok(Box::new(analysis));
    }
    if ftrace_text::recognise(&text) {
        return Ok(Box::new(ftrace_text::FtraceText::open(input, &text)?));
    }
    Err(TraceError::new(refused::refusal(&head, &text)))
}
