//! Text of ftrace: `trace`, `trace_pipe`, rtla's copies of it, and the output of
//! `trace-cmd report`.
//!
//! Source: Documentation/trace/ftrace.rst.

mod events;
pub(super) mod line;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use self::line::LineHead;
use super::facts::{TraceClock, TraceFacts};
use super::input::TraceInput;
use super::interned::Interned;
use super::lines::TextLines;
use super::timerlat_text::TimerlatSamples;
use super::{ForeignTrace, StepSink, TraceError, TracePart, TraceStep};
use model::run::Spike;
use model::units::{Cpu, Nanos};
use trace::catalog;
use trace::event::{Event, Raw, What};
use trace::names::Names;

/// Distance of the places of the text that are noted.
const NOTED: u64 = 1 << 20;

/// Time before a requested one in which the last switch of each CPU is searched.
const BEFORE: Nanos = Nanos(500_000_000);

/// Largest step back in time that a reader's delay explains: the kernel merges the CPUs by time.
const BACK: Nanos = Nanos(10_000_000);

/// Number of lines in which an event has to be found.
const HEAD_LINES: usize = 400;

/// Maximum number of frames of a stack.
const MAX_FRAMES: usize = 64;

/// A recognised text.
pub struct FtraceText {
    input: TraceInput,
    names: Interned,
    /// Times with their places in the text.
    places: Vec<(Nanos, u64)>,
    /// Number of lines of each event, by name.
    seen: BTreeMap<String, u64>,
    unread: u64,
    /// Number of events that the heading states.
    announced: Option<u64>,
    /// Number of events in the text.
    events: u64,
    timerlat: TimerlatSamples,
}

/// True for a text that has lines of ftrace, by its first kilobytes.
pub fn recognise(head: &str) -> bool {
    let lines = || head.lines().take(HEAD_LINES);
    let event = |line: &str| LineHead::parse(line).is_some() || LineHead::is_counted(line);
    lines().any(|line| line.starts_with("# tracer:")) || lines().filter(|line| event(line)).count() >= 2
}

/// True for a text whose events all have the count of a clock instead of seconds.
fn is_counted(head: &str) -> bool {
    let lines = || head.lines().take(HEAD_LINES);
    lines().any(LineHead::is_counted) && !lines().any(|line| LineHead::parse(line).is_some())
}

/// Number before the slash of `# entries-in-buffer/entries-written: 7025/9000   #P:2`.
fn announced(head: &str) -> Option<u64> {
    let line = head.lines().take(HEAD_LINES).find(|line| line.starts_with("# entries-in-buffer"))?;
    line.split_once(": ")?.1.split_once('/')?.0.trim().parse().ok()
}

/// Remark on a text with fewer events than its heading states.
fn lacking(events: u64, announced: u64) -> Option<String> {
    let is_less = events > 0 && events < announced;
    is_less.then(|| {
        format!("{events} of the {announced} events in its heading are in the file: it may be truncated")
    })
}

/// True for the layout of the latency tracers, whose lines have other columns.
fn in_latency_format(head: &str) -> bool {
    head.lines().take(HEAD_LINES).any(|line| line.contains("latency trace v"))
}

impl FtraceText {
    /// Opens a text whose head was recognised.
    pub fn open(input: TraceInput, head: &str) -> Result<FtraceText, TraceError> {
        if in_latency_format(head) {
            return Err(TraceError::new(
                "invalid ftrace text: expected the normal layout, found the latency format; save it with \
                 `echo nolatency-format > trace_options`",
            ));
        }
        if is_counted(head) {
            return Err(TraceError::new(
                "invalid ftrace text: expected times in seconds, found another clock; record with `echo mono \
                 > trace_clock`, or `trace-cmd record -C mono`",
            ));
        }
        Ok(FtraceText {
            input,
            names: Interned::default(),
            places: Vec::new(),
            seen: BTreeMap::new(),
            unread: 0,
            announced: announced(head),
            events: 0,
            timerlat: TimerlatSamples::default(),
        })
    }
}

/// Text instead of a stack's event.
const STACK: &str = "<stack trace>";

/// An event that consists of several lines.
#[derive(Default)]
struct Pending {
    event: Option<Raw>,
    /// Head of a stack that follows, with its frames.
    stack: Option<Raw>,
}

impl ForeignTrace for FtraceText {
    fn facts(&self) -> TraceFacts {
        let named = |name: &String| {
            let event = if name == STACK { "kernel_stack" } else { name };
            let wanted = catalog::all().find(|wanted| wanted.event == event);
            wanted.map(|wanted| format!("{}:{event}", wanted.system))
        };
        TraceFacts {
            source: "a text of ftrace".to_owned(),
            clock: TraceClock::Unknown,
            events: self.seen.keys().filter_map(named).collect(),
            unread: self.unread,
            notes: self.announced.and_then(|announced| lacking(self.events, announced)).into_iter().collect(),
            ..TraceFacts::default()
        }
    }

