//! The windows of a run as they are read, one by one: those of the worst spikes are kept, all go
//! into the mean path.

use super::stages::Mean;
use model::run::Spike;
use trace::window::Window;

/// The number of kept windows: those of the spikes that the page draws.
pub const KEPT: usize = 8;

/// What of a run's windows the pictures need.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Windows {
    worst: Vec<Window>,
    /// The mean path of all of them.
    pub mean: Mean,
}

impl Windows {
    /// Takes in a window.
    pub fn add(&mut self, window: Window) {
        // A cycle is no path from a timer to user space.
        if window.deadline_ns.is_none() {
            self.mean.add(&window);
        }
        // Spans of a damaged file may not fit.
        let latency = |window: &Window| window.actual_ns.0.saturating_sub(window.expected_ns.0);
        let at = self.worst.partition_point(|kept| latency(kept) >= latency(&window));
        if at < KEPT {
            self.worst.insert(at, window);
            self.worst.truncate(KEPT);
        }
    }

    /// The window of a spike, if it is among the worst.
    pub fn of(&self, spike: &Spike) -> Option<&Window> {
        self.worst.iter().find(|window| {
            (window.cpu, window.expected_ns, window.actual_ns)
                == (spike.cpu, spike.expected_ns, spike.actual_ns)
        })
    }

    /// The kept windows, latest spike first.
    pub fn worst(&self) -> &[Window] {
        &self.worst
    }
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
}
