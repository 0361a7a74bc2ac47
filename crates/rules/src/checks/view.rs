//! A program as a check sees it: typed access to the facts about it and its recorded activity.
//!
//! Each accessor returns early with `unknown` if something was refused or malformed; with `?` a
//! check cannot treat missing data as a pass.

use super::releases::Releases;
use crate::judgement::Judgement;
use crate::unknown::unknown_from;
use crate::words::truncate_words;
use facts::Fact;
use facts::limits::Limits;
use facts::process::counters::{CallCounters, ThreadCounters};
use facts::process::descriptors::Descriptor;
use facts::process::mappings::MemoryMapping;
use facts::process::pages::StackPages;
use facts::process::status::ProcessStatus;
use facts::process::surroundings::Surroundings;
use facts::process::waits::{Wait, Waits};
use facts::process::{Growth, ProcessFacts, ProgramThread, calls};
use model::text::several;
use model::units::CpuSet;
use trace::activity::{Activity, ArmedTimer, ThreadActivity, Waker};

/// Recorded activity of a program's threads, or the reason why there is no recording.
pub type Recorded = Result<Activity, String>;

/// The program that a check judges.
#[derive(Clone, Copy)]
pub struct ProgramView<'a> {
    pub process: &'a ProcessFacts,
    pub machine: &'a Surroundings,
    pub recorded: &'a Recorded,
    /// True if the recording of system calls was requested.
    pub calls_asked: bool,
    pub releases: &'a Releases,
}

/// A thread of the process, or one that woke one of these.
pub struct ThreadSeen<'a> {
    pub tid: u32,
    pub comm: &'a str,
    /// Priority on the kernel's scale, on which less comes first.
    pub rank: i64,
    pub kernel: bool,
    /// True for a thread of the process.
    pub own: bool,
}

