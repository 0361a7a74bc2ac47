//! `events/explained.jsonl`: each spike as it was explained, one per line, appended during the
//! hunt.
//!
//! A spike takes kilobytes of memory, and writing all of them again with each checkpoint wears
//! flash out: only the place of each line stays in memory. The last `run.json` takes its list from
//! here, and the file is removed; for a run that was killed the reader does the same.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::room::{KeptSpike, Room};
use super::{EVENTS, LEFT_FREE, LINE_LIMIT};
use host::dir::{Dir, free_bytes};
use model::run::{Run, Spike};

use model::sort::CompactSort;
use model::units::{Cpu, Nanos};

const EXPLAINED: &str = "explained.jsonl";
const NEXT: &str = ".explained.next";

/// Memory for lines for which the file system has no space.
const HELD: usize = 2 << 20;

/// Length from which the file is rewritten, once larger spikes have displaced most of it.
const WORN: u64 = 64 << 20;

/// Size to which the buffer shrinks after one long line.
const BUFFER: usize = 64 << 10;

/// Start of a line of counters.
const COUNTERS: &[u8] = b"{\"counters\":";

/// Numbers of spikes that are in no line, as of a second of the hunt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Counters {
    /// Spikes that came faster than they could be looked at.
    passed_over: u64,
    /// Spikes that were explained and are not in the file.
    unwritten: u64,
}

/// Line of the counters.
#[derive(Serialize, Deserialize)]
struct Counted {
    counters: Counters,
}

/// Place of a spike's line.
#[derive(Debug)]
enum Line {
    /// In the file: offset and length.
    At(u64, usize),
    /// In memory: the file system had no space for it.
    Held(Box<[u8]>),
}

/// A spike of the list.
#[derive(Debug)]
struct Entry {
    when: (Nanos, Cpu),
    line: Line,
}

/// Explained spikes of a hunt.
pub struct Explained {
    dir: Dir,
    file: File,
    /// Length of the file.
    end: u64,
    room: Room<Entry>,
    held: usize,
    buffer: Vec<u8>,
    /// Spikes that came faster than they could be looked at.
    passed_over: u64,
    /// The file's account of spikes that are not in it.
    counted: Counters,
    /// Spikes that are not in the list.
    pub dropped: u64,
    /// Spikes that are not in the file.
    pub unwritten: u64,
    /// Spikes that would be in the list if the file and the memory had space for them.
    pub lost: u64,
    /// Reason why the first of these could not be written.
    pub failure: Option<String>,
}

impl Explained {
    /// Creates the file in the bundle's folder of events.
    pub(super) fn create(events: Dir) -> io::Result<Explained> {
        Ok(Explained {
            file: events.new_file(EXPLAINED)?,
            dir: events,
            end: 0,
            room: Room::default(),
            held: 0,
            buffer: Vec::new(),
            passed_over: 0,
            counted: Counters::default(),
            dropped: 0,
            unwritten: 0,
            lost: 0,
            failure: None,
        })
    }

    /// Removes the file from a bundle: its contents are in `run.json`, or are discarded.
    pub(super) fn remove(bundle: &Dir) {
        if let Ok(events) = bundle.existing_subdir(EVENTS) {
            events.remove(EXPLAINED);
            events.remove(NEXT);
        }
    }

    /// Appends the spike, unless all spikes in the list are larger.
    pub fn add(&mut self, spike: &Spike) {
        if !self.room.takes(spike.latency_ns) {
            (self.dropped, self.unwritten) = (self.dropped + 1, self.unwritten + 1);
            return;
        }
        self.buffer.clear();
        let written = serde_json::to_writer(&mut self.buffer, spike).map_err(io::Error::from);
        self.buffer.push(b'\n');
        let length = self.buffer.len();
        let line = match written.and_then(|()| self.append()) {
            Ok(at) => Some(Line::At(at, length)),
            Err(error) => {
                self.unwritten += 1;
                self.failure.get_or_insert(error.to_string());
                let fits = self.held + length <= HELD;
                self.held += if fits { length } else { 0 };
                fits.then(|| Line::Held(self.buffer.as_slice().into()))
            }
        };
        self.buffer.shrink_to(BUFFER);
        let Some(line) = line else {
            (self.dropped, self.lost) = (self.dropped + 1, self.lost + 1);
            return;
        };
        let entry = Entry { when: (spike.actual_ns, spike.cpu), line };
        for gone in self.room.add(KeptSpike::of(spike, length, entry)) {
            self.dropped += 1;
            if let Line::Held(line) = gone.line {
                self.held -= line.len();
            }
        }
    }

