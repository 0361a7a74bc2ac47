//! The slots as seen from user space: threads that exist already, chosen ones, and each thread's
//! count of its sleeps.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Relaxed, Release};

use host::bpf::{ArrayMap, MapView};
use host::threads::{ThreadFacts, real_time_threads, thread_facts};
use model::error::{Failure, Result};
use model::units::Cpu;
use model::watch::{Victims, WatchTask};

use crate::layout::{SLOT_MASK, SLOTS, slot};
use crate::refusals;

/// Number of slots mapped at a time, so that their memory is never resident as a whole.
const PIECE: usize = 512;

/// State of a thread at the last look.
pub(crate) struct KnownThread {
    pub start: u64,
    /// Number of its sleeps that ended, by the kernel's count, and of those recorded.
    slept: Option<u64>,
    recorded: u32,
}

impl KnownThread {
    /// State from the kernel's counts; a thread asleep has counted a sleep that is not over.
    pub fn of(facts: &ThreadFacts, asleep: bool, recorded: u32) -> KnownThread {
        let slept = facts.voluntary.map(|voluntary| voluntary.saturating_sub(asleep.into()));
        KnownThread { start: facts.start, slept, recorded }
    }

    /// Counts since the last look at the same thread.
    pub fn since(&self, last: &KnownThread, facts: &ThreadFacts) -> Covered {
        Covered {
            tid: facts.tid,
            process: facts.process,
            kernel: facts.kernel,
            priority: facts.priority,
            cpu: facts.cpu,
            recorded: self.recorded.wrapping_sub(last.recorded).into(),
            voluntary: self.slept.zip(last.slept).map(|(now, last)| now.saturating_sub(last)),
        }
    }
}

/// A thread with separate histograms.
pub struct ChosenThread {
    pub tid: u32,
    pub task: WatchTask,
    pub victims: Victims,
    /// Its last wake-ups come with the next interval.
    pub ended: bool,
}

impl ChosenThread {
    pub fn of(facts: &ThreadFacts) -> ChosenThread {
        let task = WatchTask {
            comm: facts.comm.clone(),
            pid: i32::try_from(facts.process).ok(),
            tid: i32::try_from(facts.tid).ok(),
            ..WatchTask::default()
        };
        let victims = if facts.kernel { Victims::Kernel } else { Victims::User };
        ChosenThread { tid: facts.tid, task, victims, ended: false }
    }
}

/// Threads in slots.
pub struct Slots {
    /// True if `/proc` has the same numbers as the kernel.
    numbered: bool,
    known: BTreeMap<u32, KnownThread>,
    /// Chosen threads by the number of their histograms.
    pub chosen: Vec<Option<ChosenThread>>,
}

/// Number of recorded wake-ups of a thread, and the kernel's count of its sleeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    pub tid: u32,
    pub process: u32,
    /// True for a kernel thread.
    pub kernel: bool,
    /// Its real-time priority; 0 without one.
    pub priority: u32,
    /// CPU that it ran on last.
    pub cpu: Cpu,
    /// Wake-ups after a sleep.
    pub recorded: u64,
    /// Sleeps that are over, by `voluntary_ctxt_switches`.
    pub voluntary: Option<u64>,
}

/// Result of a look at all slots since the previous one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    pub covered: Vec<Covered>,
    pub recorded: u64,
    pub voluntary: Option<u64>,
    /// Threads in slots.
    pub threads: usize,
    /// Number of slots freed because their threads have ended.
    pub swept: u64,
}

impl Looked {
    /// Adds a thread that was there at both looks.
    pub fn add(&mut self, covered: Covered) {
        self.recorded += covered.recorded;
        if let Some((sum, slept)) = self.voluntary.as_mut().zip(covered.voluntary) {
            *sum += slept;
        }
        self.covered.push(covered);
    }
}

fn index_of(tid: u32) -> usize {
    tid as usize & SLOT_MASK as usize
}

fn view_of(slots: &ArrayMap, entries: std::ops::Range<usize>) -> Result<MapView> {
    slots.view(entries).map_err(|error| refusals::no_map(&error))
}

impl Slots {
    pub fn new(numbered: bool, chosen: usize) -> Slots {
        Slots { numbered, known: BTreeMap::new(), chosen: (0..chosen).map(|_| None).collect() }
    }

    /// Gives a slot to each real-time thread that is there; before the programs run.
    pub fn claim_present(&mut self, slots: &ArrayMap) -> Result<()> {
        if !self.numbered {
            return Ok(());
        }
        for facts in real_time_threads() {
            let index = index_of(facts.tid);
            let view = view_of(slots, index..index + 1)?;
            if view.u32(index, slot::TID).load(Relaxed) == 0 {
                claim(&view, index, &facts);
                self.note(&view, index, &facts);
            }
        }
        Ok(())
    }

