//! Proof that a load loaded: its own count and the kernel's statistic, in windows.
//!
//! In every window both must be above 0 and above a tenth of their own median; every process must
//! run, and count something within three windows. The first two windows are ignored, because memory
//! is filled and caches warm up; in a run without others they must be above 0. Failures are named
//! with their windows. A window that is longer because of a late sample is judged by the counts in
//! all of it.

use std::collections::VecDeque;

use model::histogram::{BUCKETS, Counts, bucket_edges, bucket_of};
use model::load::LoadProof;
use model::units::Nanos;

/// Number of windows at the start that are not judged.
const WARM_UP: u64 = 2;

/// Share of its own median that a window must reach.
const SHARE: f64 = 0.1;

/// Share of the median that must be reached in a time without samples: with only a tenth, the load
/// may have been stopped for most of it.
const UNSEEN_SHARE: f64 = 0.5;

/// Rates of one count by window, in bounded memory.
#[derive(Default)]
pub struct WindowRates {
    /// Rates per second of the judged windows, in thousandths; the histogram's buckets give the
    /// median to 1.6 %.
    rates: Counts,
    windows: u64,
    /// Smallest rate of the judged windows, and the end of its window.
    least: Option<(f64, Nanos)>,
    /// Smallest rate of the first windows, and the end of its window.
    least_early: Option<(f64, Nanos)>,
    /// Count at the end of the last window.
    last: Option<u64>,
    /// Number of windows at whose end the count was not readable.
    unread: u64,
    /// Smallest rate over a time without samples.
    least_unseen: Option<f64>,
}

impl WindowRates {
    /// Takes the count at the end of a window. The first call only starts one.
    pub fn take(&mut self, count: Option<u64>, span: Nanos, at: Nanos, early: bool) {
        let before = std::mem::replace(&mut self.last, count);
        self.judge(before, count, span, at, early);
    }

    /// Judges a window by the counts at its two ends.
    fn judge(&mut self, before: Option<u64>, count: Option<u64>, span: Nanos, at: Nanos, early: bool) {
        if span.0 <= 0 {
            return;
        }
        self.unread += u64::from(count.is_none());
        let (Some(count), Some(before)) = (count, before) else { return };
        let rate = count.saturating_sub(before) as f64 / span.as_secs();
        let least = if early { &mut self.least_early } else { &mut self.least };
        if least.is_none_or(|(least, _)| rate < least) {
            *least = Some((rate, at));
        }
        if !early {
            self.windows += 1;
            // In thousandths, because a slow disk syncs less than once a second.
            self.rates.add(bucket_of(Nanos((rate * 1000.0).min(9e18) as i64)), 1);
        }
    }

    /// Takes the count at the end of a time without samples, before its window closes.
    fn take_unseen(&mut self, count: Option<u64>, span: Nanos) {
        let Some(before) = self.last else { return };
        // A count that is no longer readable proves nothing.
        let rate = count.map_or(0.0, |count| count.saturating_sub(before) as f64 / span.as_secs());
        self.least_unseen = Some(self.least_unseen.map_or(rate, |least| least.min(rate)));
    }

    /// True if at least half of the median was reached in all times without samples.
    fn went_on_unseen(&self) -> bool {
        self.least_unseen.is_none_or(|rate| rate > 0.0 && rate >= self.median() * UNSEEN_SHARE)
    }

    /// Smallest rate; that of the first windows if there are no others.
    fn smallest(&self) -> Option<(f64, Nanos)> {
        self.least.or(self.least_early)
    }

    fn median(&self) -> f64 {
        let half = self.windows.div_ceil(2).max(1);
        let mut above = 0;
        let reached = (1..BUCKETS).rev().find(|bucket| {
            above += self.rates.get(*bucket);
            above >= half
        });
        reached.map_or(0.0, |bucket| bucket_edges(bucket).0.0 as f64 / 1000.0)
    }

    /// Least rate that every window must reach.
    fn floor(&self) -> f64 {
        self.median() * SHARE
    }

