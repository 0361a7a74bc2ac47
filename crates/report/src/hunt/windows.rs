//! The windows of a run as they are read, one by one: those of the worst spikes are kept, all go
//! into the mean path.

use std::collections::{BTreeMap, BTreeSet};

use super::lanes::KeptLanes;
use super::stages::Mean;
use model::run::Spike;
use model::units::{Cpu, Nanos};
use trace::window::Window;

/// The number of kept windows: those of the spikes that the page draws.
pub const KEPT: usize = 8;
/// Of this number of the latest spikes the page has what every CPU did meanwhile.
pub const KEPT_LANES: usize = 200;

/// What makes a spike this one: its CPU, when it should have run, when it ran.
type SpikeKey = (Cpu, Nanos, Nanos);

/// What of a run's windows the pictures need.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Windows {
    worst: Vec<Window>,
    wanted: BTreeSet<SpikeKey>,
    lanes: BTreeMap<SpikeKey, KeptLanes>,
    /// The mean path of all of them.
    pub mean: Mean,
}

impl Windows {
    /// Which keeps the lanes of these spikes, however late others are.
    pub fn wanting<'a>(spikes: impl Iterator<Item = &'a Spike>) -> Windows {
        Windows { wanted: spikes.map(key).collect(), ..Windows::default() }
    }

    /// Takes in a window.
    pub fn add(&mut self, window: Window) {
        // A cycle is no path from a timer to user space.
        if window.deadline_ns.is_none() {
            self.mean.add(&window);
        }
        self.keep_lanes(&window);
        // Spans of a damaged file may not fit.
        let latency = |window: &Window| window.actual_ns.0.saturating_sub(window.expected_ns.0);
        let at = self.worst.partition_point(|kept| latency(kept) >= latency(&window));
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

    /// The window of a spike, if it is among the worst.
    pub fn of(&self, spike: &Spike) -> Option<&Window> {
        self.worst.iter().find(|window| (window.cpu, window.expected_ns, window.actual_ns) == key(spike))
    }

    /// What every CPU did around a spike, if that is kept.
    pub fn lanes(&self, spike: &Spike) -> Option<&KeptLanes> {
        self.lanes.get(&key(spike))
    }

    /// The kept windows, latest spike first.
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
        let made = fixture::fifo();
        let later =
            |by: i64| Window { actual_ns: Nanos(made.window.actual_ns.0 + by * 10), ..made.window.clone() };
        let spike = |by: i64| Spike { actual_ns: later(by).actual_ns, ..made.spike.clone() };
        let wanted = spike(3);
        let mut windows = Windows::wanting([&wanted].into_iter());
        (0..KEPT_LANES as i64 + 50).for_each(|by| windows.add(later(by)));
        assert_eq!(windows.lanes.len(), KEPT_LANES + 1);
        assert!(windows.lanes(&wanted).is_some() && windows.lanes(&spike(2)).is_none());
        assert!(windows.lanes(&spike(KEPT_LANES as i64 + 49)).is_some());
    }
}
