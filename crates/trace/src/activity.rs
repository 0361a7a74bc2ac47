//! Activity of the threads of one process in a stretch of time, counted from trace events: timers
//! started, wakers, page faults and system calls.

use std::collections::{BTreeMap, BTreeSet};

use model::units::Nanos;

use super::event::{Address, Raw, What};

/// Limit of distinct entries per list and thread; further ones are only counted.
const KINDS_LIMIT: usize = 256;
/// Limit of distinct faults: each new page faults once, so a mebibyte of new memory has 256.
const FAULTS_LIMIT: usize = 1024;
/// Limit of wake-ups between two rounds of reading events; further ones count as lost.
const WAKINGS_LIMIT: usize = 1 << 16;

/// Timer as its thread started it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArmedTimer {
    /// Function that it calls; `""` if the kernel's functions have no names here.
    pub function: String,
    /// Mode of the timer (`enum hrtimer_mode`); none before Linux 4.16.
    pub mode: Option<u32>,
}

impl ArmedTimer {
    /// True if it was started relative to the present time (HRTIMER_MODE_REL).
    pub fn is_relative(&self) -> Option<bool> {
        self.mode.map(|mode| mode & 1 != 0)
    }

    /// True if it expires in hard interrupt context on PREEMPT_RT (HRTIMER_MODE_HARD); all others
    /// expire in a soft interrupt (`__hrtimer_init`).
    pub fn is_hard(&self) -> Option<bool> {
        self.mode.map(|mode| mode & 8 != 0)
    }
}

/// Origin of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waker {
    /// A hard or soft interrupt, which works for no thread.
    Interrupt,
    /// A thread, by ID.
    Thread(i32),
}

/// Page fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FaultPlace {
    /// Page that was accessed.
    pub page: u64,
    /// Instruction that accessed it.
    pub instruction: u64,
}

/// System call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MadeCall {
    /// Number of the call.
    pub number: i64,
    /// First two arguments, by which rules distinguish calls; none if there were too many different
    /// ones.
    pub args: Option<[u64; 2]>,
}

/// Wake-up of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadWaking {
    pub tid: i32,
    pub time: Nanos,
    pub by: Waker,
}

/// Activity of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadActivity {
    pub timers: BTreeMap<ArmedTimer, u64>,
    pub wakers: BTreeMap<Waker, u64>,
    pub faults: BTreeMap<FaultPlace, u64>,
    pub calls: BTreeMap<MadeCall, u64>,
    /// Migrations to another CPU.
    pub migrations: u64,
    /// Times that it took its process's mmap lock for writing.
    pub remappings: u64,
    /// Events without room in the lists above.
    pub uncounted: u64,
}

impl ThreadActivity {
    /// Number of wake-ups.
    pub fn woken(&self) -> u64 {
        self.wakers.values().sum()
    }

    /// True if the list of calls had room for each recorded call.
    pub fn has_all_calls(&self) -> bool {
        self.calls.len() < 2 * KINDS_LIMIT
    }
}

/// Activity of the threads of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    pub threads: BTreeMap<i32, ThreadActivity>,
    /// Wake-ups since the last call of `take_wakings`.
    wakings: Vec<ThreadWaking>,
    /// Recorded events that were lost.
    pub lost: u64,
    /// Names of the recorded trace events, `system:event`.
    pub events: BTreeSet<String>,
}

impl Activity {
    pub fn of(&self, tid: u32) -> Option<&ThreadActivity> {
        self.threads.get(&i32::try_from(tid).ok()?)
    }

    pub fn has_event(&self, name: &str) -> bool {
        self.events.contains(name)
    }

    /// Follows these threads from now on.
    pub fn follow(&mut self, tids: impl IntoIterator<Item = u32>) {
        for tid in tids.into_iter().filter_map(|tid| i32::try_from(tid).ok()) {
            self.threads.entry(tid).or_default();
        }
    }

    /// Takes the wake-ups since the last call, ordered by CPU.
    pub fn take_wakings(&mut self) -> Vec<ThreadWaking> {
        std::mem::take(&mut self.wakings)
    }

