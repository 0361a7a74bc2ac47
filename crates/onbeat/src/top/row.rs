//! A row of the view: sums since the last reset, and the last second.

use model::rows::RowSums;
use model::units::{Cpu, Nanos};
use model::watch::WorstWakeup;

use super::history::MinuteHistory;
use super::{LatencyTally, RowKey, RowTick};

/// Sums of a CPU or thread.
#[derive(Clone, Debug)]
pub struct LiveRow {
    pub key: RowKey,
    pub name: String,
    pub priority: Option<u32>,
    pub cpu: Option<Cpu>,
    /// Largest latency of the last second.
    pub last: Option<Nanos>,
    /// Wake-ups of the last second.
    pub rate: Option<f64>,
    pub missed: Option<u64>,
    pub both: LatencyTally,
    pub wait: LatencyTally,
    pub worst: Option<WorstWakeup>,
    pub history: MinuteHistory,
    /// Seconds since its end.
    pub ended_for: Option<u32>,
    wakeups: u64,
}

impl LiveRow {
    pub fn new(key: RowKey) -> LiveRow {
        let name = match key {
            RowKey::Cpu(cpu) => format!("CPU {cpu}"),
            RowKey::Thread(tid) => tid.to_string(),
        };
        LiveRow {
            key,
            name,
            priority: None,
            cpu: None,
            last: None,
            rate: None,
            missed: None,
            both: LatencyTally::default(),
            wait: LatencyTally::default(),
            worst: None,
            history: MinuteHistory::default(),
            ended_for: None,
            wakeups: 0,
        }
    }

    /// Begins a second.
    pub fn begin(&mut self, second: usize) {
        self.history.begin(second);
        (self.last, self.rate, self.wakeups) = (None, None, 0);
        self.ended_for = self.ended_for.map(|seconds| seconds.saturating_add(1));
    }

    /// Adds results of this second.
    pub fn add(&mut self, tick: RowTick, span: Nanos, scratch: &mut RowSums) {
        let largest = tick.both.max.max(tick.wait.max);
        let is_new = tick.worst.is_some() && largest > self.max();
        self.both.add(&tick.both, scratch);
        self.wait.add(&tick.wait, scratch);
        if is_new {
            self.worst = tick.worst;
        }
        if let Some(name) = tick.name {
            self.name = name;
        }
        self.priority = tick.priority.or(self.priority);
        self.cpu = tick.cpu.or(self.cpu);
        self.missed = match (self.missed, tick.missed) {
            (Some(sum), Some(more)) => Some(sum + more),
            (known, None) | (None, known) => known,
        };
        self.wakeups += tick.wakeups;
        self.rate = (span.0 > 0).then(|| self.wakeups as f64 / span.as_secs());
        self.last = self.last.max(largest);
        self.history.note(largest);
        self.ended_for = None;
    }

    /// Empties the sums.
    pub fn reset(&mut self) {
        (self.both, self.wait, self.worst) = (LatencyTally::default(), LatencyTally::default(), None);
        self.missed = self.missed.map(|_| 0);
        self.history = MinuteHistory::default();
    }

    /// Latencies that the quantiles are of: T + W where most wake-ups have a timer, else W.
    pub fn main(&self) -> &LatencyTally {
        if self.has_timer() { &self.both } else { &self.wait }
    }

    /// True if [`LiveRow::main`] includes T.
    pub fn has_timer(&self) -> bool {
        self.both.n > 0 && self.both.n >= self.wait.n / 2
    }

    pub fn max(&self) -> Option<Nanos> {
        self.both.max.max(self.wait.max)
    }

    /// Culprit of the largest; empty if none is proven.
    pub fn culprit(&self) -> &str {
        self.worst.as_ref().map_or("", |worst| worst.culprit.name.as_str())
    }

    /// T of the largest.
    pub fn worst_timer(&self) -> Option<Nanos> {
        self.worst.as_ref()?.timer_ns
    }

    /// W of the largest.
    pub fn worst_wait(&self) -> Option<Nanos> {
        self.worst.as_ref()?.wakeup_ns
    }
}
