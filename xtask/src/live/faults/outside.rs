//! The stopped emulator: nothing in the guest's software is the cause of that time, so no name may
//! be given for it.
//!
//! On an idle guest that applies to each stop. Among faults, a stop within one is listed
//! separately: that time is the fault's as well, and no event separates the two.

use super::answer::{Answer, FoundSpike};
use super::log::LogRecord;
use super::own::{self, Whose};
use super::score::Demand;

/// Maximum difference of the two clocks at a stop of the emulator: the polling of the channel, and
/// the transit of the line.
pub const SLACK: i64 = 4_000_000;

/// The kind of a stop's time.
pub const STOPPED: &str = "stopped";

/// True if a kind blames nothing inside.
fn is_outside(kind: &str) -> bool {
    [STOPPED, "unexplained"].contains(&kind)
}

/// Result for the time in which nothing ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outside {
    /// Stops of the emulator while the hunt measured.
    pub stops: usize,
    /// Stops within an injection, which are not scored.
    pub inside: usize,
    /// Number of the others that made a spike.
    pub seen: usize,
    /// Spikes on them.
    pub spikes: usize,
    /// Spikes on no stop.
    pub strays: usize,
    /// Names given for a stop's time; the first one of each spike.
    pub blamed: Vec<String>,
    /// Spikes on a stop without a reason for being unexplained.
    pub mute: usize,
    /// Culprits with a tenth of all latency or more, without an injection.
    pub culprits: Vec<String>,
    /// Slices attributed to onbeat's own path that are too long for it.
    pub own: Vec<String>,
    /// Spikes whose parts do not add up.
    pub wrong_sums: usize,
}

/// Scores a result against the logs of stops and of simultaneous injections.
pub fn of(stops: &[LogRecord], injected: &[LogRecord], answer: &Answer, slack: i64) -> Outside {
    let measured = |record: &&LogRecord| record.start - slack > answer.t0;
    let within = |stop: &&LogRecord| {
        injected.iter().any(|fault| fault.overlap(stop.start - slack, stop.end + slack) > 0)
    };
    let (inside, outside): (Vec<&LogRecord>, Vec<&LogRecord>) =
        stops.iter().filter(measured).partition(within);
    let mut score = Outside {
        stops: inside.len() + outside.len(),
        inside: inside.len(),
        wrong_sums: answer.spikes.iter().filter(|spike| !spike.adds_up()).count(),
        ..Outside::default()
    };
    let mut seen = vec![false; outside.len()];
    for spike in &answer.spikes {
        let on = |stop: &LogRecord| stop.overlap(spike.expected, spike.actual) > slack;
        let touched: Vec<usize> = (0..outside.len()).filter(|&at| on(outside[at])).collect();
        if touched.is_empty() {
            score.strays += usize::from(!inside.iter().any(|stop| on(stop)));
            score.own.extend(own::named(answer, spike, Whose::Onbeats));
            continue;
        }
        score.own.extend(own::excess(answer, spike, Whose::Onbeats));
        touched.iter().for_each(|&at| seen[at] = true);
        score.spikes += 1;
        let said = touched.iter().find_map(|&at| said_of(outside[at], answer, spike, slack));
        let other = || spike.classes.is_empty() || spike.classes.iter().any(|class| !is_outside(class));
        let idle = || injected.is_empty() && other() && covers(&outside, spike);
        score.blamed.extend(
            said.or_else(|| idle().then(|| format!("{} at {}", spike.classes.join(" "), spike.expected))),
        );
        let stopped = spike.classes.iter().any(|class| class == STOPPED);
        score.mute += usize::from(spike.why.is_empty() && !stopped);
    }
    score.seen = seen.into_iter().filter(|&seen| seen).count();
    if injected.is_empty() {
        let large =
            answer.culprits.iter().filter(|culprit| culprit.share >= 0.1 && !is_outside(&culprit.kind));
        score.culprits = large.map(|culprit| culprit.names.join(" ")).collect();
    }
    score
}

/// Name given for the time that is certainly within a stop, if it is longer than onbeat's own path.
fn said_of(stop: &LogRecord, answer: &Answer, spike: &FoundSpike, slack: i64) -> Option<String> {
    let (from, to) = (stop.start + slack, stop.end - slack);
    let within = |start: i64, ns: i64| ((start + ns).min(to) - start.max(from)).max(0);
    let named = spike.slices.iter().filter(|slice| slice.kind != STOPPED);
    let parts = named.map(|slice| (within(slice.start, slice.ns), slice));
    let total: i64 = parts.clone().map(|(ns, _)| ns).sum();
    let (most, slice) = parts.max_by_key(|(ns, _)| *ns)?;
    (total > own::most(answer))
        .then(|| format!("{} has {most} ns of the stop at {}", slice.told(), stop.start))
}

