//! What the programs have to do, said plainly: a thread, its timers, its waking, its switch.

use std::collections::BTreeMap;

use model::rows::row_of;
use model::units::Nanos;
use recorder::layout::CountedEvent;

/// A thread of the made-up machine.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub tid: u32,
    pub prio: i32,
    pub kernel: bool,
}

/// Why a thread leaves its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    Sleeps,
    Preempted,
    Ends,
}

/// CPU, epoch's half, holder, kind of victims, series; or of the chosen thread: half, series.
pub type Key = (usize, u32, usize, bool, usize);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    pub rows: BTreeMap<usize, u32>,
    pub sum: i64,
    pub most: i64,
    pub least: Option<i64>,
    /// Victim, previous and time of the largest.
    pub who: (u32, u32, u64),
}

#[derive(Clone, Debug, Default)]
struct Known {
    tid: Option<u32>,
    /// Unknown until it leaves, where a record does not say.
    kernel: Option<bool>,
    timers: [Option<(u64, i64, u32)>; 2],
    wake: Option<u64>,
    late: Option<i64>,
    slept: bool,
    chosen: bool,
}

/// The rules' state.
#[derive(Default)]
pub struct Rules {
    /// Whether programs read by types.
    types: bool,
    slots: BTreeMap<u32, Known>,
    /// Timer, its clock's time, that clock's distance.
    fired: BTreeMap<(usize, usize), (u64, i64, i64)>,
    pub epoch: u32,
    suspends: u32,
    resumed: u64,
    pub records: BTreeMap<Key, Expected>,
    pub chosen: BTreeMap<(u32, usize), Expected>,
    /// In the order of `layout::CountedEvent`.
    pub counts: [u64; 8],
}

impl Rules {
    pub fn new(types: bool) -> Rules {
        Rules { types, ..Rules::default() }
    }

    fn slot(&mut self, tid: u32) -> &mut Known {
        self.slots.entry(tid & 0x3fff).or_default()
    }

    pub fn choose(&mut self, task: Task) {
        *self.slot(task.tid) =
            Known { tid: Some(task.tid), kernel: Some(task.kernel), chosen: true, ..Known::default() };
    }

    pub fn start(&mut self, task: Task, kind: usize, timer: u64, expiry: i64) {
        let suspends = self.suspends;
        let slot = self.slot(task.tid);
        if slot.tid == Some(task.tid) {
            slot.timers[kind] = Some((timer, expiry, suspends));
        }
    }

    pub fn fire(&mut self, cpu: usize, kind: usize, timer: u64, now: u64, shift: i64) {
        self.fired.insert((cpu, kind), (timer, now as i64 + shift, shift));
    }

    pub fn suspend(&mut self, now: u64) {
        self.suspends += 1;
        self.resumed = now;
    }

    pub fn wake(&mut self, cpu: usize, task: Task, now: u64) {
        let (fired, suspends) = (self.fired.clone(), self.suspends);
        let slot = self.slot(task.tid);
        if task.prio >= 100 || slot.tid != Some(task.tid) {
            return;
        }
        let early = slot.wake.replace(now).is_some();
        slot.late = None;
        let mut spans = 0;
        let mut unmatched = false;
        for kind in 0..2 {
            let Some((timer, expiry, set)) = slot.timers[kind] else { continue };
            let ours = fired.get(&(cpu, kind)).filter(|fired| fired.0 == timer && fired.1 >= expiry);
            if let Some((_, _, shift)) = ours {
                slot.timers[kind] = None;
                if set == suspends {
                    slot.late = Some(now as i64 + shift - expiry);
                    break;
                }
                spans += 1;
            } else if kind == 0 {
                slot.timers[0] = None;
                unmatched = now as i64 >= expiry;
            }
        }
        self.counts[CountedEvent::Early as usize] += u64::from(early);
        self.counts[CountedEvent::Suspended as usize] += spans;
        self.counts[CountedEvent::Unmatched as usize] += u64::from(unmatched);
    }

    pub fn switch(&mut self, cpu: usize, previous: Task, next: Task, leaves: Leaves, now: u64) {
        if previous.prio < 100 {
            self.leave(previous, leaves);
        }
        if next.prio < 100 {
            self.arrive(cpu, previous, next, now);
        }
    }

    fn claim(&mut self, task: Task) {
        let kernel = self.types.then_some(task.kernel);
        *self.slot(task.tid) = Known { tid: Some(task.tid), kernel, ..Known::default() };
    }

    fn leave(&mut self, task: Task, leaves: Leaves) {
        match self.slot(task.tid).tid {
            Some(tid) if tid != task.tid => return,
            Some(_) => {}
            None => self.claim(task),
        }
        let slot = self.slot(task.tid);
        slot.kernel = Some(task.kernel);
        if leaves == Leaves::Ends {
            slot.tid = None;
            self.counts[CountedEvent::Ended as usize] += 1;
            return;
        }
        // It slept, and here it is: it ran again unseen.
        let unseen = std::mem::take(&mut slot.slept);
        if unseen {
            slot.wake = None;
        }
        let mut early = false;
        if leaves == Leaves::Sleeps {
            slot.slept = true;
        } else {
            early = slot.wake.take().is_some();
        }
        self.counts[CountedEvent::Unwoken as usize] += u64::from(unseen);
        self.counts[CountedEvent::Early as usize] += u64::from(early);
    }

    fn arrive(&mut self, cpu: usize, previous: Task, task: Task, now: u64) {
        match self.slot(task.tid).tid {
            Some(tid) if tid != task.tid => {
                self.counts[CountedEvent::Collisions as usize] += 1;
                return;
            }
            Some(_) => {}
            None => return self.claim(task),
        }
        let (resumed, half) = (self.resumed, self.epoch & 1);
        let slot = self.slot(task.tid);
        let slept = std::mem::take(&mut slot.slept);
        let Some(wake) = slot.wake.take() else {
            self.counts[CountedEvent::Unwoken as usize] += u64::from(slept);
            return;
        };
        let (late, chosen) = (slot.late, slot.chosen);
        let Some(kernel) = slot.kernel else {
            self.counts[CountedEvent::Unwoken as usize] += 1;
            return;
        };
        if wake < resumed {
            self.counts[CountedEvent::Suspended as usize] += 1;
            return;
        }
        self.counts[CountedEvent::Preempted as usize] += u64::from(!slept);
        self.counts[CountedEvent::Recorded as usize] += 1;
        let wait = now as i64 - wake as i64;
        let holder = match previous.prio.cmp(&task.prio) {
            std::cmp::Ordering::Greater => 0,
            std::cmp::Ordering::Equal => 1,
            std::cmp::Ordering::Less => 2,
        };
        for (series, value) in [(0, late), (1, Some(wait)), (2, late.map(|late| late + wait))] {
            let Some(value) = value else { continue };
            let who = (task.tid, previous.tid, now);
            self.records.entry((cpu, half, holder, kernel, series)).or_default().add(value, who);
            if chosen {
                self.chosen.entry((half, series)).or_default().add(value, who);
            }
        }
    }
}

impl Expected {
    fn add(&mut self, value: i64, who: (u32, u32, u64)) {
        let row = if value < 1 << 36 { row_of(Nanos(value)) } else { 1025 };
        *self.rows.entry(row).or_default() += 1;
        self.sum += value;
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
        if value > self.most {
            (self.most, self.who) = (value, who);
        }
    }
}
