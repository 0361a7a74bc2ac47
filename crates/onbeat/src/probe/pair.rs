//! Two threads that take turns: the one that measures, and its partner.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering::*};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use crate::measure::prepare::take_place;
use crate::plan::MeasurePlan;
use host::{clock, rt};
use model::error::{Exit, Failure, Result};
use model::units::{Cpu, Nanos};

/// The partner's frames are as small as the loop's.
const STACK: usize = 64 << 10;

/// What the two share.
#[derive(Default)]
pub struct Turns {
    /// When the partner began what is measured.
    began: AtomicI64,
    /// Whether the partner can begin again.
    ready: AtomicBool,
    over: AtomicBool,
    /// The error number of a call that failed, 0 if none did.
    failed: AtomicI32,
}

impl Turns {
    /// Whether the partner is to end.
    pub fn over(&self) -> bool {
        self.over.load(Acquire)
    }

    /// The partner's next turn is its last, and it does nothing then.
    pub fn end(&self) {
        self.over.store(true, Release);
    }

    /// The partner begins now.
    #[inline(always)]
    pub fn begin(&self) {
        self.ready.store(false, Release);
        self.began.store(clock::monotonic().0, Release);
    }

    /// When it began.
    #[inline(always)]
    pub fn began(&self) -> Nanos {
        Nanos(self.began.load(Acquire))
    }

    /// The partner waits for its turn from now on.
    #[inline(always)]
    pub fn set_ready(&self) {
        self.ready.store(true, Release);
    }

    /// Whether it does.
    #[inline(always)]
    pub fn ready(&self) -> bool {
        self.ready.load(Acquire)
    }

    /// A call failed: what was measured until now is what there is.
    pub fn fail(&self, error: &io::Error) {
        self.failed.store(error.raw_os_error().unwrap_or(libc::EIO), Release);
    }

    /// Why no more is measured, if so.
    pub fn failed(&self) -> Option<io::Error> {
        Some(self.failed.load(Acquire)).filter(|&number| number != 0).map(io::Error::from_raw_os_error)
    }
}

/// The partner of a measuring thread; it ends with this value.
pub struct Partner {
    turns: Arc<Turns>,
    pub thread: i32,
    /// Whether both are on one CPU.
    shares: bool,
    handle: Option<JoinHandle<()>>,
    /// Gives it its last turn.
    end: Box<dyn Fn()>,
}

/// How long the end of a partner is waited for that is not ready for its last turn.
const END_POLLS: usize = 1_000;

impl Partner {
    /// Starts it on the second CPU, for a thread on the first, with the plan's policy. `body` is
    /// its life, which ends when it finds after `end` that it is [`Turns::over`].
    pub fn start(
        plan: &MeasurePlan,
        cpus: (Cpu, Cpu),
        turns: &Arc<Turns>,
        body: impl FnOnce(&Turns) + Send + 'static,
        end: impl Fn() + 'static,
    ) -> Result<Partner> {
        let (own, cpu) = cpus;
        let (said, heard) = mpsc::sync_channel(1);
        let (plan, shared) = (plan.clone(), turns.clone());
        let main = move || {
            // What is refused here is refused to the measuring thread, too, which says so.
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
        // One that waits for what a failed call did not give ends with the process.
        if !stuck {
            handle.map(JoinHandle::join);
        }
    }
}