/// True if all but a tenth of a spike is on stops: any other cause has another tenth at least.
fn covers(stops: &[&LogRecord], spike: &FoundSpike) -> bool {
    let on: i64 = stops.iter().map(|stop| stop.overlap(spike.expected, spike.actual)).sum();
    (spike.latency - on) * 10 < spike.latency
}

impl Outside {
    /// Failed requirements; `least` stops outside of injections must have been seen.
    pub fn verdict(&self, least: usize, demand: &Demand) -> Result<(), String> {
        let mut complaints = Vec::new();
        if (self.seen as f64) < least as f64 * demand.seen {
            complaints.push(format!("saw {} of {} stops", self.seen, self.stops - self.inside));
        }
        let most = (self.spikes as f64 * demand.blamed) as usize;
        if let Some(first) = self.blamed.get(most) {
            complaints.push(format!(
                "{} of {} spikes were blamed on something: {first}",
                self.blamed.len(),
                self.spikes
            ));
        }
        if self.mute > most {
            complaints
                .push(format!("{} of {} spikes do not say why they are unexplained", self.mute, self.spikes));
        }
        if !self.culprits.is_empty() {
            complaints.push(format!("culprits were named: {}", self.culprits.join(", ")));
        }
        if let Some(first) = self.own.first() {
            complaints.push(format!("{} times onbeat's own path: {first}", self.own.len()));
        }
        if self.wrong_sums > 0 {
            complaints.push(format!("{} spikes do not add up", self.wrong_sums));
        }
        if complaints.is_empty() { Ok(()) } else { Err(complaints.join("; ")) }
    }

