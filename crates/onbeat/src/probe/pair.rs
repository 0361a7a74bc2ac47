//! Pair of threads that take turns: the measuring thread and its partner.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering::*};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use crate::measure::prepare::take_place;
use crate::plan::MeasurePlan;
use host::{clock, rt};
use model::error::{Exit, Failure, Result};
use model::units::{Cpu, Nanos};

/// Stack size: the partner's frames are as small as the loop's.
const STACK: usize = 64 << 10;

/// State shared by the two threads.
#[derive(Default)]
pub struct Turns {
    /// Start of the measured span, by the partner.
    began: AtomicI64,
    /// True if the partner can begin again.
    ready: AtomicBool,
    over: AtomicBool,
    /// Error number of a call that failed, 0 if none did.
    failed: AtomicI32,
}

impl Turns {
    /// True if the partner is to end.
    pub fn over(&self) -> bool {
        self.over.load(Acquire)
    }

    /// Makes the partner's next turn its last, in which it does nothing.
    pub fn end(&self) {
        self.over.store(true, Release);
    }

    /// Notes the start of the measured span, on the partner.
    #[inline(always)]
    pub fn begin(&self) {
        self.ready.store(false, Release);
        self.began.store(clock::monotonic().0, Release);
    }

    /// Start of the measured span.
    #[inline(always)]
    pub fn began(&self) -> Nanos {
        Nanos(self.began.load(Acquire))
    }

    /// Notes that the partner waits for its turn from now on.
    #[inline(always)]
    pub fn set_ready(&self) {
        self.ready.store(true, Release);
    }

    /// True if the partner waits for its turn.
    #[inline(always)]
    pub fn ready(&self) -> bool {
        self.ready.load(Acquire)
    }

    /// Notes a failed call: nothing is measured after it.
    pub fn fail(&self, error: &io::Error) {
        self.failed.store(error.raw_os_error().unwrap_or(libc::EIO), Release);
    }

    /// Error that stopped the measurement, if there is one.
    pub fn failed(&self) -> Option<io::Error> {
        Some(self.failed.load(Acquire)).filter(|&number| number != 0).map(io::Error::from_raw_os_error)
    }
}

/// Partner of a measuring thread; dropping it ends the thread.
pub struct Partner {
    turns: Arc<Turns>,
    pub thread: i32,
    /// True if both are on one CPU.
    shares: bool,
    handle: Option<JoinHandle<()>>,
    /// Gives the partner its last turn.
    end: Box<dyn Fn()>,
}

/// Number of polls, 1 ms apart, for the end of a partner that is not ready for its last turn.
const END_POLLS: usize = 1_000;

impl Partner {
    /// Starts it on `cpu`, for a thread on the CPU `own`, with the plan's policy. `body` returns
    /// when it finds after `end` that it is [`Turns::over`].
    pub fn start(
        plan: &MeasurePlan,
        own: Cpu,
        cpu: Cpu,
        turns: &Arc<Turns>,
        body: impl FnOnce(&Turns) + Send + 'static,
        end: impl Fn() + 'static,
    ) -> Result<Partner> {
        let (said, heard) = mpsc::sync_channel(1);
        let (plan, shared) = (plan.clone(), turns.clone());
        let main = move || {
            // A refusal here happens to the measuring thread too, which reports it.
            let placed = take_place(&plan, cpu);
            rt::prefault_stack();
            let ready = placed.is_ok();
            let _ = said.send(placed.map(|_| rt::thread_id()));
            if ready {
                body(&shared);
            }
        };
        let builder = thread::Builder::new().name(format!("partner/{cpu}")).stack_size(STACK);
        let failed = |error: io::Error| {
            Failure::of_call("cannot start a thread", &error, Exit::Internal, "raise its limit (ulimit -u)")
        };
        let handle = builder.spawn(main).map_err(failed)?;
        let thread = heard.recv().map_err(|_| Failure::internal("a thread died: report this"))??;
        Ok(Partner {
            turns: turns.clone(),
            thread,
            shares: own == cpu,
            handle: Some(handle),
            end: Box::new(end),
        })
    }

    /// CPU time that it has taken from the measuring thread's CPU.
    pub fn used(&self) -> Nanos {
        if self.shares { clock::cpu_of_thread(self.thread).unwrap_or_default() } else { Nanos(0) }
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        let handle = self.handle.take();
        let ended = || handle.as_ref().is_none_or(JoinHandle::is_finished);
        // Before it is ready no thread can give it a turn.
        let mut polls = (0..END_POLLS).take_while(|_| !self.turns.ready() && !ended());
        polls.by_ref().for_each(|_| clock::sleep_for(Nanos::MILLI));
        self.turns.end();
        let stuck = !self.turns.ready() && !ended();
        if !ended() {
            (self.end)();
        }
        // A partner that waits for a release that failed ends with the process.
        if !stuck {
            handle.map(JoinHandle::join);
        }
    }
}
