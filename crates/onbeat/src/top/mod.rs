//! `onbeat top`: CPUs and real-time threads live. Pure: a source hands over a [`TopTick`] each
//! second, [`state`] adds them up and follows the keys, [`draw`] makes a screen of the state, and
//! [`paint`] writes what differs from the last screen.

pub mod columns;
pub mod draw;
#[cfg(test)]
mod fixture;
pub mod histogram;
pub mod history;
pub mod keys;
pub mod own;
pub mod paint;
pub mod recorded;
pub mod row;
pub mod state;

use model::rows::{RowCounts, RowSums};
use model::units::{Cpu, Nanos};
use model::watch::WorstWakeup;

/// Subject of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowKey {
    Cpu(Cpu),
    /// A thread by its ID.
    Thread(u32),
}

/// Results of a source since the last ones.
#[derive(Clone, Debug, Default)]
pub struct TopTick {
    pub span: Nanos,
    pub rows: Vec<RowTick>,
    /// Wake-ups and events that are missing from it.
    pub lost: u64,
    /// Threads that are gone.
    pub ended: Vec<u32>,
}

/// Results for one row.
#[derive(Clone, Debug)]
pub struct RowTick {
    pub key: RowKey,
    pub name: Option<String>,
    /// Real-time priority, if known.
    pub priority: Option<u32>,
    /// CPU of a thread.
    pub cpu: Option<Cpu>,
    pub wakeups: u64,
    /// Slots that were slept through; `None` for threads without a schedule of onbeat.
    pub missed: Option<u64>,
    /// Latencies of wake-ups by a timer, T + W.
    pub both: LatencyTally,
    /// W of all wake-ups.
    pub wait: LatencyTally,
    /// The largest, with a culprit if one is proven.
    pub worst: Option<WorstWakeup>,
}

impl RowTick {
    /// A row without wake-ups.
    pub fn new(key: RowKey) -> RowTick {
        RowTick {
            key,
            name: None,
            priority: None,
            cpu: None,
            wakeups: 0,
            missed: None,
            both: LatencyTally::default(),
            wait: LatencyTally::default(),
            worst: None,
        }
    }
}

/// A histogram with its exact values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatencyTally {
    pub n: u64,
    pub sum: i128,
    pub min: Option<Nanos>,
    pub max: Option<Nanos>,
    pub rows: RowCounts,
}

impl LatencyTally {
    /// Adds another one; `scratch` is memory to work in.
    pub fn add(&mut self, other: &LatencyTally, scratch: &mut RowSums) {
        if other.n == 0 {
            return;
        }
        self.n = self.n.saturating_add(other.n);
        self.sum += other.sum;
        self.min = [self.min, other.min].into_iter().flatten().min();
        self.max = self.max.max(other.max);
        scratch.clear();
        scratch.add_all(&self.rows);
        scratch.add_all(&other.rows);
        self.rows = scratch.counts();
    }

    pub fn mean(&self) -> Option<Nanos> {
        (self.n > 0).then(|| Nanos((self.sum / i128::from(self.n)) as i64))
    }

    /// Upper edge of the row that holds this quantile, at most the maximum.
    pub fn quantile(&self, per_million: u64) -> Option<Nanos> {
        let rank = (u128::from(self.n) * u128::from(per_million)).div_ceil(1_000_000).max(1);
        let mut seen = 0u128;
        let (row, _) = self.rows.iter().find(|(_, count)| {
            seen += u128::from(*count);
            seen >= rank
        })?;
        let edge = model::rows::row_edges(row).1;
        Some(self.max.map_or(edge, |max| edge.min(max)))
    }
}
