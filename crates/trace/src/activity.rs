//! What the threads of one process did in a stretch of time, counted from the kernel's events: the
//! timers that they started, who woke them, where they faulted, which system calls they made.

use std::collections::{BTreeMap, BTreeSet};

use super::event::{Address, Raw, What};

/// Different things of one kind and thread beyond these are counted together.
const KINDS_LIMIT: usize = 256;

/// A timer as its thread started it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArmedTimer {
    /// What it calls; `""` where the kernel's functions have no names here.
    pub function: String,
    /// How it was started (`enum hrtimer_mode`); none before Linux 4.16.
    pub mode: Option<u32>,
}

impl ArmedTimer {
    /// Whether it was asked for as a span from now (HRTIMER_MODE_REL).
    pub fn is_relative(&self) -> Option<bool> {
        self.mode.map(|mode| mode & 1 != 0)
    }

    /// Whether it expires in a soft interrupt on PREEMPT_RT: all that are not marked as hard do
    /// (HRTIMER_MODE_HARD, `__hrtimer_init`).
    pub fn is_hard(&self) -> Option<bool> {
        self.mode.map(|mode| mode & 8 != 0)
    }
}

/// Who woke a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waker {
    /// An interrupt, hard or soft: its work is nobody's.
    Interrupt,
    /// A thread, by its number.
    Thread(i32),
}

/// A page fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FaultPlace {
    /// The page that was touched.
    pub page: u64,
    /// The instruction that did.
    pub instruction: u64,
}

/// A system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MadeCall {
    /// Its number.
    pub number: i64,
    /// What distinguishes two calls of a number for a rule: the first two arguments.
    pub args: [u64; 2],
}

/// What one thread did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadActivity {
    pub timers: BTreeMap<ArmedTimer, u64>,
    pub wakers: BTreeMap<Waker, u64>,
    pub faults: BTreeMap<FaultPlace, u64>,
    pub calls: BTreeMap<MadeCall, u64>,
    /// How often it went to another CPU.
    pub migrations: u64,
    /// What found no room in the lists above.
    pub uncounted: u64,
}

/// What the threads of a process did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    pub threads: BTreeMap<i32, ThreadActivity>,
    /// Events that were recorded and of which the kernel kept nothing.
    pub lost: u64,
    /// Which of the kernel's events were recorded, `system:event`.
    pub events: BTreeSet<String>,
}

impl Activity {
    pub fn of(&self, tid: u32) -> Option<&ThreadActivity> {
        self.threads.get(&i32::try_from(tid).ok()?)
    }

    pub fn has_event(&self, name: &str) -> bool {
        self.events.contains(name)
    }

    /// Counts an event, if it is of one of these threads.
    pub fn add(&mut self, event: &Raw, tids: &BTreeSet<i32>, name: &mut impl FnMut(Address) -> String) {
        let interrupted = event.context.hard_irq() || event.context.soft_irq() || event.context.nmi();
        let whose = match &event.what {
            What::Waking { task, .. } => task.pid,
            What::Migrate { pid, .. } => *pid,
            // What an interrupt does is not done by the thread that it interrupts.
            _ if interrupted => return,
            _ => event.pid,
        };
        if !tids.contains(&whose) {
            return;
        }
        let own = self.threads.entry(whose).or_default();
        let counted = match &event.what {
            What::TimerArmed { function, mode } => {
                count(&mut own.timers, ArmedTimer { function: name(*function), mode: *mode })
            }
            What::Waking { .. } if interrupted || event.pid == 0 => count(&mut own.wakers, Waker::Interrupt),
            What::Waking { .. } => count(&mut own.wakers, Waker::Thread(event.pid)),
            What::FaultAt { address, instruction } => {
                count(&mut own.faults, FaultPlace { page: address & !0xfff, instruction: *instruction })
            }
            What::SyscallEntry { id, args } => {
                count(&mut own.calls, MadeCall { number: *id, args: [args[0], args[1]] })
            }
            What::Migrate { .. } => {
                own.migrations += 1;
                true
            }
            _ => true,
        };
        own.uncounted += u64::from(!counted);
    }
}

/// Counts one; whether there was room.
fn count<K: Ord>(list: &mut BTreeMap<K, u64>, key: K) -> bool {
    let room = list.len() < KINDS_LIMIT;
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
        for event in events {
            activity.add(event, &[7, 8].into(), &mut |address| format!("f{address}"));
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
        let events: Vec<Raw> = (0..KINDS_LIMIT as u64 + 10).map(fault).collect();
        let activity = counted(&events);
        let own = activity.of(7).unwrap();
        assert_eq!((own.faults.len(), own.uncounted), (KINDS_LIMIT, 10));
        assert_eq!(own.faults.keys().next().unwrap().page, 0);
    }
}