/// A thread that woke another.
pub struct WokenBy {
    pub comm: String,
    /// Priority on the kernel's scale, on which less comes first.
    pub rank: i64,
    pub kernel: bool,
    /// True for a thread of the same process.
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
        let waits = self.looks(thread)?;
        self.named().map(|()| waits)
    }

    /// Observations of a thread, even if its calls have no names.
    pub fn looks(&self, thread: &'a ProgramThread) -> Result<&'a Waits, Judgement> {
        self.known(&format!("task/{}/syscall", thread.tid), &thread.waits)
    }

    /// Returns early unless the numbers of its calls have names.
    fn named(&self) -> Result<(), Judgement> {
        if *self.known("auxv", &self.process.own_numbers)? {
            Ok(())
        } else {
            Err(Judgement::unknown(
                "a program of another word length (32-bit, or x32): onbeat does not know the numbers of its \
                 calls",
            ))
        }
    }

    pub fn stack(&self, thread: &'a ProgramThread) -> Result<&'a StackPages, Judgement> {
        self.known("pagemap", &thread.stack)
    }

    pub fn allowed(&self, thread: &'a ProgramThread) -> Result<&'a CpuSet, Judgement> {
        self.known(&format!("task/{}/status", thread.tid), &thread.allowed)
    }

    /// Recorded activity; unknown if nothing could be recorded.
    pub fn activity(&self) -> Result<&'a Activity, Judgement> {
        self.recorded.as_ref().map_err(|why| Judgement::unknown(why.clone()))
    }

    /// Activity of a thread while an event was recorded; unknown if the event was not.
    pub fn done(&self, thread: &ProgramThread, event: &str) -> Result<&'a ThreadActivity, Judgement> {
        let activity = self.activity()?;
        if !activity.has_event(event) {
            return Err(Judgement::unknown(format!("this kernel did not let onbeat record {event}")));
        }
        let own = activity.of(thread.tid);
        own.ok_or_else(|| Judgement::unknown("the thread became real-time shortly before the window ended"))
    }

    /// Timers that a thread started, with the number of starts.
    pub fn timers(&self, thread: &ProgramThread) -> Result<Vec<(&'a ArmedTimer, u64)>, Judgement> {
        let own = self.done(thread, "timer:hrtimer_start")?;
        Ok(own.timers.iter().map(|(timer, times)| (timer, *times)).collect())
    }

    /// System calls of a thread; none if they were not recorded, or have no names.
    pub fn calls(&self, thread: &ProgramThread) -> Option<NamedCalls> {
        self.named().ok()?;
        let activity = self.activity().ok()?;
        let own = self.done(thread, CALLS).ok()?;
        let named = own.calls.iter().filter_map(|(call, times)| {
            Some(NamedCall { name: calls::call_name(call.number)?, args: call.args, times: *times })
        });
        let complete = activity.lost == 0 && own.has_all_calls();
        Some(NamedCalls { entries: named.collect(), complete })
    }

    /// The unknown judgement for facts that only recorded calls would show.
    pub fn needs_calls(&self, what: &str) -> Judgement {
        let has_calls = |activity: &Activity| activity.has_event(CALLS);
        Judgement::unknown(match self.recorded {
            Ok(activity) if has_calls(activity) => format!("{what}, and its calls do not show it either"),
            Err(why) if self.calls_asked => format!("{what}; its calls were not recorded: {why}"),
            Ok(_) if self.calls_asked => format!("{what}; this kernel did not let onbeat record {CALLS}"),
            _ => format!("{what}: use --syscalls"),
        })
    }

    /// Threads that woke a thread, without interrupts.
    pub fn woken_by(&self, thread: &ProgramThread) -> Result<Vec<WokenBy>, Judgement> {
        let wakers = &self.done(thread, WAKING)?.wakers;
        Ok(wakers.iter().filter_map(|(waker, times)| self.waker(*waker, *times)).collect())
    }

    /// Returns early unless all wake-ups of a thread were recorded, as far as its context switches
    /// show: if some are missing, nothing follows from unseen ones. Kernels in virtual machines
    /// have been observed to lose events of CPUs that leave idle.
    pub fn all_wakings(&self, thread: &'a ProgramThread) -> Result<(), Judgement> {
        let woken = self.done(thread, WAKING)?.woken();
        let slept = self.counted(thread)?.voluntary;
        if woken + slept / 20 + 3 >= slept {
            return Ok(());
        }
        Err(Judgement::unknown(format!(
            "the kernel showed {woken} wake-ups of a thread that slept {}",
            several(slept, "time", "times")
        )))
    }

    /// Waits of a thread with the threads that ended them: the calls in which it was seen asleep,
    /// each with the next waker; unknown if wake-ups are missing, because the next one seen may
    /// then belong to another wait. Interrupts are omitted.
    pub fn released_by(&self, thread: &'a ProgramThread) -> Result<Vec<(&'a Wait, WokenBy)>, Judgement> {
        self.all_wakings(thread)?;
        self.named()?;
        let releases = self.releases.of(thread.tid);
        Ok(releases.filter_map(|(wait, waker, times)| Some((wait, self.waker(waker, times)?))).collect())
    }

    /// Number of waits of a thread that ended by an interrupt, such as a timer's, and by a thread;
    /// unknown if wake-ups are missing.
    pub fn ended_by(
        &self,
        thread: &'a ProgramThread,
        own: &dyn Fn(&Wait) -> bool,
    ) -> Result<[u64; 2], Judgement> {
        self.all_wakings(thread)?;
        self.named()?;
        let mut ended = [0; 2];
        for (_, waker, times) in self.releases.of(thread.tid).filter(|(wait, ..)| own(wait)) {
            ended[usize::from(waker != Waker::Interrupt)] += times;
        }
        Ok(ended)
    }

    /// Waits of a thread that were ended by threads that no longer exist, and of which nothing else
    /// is known.
    pub fn released_by_gone(&self, thread: &ProgramThread) -> impl Iterator<Item = &'a Wait> {
        let gone = |waker: Waker| waker != Waker::Interrupt && self.waker(waker, 0).is_none();
        self.releases.of(thread.tid).filter(move |(_, waker, _)| gone(*waker)).map(|(wait, ..)| wait)
    }

    /// A thread that woke another, if it still exists; none for an interrupt.
    fn waker(&self, waker: Waker, times: u64) -> Option<WokenBy> {
        let Waker::Thread(tid) = waker else { return None };
        let tid = u32::try_from(tid).ok()?;
        let seen = self.threads_seen().find(|thread| thread.tid == tid)?;
        Some(WokenBy {
            comm: seen.comm.to_owned(),
            rank: seen.rank,
            kernel: seen.kernel,
            own: seen.own,
            tid,
            times,
        })
    }

    /// Threads of the process, and those of others that woke one of them.
    pub fn threads_seen(&self) -> impl Iterator<Item = ThreadSeen<'a>> {
        let own = self.process.threads.iter().map(|own| ThreadSeen {
            tid: own.tid,
            comm: &own.comm,
            rank: own.rank(),
            kernel: false,
            own: true,
        });
        let others = self.machine.wakers.iter().map(|(tid, other)| ThreadSeen {
            tid: *tid,
            comm: &other.comm,
            rank: other.rank,
            kernel: other.kernel,
            own: false,
        });
        own.chain(others)
    }

    /// Share of the time that a thread ran.
    pub fn share(&self, thread: &'a ProgramThread) -> Result<f64, Judgement> {
        let run = self.counted(thread)?.run_ns;
        let run =
            run.ok_or_else(|| Judgement::unknown("this kernel does not record run times (schedstat)"))?;
        Ok(run as f64 / thread.window.0.max(1) as f64)
    }

    /// The window in words.
    pub fn span(&self) -> String {
        self.process.window.spoken()
    }
}

