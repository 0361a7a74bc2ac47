//! `events/spikes.jsonl`: the events around each spike, one window per line, written during the
//! hunt.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::explained::Explained;
use super::{EVENTS, LEFT_FREE, LINE_LIMIT, folder_of};
use host::dir::{Dir, free_bytes};
use model::error::{Exit, Failure, Result};
use model::text::quoted;
use model::units::{Cpu, Nanos};
use serde::{Deserialize, Serialize};
use trace::window::Window;

/// Name of the file.
pub const SPIKES: &str = "spikes.jsonl";

/// Maximum size of the file of a run; windows beyond it are explained, but not kept.
const MOST_BYTES: u64 = 512 << 20;

/// Size of the part of a window that is in memory while it is written: a long one has megabytes.
const BUFFER: usize = 64 << 10;

/// Windows of a run, being written, and its spikes as they were explained.
pub struct Events {
    file: File,
    written: u64,
    buffer: Vec<u8>,
    /// True if a window did not fit: the next one would only wear the disk.
    full: bool,
    /// The spikes.
    pub explained: Explained,
}

impl Events {
    /// Creates the files in the bundle.
    pub(super) fn create(bundle: &Dir) -> io::Result<Events> {
        let events = bundle.subdir(EVENTS)?;
        let file = events.new_file(SPIKES)?;
        let explained = Explained::create(events)?;
        Ok(Events { file, written: 0, buffer: Vec::with_capacity(BUFFER), full: false, explained })
    }

    /// Removes the files from a bundle that is discarded.
    pub(super) fn remove(bundle: &Dir) {
        Explained::remove(bundle);
        if let Ok(events) = bundle.existing_subdir(EVENTS) {
            events.remove(SPIKES);
            bundle.remove_dir(EVENTS);
        }
    }

    /// Appends a complete window, or nothing; false if the space for windows is used up.
    pub fn add(&mut self, window: &Window) -> io::Result<bool> {
        let free = free_bytes(&self.file).map_or(u64::MAX, |free| free.saturating_sub(LEFT_FREE));
        let room = (MOST_BYTES - self.written).min(free);
        if self.full || room == 0 {
            return Ok(false);
        }
        self.buffer.clear();
        let (end, left) = (self.written, room.min(LINE_LIMIT as u64));
        let mut to = Part { file: &self.file, buffer: &mut self.buffer, end, left, over: false };
        let written = serde_json::to_writer(&mut to, window)
            .map_err(io::Error::from)
            .and_then(|()| to.write_all(b"\n"))
            .and_then(|()| to.flush());
        let (end, over) = (to.end, to.over);
        if let Err(error) = written {
            // Half a line is not a window: it is cut off, if possible.
            let _ = self.file.set_len(self.written);
            self.full |= over && room < LINE_LIMIT as u64;
            return if over { Ok(false) } else { Err(error) };
        }
        self.written = end;
        Ok(true)
    }
}

/// A window that is written to the file in parts, up to a length.
struct Part<'a> {
    file: &'a File,
    buffer: &'a mut Vec<u8>,
    end: u64,
    left: u64,
    /// True if the window was longer than that.
    over: bool,
}

impl Write for Part<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.left {
            self.over = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush()?;
        }
        self.left -= bytes.len() as u64;
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all_at(self.buffer, self.end)?;
        self.end += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// Reads a bundle's windows in the order in which they were written, one at a time.
///
/// Returns the number of lines that could not be read: a last one cut short, or damaged ones. A
/// bundle without windows has none.
pub fn each_window(bundle: &Path, mut each: impl FnMut(Window)) -> Result<u64> {
    let mut unread = 0;
    let too_long = each_line(bundle, |line| match serde_json::from_slice::<Window>(line) {
        Ok(window) if window.is_sound() => each(window),
        _ => unread += 1,
    })?;
    Ok(unread + too_long)
}

/// Identity of a window's spike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WindowHead {
    pub cpu: Cpu,
    pub expected_ns: Nanos,
    pub actual_ns: Nanos,
}

/// Reads the windows as lines in the order in which they were written, for copying; lines that are
/// not windows are skipped.
pub fn each_window_line(bundle: &Path, mut each: impl FnMut(WindowHead, &[u8])) -> Result<()> {
    let read = |line: &[u8]| {
        if let Ok(head) = serde_json::from_slice(line) {
            each(head, line);
        }
    };
    each_line(bundle, read).map(drop)
}

/// Calls for each line; returns the number of lines that were too long.
fn each_line(bundle: &Path, mut each: impl FnMut(&[u8])) -> Result<u64> {
    let path = folder_of(bundle).join(EVENTS).join(SPIKES);
    let failed = |error: io::Error| {
        let remedy = "expected a bundle, made by `onbeat hunt -o`";
        Failure::of_call(format!("cannot read {}", quoted(&path)), &error, Exit::Usage, remedy)
    };
    let mut lines = match host::Lines::open(&path, LINE_LIMIT) {
        Ok(lines) => lines,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(failed(error)),
    };
    while let Some(line) = lines.next_line().map_err(failed)? {
        each(line);
    }
    Ok(lines.too_long())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::CpuSet;
    use trace::event::{Context, Event, What};

    fn window(cycle: u64) -> Window {
        let what = What::IpiSend {
            targets: [Cpu(0), Cpu(2)].into_iter().collect::<CpuSet>(),
            callsite: "a [b]".into(),
            callback: String::new(),
        };
        let event = Event { time: Nanos(7), cpu: Cpu(1), pid: 3, context: Context(8), preempt: 1, what };
        Window {
            cpu: Cpu(1),
            cycle: Some(cycle),
            expected_ns: Nanos(5),
            actual_ns: Nanos(9),
            events: vec![event],
            ..Window::default()
        }
    }

    #[test]
    fn windows_come_back_as_they_went_and_what_is_cut_or_unsound_is_counted() {
        let temporary = tempfile::tempdir().expect("a directory");
        let path = temporary.path().join("run");
        let (dir, _) = Dir::create(&path).expect("made");
        let mut events = Events::create(&dir).expect("made");
        for cycle in 0..3 {
            assert!(events.add(&window(cycle)).expect("written"));
        }
        let backwards = Window { actual_ns: Nanos(4), ..window(9) };
        assert!(events.add(&backwards).expect("written"));
        let cut = b"{\"cpu\":1,\"cyc";
        events.file.write_all_at(cut, events.written).expect("written");
        let mut seen = Vec::new();
        assert_eq!(each_window(&path, |window| seen.push(window)).expect("read"), 2);
        assert_eq!(seen, [window(0), window(1), window(2)]);
        let mut lines = Vec::new();
        each_window_line(&path, |head, line| lines.push((head.actual_ns.0, line.to_vec()))).expect("read");
        assert_eq!(lines.iter().map(|line| line.0).collect::<Vec<_>>(), [9, 9, 9, 4]);
        assert_eq!(serde_json::from_slice::<Window>(&lines[1].1).expect("a window"), window(1));
        Events::remove(&dir);
        assert_eq!(each_window(&path, |_| panic!("no window is left")).expect("none"), 0);
        assert!(!path.join(EVENTS).exists());
    }
}
