//! Command line of cyclictest in its JSON and in logs: the schedule that the rest of the result
//! omits.

use std::iter::Peekable;

use super::command_words;
use model::keyword::Word;
use model::run::Plan;
use model::units::{Bare, Cpu, CpuSet, Nanos, parse_span};
use model::vocabulary::{Policy, WakeMechanism};

/// Short options that take a value, attached or as the next word (`getopt` string of rt-tests 2.1
/// to 2.9).
const VALUED: &str = "bcdDFhHilop";
/// Short options whose value can only be attached; a word without a dash is not an option.
const ATTACHED: &str = "A";
/// Long options that are read, by which `getopt_long` finds an unambiguous beginning.
const LONG: [&str; 16] = [
    "affinity",
    "threads",
    "interval",
    "distance",
    "priority",
    "policy",
    "duration",
    "loops",
    "histogram",
    "histofall",
    "clock",
    "relative",
    "nsecs",
    "priospread",
    "posix_timers",
    "system",
];
/// Default period in microseconds.
const DEFAULT_INTERVAL_US: i64 = 1000;
/// Default distance in microseconds.
const DEFAULT_DISTANCE_US: i64 = 500;

/// Relevant options as given; a later one replaces an earlier one, as in `getopt`.
#[derive(Default)]
struct Given<'a> {
    interval: Option<&'a str>,
    distance: Option<&'a str>,
    priority: Option<&'a str>,
    policy: Option<&'a str>,
    duration: Option<&'a str>,
    loops: Option<&'a str>,
    histogram: Option<Option<&'a str>>,
    affinity: Option<&'a str>,
    threads: Option<&'a str>,
    spread: bool,
    relative: bool,
    nanoseconds: bool,
    clock: Option<&'a str>,
    system: bool,
    posix_timers: bool,
}

/// Fills interval, distance, priority, policy, length and wake-up call from a command line of
/// cyclictest.
///
/// A line of another program changes nothing: its defaults are unknown.
pub(super) fn fill(plan: &mut Plan, line: &str) {
    let Some(given) = options_of(line) else { return };
    let micros = |text: Option<&str>, default| match text {
        None => Some(Nanos(default * Nanos::MICRO.0)),
        Some(text) => text.parse::<u32>().ok().map(|us| Nanos(i64::from(us) * Nanos::MICRO.0)),
    };
    plan.interval_ns = micros(given.interval, DEFAULT_INTERVAL_US).filter(|&ns| ns > Nanos(0));
    // With a histogram all threads share one period; -d has no effect.
    let distance =
        if given.histogram.is_some() { Some(Nanos(0)) } else { micros(given.distance, DEFAULT_DISTANCE_US) };
    plan.distance_ns = distance;
    plan.duration_ns = given.duration.and_then(|text| parse_span(text, Bare::Seconds).ok());
    plan.loops = given.loops.and_then(|text| text.parse().ok()).filter(|&n| n > 0);
    (plan.policy, plan.priority) = policy_of(&given);
    plan.wake = match (given.posix_timers, given.system || given.relative) {
        (false, false) => WakeMechanism::Nanosleep.into(),
        (true, _) => WakeMechanism::Signal.into(),
        (false, true) => Word::default(),
    };
    if given.relative {
        plan.wake = Word::Other("clock_nanosleep, relative time".into());
        plan.notes.push("relative time (-r): a late wake-up delays all later ones".into());
    }
    if given.clock.is_some_and(|clock| clock.trim() == "1") {
        plan.notes.push("CLOCK_REALTIME (-c 1): steps of the wall clock are among the latencies".into());
    }
}

/// Options after the program's name; `None` for another program.
fn options_of(line: &str) -> Option<Given<'_>> {
    let mut words = line.split_ascii_whitespace();
    words.next().is_some_and(is_cyclictest).then(|| gather(words))
}

/// True for a command line of cyclictest itself.
pub(super) fn is_cyclictests(line: &str) -> bool {
    options_of(line).is_some()
}

fn is_cyclictest(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| matches!(name, "cyclictest" | "cyclictest.sh"))
}

