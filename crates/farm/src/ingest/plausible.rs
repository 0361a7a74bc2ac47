//! Plausibility of numbers: a run or a row beyond these limits is refused before anything is
//! stored.
//!
//! One such number of one board would otherwise be in every sum over the fleet, and on every page
//! that ends with the latest time. The sums of [`crate::store`] do not overflow even so.

use std::collections::BTreeSet;

use bundle::record::lines::RowsLine;
use model::run::{CpuRun, Run};
use model::text::{excerpt, several};
use model::units::Nanos;
use model::wall_time::nanos_of;
use model::watch::WatchRow;

use crate::records::FarmSlot;
use crate::wall_clock::{DAY, now};

/// Samples of a run, all CPUs together: 128 CPUs that wake up every 20 us for a year have 2e14. A
/// day has room for 32,000 runs like that before its sum exceeds an `i64`.
pub const MOST_SAMPLES: u64 = 1 << 48;
/// Samples of a line: 4,096 CPUs that wake up three million times a second for five minutes. A day
/// has room for two million lines like that.
const MOST_OF_LINE: u64 = 1 << 42;
/// A hundred years, for spans and for the clock since the machine started: a third of the range of
/// an `i64` of nanoseconds, so that two can be added without a check.
pub const LONGEST: Nanos = Nanos(100 * 365 * DAY * Nanos::SECOND.0);
/// Number of a line in its recording: at one a second it lasts for 30,000 years.
const MOST_LINES: u64 = 1 << 40;
/// The clock of a farm that shows an earlier time is wrong: this version was written after it.
/// Machines without a clock chip begin in 1970, and their runs are not to be refused for that.
pub const WRITTEN: i64 = 1_795_651_200;

/// Time for these checks, in seconds since 1970: the farm's clock, but at least `WRITTEN`.
pub fn believed(clock: i64) -> i64 {
    clock.max(WRITTEN)
}

/// The latest time that a run may be of: a day more, as for rows of five minutes.
pub fn latest(clock: i64) -> i64 {
    believed(clock).saturating_add(DAY)
}

/// The same by the clock of this machine.
pub fn latest_now() -> i64 {
    latest(now())
}

/// Checks a run, by the farm's clock in seconds since 1970.
pub fn run(of: &Run, clock: i64) -> Result<(), String> {
    began(&of.started, clock)?;
    let mut all = Numbers { cycles: 0, missed: 0, took: 0 };
    for (at, cpu) in of.cpus.iter().enumerate() {
        all.cpu(at, cpu).map_err(of_run)?;
    }
    span("elapsed_ns", of.elapsed_ns, Nanos(0)).map_err(of_run)?;
    count("spikes_dropped", of.spikes_dropped, MOST_SAMPLES).map_err(of_run)?;
    for (at, spike) in of.spikes.iter().enumerate() {
        span(&format!("spikes[{at}].latency_ns"), Some(spike.latency_ns), Nanos(-LONGEST.0))
            .map_err(of_run)?;
    }
    for (at, culprit) in of.culprits.iter().enumerate() {
        let name = format!("culprits[{at}]");
        count(&format!("{name}.spikes"), culprit.spikes, MOST_SAMPLES).map_err(of_run)?;
        span(&format!("{name}.total_ns"), Some(culprit.total_ns), Nanos(0)).map_err(of_run)?;
        // Two culprits of one name are one in the store.
        all.took = all.took.saturating_add(culprit.total_ns.0);
        span(&format!("{name}.total_ns with those before it"), Some(Nanos(all.took)), Nanos(0))
            .map_err(of_run)?;
    }
    Ok(())
}

/// The same of the seconds of a run, put together to five minutes.
pub fn slots(of: &[FarmSlot], clock: i64) -> Result<(), String> {
    let (mut samples, mut missed) = (0u64, 0u64);
    for slot in of {
        // A clock that is set while the run is on may be behind for its first seconds.
        if slot.t < -DAY || slot.t > latest(clock) {
            return Err(format!(
                "its blocks.jsonl has a second at {} s since 1970, in the future or before 1970: set the \
                 board's clock and measure again",
                slot.t
            ));
        }
        samples = samples.saturating_add(slot.n);
        missed = missed.saturating_add(slot.missed);
        let name = |field: &str| format!("{field} of blocks.jsonl, five minutes at {},", slot.t);
        count(&name("n"), samples, MOST_SAMPLES).map_err(of_run)?;
        count(&name("missed"), missed, MOST_SAMPLES).map_err(of_run)?;
        span(&name("max_ns"), slot.max_ns, Nanos(-LONGEST.0)).map_err(of_run)?;
    }
    Ok(())
}

