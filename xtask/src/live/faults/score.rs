//! The score of an explanation against the log of injections.
//!
//! A spike belongs to the injection that covers at least half of it. The emulator causes other
//! spikes: those on no injection are counted and not scored, as are those with mostly another
//! cause, and those during which the emulator waited for a CPU of its host.

use std::collections::{BTreeMap, BTreeSet};

use super::answer::{Answer, FUNCTION, FoundCulprit, FoundSlice, FoundSpike};
use super::log::LogRecord;
use super::own::{self, Whose};
use super::stalls::spoil;
use super::table::{Fault, NamePlace, Origin};

/// Spikes of a series, and the quality of their explanations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Score {
    /// Injections while the hunt measured.
    pub injected: usize,
    /// Number of those that made a spike.
    pub seen: usize,
    /// Spikes that were scored.
    pub spikes: usize,
    /// Spikes that are not scored because the emulator itself waited for a CPU at that time.
    pub spoilt: usize,
    /// Spikes on no injection, or on one that covers less than half of them.
    pub strays: usize,
    /// Spikes with the right class; for two causes, both.
    pub class: usize,
    /// Spikes whose culprit is named; for two causes, both.
    pub named: usize,
    /// Mean difference between the explained time and the injected time, relative to the latency.
    pub share_error: f64,
    /// Share of the injected time without an explanation. For additional time caused by the
    /// emulator there is no ground truth.
    pub unexplained: f64,
    /// Difference between the culprit's time and the time injected within the windows, each
    /// nanosecond once, relative to the latter; `None` if no culprit's time is counted.
    pub taken_error: Option<f64>,
    /// Spikes whose parts do not add up, strays included.
    pub wrong_sums: usize,
    /// Spikes of which events were lost.
    pub lost: usize,
    /// Slices attributed to onbeat's own path that are too long for it, of all unspoilt spikes.
    pub own: Vec<String>,
}

/// Scores a result for one kind of fault.
pub fn of(fault: &Fault, log: &[LogRecord], answer: &Answer, stalls: &[[i64; 3]]) -> Score {
    let log: Vec<&LogRecord> =
        log.iter().filter(|record| record.fault == fault.logged() && record.start >= answer.t0).collect();
    let mut injections: BTreeMap<u64, Vec<&LogRecord>> = BTreeMap::new();
    for record in &log {
        injections.entry(record.seq).or_default().push(record);
    }
    let mut score = Score {
        injected: injections.len(),
        wrong_sums: answer.spikes.iter().filter(|spike| !spike.adds_up()).count(),
        ..Score::default()
    };
    let whose = if fault.follows() { Whose::Others } else { Whose::Onbeats };
    // The recording thread was on the CPU of the followed one.
    let beside = answer
        .housekeeping
        .iter()
        .filter(|cpu| fault.follows() && log.iter().any(|record| record.cpu == **cpu));
    score.own.extend(beside.map(|cpu| format!("it records on CPU {cpu}, where its victim runs")));
    let mut seen = BTreeSet::new();
    let (mut error, mut unexplained, mut injected) = (0.0, 0, 0);
    for spike in &answer.spikes {
        let Some((seq, records)) = injection_of(spike, &injections) else {
            score.strays += 1;
            // If the emulator is slow, so is all time without a name; a name is wrong all the same.
            if !spoil(stalls, spike.expected, spike.actual) {
                score.own.extend(own::named(answer, spike, whose));
            }
            continue;
        };
        if spoil(stalls, spike.expected, spike.actual) {
            score.spoilt += 1;
            continue;
        }
        score.own.extend(own::excess(answer, spike, whose));
        seen.insert(seq);
        score.spikes += 1;
        score.lost += usize::from(spike.lost > 0);
        score.class += usize::from(class_is_right(fault.parts, spike));
        score.named += usize::from(fault.parts.iter().all(|part| is_named(part, spike)));
        error += fault.parts.iter().map(|part| share_error(part, spike, records)).fold(0.0, f64::max);
        let whole = covered(records.iter().copied(), spike);
        unexplained += whole - explained(records, spike);
        injected += whole;
    }
    score.seen = seen.len();
    score.named = score.named.max(named_by_culprits(fault.parts, &answer.culprits).min(score.spikes));
    score.taken_error = taken_error(fault.parts, &log, answer);
    score.share_error = ratio(error, score.spikes as f64);
    score.unexplained = ratio(unexplained as f64, injected as f64);
    score
}

/// Ratio of a part to a whole; 1 if the whole is 0, which is too large for an error.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