    /// Counts an event if it belongs to a followed thread.
    pub fn add(&mut self, event: &Raw, name: &mut impl FnMut(Address) -> String) {
        let interrupted = event.context.hard_irq() || event.context.soft_irq() || event.context.nmi();
        let whose = match &event.what {
            What::Waking { task, .. } => task.pid,
            What::Migrate { pid, .. } => *pid,
            // Work of an interrupt does not count for the thread that it interrupts.
            _ if interrupted => return,
            _ => event.pid,
        };
        let Some(own) = self.threads.get_mut(&whose) else { return };
        let counted = match &event.what {
            What::TimerArmed { function, mode } => {
                count(&mut own.timers, KINDS_LIMIT, ArmedTimer { function: name(*function), mode: *mode })
            }
            What::Waking { .. } => {
                let by =
                    if interrupted || event.pid == 0 { Waker::Interrupt } else { Waker::Thread(event.pid) };
                let room = self.wakings.len() < WAKINGS_LIMIT;
                if room {
                    self.wakings.push(ThreadWaking { tid: whose, time: event.time, by });
                } else {
                    self.lost += 1;
                }
                count(&mut own.wakers, KINDS_LIMIT, by)
            }
            What::FaultAt { address, instruction } => {
                let place = FaultPlace { page: address & !0xfff, instruction: *instruction };
                count(&mut own.faults, FAULTS_LIMIT, place)
            }
            What::SyscallEntry { id, args } => {
                let call = |args| MadeCall { number: *id, args };
                // A rare call is still listed when a frequent one has many different arguments.
                count(&mut own.calls, KINDS_LIMIT, call(Some([args[0], args[1]])))
                    || count(&mut own.calls, 2 * KINDS_LIMIT, call(None))
            }
            What::Migrate { .. } => {
                own.migrations += 1;
                true
            }
            What::MemoryLocked { write } => {
                own.remappings += u64::from(*write);
                true
            }
            _ => true,
        };
        own.uncounted += u64::from(!counted);
    }
}

/// Counts one; false if there was no room.
fn count<K: Ord>(list: &mut BTreeMap<K, u64>, limit: usize, key: K) -> bool {
    let room = list.len() < limit;
    match list.get_mut(&key) {
        Some(times) => *times += 1,
        None if room => drop(list.insert(key, 1)),
        None => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Context, Event, Task};
    use model::units::{Cpu, Nanos};

    fn event(pid: i32, context: u8, what: What<Address>) -> Raw {
        Event { time: Nanos(0), cpu: Cpu(0), pid, context: Context(context), preempt: 0, what }
    }

    fn counted(events: &[Raw]) -> Activity {
        let mut activity = Activity::default();
        activity.follow([7, 8]);
        for event in events {
            activity.add(event, &mut |address| format!("f{address}"));
        }
        activity
    }

    #[test]
    fn an_interrupt_does_nothing_for_the_thread_it_interrupts() {
        let armed = What::TimerArmed { function: 1, mode: Some(1) };
        let woken = What::Waking { task: Task { pid: 7, ..Task::default() }, target: Cpu(0) };
        let activity = counted(&[
            event(7, 0, armed.clone()),
            event(7, 8, armed.clone()),
            event(9, 0, armed),
            event(8, 8, woken.clone()),
            event(8, 0, woken),
        ]);
        let own = activity.of(7).unwrap();
        let timer = ArmedTimer { function: "f1".into(), mode: Some(1) };
        assert_eq!(
            (own.timers.get(&timer), timer.is_relative(), timer.is_hard()),
            (Some(&1), Some(true), Some(false))
        );
        assert_eq!(own.wakers, [(Waker::Interrupt, 1), (Waker::Thread(8), 1)].into());
        assert!(activity.of(9).is_none());
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let fault = |nth: u64| event(7, 0, What::FaultAt { address: nth << 12 | 5, instruction: 1 });
        let events: Vec<Raw> = (0..FAULTS_LIMIT as u64 + 10).map(fault).collect();
        let activity = counted(&events);
        let own = activity.of(7).unwrap();
        assert_eq!((own.faults.len(), own.uncounted), (FAULTS_LIMIT, 10));
        assert_eq!(own.faults.keys().next().unwrap().page, 0);
    }

    #[test]
    fn a_rare_call_has_room_beside_one_with_many_arguments() {
        let call = |id, at| event(7, 0, What::SyscallEntry { id, args: [3, at, 0, 0] });
        let writes = (0..1000).map(|at| call(1, at));
        let activity = counted(&writes.chain([call(74, 0)]).collect::<Vec<_>>());
        let own = activity.of(7).unwrap();
        let of = |number: i64| own.calls.iter().filter(move |(call, _)| call.number == number);
        assert_eq!(of(1).map(|(_, times)| times).sum::<u64>(), 1000);
        assert_eq!((of(74).map(|(_, times)| times).sum::<u64>(), own.uncounted), (1, 0));
    }

    #[test]
    fn wakings_are_taken_with_their_times() {
        let woken = What::Waking { task: Task { pid: 7, ..Task::default() }, target: Cpu(0) };
        let mut activity = counted(&[event(8, 0, woken.clone()), event(0, 0, woken)]);
        let wakings = activity.take_wakings();
        assert_eq!(
            wakings.iter().map(|waking| waking.by).collect::<Vec<_>>(),
            [Waker::Thread(8), Waker::Interrupt]
        );
        assert_eq!((activity.take_wakings(), activity.of(7).unwrap().woken()), (Vec::new(), 2));
    }

    #[test]
    fn changing_what_memory_consists_of_is_counted_by_thread() {
        let lock = |write| event(7, 0, What::MemoryLocked { write });
        assert_eq!(counted(&[lock(true), lock(false)]).of(7).unwrap().remappings, 1);
    }
}