    /// Failure of the proof, if any.
    fn failure(&self, what: &str) -> Option<String> {
        match self.smallest() {
            None => Some(format!("{what} could not be read")),
            _ if self.unread > 0 => Some(format!("{what} could not be read in {} windows", self.unread)),
            Some((least, _)) if least > 0.0 && least >= self.floor() => None,
            Some((least, at)) => {
                let usual = match self.median() {
                    usual if usual > least => format!(", where {usual:.0} are usual"),
                    _ => String::new(),
                };
                Some(format!("{least:.0} {what} in the window that ended after {:.0} s{usual}", at.as_secs()))
            }
        }
    }
}

/// Sample of one load at one instant.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadSample<'a> {
    /// Own count of each process; `None` for a program without one.
    pub own: Option<&'a [u64]>,
    /// Kernel statistic.
    pub kernel: Option<u64>,
    /// Number of its processes, including those that they have started.
    pub processes: u32,
    /// Number of those that are stopped or have ended.
    pub idle: u32,
}

impl LoadSample<'_> {
    fn sum(&self) -> Option<u64> {
        self.own.map(|counts| counts.iter().fold(0, |sum: u64, count| sum.saturating_add(*count)))
    }
}

/// Counts at one instant.
struct Reading {
    at: Nanos,
    own: Option<u64>,
    kernel: Option<u64>,
}

/// Count of one process, and the number of windows since it has changed.
#[derive(Clone, Copy, Default)]
struct ProcessCount {
    last: u64,
    windows: u32,
}

/// Windows in a row without a count after which a process has stalled: on a busy machine each may
/// have to wait longer than one for its turn.
const STALLED: u32 = 3;

/// Limit of windows in one interval between samples; above it the sampler was stopped.
const MERGED: i64 = 3;

/// Proof of one load while it runs.
pub struct ProofSeries {
    window: Nanos,
    unit: &'static str,
    figure: &'static str,
    /// Largest number of its processes in any sample.
    processes: u32,
    own: WindowRates,
    kernel: WindowRates,
    seen: u64,
    begun: Option<Nanos>,
    closed: Nanos,
    /// Largest number of processes that did not run in a sample, and its time.
    idle: Option<(u32, Nanos)>,
    each: Vec<ProcessCount>,
    /// Largest number of stalled processes at the end of a window, and its time.
    stalled: Option<(u32, Nanos)>,
    /// Longest interval without a sample, if too long, and its end.
    unseen: Option<(Nanos, Nanos)>,
    /// Readings of about one window, the oldest first.
    recent: VecDeque<Reading>,
}

/// Time by which a sample may be early and still close its window.
const TOLERANCE: Nanos = Nanos(100_000_000);

impl ProofSeries {
    /// Starts a proof; an empty unit is that of a program, which counts nothing.
    pub fn new(window: Nanos, unit: &'static str, figure: &'static str, processes: u32) -> ProofSeries {
        ProofSeries {
            window,
            unit,
            figure,
            processes,
            own: WindowRates::default(),
            kernel: WindowRates::default(),
            seen: 0,
            begun: None,
            closed: Nanos(0),
            idle: None,
            each: vec![ProcessCount::default(); processes as usize],
            stalled: None,
            unseen: None,
            recent: VecDeque::new(),
        }
    }

    /// Takes a sample at this instant, about once a second.
    pub fn take(&mut self, sample: LoadSample, now: Nanos) {
        let begun = *self.begun.get_or_insert(now);
        self.processes = self.processes.max(sample.processes);
        if sample.idle > 0 && self.idle.is_none_or(|(most, _)| sample.idle > most) {
            self.idle = Some((sample.idle, now - begun));
        }
        if now == begun || now - self.closed + TOLERANCE >= self.window {
            self.close(sample, now);
        }
        while self.recent.get(1).is_some_and(|second| self.is_window(second.at, now)) {
            self.recent.pop_front();
        }
        self.recent.push_back(Reading { at: now, own: sample.sum(), kernel: sample.kernel });
    }

