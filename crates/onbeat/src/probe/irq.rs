//! `probe irq`: from a hardware event to the thread that waits for it.
//!
//! In each slot the measuring thread waits for an event: a timer of its CPU, the end of a read of a
//! device, or an edge of a GPIO line. A sample is the time from the event, as well as it is known,
//! to the thread's first instruction. The spans are handed over to
//! [`ResponsePaths`](super::response_paths::ResponsePaths), which divides them by the kernel's
//! events.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex, OnceLock};

use crate::measure::late::LateQueue;
use crate::measure::shared::Shared;
use crate::measure::task::{MeasuringTask, ThreadBody, ThreadEnd};
use crate::measure::wake::{Sleep, Wake};
use host::gpio::{GpioInput, GpioOutput};
use host::{DeviceReads, clock, rt};
use model::error::Failure;
use model::units::{Cpu, Nanos};

/// Longest wait for an event after it was caused.
pub const TIME_LIMIT: Nanos = Nanos(1_000_000_000);

/// Requests in sequence without an event after which the run ends.
pub const UNANSWERED: u64 = 10;

/// Spans that wait for the housekeeping thread.
const QUEUED: usize = 8_192;

/// Names of an interrupt in a run.
pub struct InterruptNames {
    /// Number, `timer`, or `""` if it is known by its handler alone.
    pub irq: String,
    pub handler: String,
}

/// Event that a thread waits for.
pub enum Stimulus {
    /// A timer of its CPU.
    Timer,
    Read(DeviceReads),
    Gpio {
        output: GpioOutput,
        input: GpioInput,
    },
}

/// Spans of one thread, for the housekeeping thread.
pub struct AwaitedSpans {
    /// Its number, 0 before it runs.
    thread: AtomicI32,
    queue: LateQueue,
    unanswered: AtomicU64,
}

impl AwaitedSpans {
    fn new() -> AwaitedSpans {
        AwaitedSpans {
            thread: AtomicI32::new(0),
            queue: LateQueue::new(QUEUED),
            unanswered: AtomicU64::new(0),
        }
    }

    /// Number of the thread.
    pub fn thread(&self) -> i32 {
        self.thread.load(Acquire)
    }

    /// Start and end of the oldest span.
    pub fn pop(&self) -> Option<(Nanos, Nanos)> {
        self.queue.pop(Cpu(0)).map(|span| (span.expected, span.actual))
    }

    /// Spans for which there was no room.
    pub fn lost(&self) -> u64 {
        self.queue.lost()
    }

    /// Requests without an event.
    pub fn unanswered(&self) -> u64 {
        self.unanswered.load(Acquire)
    }
}

/// Threads that wait for events.
pub struct Responding {
    stimuli: Vec<Mutex<Option<Stimulus>>>,
    spans: Arc<Vec<AwaitedSpans>>,
    /// Error number of a call that ended the run.
    failed: OnceLock<i32>,
}

impl Responding {
    /// A thread for each stimulus, in the order of the plan.
    pub fn new(stimuli: Vec<Stimulus>) -> Responding {
        let spans = Arc::new(stimuli.iter().map(|_| AwaitedSpans::new()).collect());
        let stimuli = stimuli.into_iter().map(|stimulus| Mutex::new(Some(stimulus))).collect();
        Responding { stimuli, spans, failed: OnceLock::new() }
    }

    /// Spans of each thread.
    pub fn spans(&self) -> Arc<Vec<AwaitedSpans>> {
        Arc::clone(&self.spans)
    }

    /// Error number of a call that ended the run.
    pub fn failed(&self) -> Option<i32> {
        self.failed.get().copied()
    }
}

impl ThreadBody for Responding {
    fn run(&self, task: MeasuringTask) -> ThreadEnd {
        let own = self.stimuli[task.index].lock().map(|mut own| own.take()).unwrap_or_default();
        let Some(stimulus) = own else {
            return task.refuse(Failure::internal("a source of events is missing: report this"));
        };
        self.spans[task.index].thread.store(rt::thread_id(), Release);
        task.run_with_schedule(RespondingThread {
            all: self,
            spans: &self.spans[task.index],
            shared: task.shared,
            stimulus,
            in_row: 0,
            began: Nanos(0),
            ended: Nanos(0),
        })
    }
}

/// One of the threads.
struct RespondingThread<'a> {
    all: &'a Responding,
    spans: &'a AwaitedSpans,
    shared: &'a Shared,
    stimulus: Stimulus,
    /// Requests in sequence without an event.
    in_row: u64,
    began: Nanos,
    ended: Nanos,
}

impl RespondingThread<'_> {
    /// Causes an event and waits for it; false if there was none in time.
    fn respond(&mut self) -> io::Result<bool> {
        self.began = clock::monotonic();
        match &mut self.stimulus {
            Stimulus::Timer => {}
            Stimulus::Read(device) => device.read()?,
            Stimulus::Gpio { output, input } => {
                output.set(true)?;
                let answered = loop {
                    match input.wait(TIME_LIMIT)? {
                        // The edge of an earlier request, which came too late.
                        Some(stamp) if stamp < self.began => {}
                        edge => break edge.is_some(),
                    }
                };
                self.ended = clock::monotonic();
                output.set(false)?;
                return Ok(answered);
            }
        }
        self.ended = clock::monotonic();
        Ok(true)
    }

    #[cold]
    fn end(&self) -> Sleep {
        self.shared.stop.store(true, Relaxed);
        Sleep::Interrupted
    }
}

impl Wake for RespondingThread<'_> {
    const COUNTS_MISSED: bool = false;

    fn sleep_until(&mut self, instant: Nanos) -> Sleep {
        if !clock::nanosleep_until(instant) {
            return Sleep::Interrupted;
        }
        let counts = self.shared.start_at.load(Relaxed) != 0;
        if matches!(self.stimulus, Stimulus::Timer) {
            (self.began, self.ended) = (instant, clock::monotonic());
        } else {
            loop {
                match self.respond() {
                    Ok(true) => break self.in_row = 0,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => return Sleep::Interrupted,
                    Err(error) => {
                        let _ = self.all.failed.set(error.raw_os_error().unwrap_or(libc::EIO));
                        return self.end();
                    }
                    Ok(false) => {
                        self.in_row += 1;
                        self.spans.unanswered.fetch_add(u64::from(counts), AcqRel);
                        if self.in_row >= UNANSWERED || self.shared.stop.load(Relaxed) {
                            return self.end();
                        }
                    }
                }
            }
        }
        if counts {
            self.spans.queue.push(0, self.began, self.ended);
        }
        Sleep::Full
    }

    fn now(&self, _expected: Nanos) -> Nanos {
        self.ended
    }

    fn latency(&self, _expected: Nanos, now: Nanos) -> Nanos {
        now - self.began
    }
}
