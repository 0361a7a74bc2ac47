//! Reads a bundle, whole or cut short at any byte.
//!
//! A run that was killed is read as of its last checkpoint, then the blocks of its tail are added, so
//! that it reaches to its last second with all sums right.

use std::io;
use std::path::{Path, PathBuf};

use super::run::{Block, CpuRun, Peak, Run, SCHEMA, WORST, Worst};
use super::tail::Tail;
use super::time::wall_time;
use super::{explained, folder_of};
use crate::error::{Exit, Outcome, Trouble};
use crate::host;
use crate::stats::histogram::{EARLY_ROW, ROWS, Row, edges_of, merge};
use crate::text::{quoted, several};
use crate::units::Nanos;

/// No `run.json` is larger: three thousand CPUs at 40 KiB each.
const RUN_LIMIT: u64 = 128 << 20;

/// No tail is larger: ten seconds of as many.
const TAIL_LIMIT: u64 = 256 << 20;

/// No line of the block records is longer; a longer one is counted as unreadable.
const LINE_LIMIT: usize = 1 << 20;

/// No capture of a machine holds more files, nor any as deep.
const MOST_FILES: usize = 20_000;
const DEEPEST_FOLDER: usize = 24;
/// Nor more bytes: a configuration and many short values.
const MOST_BYTES: usize = 64 << 20;
/// What is longer is a text and no value.
const SHORT: usize = 4 << 10;

/// A bundle as read: the run, recovered up to its last second, and where its blocks are.
pub struct Bundle {
    /// The run; `complete` is false where it was killed.
    pub run: Run,
    /// What had to be repaired or left out, for people; empty for a whole bundle.
    pub remarks: Vec<String>,
    blocks: PathBuf,
}

impl Bundle {
    /// Opens a bundle directory, or the `run.json` in it.
    pub fn open(path: &Path) -> Outcome<Bundle> {
        let dir = folder_of(path);
        let file = dir.join("run.json");
        let bytes =
            host::read_user_file(&file, RUN_LIMIT).map_err(|error| unreadable(path, &file, &error))?;
        let run = parse_run(&bytes).map_err(|what| {
            Trouble::usage(format!("{} is not a run that this version reads: {what}", quoted(&file)))
        })?;
        let mut bundle = Bundle { run, remarks: Vec::new(), blocks: dir.join("blocks.jsonl") };
        if !bundle.run.complete {
            bundle.recover(&dir.join("tail"))?;
        }
        if bundle.run.command == "hunt" {
            bundle.put_spikes_back(&dir)?;
        }
        Ok(bundle)
    }

    /// Goes through the block records in the order they were written, one at a time.
    ///
    /// Returns how many lines could not be read: a last one cut short, or damaged ones.
    pub fn each_block(&self, mut f: impl FnMut(&Block)) -> Outcome<u64> {
        each_line(&self.blocks, |block: Block| f(&block))
    }

    /// As [`Bundle::each_block`], of each record only its largest latency: a third of the time.
    pub fn each_peak(&self, mut f: impl FnMut(&Peak)) -> Outcome<u64> {
        each_line(&self.blocks, |peak: Peak| f(&peak))
    }

    fn put_spikes_back(&mut self, folder: &Path) -> Outcome<()> {
        let unread = explained::put_back(folder, &mut self.run).map_err(|error| {
            Trouble::usage(format!("cannot read the explained spikes of {}: {error}", folder.display()))
        })?;
        if unread > 0 {
            let lines = several(unread, "explained spike", "explained spikes");
            self.remarks.push(format!("{lines} could not be read"));
        }
        Ok(())
    }

    fn recover(&mut self, tail: &Path) -> Outcome<()> {
        let before = self.run.elapsed_ns;
        let bytes = match host::read_user_file(tail, TAIL_LIMIT) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(unreadable(tail, tail, &error)),
        };
        let (mut rest, mut unread, mut gaps) = (&bytes[..], 0u64, 0u64);
        while let Some(tail) = Tail::decode(&mut rest) {
            gaps += u64::from(leaves_a_gap(&self.run, &tail));
            unread += u64::from(!absorb(&mut self.run, tail));
        }
        unread += u64::from(!rest.is_empty());
        let reach = match (self.run.elapsed_ns, before) {
            (Some(now), Some(before)) if now > before => {
                format!(", its last {} from block records", now - before)
            }
            _ => String::new(),
        };
        let length = self.run.elapsed_ns.unwrap_or_default();
        self.remarks.push(format!(
            "the run is incomplete: it was killed or is still on, and {length} of it are kept{reach}"
        ));
        if gaps > 0 {
            self.remarks.push(format!(
                "records are missing before {gaps} of those at its end: a disk was full, or the run went on meanwhile"
            ));
        }
        if unread > 0 {
            self.remarks
                .push(format!("{} at its end could not be read", several(unread, "record", "records")));
        }
        self.run.check().map_err(|what| Trouble::usage(format!("the bundle contradicts itself: {what}")))
    }
}