    fn is_window(&self, from: Nanos, to: Nanos) -> bool {
        to - from + TOLERANCE >= self.window
    }

    /// Takes the last sample. A run shorter than a window is one window; else the last window ends
    /// here and overlaps the previous one, so that no time is left unjudged.
    pub fn end(&mut self, sample: LoadSample, now: Nanos) {
        self.take(sample, now);
        if self.seen == 1 {
            return self.close(sample, now);
        }
        let last = self.recent.iter().rev().find(|reading| self.is_window(reading.at, now));
        if let Some(from) = last.filter(|_| now > self.closed) {
            let (span, at) = (now - from.at, now - self.begun.unwrap_or(now));
            let early = self.seen <= WARM_UP;
            self.own.judge(from.own, sample.sum(), span, at, early);
            self.kernel.judge(from.kernel, sample.kernel, span, at, early);
        }
    }

    fn close(&mut self, sample: LoadSample, now: Nanos) {
        let (span, at) = (now - self.closed, now - self.begun.unwrap_or(now));
        let early = self.seen <= WARM_UP;
        if self.seen > 0 && span.0 > self.window.0.saturating_mul(MERGED) {
            self.unseen = self.unseen.max(Some((span, at)));
            self.own.take_unseen(sample.sum(), span);
            self.kernel.take_unseen(sample.kernel, span);
        }
        self.own.take(sample.sum(), span, at, early);
        self.kernel.take(sample.kernel, span, at, early);
        if let Some(counts) = sample.own {
            self.look_at_each(counts, at);
        }
        self.closed = now;
        self.seen += 1;
    }

    /// Checks each process, because a sum hides that one of several does nothing.
    fn look_at_each(&mut self, counts: &[u64], at: Nanos) {
        for (process, count) in self.each.iter_mut().zip(counts) {
            let windows = if process.last == *count && self.seen > 0 { process.windows + 1 } else { 0 };
            *process = ProcessCount { last: *count, windows };
        }
        let stalled = self.each.iter().filter(|process| process.windows >= STALLED).count() as u32;
        if stalled > 0 && self.stalled.is_none_or(|(most, _)| stalled > most) {
            self.stalled = Some((stalled, at));
        }
    }

    /// Verdict: the values, and the failures if any.
    pub fn judged(&self) -> LoadVerdict {
        let mut proof = Vec::new();
        let mut why = Vec::new();
        let counted = [(self.unit, &self.own), (self.figure, &self.kernel)];
        // A user's program has no own count.
        for (what, series) in counted.into_iter().filter(|(what, _)| !what.is_empty()) {
            let what = format!("{what} per s");
            why.extend(series.failure(&what));
            let value = series.smallest().map(|(least, _)| least);
            proof.push(LoadProof { what, value, floor: series.floor() });
        }
        let all = self.processes;
        proof.push(complete("processes running", self.idle, all));
        why.extend(self.idle.map(|(idle, at)| {
            format!("after {:.0} s {idle} of {all} processes were stopped or had ended", at.as_secs())
        }));
        if !self.unit.is_empty() {
            let all = self.each.len() as u32;
            proof.push(complete("processes that counted", self.stalled, all));
            why.extend(self.stalled.map(|(stalled, at)| {
                let at = at.as_secs();
                format!("after {at:.0} s {stalled} of {all} processes had done nothing for {STALLED} windows")
            }));
        }
        let stood_still = !self.own.went_on_unseen() || !self.kernel.went_on_unseen();
        why.extend(self.unseen.filter(|_| stood_still).map(|(span, at)| {
            format!(
                "after {:.0} s it had not been sampled for {:.0} s, and did less than half of the usual \
                 work",
                at.as_secs(),
                span.as_secs()
            )
        }));
        let unseen = self.unseen.map(|(span, _)| span);
        LoadVerdict { held: why.is_empty(), proof, unseen, why: why.join("; ") }
    }
}

