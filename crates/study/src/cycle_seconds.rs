//! The cycles of followed threads by second: the counterpart of blocks of wake-ups.

use std::path::Path;

use bundle::read::Bundle;
use model::error::Result;
use model::run::Peak;
use model::units::Nanos;

/// The longest response of the cycles that ended in each whole second of a run, over all CPUs; 0 if
/// none did. Empty if its bundle lacks them: one of before `response_ns`, or one in which no cycle
/// ended.
pub fn longest_responses(path: &Path) -> Result<Vec<Nanos>> {
    let bundle = Bundle::open(path)?;
    let mut peaks: Vec<Peak> = Vec::new();
    bundle.each_peak(|peak| peaks.push(*peak))?;
    Ok(by_second(&peaks, bundle.run.elapsed_ns.unwrap_or_default()))
}

/// Blocks of followed threads are the seconds of the run: one that contains several is empty.
fn by_second(peaks: &[Peak], elapsed: Nanos) -> Vec<Nanos> {
    let seconds = usize::try_from(elapsed.0 / Nanos::SECOND.0).unwrap_or(0);
    let Some(began) = peaks.iter().map(|peak| peak.mono_ns).min() else { return Vec::new() };
    if peaks.iter().all(|peak| peak.response_ns.is_none()) {
        return Vec::new();
    }
    let mut longest = vec![Nanos(0); seconds.min(MOST)];
    for peak in peaks {
        let second = usize::try_from(peak.mono_ns.0.saturating_sub(began.0) / Nanos::SECOND.0).ok();
        let own = second.and_then(|second| longest.get_mut(second));
        if let (Some(own), Some(response)) = (own, peak.response_ns) {
            *own = (*own).max(response);
        }
    }
    longest
}

/// No segment is longer than these seconds; a bundle may come from anywhere.
const MOST: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Cpu;

    fn peak(cpu: u32, second: i64, response: Option<i64>) -> Peak {
        Peak {
            cpu: Cpu(cpu),
            mono_ns: Nanos(700 + second * Nanos::SECOND.0),
            span_ns: None,
            n: 1,
            max_ns: None,
            max_mono_ns: None,
            response_ns: response.map(Nanos),
        }
    }

    #[test]
    fn each_second_has_its_longest_over_all_cpus() {
        let peaks = [
            peak(0, 0, Some(10)),
            peak(1, 0, Some(30)),
            peak(0, 1, None),
            peak(0, 2, Some(5)),
            peak(0, 3, Some(99)),
        ];
        let of = |ms: i64| by_second(&peaks, Nanos(ms * 1_000_000));
        assert_eq!(of(3_400), [30, 0, 5].map(Nanos), "the end is no whole second");
        assert!(of(-5).is_empty() && by_second(&[], Nanos::SECOND).is_empty());
    }

    #[test]
    fn a_bundle_without_responses_says_nothing() {
        assert!(by_second(&[peak(0, 0, None), peak(0, 1, None)], Nanos(2 * Nanos::SECOND.0)).is_empty());
    }
}
