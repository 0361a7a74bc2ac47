//! The stopped emulator: nothing in the guest's software is to blame, and no name may be said.

use super::answer::{Answer, Spike};
use super::log::Record;
use super::score::Demand;

/// How far the two clocks may be apart: the guest's steps of 10 ms, the look at the channel, and the line's way.
const SLACK: i64 = 80_000_000;
/// Spikes that must have been seen.
const LEAST: usize = 100;

/// What was said of the time in which nothing ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outside {
    /// Stops of the emulator while the hunt measured.
    pub stops: usize,
    /// Spikes that lie on one.
    pub seen: usize,
    /// Spikes on none.
    pub strays: usize,
    /// Spikes on a stop with a class beside `unexplained`; what was said of the first.
    pub blamed: Vec<String>,
    /// Culprits with a tenth of all latency or more.
    pub culprits: Vec<String>,
    /// Spikes whose parts are not their whole.
    pub wrong_sums: usize,
}

/// Scores an answer against the log of stops.
pub fn of(log: &[Record], answer: &Answer) -> Outside {
    let stops: Vec<&Record> = log.iter().filter(|record| record.start - SLACK > answer.t0).collect();
    let length = |record: &Record| record.end - record.start;
    let lies_on = |spike: &Spike| {
        let close = |stop: &&&Record| stop.overlap(spike.expected - SLACK, spike.actual + SLACK) > 0;
        // What is much shorter is the emulator's own; a stop is never seen longer than with its surroundings.
        stops.iter().find(close).is_some_and(|stop| spike.latency * 2 >= length(stop))
    };
    let mut outside = Outside {
        stops: stops.len(),
        wrong_sums: answer.spikes.iter().filter(|spike| !spike.adds_up()).count(),
        ..Outside::default()
    };
    for spike in &answer.spikes {
        if !lies_on(spike) {
            outside.strays += 1;
            continue;
        }
        outside.seen += 1;
        if spike.classes != ["unexplained"] {
            outside.blamed.push(format!("{} at {} ns", spike.classes.join(" "), spike.expected));
        }
    }
    let large =
        answer.culprits.iter().filter(|culprit| culprit.share >= 0.1 && culprit.kind != "unexplained");
    outside.culprits = large.map(|culprit| culprit.names.join(" ")).collect();
    outside
}

impl Outside {
    /// What falls short.
    pub fn verdict(&self, demand: &Demand) -> Result<(), String> {
        let mut complaints = Vec::new();
        if (self.seen as f64) < LEAST as f64 * demand.seen {
            complaints.push(format!("saw {} spikes of {} stops", self.seen, self.stops));
        }
        let most = (self.seen as f64 * demand.blamed) as usize;
        if let Some(first) = self.blamed.get(most) {
            complaints.push(format!(
                "{} of {} were blamed on something: {first}",
                self.blamed.len(),
                self.seen
            ));
        }
        if !self.culprits.is_empty() {
            complaints.push(format!("culprits were named: {}", self.culprits.join(", ")));
        }
        if self.wrong_sums > 0 {
            complaints.push(format!("{} spikes do not add up", self.wrong_sums));
        }
        if complaints.is_empty() { Ok(()) } else { Err(complaints.join("; ")) }
    }

    /// A line beside the table.
    pub fn row(&self) -> String {
        format!(
            "  stopped       {:>9}{:>6}{:>8}   spikes that were blamed on something: {}",
            self.stops,
            self.seen,
            self.strays,
            self.blamed.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::{Culprit, Slice};
    use super::super::score::FULL;
    use super::*;

    const MS: i64 = 1_000_000;

    fn answer() -> (Vec<Record>, Answer) {
        let stop = |at: i64| Record {
            seq: at as u64,
            fault: "stopped".into(),
            kind: "unexplained".into(),
            cpu: 0,
            start: (1000 + at * 300) * MS,
            end: (1050 + at * 300) * MS,
        };
        let spike = |at: i64, cpu| Spike {
            cpu,
            expected: (1030 + at * 300) * MS,
            actual: (1080 + at * 300) * MS,
            latency: 50 * MS,
            slices: vec![Slice { kind: "switch".into(), ns: MS, ..Slice::default() }],
            unexplained: 49 * MS,
            classes: vec!["unexplained".into()],
            lost: 0,
        };
        let spikes = (0..60).flat_map(|at| [spike(at, 0), spike(at, 1)]).collect();
        ((0..60).map(stop).collect(), Answer { t0: 0, spikes, culprits: Vec::new() })
    }

    #[test]
    fn nothing_said_of_nothing_passes() {
        let (log, answer) = answer();
        let outside = of(&log, &answer);
        assert_eq!((outside.stops, outside.seen, outside.strays), (60, 120, 0));
        assert_eq!(outside.verdict(&FULL), Ok(()));
    }

    #[test]
    fn one_false_name_of_a_hundred_fails() {
        let (log, mut answer) = answer();
        answer.spikes[7].classes.push("timer-irq".into());
        assert!(of(&log, &answer).verdict(&FULL).unwrap_err().contains("1 of 120"));
        answer.spikes[7].classes.clear();
        assert!(of(&log, &answer).verdict(&FULL).is_err());
    }

    #[test]
    fn a_culprit_over_all_spikes_fails() {
        let (log, mut answer) = answer();
        let culprit = |share| Culprit { kind: "irq".into(), spikes: 3, share, names: vec!["eth0".into()] };
        answer.culprits = vec![culprit(0.02)];
        assert_eq!(of(&log, &answer).verdict(&FULL), Ok(()));
        answer.culprits = vec![culprit(0.2)];
        assert!(of(&log, &answer).verdict(&FULL).unwrap_err().contains("eth0"));
    }

    #[test]
    fn too_few_or_elsewhere_fails() {
        let (log, mut answer) = answer();
        assert!(of(&[], &answer).verdict(&FULL).unwrap_err().contains("saw 0"));
        answer.spikes.iter_mut().for_each(|spike| spike.latency = 12 * MS);
        let outside = of(&log, &answer);
        assert_eq!((outside.seen, outside.strays), (0, 120));
        assert!(outside.verdict(&FULL).is_err());
    }
}
