//! What `run.json` records about the recording: its cost, its depth, its gaps, and whether it
//! agrees with the measuring threads. Pure.

use super::ticks::{Ticks, median};
use model::run::{self, Spike};
use model::text::several;
use model::units::Nanos;
use trace::event::What;
use trace::window::Window;

/// Values from which a median is taken: the first of them. `agreeing` counts all.
const MAX_VALUES: usize = 100_000;

/// What the recording costs at the median wake-up, from the rounds before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecordingCost {
    /// Median wake-up with nothing armed, with events, with events and stacks.
    pub medians: [Option<Nanos>; 3],
    /// By how much chance alone may make two medians differ.
    pub noise: Option<Nanos>,
}

impl RecordingCost {
    /// What is added to each wake-up: 1 by events, 2 by events and stacks.
    pub fn added(&self, at: usize) -> Option<Nanos> {
        // Less than nothing is the noise of the medians, which is in the account as well.
        Some((self.medians[at]? - self.medians[0]?).max(Nanos(0)))
    }
}

/// The account while it grows.
#[derive(Default)]
pub struct RecordingAccount {
    document: run::Recorder,
    ticks: Ticks,
    /// From the switch to the thread's timestamp, for spikes that have both.
    to_user: Vec<Nanos>,
    /// Windows that are not in the bundle, and why the first could not be written.
    unwritten: u64,
    failure: Option<String>,
}

impl RecordingAccount {
    /// The latency from which on a wake-up is a spike, and how that came about.
    pub fn set_threshold(&mut self, threshold: Option<Nanos>, why: String) {
        (self.document.over_ns, self.document.over_why) = (threshold, why);
    }

    /// Wake-ups of a round, which do not count in the run.
    pub fn discard(&mut self, wakeups: u64) {
        self.document.discarded += wakeups;
    }

    /// Bytes per second of the busiest CPU in a round.
    pub fn note_rate(&mut self, bytes_per_s: u64) {
        self.document.bytes_per_s = self.document.bytes_per_s.max(Some(bytes_per_s));
    }

    /// The most bytes per second of any round.
    pub fn rate(&self) -> u64 {
        self.document.bytes_per_s.unwrap_or(0)
    }

    /// What the rounds showed.
    pub fn set_cost(&mut self, cost: &RecordingCost) {
        self.document.median_ns = cost.medians;
        self.document.cost_noise_ns = cost.noise;
        (self.document.events_cost_ns, self.document.stacks_cost_ns) = (cost.added(1), cost.added(2));
    }

    /// By how much chance alone may make the cost of a followed thread's cycle differ.
    pub fn set_cost_noise(&mut self, noise: Option<Nanos>) {
        self.document.cost_noise_ns = noise;
    }

    /// Polls that found events of followed threads missing.
    pub fn set_polls_with_loss(&mut self, polls: u64) {
        self.document.looks_lost = polls;
    }

    /// How far back the events of a spike's CPU reached.
    pub fn note_depth(&mut self, depth: Option<Nanos>) {
        let depth = depth.map(|depth| depth.0 as f64 / 1e6);
        self.document.depth_ms = match (self.document.depth_ms, depth) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    /// A spike and its window.
    pub fn add(&mut self, window: &Window, spike: &Spike) {
        self.ticks.add(window);
        self.document.windows_lost += u64::from(window.begins_late);
        if window.own && !woken_while_running(window) {
            self.compare(spike);
        }
    }

    /// A window that is not in the bundle, for want of space or for this reason.
    pub fn not_written(&mut self, why: Option<String>) {
        self.unwritten += 1;
        if let Some(why) = why {
            self.failure.get_or_insert(why);
        }
    }

    /// Whether the trace shows the same wake-up as the thread's timestamps.
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

    /// The part that the source fills in.
    pub fn of_source(&mut self) -> &mut run::Recorder {
        &mut self.document
    }

    /// The current document, without the `skipped` spikes that there was no time to explain.
    pub fn document(&mut self, slowest: Nanos, skipped: u64) -> run::Recorder {
        self.document.slowest_response_ms = Some(slowest.0 as f64 / 1e6);
        self.document.switch_to_user_ns = median(&mut self.to_user);
        (self.document.tick_ns, self.document.ticks) = self.ticks.summary();
        let mut document = self.document.clone();
        document.spikes_passed_over = skipped;
        document.windows_lost += skipped;
        if self.unwritten > 0 {
            let why = self.failure.as_deref().unwrap_or("the space for them is used up");
            document.notes.push(format!(
                "the events of {} are not in the bundle: {why}",
                several(self.unwritten, "spike", "spikes")
            ));
        }
        document
    }
}

/// Whether the thread was still running when its timer woke it, about to sleep: then there is no
/// switch to it.
fn woken_while_running(window: &Window) -> bool {
    let victim = window.victim.pid;
    window.events.iter().any(|event| {
        matches!(&event.what, What::Waking { task, .. } if task.pid == victim)
            && event.pid == victim
            && event.time >= window.expected_ns
    })
}