    /// Appends the number of spikes that the file lacks, if it has changed: a run that is killed
    /// then has it as of its last second. Without space the next second tries again.
    pub fn count(&mut self, passed_over: u64) {
        self.passed_over = passed_over;
        let now = self.counters();
        if now == self.counted {
            return;
        }
        self.buffer.clear();
        if write_counters(&mut self.buffer, now).and_then(|()| self.append()).is_ok() {
            self.counted = now;
        }
    }

    fn counters(&self) -> Counters {
        Counters { passed_over: self.passed_over, unwritten: self.unwritten }
    }

    /// Writes the full buffer to the file's end, or nothing; returns the offset.
    fn append(&mut self) -> io::Result<u64> {
        if self.end > WORN && self.end / 4 > self.room.bytes() {
            self.renew()?;
        }
        let (at, length) = (self.end, self.buffer.len() as u64);
        // The space that windows leave free is for the statistics, and part of it for this file.
        if free_bytes(&self.file).is_some_and(|free| free < length + LEFT_FREE / 2) {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        self.file.write_all_at(&self.buffer, at).inspect_err(|_| {
            // Half a line is not a spike: it is cut off, if possible.
            let _ = self.file.set_len(at);
        })?;
        self.end = at + length;
        Ok(at)
    }

    /// Rewrites the file with the lines of the list alone. If that fails, the old one stays.
    fn renew(&mut self) -> io::Result<()> {
        self.dir.remove(NEXT);
        let mut next = self.dir.new_file(NEXT)?;
        let (mut places, mut end, mut line, mut held) = (Vec::new(), 0, Vec::new(), 0);
        let mut copied = Ok(());
        let file = &self.file;
        self.room.each(|entry| match entry.line {
            Line::At(at, length) if copied.is_ok() => {
                line.resize(length, 0);
                copied = file.read_exact_at(&mut line, at).and_then(|()| next.write_all(&line));
                places.push(end);
                end += length as u64;
            }
            Line::At(..) => {}
            Line::Held(_) => held += 1,
        });
        // Displaced spikes are in no line any more: the file that replaces the old one records that
        // from the start.
        let counted = Counters { unwritten: self.dropped + held, ..self.counters() };
        line.clear();
        let copied = copied.and_then(|()| {
            write_counters(&mut line, counted)?;
            next.write_all(&line)
        });
        let length = line.len() as u64;
        let placed = copied.and_then(|()| self.dir.rename(NEXT, EXPLAINED, false));
        if placed.is_err() {
            self.dir.remove(NEXT);
            return placed;
        }
        let mut places = places.into_iter();
        self.room.each(|entry| {
            if let (Line::At(at, _), Some(place)) = (&mut entry.line, places.next()) {
                *at = place;
            }
        });
        (self.file, self.end) = (next, end + length);
        (self.unwritten, self.counted) = (counted.unwritten, counted);
        Ok(())
    }

    /// Ends the hunt: returns its list in order of time.
    pub fn close(self) -> Listed {
        let mut entries = self.room.into_all();
        entries.compact_sort_by_key(|entry| entry.when);
        Listed { file: Some(self.file), entries, unwritten: self.unwritten }
    }
}

/// List of a hunt that has ended, in order of time; still in its file.
#[derive(Default)]
pub struct Listed {
    file: Option<File>,
    entries: Vec<Entry>,
    unwritten: u64,
}

impl Listed {
    /// Run as its document has it if there is no space for the list: the spikes stay in the file,
    /// and all others are counted.
    pub fn left_in_file(&self, run: &Run) -> Run {
        let held = self.entries.iter().filter(|entry| matches!(entry.line, Line::Held(_))).count() as u64;
        let mut run = Run { spikes: Vec::new(), spikes_dropped: self.unwritten, ..run.clone() };
        if let Some(recorder) = &mut run.recorder {
            run.spikes_dropped = run.spikes_dropped.saturating_add(recorder.spikes_passed_over);
            recorder.spikes_unwritten = recorder.spikes_unwritten.saturating_add(held);
        }
        run
    }

