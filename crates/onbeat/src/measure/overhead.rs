//! Cost of onbeat's threads during the run.

use super::cost;
use host::{clock, rt};
use model::run::{CpuRun, Overhead};
use model::units::Nanos;

/// Counters from the start of the run.
#[derive(Default)]
pub struct OverheadCounters {
    /// Blocks that cover more than a second because the housekeeping thread was delayed.
    pub merged: u64,
    /// Lines of `blocks.jsonl` that could not be written.
    pub unwritten: u64,
    since: Nanos,
    /// CPU time of this thread at that time; `None` if its clock cannot be read.
    used: Option<Nanos>,
    switches: u64,
}

impl OverheadCounters {
    /// Restarts the counters; called by the housekeeping thread.
    pub fn start(&mut self) {
        *self = OverheadCounters {
            since: clock::monotonic(),
            used: clock::thread_cpu(),
            switches: own_switches(),
            ..OverheadCounters::default()
        };
    }

    /// Writes the counters and the largest share of a measured CPU.
    pub fn fill(&self, overhead: &mut Overhead, cpus: &[CpuRun]) {
        overhead.cpu_share = cpus.iter().filter_map(|cpu| cpu.cpu_share).reduce(f64::max);
        // Not from slot 0, which lies after the start of both counters.
        let span = clock::monotonic() - self.since;
        overhead.housekeeping_cpu_share = cost::share_between(self.used, clock::thread_cpu(), span);
        let seconds = span.as_secs();
        let switches = own_switches().saturating_sub(self.switches);
        overhead.housekeeping_wakeups_per_s =
            (seconds >= 1.0).then(|| (switches as f64 / seconds * 100.0).round() / 100.0);
        overhead.max_rss_kib = host::peak_memory_kib();
        overhead.blocks_joined = Some(self.merged);
        overhead.blocks_unwritten = Some(self.unwritten);
    }
}

/// Wake-ups of this thread: an involuntary switch takes the CPU away without a sleep.
fn own_switches() -> u64 {
    rt::thread_usage().voluntary_switches
}
