//! `events/spikes.jsonl`: what was traced around each spike, a window a line, written while the hunt is on.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::folder_of;
use crate::error::{Exit, Outcome, Trouble};
use crate::host::{self, dir::Dir, dir::free_bytes};
use crate::trace::window::Window;

/// The folder in a bundle.
pub const EVENTS: &str = "events";
/// The file in it.
pub const SPIKES: &str = "spikes.jsonl";

/// No line is longer: twenty thousand events.
const LINE_LIMIT: usize = 16 << 20;

/// What a run may write; windows beyond it are explained, and not kept.
const MOST_BYTES: u64 = 512 << 20;

/// Space that is left to the statistics, which are worth more: a `run.json` full of spikes, and the next.
const LEFT_FREE: u64 = 8 << 20;

/// The windows of a run, being written.
pub struct Events {
    file: File,
    written: u64,
    line: Vec<u8>,
}

impl Events {
    /// A new file in the bundle.
    pub(super) fn create(bundle: &Dir) -> io::Result<Events> {
        Ok(Events { file: bundle.subdir(EVENTS)?.new_file(SPIKES)?, written: 0, line: Vec::new() })
    }

    /// Takes the file out of a bundle that is not to stay.
    pub(super) fn remove(bundle: &Dir) {
        if let Ok(events) = bundle.existing_subdir(EVENTS) {
            events.remove(SPIKES);
            bundle.remove_dir(EVENTS);
        }
    }

    /// Appends a window whole, with one write; false where the space for windows is used up.
    pub fn add(&mut self, window: &Window) -> io::Result<bool> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, window)?;
        self.line.push(b'\n');
        let length = self.line.len() as u64;
        let scarce = free_bytes(&self.file).is_some_and(|free| free < length + LEFT_FREE);
        if self.line.len() > LINE_LIMIT || self.written + length > MOST_BYTES || scarce {
            return Ok(false);
        }
        self.file.write_all(&self.line).inspect_err(|_| {
            // Half a line is no window: it goes again, if it can.
            let _ = self.file.set_len(self.written);
        })?;
        self.written += self.line.len() as u64;
        Ok(true)
    }
}

/// Goes through a bundle's windows in the order they were written, one at a time.
///
/// Returns how many lines could not be read: a last one cut short, or damaged ones. A bundle without windows has none.
pub fn each_window(bundle: &Path, mut each: impl FnMut(Window)) -> Outcome<u64> {
    let path = folder_of(bundle).join(EVENTS).join(SPIKES);
    let failed = |error: io::Error| {
        let remedy = "expected a bundle, as `onbeat hunt -o` makes one";
        Trouble::of_call(format!("cannot read {}", path.display()), &error, Exit::Usage, remedy)
    };
    let mut lines = match host::Lines::open(&path, LINE_LIMIT) {
        Ok(lines) => lines,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(failed(error)),
    };
    let mut unread = 0;
    while let Some(line) = lines.next_line().map_err(failed)? {
        match serde_json::from_slice::<Window>(line) {
            Ok(window) if window.is_sound() => each(window),
            _ => unread += 1,
        }
    }
    Ok(unread + lines.too_long())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::event::{Context, Event, What};
    use crate::units::{Cpu, CpuSet, Nanos};

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
        events.file.write_all(b"{\"cpu\":1,\"cyc").expect("written");
        let mut seen = Vec::new();
        assert_eq!(each_window(&path, |window| seen.push(window)).expect("read"), 2);
        assert_eq!(seen, [window(0), window(1), window(2)]);
        Events::remove(&dir);
        assert_eq!(each_window(&path, |_| panic!("no window is left")).expect("none"), 0);
        assert!(!path.join(EVENTS).exists());
    }
}