/// Command line in a line of a log: after a prompt, `sudo` or a script's `+`, and before output in
/// the same line.
pub(super) fn within(line: &str) -> Option<&str> {
    let line = line.split("# /dev/").next().unwrap_or_default();
    command_words::within(line, "cyclictest").or_else(|| command_words::within(line, "cyclictest.sh"))
}

/// CPUs that `-a` lists, for the threads in turn; empty if it lists none.
pub(super) fn cpus(line: &str) -> Vec<Cpu> {
    let list = options_of(line).and_then(|given| CpuSet::parse(given.affinity?).ok());
    list.map_or(Vec::new(), |list| list.iter().collect())
}

/// True if numbers without a unit are nanoseconds (`-N`).
pub(super) fn resolution_is_ns(line: &str) -> bool {
    options_of(line).is_some_and(|given| given.nanoseconds)
}

/// True if the run was to have a histogram; false for a line that is not cyclictest's.
pub(super) fn asks_for_histogram(line: &str) -> bool {
    gather(line.split_ascii_whitespace().skip(1)).histogram.is_some()
}

/// Number of buckets of the histogram, if the line sets it: values from that number on are beyond
/// its end.
pub(super) fn buckets(line: &str) -> Option<u64> {
    gather(line.split_ascii_whitespace().skip(1)).histogram??.parse().ok()
}

/// Reason why a result of this many threads, whose last row is this one, is not of this command.
pub(super) fn mismatch(line: &str, threads: usize, last_bucket: Option<u64>) -> Option<String> {
    let given = options_of(line)?;
    let stated = given.threads.and_then(|text| text.parse::<usize>().ok()).filter(|&stated| stated > 0);
    if let Some(stated) = stated.filter(|&stated| stated != threads) {
        return Some(format!("it has -t {stated}, and the result {threads}"));
    }
    let last = last_bucket?;
    let rows = buckets(line).filter(|&rows| rows <= last)?;
    Some(format!("it has -h {rows}, and the result a row {last}"))
}

/// Policy and priority that take effect; empty and `None` if the line does not set them.
fn policy_of(given: &Given) -> (Word<Policy>, Option<u32>) {
    let policy = match (given.priority, given.policy) {
        (_, Some("rr")) => Policy::Rr.into(),
        // A priority implies SCHED_FIFO, even with a policy without priorities.
        (Some(_), _) | (None, Some("fifo")) => Policy::Fifo.into(),
        (None, None | Some("other" | "normal")) => return (Policy::Other.into(), Some(0)),
        (None, _) => Word::default(),
    };
    // Without -p cyclictest takes one more than the number of threads.
    let number = given.priority.and_then(|text| text.parse().ok());
    (policy, number.filter(|n| (1..=99).contains(n) && !given.spread))
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

fn gather<'a>(words: impl Iterator<Item = &'a str>) -> Given<'a> {
    let mut words = words.peekable();
    let mut given = Given::default();
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--") {
            take_long(&mut given, long, &mut words);
        } else if let Some(letters) = word.strip_prefix('-') {
            take_short(&mut given, letters, &mut words);
        }
    }
    given
}

fn take_short<'a>(
    given: &mut Given<'a>,
    letters: &'a str,
    words: &mut Peekable<impl Iterator<Item = &'a str>>,
) {
    for (at, letter) in letters.char_indices() {
        if ATTACHED.contains(letter) {
            return;
        }
        // The value of -a and -t is attached, or the next word if that begins with a digit.
        if "at".contains(letter) {
            let rest = &letters[at + letter.len_utf8()..];
            let value = if rest.is_empty() { words.next_if(|word| is_number(word)) } else { Some(rest) };
            if letter == 'a' {
                given.affinity = value;
            } else {
                given.threads = value;
            }
            return;
        }
        if VALUED.contains(letter) {
            let rest = &letters[at + letter.len_utf8()..];
            let value = if rest.is_empty() { words.next() } else { Some(rest) };
            match letter {
                'i' => given.interval = value,
                'd' => given.distance = value,
                'p' => given.priority = value,
                'D' => given.duration = value,
                'l' => given.loops = value,
                'h' | 'H' => given.histogram = Some(value),
                'c' => given.clock = value,
                _ => {}
            }
            return;
        }
        match letter {
            's' => given.system = true,
            'r' => given.relative = true,
            'N' => given.nanoseconds = true,
            'x' => given.posix_timers = true,
            _ => {}
        }
    }
}