fn injection_of<'a, 'b>(
    spike: &FoundSpike,
    injections: &'a BTreeMap<u64, Vec<&'b LogRecord>>,
) -> Option<(u64, &'a [&'b LogRecord])> {
    let covered = |records: &[&LogRecord]| covered(records.iter().copied(), spike);
    let most = injections.iter().max_by_key(|(_, records)| covered(records))?;
    (covered(most.1) * 2 >= spike.latency && spike.latency > 0).then_some((*most.0, most.1))
}

fn covered<'a>(records: impl Iterator<Item = &'a LogRecord>, spike: &FoundSpike) -> i64 {
    let here = records.filter(|record| record.cpu == spike.cpu);
    here.map(|record| record.overlap(spike.expected, spike.actual)).sum()
}

/// Injected time within slices of any kind.
fn explained(records: &[&LogRecord], spike: &FoundSpike) -> i64 {
    let within = |slice: &FoundSlice| {
        let (from, to) = (slice.start.max(spike.expected), (slice.start + slice.ns).min(spike.actual));
        records
            .iter()
            .filter(|record| record.cpu == spike.cpu)
            .map(|record| record.overlap(from, to))
            .sum::<i64>()
    };
    spike.slices.iter().map(within).sum()
}

/// A single cause must come first, two must both be among the classes.
fn class_is_right(parts: &[Origin], spike: &FoundSpike) -> bool {
    match parts {
        [part] => spike.classes.first().is_some_and(|class| part.kinds.contains(&class.as_str())),
        _ => parts.iter().all(|part| spike.classes.iter().any(|class| part.kinds.contains(&class.as_str()))),
    }
}

/// True if at least half of the time of this kind has a right name.
fn is_named(part: &Origin, spike: &FoundSpike) -> bool {
    let of_kind = || spike.slices.iter().filter(|slice| part.kinds.contains(&slice.kind.as_str()));
    let named: i64 = of_kind().filter(|slice| is_right(part, slice)).map(|slice| slice.ns).sum();
    named > 0 && named * 2 >= of_kind().map(|slice| slice.ns).sum()
}

fn is_right(part: &Origin, slice: &FoundSlice) -> bool {
    let any = || slice.who.iter().any(|text| names(text, part.names));
    let named = match part.place {
        NamePlace::Any => any(),
        NamePlace::Function => names(&slice.who[FUNCTION], part.names),
        NamePlace::Nowhere => any() || slice.who.iter().all(|text| text.is_empty()),
    };
    let has = |text: &&str| text.split('|').any(|one| slice.said.contains(one));
    named && part.said.iter().all(has)
}

/// Number of spikes for which the list of culprits names all the causes.
fn named_by_culprits(parts: &[Origin], culprits: &[FoundCulprit]) -> usize {
    let spikes_of = |part: &Origin| {
        let right = |culprit: &&FoundCulprit| {
            part.said.is_empty()
                && part.kinds.contains(&culprit.kind.as_str())
                && culprit.names.iter().any(|text| names(text, part.names))
        };
        culprits.iter().filter(right).map(|culprit| culprit.spikes).max().unwrap_or(0)
    };
    parts.iter().map(spikes_of).min().unwrap_or(0) as usize
}

/// Difference between the culprit's time and the injections' within the union of all windows.
fn taken_error(parts: &[Origin], log: &[&LogRecord], answer: &Answer) -> Option<f64> {
    let [part] = parts else { return None };
    let right = |culprit: &&FoundCulprit| {
        part.kinds.contains(&culprit.kind.as_str())
            && culprit.names.iter().any(|text| names(text, part.names))
    };
    let took: Option<i64> = answer
        .culprits
        .iter()
        .filter(right)
        .filter_map(|culprit| culprit.took)
        .reduce(|one, other| one + other);
    let mut windows: Vec<(i64, i64)> =
        answer.spikes.iter().map(|spike| (spike.expected, spike.actual)).collect();
    windows.sort_unstable();
    let (mut until, mut injected) = (i64::MIN, 0);
    for (from, to) in windows {
        injected += log.iter().map(|record| record.overlap(from.max(until), to)).sum::<i64>();
        until = until.max(to);
    }
    took.filter(|_| injected > 0).map(|took| ratio((took - injected).abs() as f64, injected as f64))
}

/// A name must be a whole word outside of the brackets that hold a module's name: the module's is
/// not the function's.
fn names(text: &str, wanted: &[&str]) -> bool {
    let outside = text.split('[').enumerate().map(|(at, part)| match at {
        0 => part,
        _ => part.split_once(']').map_or("", |(_, after)| after),
    });
    let word = |symbol: char| symbol.is_ascii_alphanumeric() || symbol == '_' || symbol == '-';
    outside
        .flat_map(|part| part.split(move |symbol| !word(symbol)))
        .any(|found| wanted.iter().any(|name| name.eq_ignore_ascii_case(found)))
}

