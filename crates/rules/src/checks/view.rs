//! A program as a check sees it: typed access to what was read and recorded.
//!
//! Each accessor returns early with `unknown` where something was refused or malformed; with `?` a
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

/// What was recorded of a program's threads, or why nothing was.
pub type Recorded = Result<Activity, String>;

/// What a check sees.
#[derive(Clone, Copy)]
pub struct ProgramView<'a> {
    pub process: &'a ProcessFacts,
    pub machine: &'a Surroundings,
    pub recorded: &'a Recorded,
    /// Whether system calls were to be recorded.
    pub calls_asked: bool,
    pub releases: &'a Releases,
}

/// A thread of the process, or one that woke one of these.
pub struct ThreadSeen<'a> {
    pub tid: u32,
    pub comm: &'a str,
    /// Its place on the kernel's scale of priorities, on which less comes first.
    pub rank: i64,
    pub kernel: bool,
    /// Whether it is of the process.
    pub own: bool,
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
        let waits = self.looks(thread)?;
        self.named().map(|()| waits)
    }

    /// The looks at a thread, whether its calls have names or not.
    pub fn looks(&self, thread: &'a ProgramThread) -> Result<&'a Waits, Judgement> {
        self.known(&format!("task/{}/syscall", thread.tid), &thread.waits)
    }

    /// That numbers of its calls have names.
    fn named(&self) -> Result<(), Judgement> {
        match self.known("auxv", &self.process.own_numbers)? {
            true => Ok(()),
            false => Err(Judgement::unknown(
                "a program of another word length (32-bit, or x32): its calls have other numbers \
                 and no names here",
            )),
        }
    }

    pub fn stack(&self, thread: &'a ProgramThread) -> Result<&'a StackPages, Judgement> {
        self.known("pagemap", &thread.stack)
    }

    pub fn allowed(&self, thread: &'a ProgramThread) -> Result<&'a CpuSet, Judgement> {
        self.known(&format!("task/{}/status", thread.tid), &thread.allowed)
    }

    /// What was recorded; unknown where nothing could be.
    pub fn activity(&self) -> Result<&'a Activity, Judgement> {
        self.recorded.as_ref().map_err(|why| Judgement::unknown(why.clone()))
    }

    /// What a thread did while an event was recorded; unknown where the event was not.
    pub fn done(&self, thread: &ProgramThread, event: &str) -> Result<&'a ThreadActivity, Judgement> {
        let activity = self.activity()?;
        if !activity.has_event(event) {
            return Err(Judgement::unknown(format!("this kernel did not let onbeat record {event}")));
        }
        let own = activity.of(thread.tid);
        own.ok_or_else(|| Judgement::unknown("the thread became real-time when the look was nearly over"))
    }

    /// The timers that a thread started.
    pub fn timers(&self, thread: &ProgramThread) -> Result<Vec<(&'a ArmedTimer, u64)>, Judgement> {
        let own = self.done(thread, "timer:hrtimer_start")?;
        Ok(own.timers.iter().map(|(timer, times)| (timer, *times)).collect())
    }

    /// The system calls that a thread made; none where they were not asked for, or have no names.
    pub fn calls(&self, thread: &ProgramThread) -> Option<NamedCalls> {
        self.named().ok()?;
        let activity = self.activity().ok()?;
        let own = self.done(thread, CALLS).ok()?;
        let named = own.calls.iter().filter_map(|(call, times)| {
            Some(NamedCall { name: calls::call_name(call.number)?, args: call.args, times: *times })
        });
        let complete = activity.lost == 0 && own.has_all_calls();
        Some(NamedCalls { made: named.collect(), complete })
    }

    /// The unknown judgement for what only the recorded calls would tell.
    pub fn needs_calls(&self, what: &str) -> Judgement {
        let has_calls = |activity: &Activity| activity.has_event(CALLS);
        Judgement::unknown(match self.recorded {
            Ok(activity) if has_calls(activity) => format!("{what}, in its calls neither"),
            Err(why) if self.calls_asked => format!("{what}; its calls were not recorded: {why}"),
            Ok(_) if self.calls_asked => format!("{what}; this kernel did not let onbeat record {CALLS}"),
            _ => format!("{what}: ask with --syscalls"),
        })
    }

    /// The threads that woke a thread; not the interrupts.
    pub fn woken_by(&self, thread: &ProgramThread) -> Result<Vec<WokenBy>, Judgement> {
        let wakers = &self.done(thread, WAKING)?.wakers;
        Ok(wakers.iter().filter_map(|(waker, times)| self.waker(*waker, *times)).collect())
    }

    /// That the wake-ups of a thread were all recorded, as far as its switches tell: nothing
    /// follows from what was not seen where they were not. Kernels in virtual machines were seen to
    /// leave out events of CPUs that came from idle.
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

    /// Who ended which wait of a thread: the calls in which it was seen asleep, with the thread
    /// that woke it next; unknown where wake-ups are missing, because then the next one seen may
    /// belong to another wait. Interrupts are left out.
    pub fn released_by(&self, thread: &'a ProgramThread) -> Result<Vec<(&'a Wait, WokenBy)>, Judgement> {
        self.all_wakings(thread)?;
        self.named()?;
        let told = self.releases.of(thread.tid);
        Ok(told.filter_map(|(wait, waker, times)| Some((wait, self.waker(waker, times)?))).collect())
    }

    /// How often waits of a thread were seen to end by an interrupt, as that of a timer, and by a
    /// thread; unknown where wake-ups are missing.
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

    /// The waits of a thread that were ended by threads that are no more, and of which nothing else
    /// is known.
    pub fn released_by_gone(&self, thread: &ProgramThread) -> impl Iterator<Item = &'a Wait> {
        let gone = |waker: Waker| waker != Waker::Interrupt && self.waker(waker, 0).is_none();
        self.releases.of(thread.tid).filter(move |(_, waker, _)| gone(*waker)).map(|(wait, ..)| wait)
    }

    /// A thread that woke another, where it is still there; nothing for an interrupt.
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

    /// The threads of the process, and those of others that woke one of them.
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

    /// The share of the time that a thread ran.
    pub fn share(&self, thread: &'a ProgramThread) -> Result<f64, Judgement> {
        let run = self.counted(thread)?.run_ns;
        let run =
            run.ok_or_else(|| Judgement::unknown("this kernel does not count run times (schedstat)"))?;
        Ok(run as f64 / thread.window.0.max(1) as f64)
    }

    /// The window in words.
    pub fn span(&self) -> String {
        self.process.window.spoken()
    }
}

