//! The emulator stopped while a periodic program is followed: the time of a stop has the kind
//! `stopped` in each cycle that it made late, and no cycle is blamed on the program's
//! own sleep.

use std::collections::BTreeMap;

use super::answer::{Answer, FoundSpike};
use super::log::LogRecord;
use super::outside::{SLACK, STOPPED};
use crate::tally::StepOutcome;

/// The kind of a sleep: this program waits for nothing but its next cycle.
const SLEPT: &str = "blocked";

/// The least share of a stop's time that has its kind.
const LEAST: f64 = 0.95;

/// Minimum number of stops of a hundred that are seen.
const SEEN: usize = 80;

/// The stops that were named in the cycles of a followed program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServoScore {
    stops: usize,
    /// Stops with a late cycle.
    seen: usize,
    spikes: usize,
    /// Spikes whose largest part is the program's own sleep.
    slept: Vec<String>,
    /// Time of stops within spikes, each spike counted, by the kind attributed to it; including
    /// `unexplained`.
    by_kind: BTreeMap<String, i64>,
    wrong_sums: usize,
}

/// Stops of 5 to 300 ms while the program wakes every 10 ms.
pub fn script(count: usize, seed: u64) -> String {
    format!(
        "hunting --deadline 4ms -- followed servo 1 {} own cycles\n\
         echo \"=== STOP {count} 5 300 140 {seed}\" >&3\n\
         stopping {count}\n\
         tries=0\n\
         until [ -s cycles ] || [ $tries -ge 600 ]; do usleep 100000; tries=$((tries + 1)); done\n\
         : >log\n\
         hunted\n",
        count * 25 + 300
    )
}

/// The score of an answer against the log of stops.
pub fn of(stops: &[LogRecord], answer: &Answer) -> ServoScore {
    // Time that is certainly within a stop, for any difference of the clocks.
    let certain: Vec<(i64, i64)> = stops
        .iter()
        .map(|stop| (stop.start + SLACK, stop.end - SLACK))
        .filter(|(from, to)| from < to)
        .collect();
    let mut score = ServoScore { stops: certain.len(), ..ServoScore::default() };
    let mut seen = vec![false; certain.len()];
    for spike in &answer.spikes {
        score.spikes += 1;
        score.wrong_sums += usize::from(!spike.adds_up());
        if largest(spike) == SLEPT {
            score.slept.push(format!("{SLEPT} is most of the cycle at {}", spike.expected));
        }
        for (at, &(from, to)) in certain.iter().enumerate() {
            let common = |start: i64, end: i64| (end.min(to) - start.max(from)).max(0);
            let mut rest = common(spike.expected, spike.actual);
            seen[at] |= rest > 0;
            for slice in &spike.slices {
                let ns = common(slice.start, slice.start + slice.ns);
                *score.by_kind.entry(slice.kind.clone()).or_default() += ns;
                rest -= ns;
            }
            *score.by_kind.entry("unexplained".to_string()).or_default() += rest;
        }
    }
    score.by_kind.retain(|_, ns| *ns > 0);
    score.seen = seen.into_iter().filter(|&seen| seen).count();
    score
}

/// The kind that most of a spike has.
fn largest(spike: &FoundSpike) -> String {
    let mut sums: BTreeMap<&str, i64> = BTreeMap::from([("unexplained", spike.unexplained)]);
    for slice in &spike.slices {
        *sums.entry(slice.kind.as_str()).or_default() += slice.ns;
    }
    sums.into_iter().max_by_key(|(_, ns)| *ns).map_or_else(String::new, |(kind, _)| kind.to_string())
}

impl ServoScore {
    fn time(&self) -> i64 {
        self.by_kind.values().sum()
    }

    fn share(&self) -> f64 {
        let stopped = self.by_kind.get(STOPPED).copied().unwrap_or_default();
        if self.time() > 0 { stopped as f64 / self.time() as f64 } else { 0.0 }
    }

