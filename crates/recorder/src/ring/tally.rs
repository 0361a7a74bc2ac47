//! Histograms and largest wake-ups, counted in this process.

use std::collections::BTreeMap;

use model::rows::row_of;
use model::units::{Cpu, Nanos};
use model::watch::{WatchTask, WorstWakeup};
use trace::event::Task;

use crate::layout::{BEYOND, LARGEST, SERIES, TIMER, WAKEUP};
use crate::records::{HOLDERS, VICTIMS, WorstFound};

/// The thread that a timer interrupted, with the values of the last switch there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted {
    pub tid: i32,
    pub task: Option<Task>,
}

/// One wake-up.
#[derive(Clone, Copy, Debug)]
pub struct WakeupSample {
    pub cpu: Cpu,
    /// Index into `HOLDERS`.
    pub holder: usize,
    /// True if the victim is a kernel thread.
    pub kernel: bool,
    /// T, if its timer was seen.
    pub late: Option<Nanos>,
    /// W.
    pub wait: Nanos,
    /// Part of it in which the previous thread had the CPU, if that was seen.
    pub held: Option<Nanos>,
    /// Time of the switch to it.
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
    /// The largest, if it is more than 0.
    pub worst: Option<(Nanos, WakeupSample)>,
}

/// Histograms by CPU, holder and kind of victims (user or kernel); and by chosen thread.
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
    /// Value in a series, by the number of its histogram.
    pub fn value(&self, series: usize) -> Option<Nanos> {
        match series {
            TIMER => self.late,
            WAKEUP => Some(self.wait),
            _ => self.late.map(|late| late + self.wait),
        }
    }

    /// Converts to one of the worst, without stacks, which these events lack.
    pub(crate) fn found(&self) -> WorstFound {
        let task = |task: &Task| WatchTask {
            comm: task.comm.to_string(),
            // Idle threads belong to no process.
            pid: task.idle().then_some(0),
            tid: Some(task.pid),
            prio: Some(task.prio),
            ..WatchTask::default()
        };
        let interrupted = match self.interrupted {
            None => WatchTask::default(),
            // The thread that the timer interrupted is usually the one that was switched out; idle
            // threads of all CPUs have the number 0.
            Some(found) if found.tid == self.previous.pid && found.tid != 0 => task(&self.previous),
            Some(Interrupted { task: Some(known), .. }) => task(&known),
            // No switch of a real-time thread showed it; idle threads have a name per CPU.
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
