//! The bundle: a directory that serves as a run, a bug report and a test fixture.
//!
//! `run.json` holds the statistics, `blocks.jsonl` one line per CPU and second, `rows.jsonl` the
//! histograms of each five minutes, `host/` the files of the kernel that were read. A capture has
//! `capture.json` in place of the first two. See `docs/bundle.md`. `onbeat watch` writes a
//! [`record`], for months.

mod block_line;
pub mod capture;
pub mod document;
pub mod environment;
pub mod events;
pub mod explained;
pub mod five_minutes;
pub mod foreign;
pub mod foreign_trace;
mod host_files;
mod line_cursor;
pub mod manifest;
pub mod parts;
mod peak_line;
pub mod read;
mod read_ahead;
pub mod record;
mod recover;
pub mod room;
pub mod tail;
pub mod write;

use std::path::{Path, PathBuf};

/// Name of the folder of events in a bundle.
const EVENTS: &str = "events";

/// Maximum length of a line: twenty thousand events.
const LINE_LIMIT: usize = 16 << 20;

/// Space reserved for the statistics, which are more important: a `run.json` full of spikes, and
/// the next one.
const LEFT_FREE: u64 = 8 << 20;

/// Folder of the bundle, also if one of its documents was named.
fn folder_of(path: &Path) -> PathBuf {
    let named = path.file_name().is_some_and(|name| name == "capture.json" || name == "run.json");
    let dir = if named { path.parent().unwrap_or(path) } else { path };
    if dir.as_os_str().is_empty() { PathBuf::from(".") } else { dir.to_owned() }
}
