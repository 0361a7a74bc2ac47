//! Traces that other tools recorded: each container's events as those of a hunt.
//!
//! A file is recognised by its contents. Any input yields at worst an error of one line; a trace is
//! read in parts, and no part is larger than some megabytes.

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

/// Reason why a trace cannot be read.
#[derive(Debug)]
pub enum TraceError {
    /// Failure of the file.
    File(io::Error),
    /// Fault of its content: one line, with the expected form and the remedy.
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

    /// Error of a part that is read in order.
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

/// Next step in a trace.
#[derive(Clone, Copy, Debug)]
pub enum TraceStep<'a> {
    Event(&'a Raw),
    /// Number of events of a CPU that were lost before that time.
    Lost(Cpu, Nanos, u64),
}

/// Receiver of a trace's steps, until it breaks.
pub type StepSink<'a> = dyn FnMut(TraceStep<'_>) -> ControlFlow<()> + 'a;

/// Part of a trace that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracePart {
    /// The whole trace, only with the events that show wake-ups.
    Wakeups,
    /// All events from that time on, and before it those since the last switch of each CPU; from
    /// the begin if a container has no index.
    From(Nanos),
}

/// A trace that another tool recorded.
pub trait ForeignTrace {
    /// Facts that it states of itself; its events are known once it was read as a whole.
    fn facts(&self) -> TraceFacts;

    /// Hands out a part of it in the order of time.
    fn each(&mut self, part: TracePart, sink: &mut StepSink) -> Result<(), TraceError>;

    /// True if parts are read without the ones before them.
    fn has_index(&self) -> bool {
        true
    }

    /// Late wake-ups that the tool itself explained; may be called once.
    fn explained(&mut self) -> Vec<Spike> {
        Vec::new()
    }

    /// Names of the addresses in its events; may be called once.
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

/// Number of bytes by which a file is recognised.
const HEAD: usize = 64 << 10;

/// Name of a file that is a trace, or an archive of others, with its remedy.
pub fn name(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    let head = &bytes[..bytes.len().min(HEAD)];
    let is_trace = head.starts_with(trace_dat::MAGIC)
        || perf_data::recognise(head)
        || ftrace_text::recognise(&String::from_utf8_lossy(head));
    if is_trace { Some(("a trace", "onbeat explain reads it")) } else { refused::archive(head) }
}

/// Opens a trace of the format that its contents show.
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
    // After the screens of `rtla timerlat top` it may be far from the begin.
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