/// Difference between the time of the part's kinds and the injected time, relative to the latency.
fn share_error(part: &Origin, spike: &FoundSpike, records: &[&LogRecord]) -> f64 {
    let injected = covered(records.iter().copied().filter(|record| record.kind == part.logged), spike);
    let of_kind = spike.slices.iter().filter(|slice| part.kinds.contains(&slice.kind.as_str()));
    let said: i64 = of_kind.map(|slice| slice.ns).sum();
    ratio((said - injected).abs() as f64, spike.latency as f64)
}

/// Requirements on a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Share of the injections that must be seen, of those a series must have.
    pub seen: f64,
    /// Share of spikes whose class must be right.
    pub class: f64,
    /// Share of spikes whose culprit must be named.
    pub named: f64,
    /// Most that shares of time may be off.
    pub off: f64,
    /// Maximum error of a culprit's time, if that is required.
    pub taken: f64,
    /// Most that may stay unexplained.
    pub unexplained: f64,
    /// Share of spikes from outside that may be blamed on something.
    pub blamed: f64,
}

/// Requirements of `cargo xtask live --all`.
pub const FULL: Demand =
    Demand { seen: 1.0, class: 0.95, named: 0.90, off: 0.10, taken: 0.05, unexplained: 0.05, blamed: 0.0 };

/// Requirements of the gate: a broken explanation is far below them, a busy machine is not.
pub const GATE: Demand =
    Demand { seen: 0.5, class: 0.75, named: 0.70, off: 0.25, taken: 0.25, unexplained: 0.20, blamed: 0.05 };

impl Score {
    /// Failed requirements, in one line; `Ok` if all are met.
    pub fn verdict(&self, fault: &Fault, demand: &Demand) -> Result<(), String> {
        let share = |n: usize| ratio(n as f64, self.spikes as f64);
        let mut complaints = Vec::new();
        let mut require = |holds: bool, complaint: String| {
            if !holds {
                complaints.push(complaint);
            }
        };
        let least = (fault.least as f64 * demand.seen) as usize;
        // A spike that a stop of the emulator spoilt was seen, and proves nothing; half must.
        let seen = self.seen >= least.div_ceil(2) && self.seen + self.spoilt >= least;
        require(seen, format!("saw {} of {} injections, {} spoilt", self.seen, self.injected, self.spoilt));
        require(self.wrong_sums == 0, format!("{} spikes do not add up", self.wrong_sums));
        require(share(self.class) >= demand.class, format!("class right in {}", percent(share(self.class))));
        require(
            share(self.named) >= demand.named,
            format!("culprit named in {}", percent(share(self.named))),
        );
        require(
            self.share_error <= demand.off,
            format!("share of time off by {}", percent(self.share_error)),
        );
        let taken = self.taken_error.filter(|_| fault.counts_time).unwrap_or(0.0);
        require(taken <= demand.taken, format!("time taken off by {}", percent(taken)));
        require(self.unexplained < demand.unexplained, format!("{} unexplained", percent(self.unexplained)));
        let first = self.own.first().map_or("", String::as_str);
        require(self.own.is_empty(), format!("{} times onbeat's own path: {first}", self.own.len()));
        if complaints.is_empty() { Ok(()) } else { Err(complaints.join("; ")) }
    }

    /// The line of the table.
    pub fn row(&self, word: &str) -> String {
        let share =
            |n: usize| if self.spikes == 0 { "-".into() } else { percent(n as f64 / self.spikes as f64) };
        let mean = |value: f64| if self.spikes == 0 { "-".into() } else { percent(value) };
        format!(
            "  {word:<17}{:>9}{:>6}{:>8}{:>8}{:>8}{:>8}{:>9}{:>9}{:>13}{:>6}{:>6}{:>5}",
            self.injected,
            self.seen,
            self.spoilt,
            self.strays,
            share(self.class),
            share(self.named),
            mean(self.share_error),
            self.taken_error.map_or_else(|| "-".into(), percent),
            mean(self.unexplained),
            self.lost,
            self.wrong_sums,
            self.own.len()
        )
    }
}

/// The head of the table.
pub fn head() -> String {
    format!(
        "  {:<17}{:>9}{:>6}{:>8}{:>8}{:>8}{:>8}{:>9}{:>9}{:>13}{:>6}{:>6}{:>5}",
        "fault",
        "injected",
        "seen",
        "spoilt",
        "strays",
        "class",
        "named",
        "share +-",
        "taken +-",
        "unexplained",
        "lost",
        "sums",
        "own"
    )
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