/// The event of system calls, which costs every process time and is recorded on request alone.
pub const CALLS: &str = "raw_syscalls:sys_enter";
/// The event without which nothing is known of who wakes a thread.
pub const WAKING: &str = "sched:sched_waking";
/// The event that shows who changes what the process's memory consists of.
pub const REMAPPING: &str = "mmap_lock:mmap_lock_acquire_returned";
/// The event that shows where page faults are.
pub const FAULT: &str = "exceptions:page_fault_user";

/// System calls of a thread, of those that rules ask for.
pub struct NamedCalls {
    pub made: Vec<NamedCall>,
    /// Whether none can be missing.
    pub complete: bool,
}

pub struct NamedCall {
    pub name: &'static str,
    /// The first two arguments.
    pub args: Option<[u64; 2]>,
    pub times: u64,
}

impl NamedCalls {
    /// How often each of some calls was made, in words; `""` for none of them.
    pub fn words(&self, names: &[&str]) -> String {
        let sum = |name: &str| self.made.iter().filter(|call| call.name == name).map(|call| call.times).sum();
        let sums = names.iter().map(|name| (name, sum(name))).filter(|(_, times): &(_, u64)| *times > 0);
        truncate_words(sums.map(|(name, times)| format!("{name} {}", several(times, "time", "times"))))
    }
}

/// Looks at a thread from which on what was not seen counts.
const ENOUGH: u64 = 5;

/// That a thread was looked at often enough for what was not seen to count.
pub fn enough(waits: &Waits) -> Result<(), Judgement> {
    match waits.looks() {
        ENOUGH.. => Ok(()),
        looks => {
            let looks = several(looks, "time", "times");
            Err(Judgement::unknown(format!("it was looked at {looks}: look for longer (-D)")))
        }
    }
}

/// A place on the kernel's scale of priorities, as people say it.
pub fn rank_words(rank: i64) -> String {
    match rank {
        ..0 => "deadline".to_owned(),
        0..100 => format!("real-time priority {}", 99 - rank),
        _ => format!("nice {}", rank - 120),
    }
}
