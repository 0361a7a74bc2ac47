//! Reference model of the programs and the ring: a thread, its timers, its waking, its switch.

use std::collections::BTreeMap;

use model::rows::row_of;
use model::units::Nanos;
use recorder::layout::{CountedEvent, PIECES};

/// A thread of the simulated machine.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub tid: u32,
    pub prio: i32,
    pub kernel: bool,
}

/// Reason for which a thread leaves its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    Sleeps,
    Preempted,
    Ends,
}

/// CPU, epoch's half, holder, kind of victims, series; or of the chosen thread: half, series.
pub type Key = (usize, u32, usize, bool, usize);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitParties {
    pub victim: u32,
    /// Previous thread; of S the class of its holder.
    pub previous: u32,
    pub time: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    pub rows: BTreeMap<usize, u32>,
    pub sum: i64,
    pub most: i64,
    pub least: Option<i64>,
    /// Threads and time of the largest.
    pub parties: WaitParties,
    /// Part of W in which the previous thread had the CPU, if its switch-in was seen.
    pub held: Option<i64>,
    /// S of the largest.
    pub switch: Option<i64>,
}

/// A recorded wake-up, until its thread has finished the switch.
#[derive(Clone, Copy, Debug)]
struct Going {
    /// The switch, among all of the machine.
    nth: u64,
    task: Task,
    at: u64,
    late: Option<i64>,
    wait: i64,
    holder: usize,
    kernel: bool,
    chosen: bool,
    epoch: u32,
}

#[derive(Clone, Debug, Default)]
struct Known {
    tid: Option<u32>,
    /// Unknown until it leaves its CPU, if a record does not contain it.
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
    /// True if a thread's kind is known at once, as by types.
    types: bool,
    /// True if S is recorded.
    with_switch: bool,
    /// The bits of a thread's number that lead to its place.
    places: u32,
    slots: BTreeMap<u32, Known>,
    /// Timer, its clock's time, that clock's distance.
    fired: BTreeMap<(usize, usize), (u64, i64, i64)>,
    pub epoch: u32,
    suspends: u32,
    resumed: u64,
    pub records: BTreeMap<Key, Expected>,
    pub chosen: BTreeMap<(u32, usize), Expected>,
    /// S and T + W + S: CPU, epoch's half, kind of victims, series; and of the chosen thread.
    pub switched: BTreeMap<(usize, u32, bool, usize), Expected>,
    pub chosen_switched: BTreeMap<(u32, usize), Expected>,
    /// Number of switches of the machine, and the one that gave each CPU to its current thread.
    switches: u64,
    /// The threads that were seen to get each CPU, and when; programs see real-time ones alone.
    pieces: BTreeMap<usize, Vec<(Option<u32>, u64)>>,
    sees_all: bool,
    on: BTreeMap<usize, (Task, u64)>,
    going: BTreeMap<usize, Going>,
    /// Counts in the order of `layout::CountedEvent`.
    pub counts: [u64; 8],
}

impl Rules {
    pub fn new(types: bool, with_switch: bool) -> Rules {
        Rules { types, with_switch, places: 0x3fff, ..Rules::default() }
    }

    /// Rules of the ring: each thread has a separate place.
    pub fn of_ring() -> Rules {
        Rules { types: true, sees_all: true, places: u32::MAX, ..Rules::default() }
    }

    pub fn leaves_cpu(&mut self, cpu: usize) {
        self.on.remove(&cpu);
    }

    pub fn gets_cpu(&mut self, cpu: usize, task: Task) {
        self.switches += 1;
        self.on.insert(cpu, (task, self.switches));
    }