/// The kernel's files in the bundle, each by its own path, that are short or a configuration; what leads out of it
/// is not read.
pub fn host_files(path: &Path) -> Vec<(String, Vec<u8>)> {
    // From the bundle's folder on, for its `host` may be a link that leads elsewhere.
    let host = host::Host::folder(folder_of(path));
    let (mut files, mut folders, mut seen, mut bytes_read) = (Vec::new(), vec![(String::new(), 0)], 0, 0);
    while let Some((folder, depth)) = folders.pop() {
        let names = host.list(&format!("/host{folder}/.")).known().cloned().unwrap_or_default();
        for path in names.iter().map(|name| format!("{folder}/{name}")) {
            seen += 1;
            if seen > MOST_FILES || depth >= DEEPEST_FOLDER || bytes_read > MOST_BYTES {
                break;
            }
            match host.read(&format!("/host{path}")) {
                host::Fact::Known(bytes) => {
                    bytes_read += bytes.len();
                    if bytes.len() <= SHORT || path.contains("config") {
                        files.push((path, bytes));
                    }
                }
                _ => folders.push((path, depth + 1)),
            }
        }
    }
    files.sort();
    files
}

/// A run is six levels deep, and what later versions add will not be much deeper.
const DEPTH_LIMIT: usize = 64;