    /// Calls for each spike. One whose line has been changed since is skipped.
    pub fn each(&self, mut f: impl FnMut(Spike) -> io::Result<()>) -> io::Result<()> {
        let mut buffer = Vec::new();
        for entry in &self.entries {
            let line: &[u8] = match (&entry.line, &self.file) {
                (Line::Held(line), _) => line,
                (&Line::At(at, length), Some(file)) => {
                    buffer.resize(length, 0);
                    file.read_exact_at(&mut buffer, at)?;
                    &buffer
                }
                (Line::At(..), None) => continue,
            };
            if let Ok(spike) = serde_json::from_slice(line) {
                f(spike)?;
            }
        }
        Ok(())
    }

    /// Number of spikes.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

fn write_counters(line: &mut Vec<u8>, counters: Counters) -> io::Result<()> {
    serde_json::to_writer(&mut *line, &Counted { counters })?;
    line.push(b'\n');
    Ok(())
}

/// Restores the list of a run that was killed, or had no space left for its last document; returns
/// the number of lines that could not be read.
///
/// A document that lists spikes has them all: then a kill in the last moment left the file.
pub(super) fn put_back(folder: &Path, run: &mut Run) -> io::Result<u64> {
    if !run.spikes.is_empty() {
        return Ok(0);
    }
    let mut lines = match host::Lines::open(&folder.join(EVENTS).join(EXPLAINED), LINE_LIMIT) {
        Ok(lines) => lines,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let (mut room, mut unread, mut gone) = (Room::default(), 0, 0);
    let mut counters = Counters::default();
    while let Some(line) = lines.next_line()? {
        if line.starts_with(COUNTERS) {
            match serde_json::from_slice::<Counted>(line) {
                // Counters only grow: a line prepared before the file was rewritten may follow a
                // later one.
                Ok(Counted { counters: Counters { passed_over, unwritten } }) => {
                    counters.passed_over = counters.passed_over.max(passed_over);
                    counters.unwritten = counters.unwritten.max(unwritten);
                }
                Err(_) => unread += 1,
            }
            continue;
        }
        match serde_json::from_slice::<Spike>(line) {
            Ok(spike) if is_sound(&spike) => {
                gone += room.put(spike, line.len());
            }
            _ => unread += 1,
        }
    }
    run.spikes = room.into_list();
    bring_up_to_date(run, counters);
    run.spikes_dropped = run.spikes_dropped.saturating_add(gone);
    Ok(unread + lines.too_long())
}

/// Adds the counts since the run's last checkpoint, or from before it if there was no space for the
/// line.
fn bring_up_to_date(run: &mut Run, counters: Counters) {
    let before = run.recorder.as_ref().map_or(0, |recorder| recorder.spikes_passed_over);
    let passed_over = before.max(counters.passed_over);
    let unwritten = run.spikes_dropped.saturating_sub(before).max(counters.unwritten);
    let Some(recorder) = &mut run.recorder else { return };
    recorder.spikes_passed_over = passed_over;
    recorder.windows_lost = recorder.windows_lost.saturating_add(passed_over - before);
    run.spikes_dropped = passed_over.saturating_add(unwritten);
}

/// True if its numbers agree with each other: a damaged or forged file may contain anything.
fn is_sound(spike: &Spike) -> bool {
    let parts = spike.slices.iter().map(|slice| i128::from(slice.ns.0));
    let sum: i128 = parts.sum::<i128>() + i128::from(spike.unexplained_ns.0);
    let latency = i128::from(spike.latency_ns.0);
    let length = i128::from(spike.actual_ns.0) - i128::from(spike.expected_ns.0);
    latency >= 0 && sum == latency && length == latency && spike.expected_ns.0 >= 0
}

#[cfg(test)]
mod tests {
    // They truncate and damage a separate file.
    #![allow(clippy::disallowed_methods)]

    use super::*;
    use model::run::{Recorder, Slice};

    fn spike(at: i64, latency: i64) -> Spike {
        let slice = Slice { kind: "thread".into(), ns: Nanos(latency - 1), ..Slice::default() };
        Spike {
            expected_ns: Nanos(at),
            actual_ns: Nanos(at + latency),
            latency_ns: Nanos(latency),
            slices: vec![slice],
            unexplained_ns: Nanos(1),
            ..Spike::default()
        }
    }

    struct KeptSpike(tempfile::TempDir);

    impl KeptSpike {
        fn new() -> KeptSpike {
            KeptSpike(tempfile::tempdir().expect("a directory"))
        }

        fn hunt(&self) -> Explained {
            let (dir, _) = Dir::create(self.0.path()).expect("opened");
            Explained::create(dir.subdir(EVENTS).expect("made")).expect("made")
        }

        fn recovered(&self) -> (Run, u64) {
            let recorder = Some(Recorder { spikes_passed_over: 3, windows_lost: 4, ..Recorder::default() });
            let mut run = Run { spikes_dropped: 5, recorder, ..Run::default() };
            let unread = put_back(self.0.path(), &mut run).expect("read");
            (run, unread)
        }

        fn file(&self) -> std::path::PathBuf {
            self.0.path().join(EVENTS).join(EXPLAINED)
        }
    }

    fn listed(explained: Explained) -> Vec<Spike> {
        let mut list = Vec::new();
        let each = |spike| {
            list.push(spike);
            Ok(())
        };
        explained.close().each(each).expect("read");
        list
    }

    #[test]
    fn what_was_appended_is_the_list_of_a_run_that_ended_and_of_one_that_was_killed() {
        let place = KeptSpike::new();
        let mut hunt = place.hunt();
        let spikes: Vec<Spike> = (0..50).map(|n| spike(1_000 * (50 - n), 10 + n)).collect();
        spikes.iter().for_each(|spike| hunt.add(spike));
        let (run, unread) = place.recovered();
        let in_time: Vec<Spike> = spikes.into_iter().rev().collect();
        assert_eq!((run.spikes.as_slice(), unread, run.spikes_dropped), (in_time.as_slice(), 0, 5));
        assert_eq!((hunt.dropped, hunt.unwritten), (0, 0));
        assert_eq!(listed(hunt), in_time);
    }

    #[test]
    fn small_ones_are_not_written_and_what_they_would_displace_is_counted_once() {
        let place = KeptSpike::new();
        let mut hunt = place.hunt();
        (0..2_000).for_each(|n| hunt.add(&spike(100 * n, 10)));
        let before = hunt.end;
        (2_000..2_300).for_each(|n| hunt.add(&spike(100 * n, 9)));
        assert_eq!((hunt.end, hunt.dropped, hunt.unwritten), (before, 300, 300));
        (2_300..2_400).for_each(|n| hunt.add(&spike(100 * n, 11)));
        assert_eq!((hunt.dropped, hunt.unwritten), (400, 300));
        // A reader finds 2,100 in the file and drops 100.
        let (run, _) = place.recovered();
        assert_eq!((run.spikes.len(), run.spikes_dropped), (2_000, 105));
        let lines = listed(hunt);
        let (mut ours, mut theirs) = (lines.clone(), run.spikes);
        for list in [&mut ours, &mut theirs] {
            list.retain(|spike| spike.latency_ns.0 == 11);
        }
        assert_eq!((lines.len(), ours.len(), ours), (2_000, 100, theirs));
    }

    #[test]
    fn a_worn_file_is_written_anew_with_what_is_listed() {
        let place = KeptSpike::new();
        let mut hunt = place.hunt();
        (0..2_100).for_each(|n| hunt.add(&spike(100 * n, 10 + n)));
        let before = hunt.end;
        hunt.renew().expect("written");
        assert!(hunt.end < before && hunt.unwritten == hunt.dropped);
        assert_eq!(std::fs::metadata(place.file()).expect("a file").len(), hunt.end);
        hunt.add(&spike(1_000_000, 9_000));
        let (run, unread) = place.recovered();
        // The old file took a hundred with it, and the last spike displaced one more; three were
        // skipped.
        assert_eq!((run.spikes.len(), unread, run.spikes_dropped), (2_000, 0, 3 + 100 + 1));
        assert_eq!(listed(hunt), run.spikes);
    }

    #[test]
    fn spikes_in_no_line_are_counted_as_of_the_last_second_of_a_killed_run() {
        let place = KeptSpike::new();
        let mut hunt = place.hunt();
        (0..138).for_each(|n| hunt.add(&spike(100 * n, 10)));
        hunt.count(0);
        assert_eq!(place.recovered().0.spikes_dropped, 5);
        hunt.count(9_849);
        let end = hunt.end;
        hunt.count(9_849);
        assert_eq!(hunt.end, end);
        hunt.unwritten += 7;
        hunt.count(9_850);
        hunt.add(&spike(1_000_000, 10));
        let (run, unread) = place.recovered();
        assert_eq!((run.spikes.len(), unread, run.spikes_dropped), (139, 0, 9_857));
        let recorder = run.recorder.expect("one");
        assert_eq!((recorder.spikes_passed_over, recorder.windows_lost), (9_850, 4 + 9_847));
        // Damaged or forged lines change nothing, or count up to the possible maximum.
        let with = |more: &str| {
            let before = std::fs::read(place.file()).expect("read");
            std::fs::write(place.file(), [&before, more.as_bytes()].concat()).expect("written");
            let (run, unread) = place.recovered();
            std::fs::write(place.file(), before).expect("written");
            (run.spikes_dropped, unread)
        };
        assert_eq!(
            with("{\"counters\":{\"passed_over\":-1}}\n{\"counters\":7}\n{\"counters\":{\"pas"),
            (9_857, 3)
        );
        assert_eq!(with("{\"counters\":{\"passed_over\":18446744073709551615}}\n"), (u64::MAX, 0));
        assert_eq!(listed(hunt).len(), 139);
    }

    #[test]
    fn unwritten_spikes_wait_in_memory_and_are_reported() {
        let place = KeptSpike::new();
        let mut hunt = place.hunt();
        hunt.add(&spike(0, 10));
        // Like on a full disk: a file that cannot be written to.
        hunt.file = File::open(place.file()).expect("opened");
        hunt.add(&spike(100, 11));
        assert!(hunt.failure.is_some() && (hunt.dropped, hunt.unwritten, hunt.lost) == (0, 1, 0));
        assert_eq!(place.recovered().0.spikes.len(), 1);
        // A document without the list counts what the file lacks: with the file it is complete.
        let recorder = Some(Recorder { spikes_passed_over: 5, ..Recorder::default() });
        let whole =
            Run { spikes: vec![spike(0, 10), spike(100, 11)], spikes_dropped: 5, recorder, ..Run::default() };
        let listed = hunt.close();
        let mut run = listed.left_in_file(&whole);
        assert_eq!(run.recorder.as_ref().map(|recorder| recorder.spikes_unwritten), Some(1));
        put_back(place.0.path(), &mut run).expect("read");
        let count = |run: &Run| run.spikes.len() as u64 + run.spikes_dropped;
        assert_eq!((count(&run), run.spikes.len()), (count(&whole), 1));
        let mut many = 0;
        listed
            .each(|_| {
                many += 1;
                Ok(())
            })
            .expect("read");
        assert_eq!(many, 2);
    }

    #[test]
    fn truncated_damaged_and_forged_lines_are_counted_and_skipped() {
        let place = KeptSpike::new();
        let mut hunt = place.hunt();
        hunt.add(&spike(0, 10));
        let negative = Spike { latency_ns: Nanos(-1), ..spike(0, 10) };
        let too_much = Spike { unexplained_ns: Nanos(i64::MAX), ..spike(0, 10) };
        let mut bytes = std::fs::read(place.file()).expect("read");
        for spike in [negative, too_much] {
            bytes.extend(serde_json::to_vec(&spike).expect("a line"));
            bytes.push(b'\n');
        }
        bytes.extend(b"\xff\xfe\n{\"cpu\":1,\"laten");
        std::fs::write(place.file(), bytes).expect("written");
        let (run, unread) = place.recovered();
        assert_eq!((run.spikes.len(), unread), (1, 4));
    }

    #[test]
    fn a_document_that_lists_spikes_and_one_of_a_version_without_the_file_stay_as_they_are() {
        let place = KeptSpike::new();
        assert_eq!(place.recovered().0.spikes.len(), 0);
        place.hunt().add(&spike(0, 10));
        let mut run = Run { spikes: vec![spike(7, 8)], ..Run::default() };
        assert_eq!(put_back(place.0.path(), &mut run).expect("read"), 0);
        assert_eq!(run.spikes, [spike(7, 8)]);
    }
}
