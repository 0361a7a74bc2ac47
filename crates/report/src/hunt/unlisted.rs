//! Spikes of a hunt that are not in its list, counted by the reason.

use crate::words::several;
use model::run::Run;

/// Number of spikes that were counted and never explained.
pub fn passed_over(run: &Run) -> u64 {
    let counted = run.recorder.as_ref().map_or(0, |recorder| recorder.spikes_passed_over);
    counted.min(run.spikes_dropped)
}

/// Number of ranked spikes that no list has: there was no space to write them.
pub fn unwritten(run: &Run) -> u64 {
    let counted = run.recorder.as_ref().map_or(0, |recorder| recorder.spikes_unwritten);
    counted.min(run.spikes_dropped - passed_over(run))
}

/// Number of spikes in the sum of latencies: those in the list, and those that were ranked and not
/// kept.
pub fn summed(run: &Run) -> String {
    let ranked = run.spikes_dropped - passed_over(run);
    several((run.spikes.len() as u64).saturating_add(ranked), "spike", "spikes")
}

/// Sentence on the spikes that the sum leaves out.
pub fn left_out(run: &Run) -> Option<String> {
    let passed_over = passed_over(run);
    let words = several(passed_over, "spike that was only counted is", "spikes that were only counted is");
    (passed_over > 0).then(|| format!("The latency of {words} not included in the sum."))
}