/// Checks a line.
pub fn line(of: &RowsLine) -> Result<(), String> {
    count("seq", of.at.seq, MOST_LINES).map_err(of_line)?;
    span("mono_ns", Some(of.at.mono_ns), Nanos(0)).map_err(of_line)?;
    span("span_ns", Some(of.at.span_ns), Nanos(1)).map_err(of_line)?;
    let (mut samples, mut missed) = (0u64, 0u64);
    let mut seen = BTreeSet::new();
    for (at, row) in of.cpus.iter().enumerate() {
        if !row.layout.is_known() {
            return Err(format!(
                "cpus[{at}].layout is {:?}, which this version does not know: update onbeat-farm, or omit \
                 the line",
                excerpt(&row.layout.0)
            ));
        }
        let Some(cpu) = row.cpu else { continue };
        // A CPU has a row for each kind of wait.
        if !seen.insert((cpu, row.holder.as_str(), row.victims.as_str())) {
            return Err(of_line(format!("cpus[{at}] repeats CPU {}", cpu.0)));
        }
        samples = samples.saturating_add(row.n);
        missed = missed.saturating_add(row.missed);
        count(&format!("n up to cpus[{at}]"), samples, MOST_OF_LINE).map_err(of_line)?;
        count(&format!("missed up to cpus[{at}]"), missed, MOST_OF_LINE).map_err(of_line)?;
        span(&format!("cpus[{at}].max_ns"), row.max_ns, least_maximum(row)).map_err(of_line)?;
        span(&format!("cpus[{at}].max_mono_ns"), row.max_mono_ns, Nanos(0)).map_err(of_line)?;
        agreement(row).map_err(|what| of_line(format!("cpus[{at}].{what}")))?;
    }
    Ok(())
}

/// Checks a row's values against each other: the largest ones and the mean are between the minimum
/// and the maximum. Writers omit values that they do not know.
fn agreement(row: &WatchRow) -> Result<(), String> {
    if row.early > row.n {
        return Err(format!("early is {}, more than its n of {}", row.early, row.n));
    }
    span("min_ns", row.min_ns, Nanos(-LONGEST.0))?;
    let (least, most) = (row.min_ns.unwrap_or(Nanos(-LONGEST.0)), row.max_ns.unwrap_or(LONGEST));
    if least > most {
        return Err(format!("min_ns is {}, more than its max_ns of {}", least.0, most.0));
    }
    for (at, one) in row.top_ns.iter().enumerate() {
        between(&format!("top_ns[{at}]"), one.0, least.0.into(), most.0.into())?;
    }
    // An unknown sum is 0; one that overflows is the extreme value of its type.
    if row.sum_ns != Nanos(0) {
        let all = |each: Nanos| i128::from(row.n) * i128::from(each.0);
        let last = |sum: i128| sum.clamp(i64::MIN.into(), i64::MAX.into());
        between("sum_ns", row.sum_ns.0, last(all(least)), last(all(most)))?;
    }
    match row.culprit.share {
        Some(share) if !(0.0..=1.0).contains(&share) => {
            Err(format!("culprit.share is {share}, not from 0 to 1"))
        }
        _ => Ok(()),
    }
}

fn between(name: &str, of: i64, least: i128, most: i128) -> Result<(), String> {
    if (least..=most).contains(&i128::from(of)) {
        Ok(())
    } else {
        Err(format!("{name} is {of}, not from {least} to {most} as its n, min_ns and max_ns say"))
    }
}

/// The maximum is below zero only if every wake-up was early.
fn least_maximum(row: &WatchRow) -> Nanos {
    if row.n > 0 && row.early >= row.n { Nanos(-LONGEST.0) } else { Nanos(0) }
}

/// Sums of a run so far.
struct Numbers {
    cycles: u64,
    missed: u64,
    /// Time of its culprits, in ns.
    took: i64,
}

