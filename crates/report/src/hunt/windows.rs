//! Windows of a run, read one by one: those of the worst spikes are kept, all enter the mean path.

use std::collections::{BTreeMap, BTreeSet};

use super::lanes::KeptLanes;
use super::stages::Mean;
use model::run::Spike;
use model::units::{Cpu, Nanos};
use trace::window::Window;

/// Number of kept windows: those of the spikes that the page draws.
pub const KEPT: usize = 8;
/// Number of latest spikes for which the page has the lanes of every CPU.
pub const KEPT_LANES: usize = 200;

/// Key of a spike: its CPU, expected time and actual time.
type SpikeKey = (Cpu, Nanos, Nanos);

/// Data of a run's windows that the pictures need.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Windows {
    worst: Vec<Window>,
    wanted: BTreeSet<SpikeKey>,
    lanes: BTreeMap<SpikeKey, KeptLanes>,
    /// Mean path over all windows.
    pub mean: Mean,
}

impl Windows {
    /// Windows that keep the lanes of these spikes, however late others are.
    pub fn wanting<'a>(spikes: impl Iterator<Item = &'a Spike>) -> Windows {
        Windows { wanted: spikes.map(key).collect(), ..Windows::default() }
    }

    /// Adds a window.
    pub fn add(&mut self, window: Window) {
        // A cycle has no path from a timer to user space.
        if window.deadline_ns.is_none() {
            self.mean.add(&window);
        }
        self.keep_lanes(&window);
        // Spans of a damaged file may overflow.
        let latency = |window: &Window| window.actual_ns.0.saturating_sub(window.expected_ns.0);
        let at = self.worst.partition_point(|other| latency(other) >= latency(&window));
        if at < KEPT {
            self.worst.insert(at, window);
            self.worst.truncate(KEPT);
        }
    }

    fn keep_lanes(&mut self, window: &Window) {
        let of = (window.cpu, window.expected_ns, window.actual_ns);
        let late = |key: &SpikeKey| key.2.0.saturating_sub(key.1.0);
        let others = self.lanes.keys().filter(|key| !self.wanted.contains(key));
        let (count, least) = others.fold((0, None::<SpikeKey>), |(count, least), &key| {
            (count + 1, least.filter(|least| late(least) <= late(&key)).or(Some(key)))
        });
        if !self.wanted.contains(&of) && count >= KEPT_LANES {
            match least.filter(|least| late(least) < late(&of)) {
                Some(least) => drop(self.lanes.remove(&least)),
                None => return,
            }
        }
        self.lanes.insert(of, KeptLanes::of(window));
    }

    /// Window of a spike, if it is among the worst.
    pub fn of(&self, spike: &Spike) -> Option<&Window> {
        self.worst.iter().find(|window| (window.cpu, window.expected_ns, window.actual_ns) == key(spike))
    }

    /// Lanes of every CPU around a spike, if they are kept.
    pub fn lanes(&self, spike: &Spike) -> Option<&KeptLanes> {
        self.lanes.get(&key(spike))
    }

    /// Kept windows, latest spike first.
    pub fn worst(&self) -> &[Window] {
        &self.worst
    }
}

fn key(spike: &Spike) -> SpikeKey {
    (spike.cpu, spike.expected_ns, spike.actual_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::fixture;

    #[test]
    fn the_worst_are_kept_and_all_count() {
        let mut windows = Windows::default();
        let cases = fixture::cases();
        for case in cases.iter().chain([&fixture::fifo(), &fixture::storm()]) {
            windows.add(case.window.clone());
        }
        assert_eq!((windows.worst().len(), windows.mean.windows), (KEPT, 10));
        assert_eq!(windows.worst()[0], fixture::unexplained().window);
        assert_eq!(windows.of(&cases[1].spike), Some(&cases[1].window));
        assert_eq!(windows.of(&Spike::default()), None);
    }

    #[test]
    fn lanes_are_those_of_the_latest_and_of_the_wanted() {
        let case = fixture::fifo();
        let later =
            |by: i64| Window { actual_ns: Nanos(case.window.actual_ns.0 + by * 10), ..case.window.clone() };
        let spike = |by: i64| Spike { actual_ns: later(by).actual_ns, ..case.spike.clone() };
        let wanted = spike(3);
        let mut windows = Windows::wanting([&wanted].into_iter());
        (0..KEPT_LANES as i64 + 50).for_each(|by| windows.add(later(by)));
        assert_eq!(windows.lanes.len(), KEPT_LANES + 1);
        assert!(windows.lanes(&wanted).is_some() && windows.lanes(&spike(2)).is_none());
        assert!(windows.lanes(&spike(KEPT_LANES as i64 + 49)).is_some());
    }
}