    fn note(&mut self, view: &MapView, index: usize, facts: &ThreadFacts) {
        let recorded = view.u32(index, slot::RECORDED).load(Relaxed);
        let asleep = view.u32(index, slot::SLEPT).load(Relaxed) != 0;
        self.known.insert(facts.tid, KnownThread::of(facts, asleep, recorded));
    }

    /// Gives a thread separate histograms.
    pub fn choose(&mut self, slots: &ArrayMap, tid: u32) -> Result<()> {
        let facts = thread_facts(tid).ok_or_else(|| Failure::usage(format!("no thread {tid}")))?;
        let index = index_of(tid);
        let view = view_of(slots, index..index + 1)?;
        match view.u32(index, slot::TID).load(Relaxed) {
            0 => {
                claim(&view, index, &facts);
                self.note(&view, index, &facts);
            }
            other if other == tid => {
                if !self.known.contains_key(&tid) {
                    self.note(&view, index, &facts);
                }
            }
            other => {
                return Err(Failure::not_supported(format!(
                    "cannot record thread {tid}: hash collision with thread {other}"
                )));
            }
        }
        if view.u32(index, slot::THREAD).load(Relaxed) != 0 {
            return Ok(());
        }
        let free = self.chosen.iter().position(Option::is_none).ok_or_else(|| {
            Failure::usage(format!("at most {} threads can have separate histograms", self.chosen.len()))
        })?;
        self.chosen[free] = Some(ChosenThread::of(&facts));
        view.u32(index, slot::THREAD).store(free as u32 + 1, Release);
        Ok(())
    }

    /// Looks at all slots, and compares the recorded wake-ups of each thread with the kernel's
    /// count of its sleeps. Frees the slots of ended threads; a new thread counts from now on.
    pub fn look(&mut self, slots: &ArrayMap) -> Result<Looked> {
        let mut looked = Looked { voluntary: self.numbered.then_some(0), ..Looked::default() };
        let mut before = std::mem::take(&mut self.known);
        for begin in (0..SLOTS).step_by(PIECE) {
            let view = view_of(slots, begin..begin + PIECE)?;
            for index in view.entries() {
                let tid = view.u32(index, slot::TID).load(Relaxed);
                if tid == 0 {
                    continue;
                }
                looked.threads += 1;
                if self.numbered {
                    self.look_at(&view, index, tid, before.remove(&tid), &mut looked);
                }
            }
        }
        for chosen in &mut self.chosen {
            *chosen = chosen.take().filter(|chosen| !chosen.ended).map(|chosen| {
                let ended = !self.known.contains_key(&chosen.tid);
                ChosenThread { ended, ..chosen }
            });
        }
        Ok(looked)
    }

    fn look_at(
        &mut self,
        view: &MapView,
        index: usize,
        tid: u32,
        known: Option<KnownThread>,
        looked: &mut Looked,
    ) {
        let Some(facts) = thread_facts(tid) else {
            // Its end was not seen.
            view.u32(index, slot::TID).store(0, Relaxed);
            looked.swept += 1;
            return;
        };
        self.note(view, index, &facts);
        // A thread that inherited a real-time priority for a while (rt_mutex) sleeps mostly without
        // it, and those sleeps are not recorded.
        if !facts.real_time && view.u32(index, slot::THREAD).load(Relaxed) == 0 {
            return;
        }
        let Some(now) = self.known.get(&tid) else { return };
        match known {
            Some(last) if last.start == now.start => looked.add(now.since(&last, &facts)),
            Some(_) => {
                // Another thread of the same number, and the end of the first was not seen.
                view.u64(index, slot::WAKE).store(0, Relaxed);
                slot::TIMERS.iter().for_each(|timer| view.u64(index, *timer).store(0, Relaxed));
                view.u32(index, slot::THREAD).store(0, Relaxed);
            }
            None => {}
        }
    }
}

/// Fills a free slot.
fn claim(view: &MapView, index: usize, facts: &ThreadFacts) {
    view.u64s(index, 0, slot::SIZE / 8).iter().for_each(|word| word.store(0, Relaxed));
    view.u64(index, slot::LATE).store(u64::MAX, Relaxed);
    let kind = if facts.kernel { slot::KERNEL } else { slot::USER };
    view.u32(index, slot::KIND).store(kind as u32, Relaxed);
    // One that sleeps now has counted that sleep already.
    view.u32(index, slot::SLEPT).store(facts.asleep.into(), Relaxed);
    view.u32(index, slot::TID).store(facts.tid, Release);
}
