//! Parts of the responses of `probe irq`, by the kernel's events.
//!
//! The housekeeping thread reads the events and divides the spans that the measuring threads have
//! handed over. Each span counts once: as divided, or by the reason why it is not.

use std::cmp::Reverse;
use std::sync::Arc;

use super::irq::{AwaitedSpans, InterruptNames};
use crate::hunt::scope::Scope;
use crate::hunt::source::{EventSource, RecordingLevel};
use crate::measure::block::DrainedBlock;
use crate::measure::hunter::{MeasuringThread, OnSpikes, Rounds};
use crate::measure::integrity::entry;
use crate::measure::late::LateWakeup;
use model::error::Result;
use model::run::{Block, PartTime, Responses, Run, SplitResponse};
use model::sort::CompactSort;
use model::text::several;
use model::units::Nanos;
use model::vocabulary::{IntegrityKind, ResponsePart};
use trace::event::{Raw, What};
use trace::interrupt_path::{AwaitedEvent, InterruptPath, NotSplit, WatchedInterrupt, path};

/// Interval at which events are read: a buffer holds a second of a busy CPU.
const POLL: Nanos = Nanos(50_000_000);

/// Size of a CPU's buffer.
pub const BUFFER_KIB: u64 = 4 << 10;

/// Time for which events are held before the last complete reading.
const HELD: Nanos = Nanos(2_000_000_000);

/// Longest responses that `run.json` has of each thread.
const LONGEST: usize = 20;

/// Reads to be made at the end, until the last events are there.
const LAST_READS: usize = 5;

/// Counts and sums of one thread.
#[derive(Clone, Default)]
pub struct ResponseTally {
    counts: Responses,
    sums: [Nanos; 5],
    maxima: [Nanos; 5],
    longest: Vec<SplitResponse>,
}

impl ResponseTally {
    /// Takes a divided response to an event at that time.
    pub fn add(&mut self, began: Nanos, path: &InterruptPath) {
        let [entry_ns, handler_ns, deferred_ns, wakeup_ns, switch_ns] = path.parts();
        let mut response = Nanos(0);
        for (at, part) in path.parts().into_iter().enumerate() {
            self.sums[at] = self.sums[at] + part;
            self.maxima[at] = self.maxima[at].max(part);
            response = response + part;
        }
        self.counts.events += 1;
        self.counts.split += 1;
        self.counts.response_sum_ns = self.counts.response_sum_ns + response;
        if self.longest.len() == LONGEST
            && self.longest.last().is_some_and(|shortest| response <= shortest.response_ns)
        {
            return;
        }
        self.longest.push(SplitResponse {
            mono_ns: began,
            response_ns: response,
            entry_ns,
            handler_ns,
            deferred_ns,
            wakeup_ns,
            switch_ns,
        });
        self.longest.compact_sort_by_key(|of| Reverse(of.response_ns));
        self.longest.truncate(LONGEST);
    }

    /// Takes events that woke no thread.
    pub fn add_no_thread(&mut self, number: u64) {
        self.counts.events += number;
        self.counts.no_thread += number;
    }

    /// Takes a response without parts.
    pub fn add_whole(&mut self, why: NotSplit) {
        self.counts.events += 1;
        match why {
            NotSplit::NoSleep => self.counts.not_slept += 1,
            NotSplit::Missing => self.counts.not_split += 1,
        }
    }

    /// The document; `has` are the parts of the source.
    pub fn document(&self, names: &InterruptNames, has: &[ResponsePart]) -> Responses {
        let part = |(at, part): (usize, &ResponsePart)| {
            has.contains(part).then(|| PartTime {
                part: (*part).into(),
                sum_ns: self.sums[at],
                max_ns: self.maxima[at],
            })
        };
        Responses {
            irq: names.irq.clone(),
            handler: names.handler.clone(),
            parts: ResponsePart::ALL.iter().enumerate().filter_map(part).collect(),
            longest: self.longest.clone(),
            ..self.counts.clone()
        }
    }
}

/// Divides the spans of measuring threads.
pub struct ResponsePaths {
    source: Box<dyn EventSource>,
    line: WatchedInterrupt,
    /// Number of the interrupt and name of its handler, for the document.
    names: InterruptNames,
    spans: Arc<Vec<AwaitedSpans>>,
    /// Events of the interrupts and threads, in order of time.
    events: Vec<Raw>,
    /// Spans whose events are not all there, by thread.
    pending: Vec<(usize, AwaitedEvent)>,
    tallies: Vec<ResponseTally>,
}

impl ResponsePaths {
    /// For the threads of these spans; `source` records nothing yet.
    pub fn new(
        source: Box<dyn EventSource + Send>,
        line: WatchedInterrupt,
        names: InterruptNames,
        spans: Arc<Vec<AwaitedSpans>>,
    ) -> ResponsePaths {
        let tallies = spans.iter().map(|_| ResponseTally::default()).collect();
        ResponsePaths { source, line, names, spans, events: Vec::new(), pending: Vec::new(), tallies }
    }