    pub fn verdict(&self) -> StepOutcome {
        let mut complaints = Vec::new();
        if self.seen * 100 < self.stops * SEEN || self.stops == 0 {
            complaints.push(format!("saw {} of {} stops", self.seen, self.stops));
        }
        if let Some(first) = self.slept.first() {
            complaints.push(format!("{} of {} spikes: {first}", self.slept.len(), self.spikes));
        }
        if self.share() < LEAST {
            complaints.push(format!("{:.1} % of the stops' time is {STOPPED}", 100.0 * self.share()));
        }
        if self.wrong_sums > 0 {
            complaints.push(format!("{} spikes do not add up", self.wrong_sums));
        }
        if complaints.is_empty() { StepOutcome::Passed } else { StepOutcome::Failed(complaints.join("; ")) }
    }

    /// A line for the table.
    pub fn row(&self, seed: u64) -> String {
        let seconds = |ns: i64| ns as f64 / 1e9;
        let kinds = self.by_kind.iter().map(|(kind, ns)| format!("{kind} {:.2} s", seconds(*ns)));
        format!(
            "  {:<17}{:>9}{:>6}   {} spikes, {} blamed on the own sleep; {:.1} % of {:.2} s stopped: {}; \
             {} wrong sums; seed {seed}",
            "stopped-servo",
            self.stops,
            self.seen,
            self.spikes,
            self.slept.len(),
            100.0 * self.share(),
            seconds(self.time()),
            kinds.collect::<Vec<_>>().join(", "),
            self.wrong_sums
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::FoundSlice;
    use super::*;

    const MS: i64 = 1_000_000;

    fn slice(kind: &str, start: i64, ns: i64) -> FoundSlice {
        FoundSlice { kind: kind.into(), start, ns, ..FoundSlice::default() }
    }

    /// Stops of 50 ms; a cycle each was due 5 ms into it and ended 6 ms after it.
    fn answer() -> (Vec<LogRecord>, Answer) {
        let stops: Vec<LogRecord> = (0..50i64)
            .map(|at| LogRecord {
                start: (1000 + at * 300) * MS,
                end: (1050 + at * 300) * MS,
                ..LogRecord::default()
            })
            .collect();
        let spike = |stop: &LogRecord| {
            let expected = stop.start + 5 * MS;
            FoundSpike {
                expected,
                actual: expected + 51 * MS,
                latency: 51 * MS,
                slices: vec![slice(STOPPED, expected, 45 * MS), slice("own", expected + 45 * MS, 5 * MS)],
                unexplained: MS,
                ..FoundSpike::default()
            }
        };
        let spikes = stops.iter().map(spike).collect();
        (stops, Answer { spikes, ..Answer::default() })
    }

    #[test]
    fn stops_that_have_their_kind_pass() {
        let (stops, answer) = answer();
        let score = of(&stops, &answer);
        assert_eq!((score.stops, score.seen, score.spikes), (50, 50, 50));
        assert_eq!((score.verdict(), score.share()), (StepOutcome::Passed, 1.0));
    }

    #[test]
    fn a_stop_s_time_under_another_kind_or_none_falls_short() {
        let (stops, mut answer) = answer();
        for spike in answer.spikes.iter_mut().take(3) {
            spike.unexplained += spike.slices.remove(0).ns;
        }
        let score = of(&stops, &answer);
        assert_eq!(score.by_kind["unexplained"], 3 * 41 * MS);
        let StepOutcome::Failed(why) = score.verdict() else { panic!("it passes") };
        assert_eq!(why, "94.0 % of the stops' time is stopped");
    }

    #[test]
    fn one_cycle_that_is_blamed_on_its_own_sleep_fails() {
        let (stops, mut answer) = answer();
        answer.spikes[7].slices[0].kind = SLEPT.into();
        let StepOutcome::Failed(why) = of(&stops, &answer).verdict() else { panic!("it passes") };
        assert!(why.starts_with("1 of 50 spikes: blocked is most"), "{why}");
    }

    #[test]
    fn too_few_stops_and_wrong_sums_fail() {
        let (stops, mut answer) = answer();
        answer.spikes.truncate(39);
        answer.spikes[0].unexplained += 1;
        let StepOutcome::Failed(why) = of(&stops, &answer).verdict() else { panic!("it passes") };
        assert_eq!(why, "saw 39 of 50 stops; 1 spikes do not add up");
        assert!(matches!(of(&[], &Answer::default()).verdict(), StepOutcome::Failed(_)));
    }
}
