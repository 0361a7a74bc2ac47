//! A program as a check sees it: typed access to what was read and recorded.
//!
//! Each accessor returns early with `unknown` where something was refused or malformed; with `?` a
//! check cannot treat missing data as a pass.

use crate::judgement::Judgement;
use crate::unknown::unknown_from;
use facts::Fact;
use facts::limits::Limits;
use facts::process::counters::{CallCounters, ThreadCounters};
use facts::process::descriptors::Descriptor;
use facts::process::mappings::MemoryMapping;
use facts::process::status::ProcessStatus;
use facts::process::surroundings::Surroundings;
use facts::process::waits::Waits;
use facts::process::{Growth, ProcessFacts, ProgramThread, calls};
use model::units::CpuSet;
use trace::activity::{Activity, ArmedTimer, ThreadActivity, Waker};

/// What was recorded of a program's threads, or why nothing was.
pub type Recorded = Result<Activity, String>;

/// What a check sees.
#[derive(Clone, Copy)]
pub struct ProgramView<'a> {
    pub process: &'a ProcessFacts,
    pub machine: &'a Surroundings,
    pub recorded: &'a Recorded,
}

/// A thread that woke another.
pub struct WokenBy {
    pub comm: String,
    /// Its place on the kernel's scale of priorities, on which less comes first.
    pub rank: i64,
    pub kernel: bool,
    /// Whether it is of the same process.
    pub own: bool,
    pub tid: u32,
    pub times: u64,
}

impl<'a> ProgramView<'a> {
    fn known<T>(&self, file: &str, fact: &'a Fact<T>) -> Result<&'a T, Judgement> {
        fact.known().ok_or_else(|| unknown_from(&format!("/proc/{}/{file}", self.process.pid), fact))
    }

    pub fn mappings(&self) -> Result<&'a [MemoryMapping], Judgement> {
        self.known("smaps", &self.process.mappings).map(Vec::as_slice)
    }

    pub fn status(&self) -> Result<&'a ProcessStatus, Judgement> {
        self.known("status", &self.process.status)
    }

    pub fn limits(&self) -> Result<&'a Limits, Judgement> {
        self.known("limits", &self.process.limits)
    }

    pub fn descriptors(&self) -> Result<&'a [Descriptor], Judgement> {
        self.known("fd", &self.process.descriptors).map(Vec::as_slice)
    }

    pub fn growth(&self) -> Result<&'a Growth, Judgement> {
        self.known("status", &self.process.growth)
    }

    pub fn counted(&self, thread: &'a ProgramThread) -> Result<&'a ThreadCounters, Judgement> {
        self.known(&format!("task/{}/status", thread.tid), &thread.counted)
    }

    pub fn io(&self, thread: &'a ProgramThread) -> Result<&'a CallCounters, Judgement> {
        self.known(&format!("task/{}/io", thread.tid), &thread.calls)
    }

    pub fn waits(&self, thread: &'a ProgramThread) -> Result<&'a Waits, Judgement> {
        self.known(&format!("task/{}/syscall", thread.tid), &thread.waits)
    }

    pub fn allowed(&self, thread: &'a ProgramThread) -> Result<&'a CpuSet, Judgement> {
        self.known(&format!("task/{}/status", thread.tid), &thread.allowed)
    }

    /// What was recorded; unknown where nothing could be.
    pub fn activity(&self) -> Result<&'a Activity, Judgement> {
        self.recorded.as_ref().map_err(|why| Judgement::unknown(why.clone()))
    }

    /// What a thread did while an event was recorded; unknown where the event was not.
    pub fn done(&self, thread: &ProgramThread, event: &str) -> Result<Option<&'a ThreadActivity>, Judgement> {
        let activity = self.activity()?;
        match activity.has_event(event) {
            true => Ok(activity.of(thread.tid)),
            false => Err(Judgement::unknown(format!("this kernel did not let onbeat record {event}"))),
        }
    }

    /// The timers that a thread started.
    pub fn timers(&self, thread: &ProgramThread) -> Result<Vec<(&'a ArmedTimer, u64)>, Judgement> {
        let own = self.done(thread, "timer:hrtimer_start")?;
        Ok(own.into_iter().flat_map(|own| &own.timers).map(|(timer, times)| (timer, *times)).collect())
    }

    /// The system calls that a thread made, by name, with their first two arguments; none where
    /// they were not asked for.
    pub fn calls(&self, thread: &ProgramThread) -> Option<Vec<(&'static str, [u64; 2], u64)>> {
        let activity = self.recorded.as_ref().ok().filter(|activity| activity.has_event(CALLS))?;
        let own = activity.of(thread.tid).into_iter().flat_map(|own| &own.calls);
        Some(
            own.filter_map(|(call, times)| Some((calls::call_name(call.number)?, call.args, *times)))
                .collect(),
        )
    }

    /// The threads that woke a thread; not the interrupts.
    pub fn woken_by(&self, thread: &ProgramThread) -> Result<Vec<WokenBy>, Judgement> {
        let own = self.done(thread, "sched:sched_waking")?;
        let wakers = own.into_iter().flat_map(|own| &own.wakers);
        let one = |(waker, times): (&Waker, &u64)| {
            let Waker::Thread(tid) = waker else { return None };
            let tid = u32::try_from(*tid).ok()?;
            let of_process = self.process.thread(tid).map(|own| (own.comm.clone(), own.rank(), false, true));
            let of_other = || {
                self.machine
                    .wakers
                    .get(&tid)
                    .map(|other| (other.comm.clone(), other.rank, other.kernel, false))
            };
            let (comm, rank, kernel, own) = of_process.or_else(of_other)?;
            Some(WokenBy { comm, rank, kernel, own, tid, times: *times })
        };
        Ok(wakers.filter_map(one).collect())
    }

    /// The share of the window that a thread ran.
    pub fn share(&self, thread: &'a ProgramThread) -> Result<f64, Judgement> {
        let run = self.counted(thread)?.run_ns;
        let run =
            run.ok_or_else(|| Judgement::unknown("this kernel does not count run times (schedstat)"))?;
        Ok(run as f64 / self.process.window.0.max(1) as f64)
    }

    /// The window in words.
    pub fn span(&self) -> String {
        self.process.window.spoken()
    }
}

/// The event of system calls, which costs every process time and is recorded on request alone.
pub const CALLS: &str = "raw_syscalls:sys_enter";

/// The unknown judgement for what only the recorded calls would tell.
pub fn needs_calls(what: &str) -> Judgement {
    Judgement::unknown(format!("{what}: ask with --syscalls"))
}

/// A place on the kernel's scale of priorities, as people say it.
pub fn rank_words(rank: i64) -> String {
    match rank {
        ..0 => "deadline".to_owned(),
        0..100 => format!("real-time priority {}", 99 - rank),
        _ => format!("nice {}", rank - 120),
    }
}