fn take_long<'a>(given: &mut Given<'a>, long: &'a str, words: &mut Peekable<impl Iterator<Item = &'a str>>) {
    let (name, attached) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
    let name = LONG.into_iter().find(|long| command_words::names_option(name, long)).unwrap_or_default();
    if matches!(name, "affinity" | "threads") {
        let value = attached.or_else(|| words.next_if(|word| is_number(word)));
        if name == "affinity" {
            given.affinity = value;
        } else {
            given.threads = value;
        }
        return;
    }
    let mut value = || attached.or_else(|| words.next());
    match name {
        "interval" => given.interval = value(),
        "distance" => given.distance = value(),
        "priority" => given.priority = value(),
        "policy" => given.policy = value(),
        "duration" => given.duration = value(),
        "loops" => given.loops = value(),
        "histogram" | "histofall" => given.histogram = Some(value()),
        "clock" => given.clock = value(),
        "relative" => given.relative = true,
        "nsecs" => given.nanoseconds = true,
        "priospread" => given.spread = true,
        "system" => given.system = true,
        "posix_timers" => given.posix_timers = true,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plan_of(line: &str) -> Plan {
        let mut plan = Plan::default();
        fill(&mut plan, line);
        plan
    }

    fn brief(line: &str) -> (Option<i64>, Option<i64>, Option<u32>, Word<Policy>) {
        let plan = plan_of(line);
        (plan.interval_ns.map(|n| n.0), plan.distance_ns.map(|n| n.0), plan.priority, plan.policy)
    }

    #[test]
    fn options_are_read_as_getopt_reads_them() {
        let fifo = Word::from(Policy::Fifo);
        let line = "cyclictest -qmu -h 3500 -p95 -i100 -t4 -a0-3";
        assert_eq!(brief(line), (Some(100_000), Some(0), Some(95), fifo.clone()));
        let line = "/usr/bin/cyclictest -mSp98 -D6h -i200 -q";
        assert_eq!(brief(line), (Some(200_000), Some(500_000), Some(98), fifo.clone()));
        assert_eq!(plan_of(line).duration_ns, Some(Nanos(21_600_000_000_000)));
        assert_eq!(brief("cyclictest").3, Policy::Other);
        assert_eq!(
            brief("cyclictest --policy=rr"),
            (Some(1_000_000), Some(500_000), None, Policy::Rr.into())
        );
        assert_eq!(brief("cyclictest --priority 80 --distance=0").1, Some(0));
        assert_eq!(plan_of("cyclictest -x -l 500").wake, WakeMechanism::Signal);
        assert_eq!(plan_of("cyclictest -x -l 500").loops, Some(500));
        assert_eq!(plan_of("other -i 5"), Plan::default());
        let short = plan_of("cyclictest --pol=rr --rel --int=500 --dist=0");
        assert_eq!((short.policy, short.interval_ns), (Policy::Rr.into(), Some(Nanos(500_000))));
        assert_eq!((short.distance_ns, short.notes.len()), (Some(Nanos(0)), 1));
        assert!(resolution_is_ns("cyclictest --ns") && !resolution_is_ns("cyclictest --n"));
        let asked =
            ["-h60 -q", "-qh 60", "--histogram=60", "--histofall 60", "-H60", "-h x", "-q"].map(|options| {
                let line = format!("cyclictest {options}");
                (asks_for_histogram(&line), buckets(&line))
            });
        assert_eq!(asked[..5], [(true, Some(60)); 5]);
        assert_eq!(asked[5..], [(true, None), (false, None)]);
    }

    #[test]
    fn what_is_no_number_is_unknown() {
        assert_eq!(brief("cyclictest -i1x -p x"), (None, Some(500_000), None, Policy::Fifo.into()));
        assert_eq!(brief("cyclictest -i0 -p 9999").0, None);
        assert_eq!(brief("cyclictest -i0 -p 9999").2, None);
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "\\PC{0,60}") {
            plan_of(&format!("cyclictest {line}"));
        }
    }
}