/// How deep brackets and braces are nested, outside strings.
fn depth(bytes: &[u8]) -> usize {
    let (mut now, mut deepest, mut string, mut escaped) = (0usize, 0, false, false);
    for &byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if string => escaped = true,
            b'"' => string = !string,
            b'[' | b'{' if !string => {
                now += 1;
                deepest = deepest.max(now);
            }
            b']' | b'}' if !string => now = now.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Parses and checks `run.json`; the error says what was expected.
pub fn parse_run(bytes: &[u8]) -> Result<Run, String> {
    #[derive(serde::Deserialize)]
    struct Schema {
        schema: String,
    }
    if depth(bytes) > DEPTH_LIMIT {
        return Err(format!("it is nested more than {DEPTH_LIMIT} deep, which no run is"));
    }
    // The schema first: a newer run may differ in any other field.
    let schema = serde_json::from_slice::<Schema>(bytes).map_err(|error| error.to_string())?.schema;
    if schema != SCHEMA {
        let newer =
            schema.strip_prefix("onbeat.run/").and_then(|n| n.parse::<u64>().ok()).is_some_and(|n| n > 1);
        let remedy =
            if newer { "it was written by a newer onbeat, use that one" } else { "expected a run of onbeat" };
        return Err(format!("schema {schema:?} instead of {SCHEMA:?}: {remedy}"));
    }
    let run: Run = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    run.check()?;
    Ok(run)
}

/// Whether time is missing between what is known of a CPU and the block.
fn leaves_a_gap(run: &Run, tail: &Tail) -> bool {
    let until = run.cpus.iter().find(|cpu| cpu.cpu == tail.cpu).and_then(|cpu| cpu.until_mono_ns);
    until.is_some_and(|until| tail.start > until)
}

/// Adds a block of the tail to the run; false if it does not belong there.
fn absorb(run: &mut Run, tail: Tail) -> bool {
    // A hunt of others' threads learns of its CPUs as it goes.
    let grows = run.command == "hunt" && run.plan.interval_ns.is_none();
    if grows && run.cpus.iter().all(|cpu| cpu.cpu != tail.cpu) {
        let none = Some(0);
        let (missed, scheduled, early, warmup) = (none, none, none, none);
        let (sum_ns, deadline_histogram) = (Some(0), Some(Vec::new()));
        let cpu = CpuRun {
            cpu: tail.cpu,
            missed,
            scheduled,
            early,
            warmup,
            sum_ns,
            deadline_histogram,
            ..CpuRun::default()
        };
        run.cpus.push(cpu);
        run.cpus.sort_by_key(|cpu| cpu.cpu);
    }
    let Some(cpu) = run.cpus.iter_mut().find(|cpu| cpu.cpu == tail.cpu) else { return false };
    if cpu.until_mono_ns.is_some_and(|until| tail.start < until) {
        // The checkpoint was written and the tail not emptied any more: it is in there already.
        return true;
    }
    let before = cpu.clone();
    if add(cpu, &tail).is_none() || cpu.check().is_err() {
        *cpu = before;
        return false;
    }
    let start = run.cpus.iter().filter_map(|cpu| cpu.t0_mono_ns).max();
    let end = run.cpus.iter().filter_map(|cpu| cpu.until_mono_ns).max();
    if let (Some(start), Some(end)) = (start, end) {
        run.elapsed_ns = end.0.checked_sub(start.0).map(Nanos);
        run.checkpoint_mono_ns = Some(end);
    }
    true
}

/// The sums of a block added to those of its CPU; none where a number is out of its range.
fn add(cpu: &mut CpuRun, tail: &Tail) -> Option<()> {
    let count = |rows: &[Row]| rows.iter().try_fold(0u64, |sum, row| sum.checked_add(row.2));
    let (rows, missed_rows) = (rows_of(&tail.rows, tail.min)?, rows_of(&tail.missed_rows, tail.min)?);
    let cycles = count(&rows)?;
    if count(&missed_rows)? != tail.missed {
        return None;
    }
    let early = rows.iter().filter(|row| row.1.0 <= 0).map(|row| row.2).sum::<u64>();
    cpu.cycles = cpu.cycles.checked_add(cycles)?;
    cpu.missed = Some(cpu.missed?.checked_add(tail.missed)?);
    cpu.scheduled = Some(cpu.cycles.checked_add(cpu.missed?)?);
    cpu.early = Some(cpu.early?.checked_add(early)?);
    cpu.sum_ns = Some(cpu.sum_ns?.checked_add(tail.sum)?);
    cpu.mean_ns = (cpu.cycles > 0)
        .then(|| crate::stats::histogram::mean(i128::from(cpu.sum_ns.unwrap_or(0)), cpu.cycles));
    cpu.min_ns = cpu.min_ns.into_iter().chain((cycles > 0).then_some(tail.min)).min();
    cpu.worst.extend(tail.worst.iter().map(|&(latency, cycle, time)| Worst {
        latency_ns: Some(latency),
        cycle: Some(cycle),
        mono_ns: Some(time),
        time: wall_time(Nanos(time.0.saturating_add(tail.wall_offset.0))),
    }));
    cpu.worst.sort_by_key(|worst| std::cmp::Reverse(worst.latency_ns));
    cpu.worst.truncate(WORST);
    cpu.max_ns = cpu.worst.first().and_then(|worst| worst.latency_ns);
    let deadline = merge(cpu.deadline_histogram.as_ref()?, &merge(&rows, &missed_rows)?)?;
    cpu.deadline_histogram = Some(deadline);
    cpu.histogram = merge(&cpu.histogram, &rows)?;
    // The first checkpoint is older than the start; the first block begins with it.
    cpu.t0_mono_ns = cpu.t0_mono_ns.or(Some(tail.start));
    cpu.until_mono_ns = Some(tail.end);
    cpu.fill_quantiles();
    Some(())
}

/// Rows from their numbers; none where a number is no row's.
fn rows_of(pairs: &[(usize, u64)], min: Nanos) -> Option<Vec<Row>> {
    let row = |&(index, count): &(usize, u64)| {
        let (lower, upper) = edges_of(Some(index).filter(|&index| index < ROWS)?);
        Some((if index == EARLY_ROW { min } else { lower }, upper, count))
    };
    pairs.iter().map(row).collect()
}

/// Parses a file of JSON lines one by one; a missing file has none. Returns how many were unreadable.
fn each_line<T: serde::de::DeserializeOwned>(path: &Path, mut f: impl FnMut(T)) -> Outcome<u64> {
    let mut lines = match host::Lines::open(path, LINE_LIMIT) {
        Ok(lines) => lines,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(unreadable(path, path, &error)),
    };
    let mut unread = 0;
    loop {
        match lines.next_line() {
            Ok(Some(line)) => match serde_json::from_slice(line) {
                Ok(record) => f(record),
                Err(_) => unread += 1,
            },
            Ok(None) => return Ok(unread + lines.too_long()),
            Err(error) => return Err(unreadable(path, path, &error)),
        }
    }
}

fn unreadable(path: &Path, file: &Path, error: &io::Error) -> Trouble {
    match error.kind() {
        io::ErrorKind::NotFound if super::capture::is_capture(path) => Trouble::usage(format!(
            "{} is a capture and holds no run: judge it with `onbeat audit --bundle`",
            quoted(&path)
        )),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Trouble::usage(format!(
            "{} is not a bundle: expected a folder with a run.json, as `onbeat measure -o` makes one",
            quoted(&path)
        )),
        _ => {
            let remedy = match error.kind() {
                io::ErrorKind::PermissionDenied => "run as its owner",
                _ => "expected a bundle, as `onbeat measure -o` makes one",
            };
            Trouble::of_call(format!("cannot read {}", quoted(&file)), error, Exit::Usage, remedy)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Cpu;

    fn run() -> Run {
        let rows = vec![(Nanos(10), Nanos(11), 3)];
        let cpu = CpuRun {
            t0_mono_ns: Some(Nanos(0)),
            until_mono_ns: Some(Nanos(1_000)),
            cycles: 3,
            missed: Some(0),
            scheduled: Some(3),
            early: Some(0),
            sum_ns: Some(30),
            min_ns: Some(Nanos(10)),
            deadline_histogram: Some(rows.clone()),
            histogram: rows,
            ..CpuRun::default()
        };
        Run { schema: SCHEMA.into(), cpus: vec![cpu], elapsed_ns: Some(Nanos(1_000)), ..Run::default() }
    }

    fn tail(start: i64) -> Tail {
        Tail {
            cpu: Cpu(0),
            start: Nanos(start),
            end: Nanos(start + 1_000),
            wall_offset: Nanos(0),
            sum: 80,
            min: Nanos(-20),
            missed: 1,
            rows: vec![(0, 1), (101, 1)],
            missed_rows: vec![(51, 1)],
            worst: vec![(Nanos(100), 4, Nanos(start + 7))],
        }
    }

    #[test]
    fn a_tail_brings_the_run_to_its_last_second() {
        let mut run = run();
        assert!(absorb(&mut run, tail(1_000)));
        let cpu = &run.cpus[0];
        assert_eq!((cpu.cycles, cpu.scheduled, cpu.early), (5, Some(6), Some(1)));
        assert_eq!(
            (cpu.min_ns, cpu.mean_ns, cpu.max_ns),
            (Some(Nanos(-20)), Some(Nanos(22)), Some(Nanos(100)))
        );
        assert_eq!(run.elapsed_ns, Some(Nanos(2_000)));
        assert_eq!(run.check(), Ok(()));
    }

    #[test]
    fn what_the_checkpoint_contains_is_not_added_again() {
        let mut run = run();
        assert!(absorb(&mut run, tail(0)));
        assert_eq!(run.cpus[0].cycles, 3);
    }

    #[test]
    fn a_run_killed_before_its_first_checkpoint_begins_with_its_first_block() {
        let mut run = run();
        let cpu = &mut run.cpus[0];
        *cpu = CpuRun {
            missed: Some(0),
            scheduled: Some(0),
            early: Some(0),
            sum_ns: Some(0),
            deadline_histogram: Some(Vec::new()),
            ..CpuRun::default()
        };
        assert!(absorb(&mut run, tail(5_000)));
        assert_eq!((run.cpus[0].t0_mono_ns, run.elapsed_ns), (Some(Nanos(5_000)), Some(Nanos(1_000))));
        assert_eq!(run.check(), Ok(()));
    }

    #[test]
    fn a_damaged_tail_leaves_the_run_as_it_was() {
        let mut run = run();
        assert!(!absorb(&mut run, Tail { missed: 7, ..tail(1_000) }));
        assert!(!absorb(&mut run, Tail { rows: vec![(9_999, 1), (101, 1)], ..tail(1_000) }));
        assert!(!absorb(&mut run, Tail { cpu: Cpu(9), ..tail(1_000) }));
        assert!(!absorb(&mut run, Tail { sum: i64::MAX, ..tail(1_000) }));
        assert_eq!(run.cpus[0].cycles, 3);
        assert_eq!(run.check(), Ok(()));
    }

    #[test]
    fn depth_is_counted_outside_strings() {
        for (text, wanted) in [("[[{}]]", 3), ("[\"[[\\\"[[\", []]", 2), ("]]]", 0), ("", 0)] {
            assert_eq!(depth(text.as_bytes()), wanted, "{text}");
        }
        let deep = format!("{{\"schema\":\"{SCHEMA}\",\"x\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(parse_run(deep.as_bytes()).expect_err("too deep").contains("nested"));
    }

    #[test]
    fn other_schemas_are_refused_by_name() {
        let refused = |text: &str| parse_run(text.as_bytes()).expect_err("not a run");
        assert!(refused(r#"{"schema":"onbeat.run/2"}"#).contains("newer onbeat"));
        assert!(refused(r#"{"schema":"other"}"#).contains("expected a run of onbeat"));
        assert!(refused("[").contains("EOF"));
        assert!(refused(&format!("{}{}", "[".repeat(10_000), "]".repeat(10_000))).len() < 200);
    }
}
