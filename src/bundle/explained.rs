//! `events/explained.jsonl`: each spike as it was explained, a line a spike, appended while the hunt is on.
//!
//! A spike takes kilobytes of memory, and writing all of them anew with each checkpoint wears flash out: what stays in
//! memory is where each line is. The last `run.json` takes its list from here, and the file goes; of a run that was
//! killed the reader does the same.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::events::{EVENTS, LEFT_FREE, LINE_LIMIT};
use super::room::{Place, Room};
use super::run::{Run, Spike};
use crate::host::dir::{Dir, free_bytes};
use crate::host::{self};
use crate::units::{Cpu, Nanos};

/// The file.
const EXPLAINED: &str = "explained.jsonl";
const NEXT: &str = ".explained.next";

/// Lines for which the file system has no room wait in so much memory.
const HELD: usize = 2 << 20;

/// From this length on the file is written anew once most of it is what larger spikes displaced.
const WORN: u64 = 64 << 20;

/// A buffer that one long line has stretched does not stay at that size.
const BUFFER: usize = 64 << 10;

/// Where a spike's line is.
#[derive(Debug)]
enum Line {
    /// In the file, from there on, so long.
    At(u64, usize),
    /// The file system had no room for it.
    Held(Box<[u8]>),
}

/// A spike of the list.
#[derive(Debug)]
struct Entry {
    when: (Nanos, Cpu),
    line: Line,
}

/// The explained spikes of a hunt.
pub struct Explained {
    dir: Dir,
    file: File,
    /// Length of the file.
    end: u64,
    room: Room<Entry>,
    held: usize,
    buffer: Vec<u8>,
    /// Spikes that are not in the list.
    pub dropped: u64,
    /// Spikes that are not in the file.
    pub unwritten: u64,
    /// Why the first of those for which there was no room could not be written.
    pub trouble: Option<String>,
}

impl Explained {
    /// A new file in the bundle's folder of events.
    pub(super) fn create(events: Dir) -> io::Result<Explained> {
        Ok(Explained {
            file: events.new_file(EXPLAINED)?,
            dir: events,
            end: 0,
            room: Room::default(),
            held: 0,
            buffer: Vec::new(),
            dropped: 0,
            unwritten: 0,
            trouble: None,
        })
    }

    /// Takes the file out of a bundle: what it held is in `run.json`, or is not to stay.
    pub(super) fn remove(bundle: &Dir) {
        if let Ok(events) = bundle.existing_subdir(EVENTS) {
            events.remove(EXPLAINED);
            events.remove(NEXT);
        }
    }

    /// Appends the spike, unless all those that are listed are larger.
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
                self.trouble.get_or_insert(error.to_string());
                let fits = self.held + length <= HELD;
                self.held += if fits { length } else { 0 };
                fits.then(|| Line::Held(self.buffer.as_slice().into()))
            }
        };
        self.buffer.shrink_to(BUFFER);
        let Some(line) = line else {
            self.dropped += 1;
            return;
        };
        let entry = Entry { when: (spike.actual_ns, spike.cpu), line };
        for gone in self.room.add(Place::of(spike, length, entry)) {
            self.dropped += 1;
            if let Line::Held(line) = gone.line {
                self.held -= line.len();
            }
        }
    }

    /// Writes the buffer to the file's end, whole or not at all; where that is.
    fn append(&mut self) -> io::Result<u64> {
        if self.end > WORN && self.end / 4 > self.room.bytes() {
            self.renew()?;
        }
        let (at, length) = (self.end, self.buffer.len() as u64);
        // What the windows leave free is for the statistics, and some of it for this.
        if free_bytes(&self.file).is_some_and(|free| free < length + LEFT_FREE / 2) {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        self.file.write_all_at(&self.buffer, at).inspect_err(|_| {
            // Half a line is no spike: it goes again, if it can.
            let _ = self.file.set_len(at);
        })?;
        self.end = at + length;
        Ok(at)
    }

    /// Writes the file anew, with the lines that are in the list alone. Where that fails the old one stays.
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
        (self.file, self.end, self.unwritten) = (next, end, self.dropped + held);
        Ok(())
    }

    /// The hunt is over: its list in order of time.
    pub fn close(self) -> Listed {
        let mut entries = self.room.into_all();
        entries.sort_by_key(|entry| entry.when);
        Listed { file: Some(self.file), entries }
    }
}

/// The list of a hunt that is over, in order of time; in its file still.
#[derive(Default)]
pub struct Listed {
    file: Option<File>,
    entries: Vec<Entry>,
}

impl Listed {
    /// Goes through the spikes. One whose line was tampered with meanwhile is left out.
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

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Puts the spikes of a run that was killed, or had no space left for its last document, back into its list; how many
/// lines could not be read.
///
/// A document that lists spikes has them all: then the file is what a kill in the last moment left.
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
    while let Some(line) = lines.next_line()? {
        match serde_json::from_slice::<Spike>(line) {
            Ok(spike) if is_sound(&spike) => {
                gone += room.put(spike, line.len());
            }
            _ => unread += 1,
        }
    }
    run.spikes = room.into_list();
    run.spikes_dropped = run.spikes_dropped.saturating_add(gone);
    Ok(unread + lines.too_long())
}

/// Whether its numbers agree with each other: what was damaged or made up may say anything.
fn is_sound(spike: &Spike) -> bool {
    let parts = spike.slices.iter().map(|slice| i128::from(slice.ns.0));
    let sum: i128 = parts.sum::<i128>() + i128::from(spike.unexplained_ns.0);
    let latency = i128::from(spike.latency_ns.0);
    let length = i128::from(spike.actual_ns.0) - i128::from(spike.expected_ns.0);
    latency >= 0 && sum == latency && length == latency && spike.expected_ns.0 >= 0
}