/// Event of system calls, which costs time in every process and is recorded only on request.
pub const CALLS: &str = "raw_syscalls:sys_enter";
/// Event that shows the wakers of threads.
pub const WAKING: &str = "sched:sched_waking";
/// Event that shows changes of the process's memory mappings.
pub const REMAPPING: &str = "mmap_lock:mmap_lock_acquire_returned";
/// Event that shows the locations of page faults.
pub const FAULT: &str = "exceptions:page_fault_user";

/// System calls of a thread, restricted to those that rules use.
pub struct NamedCalls {
    pub entries: Vec<NamedCall>,
    /// True if none can be missing.
    pub complete: bool,
}

pub struct NamedCall {
    pub name: &'static str,
    /// First two arguments.
    pub args: Option<[u64; 2]>,
    pub times: u64,
}

impl NamedCalls {
    /// Number of calls by name, in words; `""` if there were none of these.
    pub fn words(&self, names: &[&str]) -> String {
        let sum =
            |name: &str| self.entries.iter().filter(|call| call.name == name).map(|call| call.times).sum();
        let sums = names.iter().map(|name| (name, sum(name))).filter(|(_, times): &(_, u64)| *times > 0);
        truncate_words(sums.map(|(name, times)| format!("{name} {}", several(times, "time", "times"))))
    }
}

/// Number of observations from which on the absence of something counts.
const ENOUGH: u64 = 5;

/// Returns early unless a thread was observed often enough for the absence of something to count.
pub fn enough(waits: &Waits) -> Result<(), Judgement> {
    match waits.looks() {
        ENOUGH.. => Ok(()),
        looks => {
            let looks = several(looks, "time", "times");
            Err(Judgement::unknown(format!("it was sampled {looks}: use a longer window (-D)")))
        }
    }
}

/// A priority on the kernel's scale in everyday words.
pub fn rank_words(rank: i64) -> String {
    match rank {
        ..0 => "deadline".to_owned(),
        0..100 => format!("real-time priority {}", 99 - rank),
        _ => format!("nice {}", rank - 120),
    }
}