impl Numbers {
    fn cpu(&mut self, at: usize, cpu: &CpuRun) -> Result<(), String> {
        let name = |field: &str| format!("cpus[{at}].{field}");
        let so_far = |field: &str| format!("{field} of {}", several(at as u64 + 1, "CPU", "CPUs"));
        count(&name("cycles"), cpu.cycles.unwrap_or_default(), MOST_SAMPLES)?;
        count(&name("missed"), cpu.missed.unwrap_or_default(), MOST_SAMPLES)?;
        self.cycles = self.cycles.saturating_add(cpu.cycles.unwrap_or_default());
        self.missed = self.missed.saturating_add(cpu.missed.unwrap_or_default());
        count(&so_far("cycles"), self.cycles, MOST_SAMPLES)?;
        count(&so_far("missed"), self.missed, MOST_SAMPLES)?;
        for (place, row) in cpu.histogram.iter().enumerate() {
            count(&name(&format!("histogram[{place}]")), row.count, MOST_SAMPLES)?;
        }
        span(&name("max_ns"), cpu.max_ns, Nanos(-LONGEST.0))?;
        span(&name("p9999_ns"), cpu.p9999_ns, Nanos(-LONGEST.0))
    }
}

fn began(started: &str, clock: i64) -> Result<(), String> {
    // An import may lack its time.
    if started.is_empty() {
        return Ok(());
    }
    let shown = excerpt(started);
    match nanos_of(started).map(|at| at.0.div_euclid(Nanos::SECOND.0)) {
        None => Err(format!("started is {shown:?}, not a time from 1970 to 2262: measure again")),
        Some(at) if at > latest(clock) => Err(format!(
            "it began at {shown}, in the future: set the board's clock and measure again, or set this \
             machine's clock if that is wrong"
        )),
        Some(_) => Ok(()),
    }
}

fn count(name: &str, of: u64, most: u64) -> Result<(), String> {
    if of > most { Err(format!("{name} is {of}, more than {most}")) } else { Ok(()) }
}

fn span(name: &str, of: Option<Nanos>, least: Nanos) -> Result<(), String> {
    match of {
        Some(of) if of > LONGEST => Err(format!("{name} is {}, more than a hundred years", of.0)),
        Some(of) if of < least => Err(format!("{name} is {}, less than {}", of.0, least.0)),
        _ => Ok(()),
    }
}

fn of_run(what: String) -> String {
    format!("{what}: onbeat does not write such a run; use another copy of it or measure again")
}