    fn explained(&mut self) -> Vec<Spike> {
        std::mem::take(&mut self.timerlat).spikes()
    }

    fn names(&mut self) -> Names {
        Names::of_table(self.names.table())
    }

    fn each(&mut self, part: TracePart, sink: &mut StepSink) -> Result<(), TraceError> {
        let first = part == TracePart::Wakeups;
        let start = match part {
            TracePart::Wakeups => 0,
            TracePart::From(from) => {
                let at = self.places.partition_point(|place| place.0 < from - BEFORE);
                at.checked_sub(1).map_or(0, |at| self.places[at].1)
            }
        };
        let FtraceText { input, names, places, seen, unread, timerlat, events, .. } = self;
        let mut lines = TextLines::from(input, start);
        let (mut noted, mut last, mut pending) = (0, BTreeMap::<Cpu, Nanos>::new(), Pending::default());
        let (mut ends, mut latest) = (false, Nanos(i64::MIN));
        loop {
            let place = lines.place;
            let Some(line) = lines.next_line()? else { break };
            if let Some(frame) = line.trim_start().strip_prefix("=> ") {
                pending.frame(frame, names);
                continue;
            }
            let Some(head) = LineHead::parse(&line) else {
                if let Some((cpu, count)) = lost(&line) {
                    ends = pending.flush(sink).is_break();
                    let time = last.get(&cpu).copied().unwrap_or_default();
                    ends |= sink(TraceStep::Lost(cpu, time, count)).is_break();
                } else if first && !line.is_empty() && !line.starts_with('#') {
                    *unread += 1;
                }
                if ends {
                    return Ok(());
                }
                continue;
            };
            if first && place >= noted {
                places.push((head.time, place));
                noted = place + NOTED;
            }
            if first && head.time.0.saturating_add(BACK.0) < latest.0 {
                return Err(TraceError::new(format!(
                    "invalid ftrace text: expected lines ordered by time, found {} s after {} s; save the \
                     file `trace` of all CPUs, of one recording",
                    in_seconds(head.time),
                    in_seconds(latest)
                )));
            }
            latest = latest.max(head.time);
            *events += u64::from(first);
            last.insert(head.cpu, head.time);
            let what = match head.event.trim() {
                STACK => Some(What::Stack { frames: Vec::new(), enables: None }),
                event => events::parse(event, head.text, names),
            };
            if first && what.is_some() {
                count(seen, head.event);
            }
            let Some(what) = what else {
                if first {
                    timerlat.line(&head);
                }
                continue;
            };
            let LineHead { time, cpu, pid, context, preempt, .. } = head;
            let event = Event { time, cpu, pid, context, preempt, what };
            if pending.put(event, sink).is_break() {
                return Ok(());
            }
        }
        let _ = pending.flush(sink);
        Ok(())
    }
}

/// Formats a time as in the text.
fn in_seconds(time: Nanos) -> String {
    format!("{}.{:06}", time.0 / 1_000_000_000, time.0 % 1_000_000_000 / 1_000)
}

fn count(seen: &mut BTreeMap<String, u64>, event: &str) {
    match seen.get_mut(event) {
        Some(count) => *count += 1,
        None => {
            seen.insert(event.to_owned(), 1);
        }
    }
}

impl Pending {
    /// Hands out complete events, and keeps one that a stack may follow.
    fn put(&mut self, event: Raw, sink: &mut StepSink) -> ControlFlow<()> {
        if matches!(event.what, What::Stack { .. }) {
            self.flush(sink)?;
            self.stack = Some(event);
            return ControlFlow::Continue(());
        }
        self.flush(sink)?;
        self.event = Some(event);
        ControlFlow::Continue(())
    }

    fn frame(&mut self, frame: &str, names: &mut Interned) {
        let Some(Event { what: What::Stack { frames, .. }, .. }) = &mut self.stack else { return };
        if frames.len() < MAX_FRAMES {
            // Address of the instruction after the call.
            frames.push(names.function(frame) + 1);
        }
    }

    fn flush(&mut self, sink: &mut StepSink) -> ControlFlow<()> {
        for event in [self.event.take(), self.stack.take()].into_iter().flatten() {
            sink(TraceStep::Event(&event))?;
        }
        ControlFlow::Continue(())
    }
}

/// Parses `CPU:1 [LOST 12 EVENTS]`, and the same without a number.
fn lost(line: &str) -> Option<(Cpu, u64)> {
    let (cpu, rest) = line.trim_start().strip_prefix("CPU:")?.split_once(" [LOST ")?;
    let cpu = cpu.trim().parse().ok().filter(|&cpu| cpu < model::units::CPU_LIMIT)?;
    let count = rest.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(1);
    Some((Cpu(cpu), count))
}
