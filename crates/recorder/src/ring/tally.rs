//! Histograms and largest wake-ups, counted in this process.

use std::collections::BTreeMap;

use model::rows::row_of;
use model::units::{Cpu, Nanos};
use model::watch::{WatchTask, WorstWakeup};
use trace::event::Task;

use crate::layout::{BEYOND, LARGEST, SERIES, TIMER, WAKEUP};
use crate::records::{HOLDERS, VICTIMS, WorstFound};

/// The thread that a timer interrupted, with what the last switch there showed of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted {
    pub tid: i32,
    pub task: Option<Task>,
}

/// One wake-up.
#[derive(Clone, Copy, Debug)]
pub struct WakeupSample {
    pub cpu: Cpu,
    /// In the order of `HOLDERS`.
    pub holder: usize,
    /// Whether the victim is a thread of the kernel.
    pub kernel: bool,
    /// T, where its timer was seen.
    pub late: Option<Nanos>,
    /// W.
    pub wait: Nanos,
    /// How long of it the previous thread had the CPU, where that was seen.
    pub held: Option<Nanos>,
    /// When it was switched to.
    pub at: Nanos,
    pub victim: Task,
    pub previous: Task,
    pub interrupted: Option<Interrupted>,
}

/// One histogram.
#[derive(Clone, Debug, Default)]
pub struct RingTally {
    pub rows: BTreeMap<usize, u64>,
    pub sum: i64,
    pub least: Option<Nanos>,
    /// The largest, where it is more than 0.
    pub worst: Option<(Nanos, WakeupSample)>,
}

/// By CPU, holder and whether the victims are the kernel's; and by chosen thread.
#[derive(Clone, Debug, Default)]
pub struct RingTallies {
    pub cpus: BTreeMap<(Cpu, usize, usize), [RingTally; SERIES]>,
    pub threads: BTreeMap<u32, [RingTally; SERIES]>,
}

impl RingTallies {
    pub fn add(&mut self, sample: &WakeupSample, chosen: bool) {
        let class = (sample.cpu, sample.holder, sample.kernel.into());
        let count = |tallies: &mut [RingTally; SERIES]| {
            for (series, tally) in tallies.iter_mut().enumerate() {
                if let Some(value) = sample.value(series) {
                    tally.add(value, sample);
                }
            }
        };
        count(self.cpus.entry(class).or_default());
        if chosen {
            count(self.threads.entry(sample.victim.pid as u32).or_default());
        }
    }
}

impl RingTally {
    fn add(&mut self, value: Nanos, sample: &WakeupSample) {
        let row = if value.0 <= LARGEST as i64 { row_of(value) } else { BEYOND };
        *self.rows.entry(row).or_default() += 1;
        self.sum = self.sum.wrapping_add(value.0);
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
        if value > self.worst.map_or(Nanos(0), |(most, _)| most) {
            self.worst = Some((value, *sample));
        }
    }
}

impl WakeupSample {
    /// What it is in a series, by the number of its histogram.
    pub fn value(&self, series: usize) -> Option<Nanos> {
        match series {
            TIMER => self.late,
            WAKEUP => Some(self.wait),
            _ => self.late.map(|late| late + self.wait),
        }
    }

    /// As one of the worst: without stacks, which no event of these has.
    pub(crate) fn found(&self) -> WorstFound {
        let task = |task: &Task| WatchTask {
            comm: task.comm.to_string(),
            // Idle threads are no process's.
            pid: task.idle().then_some(0),
            tid: Some(task.pid),
            prio: Some(task.prio),
            ..WatchTask::default()
        };
        let interrupted = match self.interrupted {
            None => WatchTask::default(),
            // The thread that the timer found is mostly the one that then had to leave; idle
            // threads of all CPUs have the number 0.
            Some(found) if found.tid == self.previous.pid && found.tid != 0 => task(&self.previous),
            Some(Interrupted { task: Some(known), .. }) => task(&known),
            // Which no switch of a real-time thread showed; idle threads have names of their own.
            Some(Interrupted { tid: 0, .. }) => WatchTask {
                comm: format!("swapper/{}", self.cpu),
                pid: Some(0),
                tid: Some(0),
                ..WatchTask::default()
            },
            Some(found) => WatchTask { tid: Some(found.tid), ..WatchTask::default() },
        };
        let wakeup = WorstWakeup {
            holder: HOLDERS[self.holder].into(),
            victims: VICTIMS[usize::from(self.kernel)].into(),
            timer_ns: self.late,
            wakeup_ns: Some(self.wait),
            held_ns: self.held,
            mono_ns: self.at,
            cpu: Some(self.cpu),
            victim: task(&self.victim),
            previous: task(&self.previous),
            interrupted,
            ..WorstWakeup::default()
        };
        WorstFound { wakeup, ..WorstFound::default() }
    }
}
