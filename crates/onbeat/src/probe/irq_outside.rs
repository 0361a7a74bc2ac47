//! `probe irq` of an interrupt whose events come from outside: a thread that reads the kernel's
//! events.
//!
//! It sleeps on onbeat's own CPUs. A response counts in the second in which its events are read.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::gaps::ClockGap;
use super::irq::InterruptNames;
use super::response_paths::{BUFFER_KIB, ResponseTally};
use super::spin::note;
use super::traced::prepare_reader;
use crate::hunt::scope::Scope;
use crate::hunt::source::{EventSource, RecordingLevel};
use crate::measure::block::{BLOCK_LENGTH, CpuBuffers};
use crate::measure::cycle::{EndReason, LoopEnd, LoopParams, end_block};
use crate::measure::starvation::StarvationGuard;
use crate::measure::task::{MeasuringTask, ThreadBody, ThreadEnd};
use host::clock;
use model::run::Responses;
use model::sort::CompactSort;
use model::units::Nanos;
use model::vocabulary::ResponsePart;
use trace::event::Raw;
use trace::interrupt_path::{NotSplit, OutsideEvent, OutsideFollower, WatchedInterrupt};

/// Interval at which the events are read.
const POLL: Nanos = Nanos(50_000_000);

/// Parts of a response whose event is not known.
const PARTS: [ResponsePart; 3] = [ResponsePart::Handler, ResponsePart::Deferred, ResponsePart::Wakeup];

/// Events of the kernel, and the responses up to now.
struct OutsideReader {
    source: Box<dyn EventSource + Send>,
    follower: OutsideFollower,
    /// Events that may not be complete yet.
    events: Vec<Raw>,
    tally: ResponseTally,
}

impl OutsideReader {
    /// Takes the events since the last call; returns the responses.
    fn read(&mut self, start: Nanos) -> Vec<ClockGap> {
        let events = &mut self.events;
        let collected = self.source.collect_each(&mut |event| events.push(event));
        self.events.compact_sort_by_key(|event| event.time);
        let complete = self.events.partition_point(|event| event.time <= collected.complete_until);
        let (tally, mut found) = (&mut self.tally, Vec::new());
        for event in self.events.drain(..complete) {
            self.follower.take(&event, &mut |outcome| match outcome {
                OutsideEvent::Response { began, path } if began >= start => {
                    tally.add(began, &path);
                    let after = path.parts().into_iter().fold(began, |sum, part| sum + part);
                    found.push(ClockGap { before: began, after });
                }
                OutsideEvent::NoThread { began } if began >= start => tally.add_no_thread(1),
                _ => {}
            });
        }
        found
    }
}

/// Observes the events of an interrupt.
pub struct OutsideEvents {
    reader: Mutex<OutsideReader>,
}

impl OutsideEvents {
    /// For the events of a line; `source` records nothing yet.
    pub fn new(source: Box<dyn EventSource + Send>, line: WatchedInterrupt) -> OutsideEvents {
        let (follower, tally) = (OutsideFollower::new(line), ResponseTally::default());
        OutsideEvents { reader: Mutex::new(OutsideReader { source, follower, events: Vec::new(), tally }) }
    }

    /// Results, for an interrupt of that number and handler.
    pub fn responses(&self, names: &InterruptNames) -> Responses {
        let Ok(mut reader) = self.reader.lock() else { return Responses::default() };
        // Their threads did not run by the end.
        let mut tally = reader.tally.clone();
        (0..reader.follower.open()).for_each(|_| tally.add_whole(NotSplit::Missing));
        let mut of = tally.document(names, &PARTS);
        of.events_lost = reader.source.overwritten();
        reader.events.clear();
        of
    }

    fn follow(&self, params: &LoopParams, buffers: &CpuBuffers, stop: &AtomicBool) -> LoopEnd {
        let mut end = LoopEnd { ended: EndReason::Stopped, ..LoopEnd::at(params.start) };
        let Ok(mut reader) = self.reader.lock() else { return end };
        let began = clock::thread_cpu().unwrap_or_default();
        let used = || clock::thread_cpu().unwrap_or_default();
        let mut starvation = StarvationGuard::new(clock::monotonic(), began);
        let mut block_end = params.block_end;
        loop {
            let next = clock::monotonic() + POLL;
            clock::nanosleep_until(next.min(block_end).min(params.end));
            let now = clock::monotonic();
            (end.last, end.used) = (now, used() - began);
            for response in reader.read(params.start) {
                end.scheduled += 1;
                if note(response, end.scheduled, params, buffers) {
                    end.ended = EndReason::Limit;
                    return end;
                }
            }
            if end.scheduled >= params.loops {
                end.ended = EndReason::Loops;
                return end;
            }
            if now >= params.end {
                end.ended = EndReason::Duration;
                return end;
            }
            if now >= block_end {
                let boundary = Nanos(now.0 - (now.0 - block_end.0) % BLOCK_LENGTH.0);
                if end_block(buffers, boundary, used(), began, &mut starvation).starving {
                    end.ended = EndReason::Starving;
                    return end;
                }
                block_end = boundary + BLOCK_LENGTH;
            }
            if stop.load(Relaxed) {
                return end;
            }
        }
    }
}

impl ThreadBody for OutsideEvents {
    fn run(&self, task: MeasuringTask) -> ThreadEnd {
        let armed = match self.reader.lock() {
            Ok(mut reader) => {
                reader.source.resize(BUFFER_KIB);
                reader.source.arm(RecordingLevel::Interrupts, &Scope::default())
            }
            Err(_) => Ok(()),
        };
        let found = armed.and_then(|()| prepare_reader(task));
        task.count(found, |turn, buffers| self.follow(&turn.params, buffers, &task.shared.stop))
    }
}
