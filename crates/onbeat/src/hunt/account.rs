//! Account of the recording in `run.json`: its cost, depth and gaps, and its agreement with the
//! measuring threads. Pure.

use super::ticks::{Ticks, median};
use model::run::{self, Spike};
use model::text::several;
use model::units::Nanos;
use trace::event::What;
use trace::window::Window;

/// Maximum number of values for a median: the first ones are used. `agreeing` counts all.
const MAX_VALUES: usize = 100_000;

/// Cost of the recording at the median wake-up, from the rounds before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecordingCost {
    /// Median wake-up with nothing armed, with events, with events and stacks.
    pub medians: [Option<Nanos>; 3],
    /// Difference of two medians that chance alone may cause.
    pub noise: Option<Nanos>,
}

impl RecordingCost {
    /// Cost added to each wake-up: 1 by events, 2 by events and stacks.
    pub fn added(&self, at: usize) -> Option<Nanos> {
        // A negative difference is noise of the medians, which is in the account as well.
        Some((self.medians[at]? - self.medians[0]?).max(Nanos(0)))
    }
}

/// Account of the recording, updated during the run.
#[derive(Default)]
pub struct RecordingAccount {
    document: run::Recorder,
    ticks: Ticks,
    /// Delays from the switch to the thread's timestamp, for spikes that have both.
    to_user: Vec<Nanos>,
    /// Number of windows that are not in the bundle; `failure` is the first write error.
    unwritten: u64,
    failure: Option<String>,
}

impl RecordingAccount {
    /// Sets the latency from which a wake-up is a spike, and the reason for that value.
    pub fn set_threshold(&mut self, threshold: Option<Nanos>, why: String) {
        (self.document.over_ns, self.document.over_why) = (threshold, why);
    }

    /// Counts the wake-ups of a round, which are not part of the run.
    pub fn discard(&mut self, wakeups: u64) {
        self.document.discarded += wakeups;
    }

    /// Notes the bytes per second of the busiest CPU in a round.
    pub fn note_rate(&mut self, bytes_per_s: u64) {
        self.document.bytes_per_s = self.document.bytes_per_s.max(Some(bytes_per_s));
    }

    /// Maximum bytes per second over all rounds.
    pub fn rate(&self) -> u64 {
        self.document.bytes_per_s.unwrap_or(0)
    }

    /// Sets the cost that the rounds measured.
    pub fn set_cost(&mut self, cost: &RecordingCost) {
        self.document.median_ns = cost.medians;
        self.document.cost_noise_ns = cost.noise;
        (self.document.events_cost_ns, self.document.stacks_cost_ns) = (cost.added(1), cost.added(2));
    }

    /// Sets the difference in a followed thread's cycle that chance alone may cause.
    pub fn set_cost_noise(&mut self, noise: Option<Nanos>) {
        self.document.cost_noise_ns = noise;
    }

    /// Sets the number of polls that found events of followed threads missing.
    pub fn set_polls_with_loss(&mut self, polls: u64) {
        self.document.looks_lost = polls;
    }

    /// Notes the age of the oldest event of a spike's CPU; the least one is reported.
    pub fn note_depth(&mut self, depth: Option<Nanos>) {
        let depth = depth.map(|depth| depth.0 as f64 / 1e6);
        self.document.depth_ms = match (self.document.depth_ms, depth) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    /// Adds a spike and its window.
    pub fn add(&mut self, window: &Window, spike: &Spike) {
        self.ticks.add(window);
        self.document.windows_lost += u64::from(window.begins_late);
        if window.own && !woken_while_running(window) {
            self.compare(spike);
        }
    }

    /// Counts a window that is not in the bundle: `why` is the error, none if space ran out.
    pub fn not_written(&mut self, why: Option<String>) {
        self.unwritten += 1;
        if let Some(why) = why {
            self.failure.get_or_insert(why);
        }
    }

    /// Counts whether the trace shows the same wake-up as the thread's timestamps.
    fn compare(&mut self, spike: &Spike) {
        match spike.switched_ns {
            Some(switched) => {
                self.document.agreeing += 1;
                if self.to_user.len() < MAX_VALUES {
                    self.to_user.push(spike.actual_ns - switched);
                }
            }
            None => self.document.disagreeing += 1,
        }
    }

    /// Part that the event source fills in.
    pub fn of_source(&mut self) -> &mut run::Recorder {
        &mut self.document
    }

    /// Current document; `skipped` spikes were not explained for lack of time.
    pub fn document(&mut self, slowest: Nanos, skipped: u64) -> run::Recorder {
        self.document.slowest_response_ms = Some(slowest.0 as f64 / 1e6);
        self.document.switch_to_user_ns = median(&mut self.to_user);
        (self.document.tick_ns, self.document.ticks) = self.ticks.summary();
        let mut document = self.document.clone();
        document.spikes_passed_over = skipped;
        document.windows_lost += skipped;
        if self.unwritten > 0 {
            let why = self.failure.as_deref().unwrap_or("the space for them is full");
            document.notes.push(format!(
                "the events of {} are not in the bundle: {why}",
                several(self.unwritten, "spike", "spikes")
            ));
        }
        document
    }
}

/// True if the thread was still running, about to sleep, when its timer woke it: there is no switch
/// to it then.
fn woken_while_running(window: &Window) -> bool {
    let victim = window.victim.pid;
    window.events.iter().any(|event| {
        matches!(&event.what, What::Waking { task, .. } if task.pid == victim)
            && event.pid == victim
            && event.time >= window.expected_ns
    })
}