fn of_line(what: String) -> String {
    format!("{what}: onbeat does not write such a row; omit the line")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bundle::five_minutes::FiveMinuteSums;
    use bundle::record::lines::LineSpan;
    use bundle::record::made::MadeRecord;
    use bundle::tail::Tail;
    use model::histogram::{Bucket, bucket_of};
    use model::run::{Culprit, Spike};
    use model::units::Cpu;
    use model::wall_time::wall_time;
    use proptest::prelude::*;
    use serde_json::json;

    type ChangedRun = fn(&mut Run);
    type ChangedLine = fn(&mut RowsLine);

    const BIG: i64 = i64::MAX;
    const HUGE: u64 = i64::MAX as u64;

    /// A run as large as any.
    fn large() -> Run {
        let cpu = CpuRun {
            cycles: Some(MOST_SAMPLES / 2),
            missed: Some(MOST_SAMPLES / 2),
            max_ns: Some(LONGEST),
            p9999_ns: Some(Nanos(-3)),
            histogram: vec![Bucket { lower: Nanos(0), upper: Nanos(1), count: MOST_SAMPLES / 2 }],
            ..CpuRun::default()
        };
        let culprit = Culprit { spikes: MOST_SAMPLES, total_ns: LONGEST, ..Culprit::default() };
        Run {
            started: "1970-01-01T00:00:09.000000Z".into(),
            elapsed_ns: Some(LONGEST),
            cpus: vec![cpu.clone(), cpu],
            spikes: vec![Spike { latency_ns: LONGEST, ..Spike::default() }],
            culprits: vec![culprit],
            ..Run::default()
        }
    }

    #[test]
    fn each_number_of_a_run_has_a_limit_that_is_named() {
        assert_eq!(run(&large(), 0), Ok(()));
        assert_eq!(run(&Run::default(), 0), Ok(()));
        let wrong: [(&str, ChangedRun); 13] = [
            ("cpus[1].cycles is 9223372036854775807", |of| of.cpus[1].cycles = Some(HUGE)),
            ("cycles of 2 CPUs", |of| of.cpus[1].cycles = Some(MOST_SAMPLES / 2 + 1)),
            ("cpus[0].missed", |of| of.cpus[0].missed = Some(u64::MAX)),
            ("missed of 2 CPUs", |of| of.cpus[1].missed = Some(MOST_SAMPLES)),
            ("cpus[1].histogram[0]", |of| of.cpus[1].histogram[0].count = HUGE),
            ("cpus[0].max_ns", |of| of.cpus[0].max_ns = Some(Nanos(BIG))),
            ("cpus[0].p9999_ns", |of| of.cpus[0].p9999_ns = Some(Nanos(i64::MIN))),
            ("elapsed_ns is -1", |of| of.elapsed_ns = Some(Nanos(-1))),
            ("spikes_dropped", |of| of.spikes_dropped = HUGE),
            ("spikes[0].latency_ns", |of| of.spikes[0].latency_ns = Nanos(BIG)),
            ("culprits[0].spikes", |of| of.culprits[0].spikes = HUGE),
            ("culprits[0].total_ns is 9223372036854775807", |of| of.culprits[0].total_ns = Nanos(BIG)),
            ("culprits[1].total_ns with", |of| of.culprits.push(of.culprits[0].clone())),
        ];
        for (named, change) in wrong {
            let mut one = large();
            change(&mut one);
            let why = run(&one, 0).unwrap_err();
            assert!(why.starts_with(named) && why.contains("measure again"), "{named}: {why}");
            assert!(!why.contains('\n') && why.len() < 300, "{why}");
        }
    }

    #[test]
    fn a_run_of_the_future_is_refused_and_one_of_tomorrow_is_not() {
        let clock = WRITTEN + 400 * DAY;
        let at = |t: i64| Run { started: wall_time(Nanos(t * Nanos::SECOND.0)), ..Run::default() };
        assert_eq!((run(&at(clock + DAY), clock), run(&at(0), clock)), (Ok(()), Ok(())));
        // A farm's clock that is certainly wrong refuses no run for it.
        assert_eq!(run(&at(WRITTEN), 0), Ok(()));
        let why = run(&at(clock + DAY + 1), clock).unwrap_err();
        assert!(why.contains("in the future") && why.contains("set the board's clock"), "{why}");
        for text in ["garbage\n\u{1b}[2J", "1677-01-01T00:00:00Z", "2999-01-01T00:00:00Z"] {
            let why = run(&Run { started: text.into(), ..Run::default() }, clock).unwrap_err();
            assert!(why.contains("not a time") && !why.contains(model::text::steers), "{why}");
        }
    }

    #[test]
    fn the_seconds_of_a_run_are_within_the_same() {
        let slot = |t, n| FarmSlot { t, n, missed: n, max_ns: Some(LONGEST), ..FarmSlot::default() };
        let day = latest(0);
        assert_eq!(slots(&[slot(-300, MOST_SAMPLES - 1), slot(day, 1)], 0), Ok(()));
        for (wrong, named) in [
            (slot(day + 1, 1), "in the future"),
            (slot(-DAY - 1, 1), "before 1970"),
            (slot(7, MOST_SAMPLES + 1), "n of blocks.jsonl"),
            (FarmSlot { missed: HUGE, ..slot(7, 1) }, "missed of blocks.jsonl"),
            (FarmSlot { max_ns: Some(Nanos(BIG)), ..slot(7, 1) }, "max_ns of blocks.jsonl"),
        ] {
            let why = slots(&[wrong], 0).unwrap_err();
            assert!(why.contains(named), "{why}");
        }
        assert!(slots(&[slot(0, MOST_SAMPLES), slot(300, 1)], 0).is_err());
    }

    #[test]
    fn each_number_of_a_line_has_a_limit_that_is_named() {
        let row = |cpu: u32, n: u64| WatchRow {
            cpu: Some(Cpu(cpu)),
            n,
            max_ns: Some(Nanos(5)),
            max_mono_ns: Some(Nanos(7)),
            ..WatchRow::default()
        };
        let mut good = RowsLine::default();
        good.at.span_ns = Nanos(300 * Nanos::SECOND.0);
        good.cpus = vec![row(0, MOST_OF_LINE - 1), row(1, 1), WatchRow::default(), WatchRow::default()];
        assert_eq!(line(&good), Ok(()));
        // Each kind of wait has a separate row, and early wake-ups may be all there is.
        let mut kinds = good.clone();
        kinds.cpus = vec![row(0, 1), WatchRow { holder: model::watch::Holder::Equal.into(), ..row(0, 1) }];
        kinds.cpus[1] = WatchRow { early: 1, max_ns: Some(Nanos(-5)), ..kinds.cpus[1].clone() };
        assert_eq!(line(&kinds), Ok(()));
        let wrong: [(&str, ChangedLine); 21] = [
            ("seq", |of| of.at.seq = HUGE),
            ("mono_ns is -1", |of| of.at.mono_ns = Nanos(-1)),
            ("mono_ns", |of| of.at.mono_ns = Nanos(BIG)),
            ("span_ns is 0", |of| of.at.span_ns = Nanos(0)),
            ("span_ns", |of| of.at.span_ns = Nanos(BIG)),
            ("n up to cpus[1]", |of| of.cpus[1].n = 2),
            ("n up to cpus[0]", |of| of.cpus[0].n = u64::MAX),
            ("missed up to cpus[0]", |of| of.cpus[0].missed = HUGE),
            ("cpus[1].max_ns is -5", |of| of.cpus[1].max_ns = Some(Nanos(-5))),
            ("cpus[0].max_mono_ns", |of| of.cpus[0].max_mono_ns = Some(Nanos(-BIG))),
            ("cpus[1] repeats CPU 0", |of| of.cpus[1].cpu = Some(Cpu(0))),
            ("cpus[1].early is 2, more than its n of 1", |of| of.cpus[1].early = 2),
            ("cpus[1].min_ns is 6, more than its max_ns of 5", |of| of.cpus[1].min_ns = Some(Nanos(6))),
            ("cpus[1].min_ns", |of| of.cpus[1].min_ns = Some(Nanos(-BIG))),
            ("cpus[1].top_ns[1] is 6", |of| of.cpus[1].top_ns = vec![Nanos(5), Nanos(6)]),
            ("cpus[1].top_ns[0] is 3", |of| {
                (of.cpus[1].min_ns, of.cpus[1].top_ns) = (Some(Nanos(4)), vec![Nanos(3)]);
            }),
            ("cpus[1].sum_ns is 6, not from", |of| of.cpus[1].sum_ns = Nanos(6)),
            ("cpus[1].sum_ns is 3, not from 4 to 5", |of| {
                (of.cpus[1].min_ns, of.cpus[1].sum_ns) = (Some(Nanos(4)), Nanos(3));
            }),
            ("cpus[0].sum_ns is 9223372036854775807", |of| of.cpus[0].sum_ns = Nanos(BIG)),
            ("cpus[0].culprit.share is 1.5", |of| of.cpus[0].culprit.share = Some(1.5)),
            ("cpus[0].culprit.share is NaN", |of| of.cpus[0].culprit.share = Some(f64::NAN)),
        ];
        for (named, change) in wrong {
            let mut one = good.clone();
            change(&mut one);
            let why = line(&one).unwrap_err();
            assert!(why.starts_with(named) && why.ends_with("omit the line"), "{named}: {why}");
        }
    }

    #[test]
    fn rows_that_are_numbered_in_another_way_are_none() {
        let of = |layout: Option<&str>| {
            let mut text = json!({ "span_ns": 1, "cpus": [{ "cpu": 0 }] });
            if let Some(layout) = layout {
                text["cpus"][0]["layout"] = layout.into();
            }
            line(&serde_json::from_value(text).unwrap())
        };
        for known in [None, Some(""), Some("log32")] {
            assert_eq!(of(known), Ok(()), "{known:?}");
        }
        for other in ["hdr2", "log64", "LOG32", "log32\n\u{1b}[2J"] {
            let why = of(Some(other)).unwrap_err();
            assert!(why.starts_with("cpus[0].layout is \"") && why.contains("update onbeat-farm"), "{why}");
            assert!(!why.contains(model::text::steers), "{why}");
        }
        assert!(of(Some("hdr2")).unwrap_err().contains("hdr2"));
    }

    #[test]
    fn at_their_limits_the_parts_of_a_row_agree() {
        let row = WatchRow {
            cpu: Some(Cpu(0)),
            n: 3,
            early: 3,
            min_ns: Some(Nanos(-9)),
            max_ns: Some(Nanos(-2)),
            top_ns: vec![Nanos(-2), Nanos(-9)],
            ..WatchRow::default()
        };
        let of = |row: WatchRow| {
            let mut one = RowsLine { cpus: vec![row], ..RowsLine::default() };
            one.at.span_ns = Nanos(1);
            line(&one)
        };
        for (sum, agrees) in [(-27, true), (-6, true), (-28, false), (-5, false), (0, true)] {
            assert_eq!(of(WatchRow { sum_ns: Nanos(sum), ..row.clone() }).is_ok(), agrees, "{sum}");
        }
        // Without samples there is no sum, and one beyond an i64 is its largest number.
        let none = WatchRow { cpu: row.cpu, sum_ns: Nanos(1), ..WatchRow::default() };
        assert!(of(none).unwrap_err().contains("from 0 to 0"));
        let many = WatchRow {
            n: MOST_OF_LINE,
            early: 0,
            min_ns: Some(LONGEST),
            max_ns: Some(LONGEST),
            top_ns: Vec::new(),
            sum_ns: Nanos(BIG),
            ..row
        };
        assert_eq!(of(many), Ok(()));
    }

    /// Checks each line of rows in a text; returns their number.
    fn taken(text: &[u8]) -> Result<usize, String> {
        let mut lines = 0;
        for text in text.split(|&byte| byte == b'\n').filter(|text| text.starts_with(b"{\"seq\"")) {
            line(&serde_json::from_slice(text).map_err(|error| error.to_string())?)?;
            lines += 1;
        }
        Ok(lines)
    }

    proptest! {
        #[test]
        fn what_a_record_holds_is_taken(
            cpus in 1u32..5, wakeups in 1u64..2_000_000, reboot in 0u64..40, first in 0u64..400,
        ) {
            let made = MadeRecord { cpus, span: Nanos(300 * Nanos::SECOND.0), reboot, wakeups };
            for n in first..first + 3 {
                let interval = made.interval(n);
                for series in &interval.series {
                    let at = LineSpan::of(&interval, n);
                    let rows = RowsLine { at, cpus: series.cpus.clone(), ..RowsLine::default() };
                    let text = serde_json::to_vec(&rows).unwrap();
                    prop_assert_eq!(taken(&text), Ok(1));
                }
            }
        }

        #[test]
        fn what_a_run_holds_of_its_five_minutes_is_taken(
            blocks in prop::collection::vec(
                (0u32..3, 1i64..400, prop::collection::vec(-9i64..1 << 40, 0..12)), 0..60,
            ),
        ) {
            let (mut sums, mut text) = (FiveMinuteSums::of(&Run::default()), Vec::new());
            let mut now = [600i64; 3];
            for (cpu, later, mut latencies) in blocks {
                now[cpu as usize] += later;
                latencies.sort_unstable_by(|a, b| b.cmp(a));
                let start = Nanos(now[cpu as usize] * Nanos::SECOND.0);
                let worst = latencies.iter().take(model::run::WORST).map(|&one| (Nanos(one), 0, start));
                let tail = Tail {
                    cpu: Cpu(cpu),
                    start,
                    rows: latencies.iter().map(|&one| (bucket_of(Nanos(one)), 1)).collect(),
                    sum: latencies.iter().sum(),
                    min: Nanos(latencies.last().copied().unwrap_or_default()),
                    worst: worst.collect(),
                    ..Tail::default()
                };
                sums.add(&[], &[tail], &mut text).unwrap();
            }
            sums.finish(&mut text).unwrap();
            let lines = text.split(|&byte| byte == b'\n');
            let written = lines.filter(|line| line.starts_with(b"{\"seq\"")).count();
            prop_assert_eq!(taken(&text), Ok(written));
            prop_assert_eq!(written == 0, now == [600; 3]);
        }
    }
}