    /// The end of a switch gives S to the wake-up that was recorded at that very switch.
    pub fn gone_on(&mut self, cpu: usize, switched: bool, now: u64) {
        let Some(&(task, nth)) = self.on.get(&cpu) else { return };
        if !self.with_switch || !switched || task.prio >= 100 {
            return;
        }
        let Some(going) = self.going.remove(&cpu) else { return };
        if (going.nth, going.task.tid) != (nth, task.tid) {
            return;
        }
        if going.at < self.resumed {
            self.counts[CountedEvent::Suspended as usize] += 1;
            return;
        }
        let (switch, half) = (now as i64 - going.at as i64, self.epoch & 1);
        let whole = going.late.map(|late| late + going.wait + switch);
        for (series, value) in [(0, Some(switch)), (1, whole)] {
            let Some(value) = value else { continue };
            let parties = WaitParties { victim: task.tid, previous: going.holder as u32, time: going.at };
            if series == 0 || going.holder == 0 {
                let key = (cpu, half, going.kernel, series);
                self.switched.entry(key).or_default().add_switch(value, parties, switch);
            }
            if going.chosen {
                self.chosen_switched.entry((half, series)).or_default().add_switch(value, parties, switch);
            }
        }
        for series in 0..3 {
            let key = (cpu, half, going.holder, going.kernel, series);
            let largest = self.records.get_mut(&key).filter(|found| found.parties.time == going.at);
            if let Some(largest) = largest.filter(|_| going.epoch == self.epoch) {
                largest.switch = Some(switch);
            }
        }
    }

    fn slot(&mut self, tid: u32) -> &mut Known {
        self.slots.entry(tid & self.places).or_default()
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
        if self.sees_all || next.prio < 100 || previous.prio < 100 {
            let known = |task: Task| (self.sees_all || task.prio < 100).then_some(task.tid);
            let pieces = self.pieces.entry(cpu).or_default();
            if let Some(last) = pieces.last_mut().filter(|(tid, _)| *tid != Some(previous.tid)) {
                last.0 = None;
            }
            pieces.push((known(next), now));
        }
        if next.prio < 100 {
            self.arrive(cpu, previous, next, now);
        }
    }

    /// Time since the waking in which the thread that is switched out had the CPU, if its switch-in
    /// was seen; as far as the last pieces show.
    fn held(&self, cpu: usize, thread: Task, wake: u64, now: u64) -> Option<i64> {
        let pieces = self.pieces.get(&cpu)?;
        let (_, before) = pieces.split_last()?;
        before.last().filter(|(tid, _)| *tid == Some(thread.tid))?;
        let ends = pieces[1..].iter().map(|(_, at)| *at);
        let seen = before.iter().zip(ends).rev().take(PIECES - 1);
        let own = seen.filter(|((tid, _), _)| *tid == Some(thread.tid));
        Some(own.map(|((_, from), to)| to.min(now).saturating_sub(wake.max(*from)) as i64).sum())
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
        self.going.remove(&cpu);
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
        let held = self.held(cpu, previous, wake, now);
        let (nth, epoch) = (self.switches, self.epoch);
        self.going.insert(cpu, Going { nth, task, at: now, late, wait, holder, kernel, chosen, epoch });
        for (series, value) in [(0, late), (1, Some(wait)), (2, late.map(|late| late + wait))] {
            let Some(value) = value else { continue };
            let parties = WaitParties { victim: task.tid, previous: previous.tid, time: now };
            self.records.entry((cpu, half, holder, kernel, series)).or_default().add(value, parties, held);
            if chosen {
                self.chosen.entry((half, series)).or_default().add(value, parties, held);
            }
        }
    }
}

impl Expected {
    fn add(&mut self, value: i64, parties: WaitParties, held: Option<i64>) {
        let row = if value < 1 << 36 { row_of(Nanos(value)) } else { 1025 };
        *self.rows.entry(row).or_default() += 1;
        self.sum += value;
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
        if value > self.most {
            (self.most, self.parties, self.held, self.switch) = (value, parties, held, None);
        }
    }

    fn add_switch(&mut self, value: i64, parties: WaitParties, switch: i64) {
        self.add(value, parties, None);
        if (self.most, self.parties) == (value, parties) {
            self.switch = Some(switch);
        }
    }
}