/// Value for processes none of which may be missing, from the largest number of missing ones.
fn complete(what: &str, missing: Option<(u32, Nanos)>, all: u32) -> LoadProof {
    let (missing, _) = missing.unwrap_or_default();
    LoadProof {
        what: what.into(),
        value: Some(f64::from(all.saturating_sub(missing))),
        floor: f64::from(all),
    }
}

/// Verdict of a proof.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadVerdict {
    pub held: bool,
    pub proof: Vec<LoadProof>,
    /// Longest interval without a sample, if it is long.
    pub unseen: Option<Nanos>,
    /// Failures; empty if there were none.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: i64 = 1_000_000_000;

    fn judged(window: i64, rates: &[(u64, u64, u32)]) -> LoadVerdict {
        let mut series = ProofSeries::new(Nanos(window * SECOND), "bytes", "ns of processor time", 2);
        let (mut own, mut kernel) = (0, 0);
        series.take(LoadSample { own: Some(&[0, 0]), kernel: Some(0), processes: 2, idle: 0 }, Nanos(7));
        for (second, (bytes, time, running)) in rates.iter().enumerate() {
            (own, kernel) = (own + bytes, kernel + time);
            let now = Nanos(7 + (second as i64 + 1) * SECOND);
            let counts = [own / 2, own - own / 2];
            let (processes, idle) = (2, 2 - running);
            let sample = LoadSample { own: Some(&counts), kernel: Some(kernel), processes, idle };
            let last = second + 1 == rates.len();
            if last { series.end(sample, now) } else { series.take(sample, now) }
        }
        series.judged()
    }

    fn steady(seconds: usize) -> Vec<(u64, u64, u32)> {
        vec![(1000, 900, 2); seconds]
    }

    #[test]
    fn a_steady_load_holds() {
        let judged = judged(1, &steady(10));
        assert!(judged.held && judged.why.is_empty(), "{judged:?}");
        assert_eq!(judged.proof[0].value, Some(1000.0));
        assert!((judged.proof[0].floor - 100.0).abs() < 2.0, "{judged:?}");
        assert_eq!((judged.proof[2].value, judged.proof[2].floor), (Some(2.0), 2.0));
    }

    #[test]
    fn a_slow_start_is_left_out_and_a_short_run_has_to_have_worked() {
        let mut rates = steady(10);
        (rates[0], rates[1]) = ((0, 0, 2), (1, 1, 2));
        assert!(judged(1, &rates).held);
        assert!(judged(1, &steady(2)).held && judged(5, &steady(2)).held);
        for short in [judged(1, &rates[..2]), judged(5, &[(0, 0, 2); 3])] {
            assert!(!short.held && short.why.starts_with("0 bytes per s"), "{short:?}");
        }
    }

    #[test]
    fn a_window_without_work_of_either_count_fails() {
        for stalled in [(0, 900, 2), (1000, 0, 2), (90, 900, 2)] {
            let mut rates = steady(10);
            rates[6] = stalled;
            let judged = judged(1, &rates);
            assert!(!judged.held && judged.why.contains("after 7 s, where "), "{judged:?}");
        }
        let mut rates = steady(10);
        rates[6] = (150, 150, 2);
        assert!(judged(1, &rates).held, "slower is still loading");
    }

    #[test]
    fn stopped_for_three_seconds_is_seen_in_long_windows_too() {
        let mut rates = steady(60);
        rates[31..34].fill((0, 0, 0));
        let judged = judged(5, &rates);
        assert!(!judged.held && judged.why.contains("2 of 2 processes were stopped"), "{judged:?}");
    }

    #[test]
    fn a_load_that_never_worked_is_not_held() {
        let judged = judged(1, &[(0, 0, 2); 10]);
        assert!(!judged.held && judged.why.starts_with("0 bytes per s"), "{judged:?}");
    }

    /// Verdict from samples of two processes at these seconds.
    fn sampled(window: i64, samples: &[(i64, [u64; 2], Option<u64>)]) -> LoadVerdict {
        let mut series = ProofSeries::new(Nanos(window * SECOND), "bytes", "ns of processor time", 2);
        for (at, (second, own, kernel)) in samples.iter().enumerate() {
            let sample = LoadSample { own: Some(own), kernel: *kernel, processes: 2, idle: 0 };
            let now = Nanos(7 + second * SECOND);
            if at + 1 == samples.len() { series.end(sample, now) } else { series.take(sample, now) }
        }
        series.judged()
    }

    fn each_second(seconds: i64, counts: fn(u64) -> [u64; 2]) -> Vec<(i64, [u64; 2], Option<u64>)> {
        (0..=seconds).map(|second| (second, counts(second as u64), Some(second as u64 * 900))).collect()
    }

    #[test]
    fn a_process_that_stalls_is_seen_behind_the_others() {
        let judged = sampled(1, &each_second(10, |second| [second * 1000, second.min(5) * 1000]));
        assert!(!judged.held && judged.why.contains("1 of 2 processes had done nothing"), "{judged:?}");
        // A process that waits for its turn has not stalled.
        assert!(sampled(1, &each_second(10, |second| [second * 1000, second / 2 * 1000])).held);
    }

    #[test]
    fn the_end_of_a_run_is_judged_too() {
        for seconds in [14, 15, 17, 18, 19] {
            let mut samples = each_second(seconds, |second| [second * 1000; 2]);
            assert!(sampled(5, &samples).held, "{seconds}");
            let from = samples.len() - 6;
            let stalled = samples[from].1;
            samples[from..].iter_mut().for_each(|sample| sample.1 = stalled);
            let judged = sampled(5, &samples);
            assert!(!judged.held && judged.why.starts_with("0 bytes per s"), "{seconds}: {judged:?}");
        }
    }

    #[test]
    fn what_was_not_looked_at_is_not_proven() {
        let mut samples = each_second(20, |second| [second * 1000; 2]);
        samples.drain(5..7);
        assert!(sampled(1, &samples).held, "a late sample");
        samples.drain(5..14);
        let judged = sampled(1, &samples);
        assert!(judged.held && judged.unseen == Some(Nanos(12 * SECOND)), "its counts went on: {judged:?}");
        // Five of the twelve seconds are missing in its counts, and then eight.
        for (missing, held) in [(5, true), (8, false)] {
            let mut samples = samples.clone();
            for sample in &mut samples[5..] {
                sample.1.iter_mut().for_each(|count| *count -= missing * 1000);
            }
            let judged = sampled(1, &samples);
            assert_eq!(judged.held, held, "{judged:?}");
            assert_eq!(judged.why.contains("not been sampled for 12 s, and did less"), !held, "{judged:?}");
        }
    }

    #[test]
    fn a_count_that_can_be_read_at_first_only_proves_nothing() {
        let mut samples = each_second(10, |second| [second * 1000; 2]);
        samples[4..].iter_mut().for_each(|sample| sample.2 = None);
        let judged = sampled(1, &samples);
        assert!(!judged.held && judged.why.contains("could not be read"), "{judged:?}");
    }

    proptest! {
        /// The median of the windows matches a sorted list's, within the histogram's precision.
        #[test]
        fn the_median_is_that_of_the_windows(rates in prop::collection::vec(1u64..1_000_000, 1..60)) {
            let mut series = WindowRates::default();
            let mut sum = 0;
            series.take(Some(0), Nanos(SECOND), Nanos(0), false);
            for rate in &rates {
                sum += rate;
                series.take(Some(sum), Nanos(SECOND), Nanos(0), false);
            }
            let mut sorted = rates.clone();
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            let expected = sorted[rates.len().div_ceil(2) - 1] as f64;
            let off = (series.median() - expected).abs();
            prop_assert!(off <= expected * 0.016 + 0.001, "{} {}", series.median(), expected);
        }
    }
}