    /// Reads events, and divides the spans that are complete.
    fn look(&mut self) {
        let threads: Vec<i32> = self.spans.iter().map(AwaitedSpans::thread).collect();
        for (index, spans) in self.spans.iter().enumerate() {
            while let Some((began, ended)) = spans.pop() {
                self.pending.push((index, AwaitedEvent { thread: threads[index], began, ended }));
            }
        }
        let (events, line) = (&mut self.events, &self.line);
        let collected = self.source.collect_each(&mut |event| {
            if concerns(&event, line, &threads) {
                events.push(event);
            }
        });
        self.events.compact_sort_by_key(|event| event.time);
        let complete = collected.complete_until;
        let (events, line, tallies) = (&self.events, &self.line, &mut self.tallies);
        self.pending.retain(|(index, of)| {
            if of.ended > complete {
                return true;
            }
            match path(events, line, of) {
                Ok(path) => tallies[*index].add(of.began, &path),
                Err(why) => tallies[*index].add_whole(why),
            }
            false
        });
        let first = self.pending.iter().map(|(_, of)| of.began).min().unwrap_or(complete).min(complete);
        let old = self.events.partition_point(|event| event.time < first - HELD);
        self.events.drain(..old);
    }

    fn document(&self, run: &mut Run) {
        let lost = self.source.overwritten();
        for (index, cpu) in run.cpus.iter_mut().enumerate() {
            let (Some(tally), Some(spans)) = (self.tallies.get(index), self.spans.get(index)) else {
                continue;
            };
            let mut of = tally.document(&self.names, ResponsePart::ALL);
            of.unanswered = spans.unanswered();
            of.events += spans.lost();
            of.not_split += spans.lost();
            // The buffers are those of the machine.
            of.events_lost = if index == 0 { lost } else { 0 };
            cpu.responses = Some(of);
        }
    }
}

/// True for the interrupts, and for wake-ups and switches of the threads.
fn concerns(event: &Raw, line: &WatchedInterrupt, threads: &[i32]) -> bool {
    match &event.what {
        What::Waking { task, .. } => threads.contains(&task.pid),
        What::Switch { prev, next, .. } => threads.contains(&next.pid) || threads.contains(&prev.pid),
        What::IrqExit { irq } => !matches!(line, WatchedInterrupt::Number(wanted) if wanted != irq),
        What::VectorExit { .. } => *line == WatchedInterrupt::Timer,
        _ => line.is_entry(event),
    }
}

impl Rounds for ResponsePaths {
    fn rounds(&self) -> usize {
        0
    }

    fn late_capacity(&self) -> usize {
        0
    }

    fn prepare_round(&mut self, _round: usize, _threads: &[MeasuringThread]) -> Result<u64> {
        Ok(0)
    }

    fn round_done(&mut self, _round: usize, _blocks: &[DrainedBlock], _slowest: Nanos) {}

    fn arm(&mut self, _run: &mut Run) -> Result<Nanos> {
        self.source.resize(BUFFER_KIB);
        self.source.arm(RecordingLevel::Interrupts, &Scope::default())?;
        Ok(Nanos(i64::MAX))
    }
}

impl OnSpikes for ResponsePaths {
    fn poll_interval(&self) -> Nanos {
        POLL
    }

    fn on_spikes(&mut self, _late: &[LateWakeup], _lost: u64) {
        self.look();
    }

    fn second(&mut self, _blocks: &[Block]) {}

    fn fill(&mut self, run: &mut Run, last: bool) {
        if last {
            for _ in 0..LAST_READS {
                self.look();
                if self.pending.is_empty() {
                    break;
                }
            }
            for (index, _) in self.pending.drain(..) {
                self.tallies[index].add_whole(NotSplit::Missing);
            }
        }
        self.document(run);
        let missing: u64 =
            run.cpus.iter().filter_map(|cpu| cpu.responses.as_ref()).map(|of| of.not_split).sum();
        if last && missing > 0 {
            let words = format!(
                "{} not divided: events of the kernel are missing",
                several(missing, "response is", "responses are")
            );
            run.integrity.push(entry(IntegrityKind::Lost, None, false, words));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_all_responses_add_up_and_the_longest_stay() {
        let mut tally = ResponseTally::default();
        for ns in 1..=50 {
            let part = Nanos(ns);
            let path = InterruptPath { entry: part, switch: part, ..InterruptPath::default() };
            tally.add(Nanos(1_000 * ns), &path);
        }
        tally.add_whole(NotSplit::NoSleep);
        tally.add_whole(NotSplit::Missing);
        let names = InterruptNames { irq: "24".into(), handler: "eth0".into() };
        let of = tally.document(&names, ResponsePart::ALL);
        assert_eq!((of.events, of.split, of.not_slept, of.not_split), (52, 50, 1, 1));
        assert_eq!(of.parts.iter().map(|part| part.sum_ns.0).sum::<i64>(), of.response_sum_ns.0);
        assert_eq!((of.longest.len(), of.longest[0].response_ns), (LONGEST, Nanos(100)));
        assert_eq!(of.longest.last().map(|last| last.response_ns), Some(Nanos(62)));
        let part = |part: ResponsePart, of: &Responses| of.parts.iter().any(|own| own.part == part);
        let outside = tally.document(&names, &[ResponsePart::Handler]);
        assert!(part(ResponsePart::Entry, &of) && !part(ResponsePart::Entry, &outside));
    }
}