    /// A line for the table.
    pub fn row(&self, word: &str, seed: u64) -> String {
        format!(
            "  {word:<17}{:>9}{:>6}{:>8}{:>8}   {} stops within a fault; {} spikes, {} blamed on something, {} do not say why, \
             {} times the own path, {} wrong sums; seed {seed}",
            self.stops,
            self.seen,
            0,
            self.strays,
            self.inside,
            self.spikes,
            self.blamed.len(),
            self.mute,
            self.own.len(),
            self.wrong_sums
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::{FoundCulprit, FoundSlice};
    use super::super::score::{FULL, GATE};
    use super::*;

    const MS: i64 = 1_000_000;

    fn record(fault: &str, start: i64, length: i64) -> LogRecord {
        LogRecord {
            fault: fault.into(),
            start: start * MS,
            end: (start + length) * MS,
            ..LogRecord::default()
        }
    }

    fn slice(kind: &str, start: i64, ns: i64) -> FoundSlice {
        FoundSlice { kind: kind.into(), start, ns, ..FoundSlice::default() }
    }

    /// A stop of 50 ms each 300 ms; each CPU has a spike that begins 5 ms into it and ends less
    /// than one after it.
    fn answer() -> (Vec<LogRecord>, Answer) {
        let spike = |at: i64, cpu| {
            let expected = (1005 + at * 300) * MS;
            FoundSpike {
                cpu,
                expected,
                actual: expected + 45 * MS + MS / 2,
                latency: 45 * MS + MS / 2,
                slices: vec![slice("switch", expected + 45 * MS + MS / 4, MS / 4)],
                unexplained: 45 * MS + MS / 4,
                why: "stopped".into(),
                classes: vec!["unexplained".into()],
                ..FoundSpike::default()
            }
        };
        let spikes = (0..60).flat_map(|at| [spike(at, 0), spike(at, 1)]).collect();
        let stops = (0..60).map(|at| record("stopped", 1000 + at * 300, 50)).collect();
        (stops, Answer { spikes, cost: MS / 5, ..Answer::default() })
    }

    /// Explains a part of a spike by a slice.
    fn give(spike: &mut FoundSpike, slice: FoundSlice) {
        spike.unexplained -= slice.ns;
        spike.slices.insert(0, slice);
    }

    #[test]
    fn nothing_said_of_nothing_passes() {
        let (stops, answer) = answer();
        let outside = of(&stops, &[], &answer, SLACK);
        assert_eq!((outside.stops, outside.seen, outside.spikes, outside.strays), (60, 60, 120, 0));
        assert_eq!(outside.verdict(60, &FULL), Ok(()));
    }

    #[test]
    fn a_stop_that_has_its_kind_blames_nothing() {
        let (stops, mut answer) = answer();
        for spike in &mut answer.spikes {
            let stop = slice(STOPPED, spike.expected, spike.unexplained);
            give(spike, stop);
            (spike.classes, spike.why) = (vec![STOPPED.into()], String::new());
        }
        assert_eq!(of(&stops, &[], &answer, SLACK).verdict(60, &FULL), Ok(()));
    }

    #[test]
    fn one_false_name_of_a_hundred_fails() {
        let (stops, mut answer) = answer();
        answer.spikes[7].classes.push("timer-irq".into());
        let why = of(&stops, &[], &answer, SLACK).verdict(60, &FULL).unwrap_err();
        assert!(why.contains("1 of 120 spikes were blamed on something: unexplained timer-irq"), "{why}");
        assert_eq!(of(&stops, &[], &answer, SLACK).verdict(60, &GATE), Ok(()));
        answer.spikes[7].classes.clear();
        assert!(of(&stops, &[], &answer, SLACK).verdict(60, &FULL).is_err());
    }

    #[test]
    fn a_name_for_less_than_a_tenth_fails_where_it_is_of_the_stops_time() {
        let (stops, mut answer) = answer();
        let expected = answer.spikes[0].expected;
        let named = |at: i64, ns: i64| {
            let mut answer = answer.clone();
            give(&mut answer.spikes[0], slice("thread", expected + at, ns));
            of(&stops, &[], &answer, SLACK).verdict(60, &FULL)
        };
        assert!(named(10 * MS, 5 * MS).unwrap_err().contains("thread has 5000000 ns of the stop at"));
        // As long as a turn of the own path, or within the clocks' difference.
        assert_eq!((named(10 * MS, MS / 5), named(43 * MS, 2 * MS)), (Ok(()), Ok(())));
        give(&mut answer.spikes[0], slice("return-to-user", expected + 38 * MS, 7 * MS));
        assert!(
            of(&stops, &[], &answer, SLACK)
                .verdict(60, &FULL)
                .unwrap_err()
                .contains("1 times onbeat's own path")
        );
    }

    #[test]
    fn a_stop_within_a_fault_is_listed_apart_and_one_beside_it_counts() {
        let (stops, mut answer) = answer();
        let blame = |spike: &mut FoundSpike| {
            let expected = spike.expected;
            give(spike, FoundSlice { pid: 60, ..slice("irqs-off", expected + MS, 30 * MS) });
            spike.classes = vec!["irqs-off".into(), "unexplained".into()];
        };
        blame(&mut answer.spikes[0]);
        blame(&mut answer.spikes[1]);
        let inside = of(&stops, &[record("irqs-off", 990, 70)], &answer, SLACK);
        assert_eq!(
            (inside.stops, inside.inside, inside.seen, inside.spikes, inside.strays),
            (60, 1, 59, 118, 0)
        );
        assert_eq!(inside.verdict(59, &FULL), Ok(()));
        let beside = of(&stops, &[record("irqs-off", 970, 20)], &answer, SLACK);
        assert_eq!((beside.inside, beside.blamed.len()), (0, 2));
        assert!(beside.verdict(59, &FULL).unwrap_err().contains("2 of 120"));
        // The part of a fault next to the stop in the same spike is right.
        let spike = &mut answer.spikes[2];
        (spike.actual, spike.latency) = (spike.actual + 25 * MS, spike.latency + 25 * MS);
        spike.unexplained += 25 * MS;
        give(spike, FoundSlice { pid: 60, ..slice("irqs-off", 1355 * MS, 20 * MS) });
        spike.classes = vec!["unexplained".into(), "irqs-off".into()];
        let faults = [record("irqs-off", 990, 70), record("irqs-off", 1355, 20)];
        assert_eq!(of(&stops, &faults, &answer, SLACK).verdict(59, &FULL), Ok(()));
    }

    #[test]
    fn a_spike_that_does_not_say_why_fails() {
        let (stops, mut answer) = answer();
        answer.spikes[3].why.clear();
        let why = of(&stops, &[], &answer, SLACK).verdict(60, &FULL).unwrap_err();
        assert_eq!(why, "1 of 120 spikes do not say why they are unexplained");
    }

    #[test]
    fn a_culprit_over_all_spikes_fails() {
        let (stops, mut answer) = answer();
        let culprit = |share| FoundCulprit {
            kind: "irq".into(),
            spikes: 3,
            share,
            took: None,
            names: vec!["eth0".into()],
        };
        answer.culprits = vec![culprit(0.02)];
        assert_eq!(of(&stops, &[], &answer, SLACK).verdict(60, &FULL), Ok(()));
        answer.culprits = vec![culprit(0.2)];
        assert!(of(&stops, &[], &answer, SLACK).verdict(60, &FULL).unwrap_err().contains("eth0"));
    }

    #[test]
    fn too_few_or_elsewhere_fails() {
        let (stops, mut answer) = answer();
        assert!(of(&[], &[], &answer, SLACK).verdict(60, &FULL).unwrap_err().contains("saw 0"));
        for spike in &mut answer.spikes {
            (spike.expected, spike.actual) = (spike.expected + 100 * MS, spike.actual + 100 * MS);
        }
        let outside = of(&stops, &[], &answer, SLACK);
        assert_eq!((outside.seen, outside.strays), (0, 120));
        assert!(outside.verdict(60, &FULL).is_err());
    }

    #[test]
    fn a_sum_that_is_one_off_fails() {
        let (stops, mut answer) = answer();
        answer.spikes[9].unexplained += 1;
        assert!(
            of(&stops, &[], &answer, SLACK)
                .verdict(60, &FULL)
                .unwrap_err()
                .contains("1 spikes do not add up")
        );
    }
}
