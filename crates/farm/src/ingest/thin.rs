//! Removes old parts of a stored bundle: the records of its seconds, and the traces around its
//! spikes except for those kept longer.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use bundle::events::{SPIKES, WindowHead, each_window_line};
use bundle::five_minutes::FIVE_MINUTES;
use host::dir::Dir;
use model::run::{Culprit, Run, Slice, Spike};
use rules::culprits::belonging::place_of;
use study::page::spiked_run;

use super::bundle::fingerprint;
use super::stored::{WINDOWS, stored_file};

/// The files of a bundle with its blocks, and with the histograms of their five minutes.
pub const BLOCK_FILES: [&str; 2] = ["blocks.jsonl", FIVE_MINUTES];
const EVENTS: &str = "events";
/// Size limit of the windows that stay: one has at most some megabytes.
const MOST_KEPT: usize = 256 << 20;

/// Selection of a bundle's windows that stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowsKept {
    /// For each of these culprits the spike with its largest part.
    pub culprits: Vec<String>,
    /// The spike with the largest latency.
    pub worst: bool,
}

/// Parts that are removed, or would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThinnedBundle {
    pub blocks: u64,
    /// Bytes of windows, their number, and the number that stays.
    pub window_bytes: u64,
    pub windows: u64,
    pub windows_kept: u64,
}

/// Bytes of the seconds and five minutes of a bundle; removes them unless `dry`.
pub fn thin_blocks(place: &Path, dry: bool) -> Result<u64, String> {
    let there = BLOCK_FILES.into_iter().filter_map(|name| Some((name, stored_file(place, name)?.bytes)));
    let there: Vec<(&str, u64)> = there.collect();
    for (name, _) in there.iter().filter(|_| !dry) {
        Dir::existing(place).map_err(|error| trouble(&error))?.remove(name);
        if stored_file(place, name).is_some() {
            return Err(format!("its {name} cannot be removed: run this as the user of the server"));
        }
    }
    Ok(there.iter().map(|(_, bytes)| bytes).sum())
}

/// Removes the windows that do not stay, unless `dry`.
pub fn thin_windows(place: &Path, kept: &WindowsKept, dry: bool) -> Result<ThinnedBundle, String> {
    let Some(before) = stored_file(place, WINDOWS) else { return Ok(ThinnedBundle::default()) };
    let read = |failure: model::error::Failure| failure.message;
    let run = spiked_run(place).map_err(read)?;
    let mut there = BTreeSet::new();
    each_window_line(place, |head, _| there.extend([head])).map_err(read)?;
    let chosen = chosen(&run, kept, &there);
    let (mut left, mut lines) = (Vec::new(), 0);
    each_window_line(place, |head, line| {
        if chosen.contains(&head) && left.len() + line.len() < MOST_KEPT {
            lines += 1;
            left.extend_from_slice(line);
            left.push(b'\n');
        }
    })
    .map_err(read)?;
    let freed = before.bytes.saturating_sub(left.len() as u64);
    if freed > 0 && !dry {
        let folder = Dir::existing(place).map_err(|error| trouble(&error))?;
        let events = folder.existing_subdir(EVENTS).map_err(|error| trouble(&error))?;
        if left.is_empty() {
            events.remove(SPIKES);
            // There may be spikes as they were explained.
            folder.remove_dir(EVENTS);
        } else {
            events.write_atomically(OsStr::new(SPIKES), &left, None).map_err(|error| trouble(&error))?;
        }
    }
    let windows = (there.len() as u64).saturating_sub(lines);
    Ok(ThinnedBundle { blocks: 0, window_bytes: freed, windows, windows_kept: lines })
}

fn trouble(error: &std::io::Error) -> String {
    format!("its files cannot be written ({error}): run this as the user of the server")
}

/// The spikes whose windows stay, among those that have one.
fn chosen(run: &Run, kept: &WindowsKept, there: &BTreeSet<WindowHead>) -> BTreeSet<WindowHead> {
    let head = |spike: &Spike| WindowHead {
        cpu: spike.cpu,
        expected_ns: spike.expected_ns,
        actual_ns: spike.actual_ns,
    };
    let spikes = || run.spikes.iter().filter(|spike| there.contains(&head(spike)));
    let worst = spikes().max_by_key(|spike| spike.latency_ns);
    let mut chosen = BTreeSet::new();
    chosen.extend(worst.filter(|_| kept.worst).map(head));
    let is_wanted = |(_, culprit): &(usize, &Culprit)| kept.culprits.contains(&fingerprint(culprit));
    for (at, _) in run.culprits.iter().enumerate().filter(is_wanted) {
        let is_its = |slice: &&Slice| place_of(&run.culprits, slice) == Some(at);
        let taken =
            |spike: &Spike| -> i64 { spike.slices.iter().filter(is_its).map(|slice| slice.ns.0).sum() };
        let most = spikes().filter(|spike| taken(spike) > 0).max_by_key(|spike| taken(spike));
        // A culprit without a slice is represented by the worst spike of the run.
        chosen.extend(most.or(worst).map(head));
    }
    chosen
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make folders of their own.
mod tests {
    use super::*;
    use crate::fixture::run_folder;
    use crate::ingest::bundle::read;
    use crate::ingest::find::FoundBundle;
    use std::fs;

    fn copy() -> tempfile::TempDir {
        let from = run_folder("hunt");
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("events")).unwrap();
        for file in ["run.json", "blocks.jsonl", "events/spikes.jsonl"] {
            fs::copy(from.join(file), folder.path().join(file)).unwrap();
        }
        folder
    }

    fn heads(place: &Path) -> Vec<WindowHead> {
        let mut heads = Vec::new();
        each_window_line(place, |head, _| heads.push(head)).unwrap();
        heads
    }

    #[test]
    fn seconds_go_and_the_run_is_read_as_before() {
        let folder = copy();
        let at = folder.path();
        let whole = |place: &Path| {
            let found = FoundBundle { place: place.to_owned(), board: None };
            let record = read(&found).unwrap().0;
            (record.run.cycles, record.whole, record.culprits, record.digest)
        };
        let before = whole(at);
        fs::write(at.join(FIVE_MINUTES), "{}\n").unwrap();
        let bytes = BLOCK_FILES.iter().map(|name| fs::metadata(at.join(name)).unwrap().len()).sum();
        assert_eq!(thin_blocks(at, true), Ok(bytes));
        assert!(BLOCK_FILES.iter().all(|name| at.join(name).exists()));
        assert_eq!((thin_blocks(at, false), thin_blocks(at, false)), (Ok(bytes), Ok(0)));
        assert!(BLOCK_FILES.iter().all(|name| !at.join(name).exists()));
        assert_eq!(whole(at), before);
        assert!(study::page::ReportedRun::open(at).is_ok());
    }

    #[test]
    fn windows_go_but_for_those_that_are_asked_for_later() {
        let folder = copy();
        let at = folder.path();
        let run = spiked_run(at).unwrap();
        let all = heads(at);
        assert!(all.len() > 1);
        let worst = WindowsKept { worst: true, ..WindowsKept::default() };
        let tried = thin_windows(at, &worst, true).unwrap();
        assert_eq!((tried.windows_kept, heads(at).len()), (1, all.len()));
        assert_eq!(tried.windows + 1, all.len() as u64);
        let culprits: Vec<String> = run.culprits.iter().map(fingerprint).collect();
        let kept = WindowsKept { culprits, worst: true };
        let done = thin_windows(at, &kept, false).unwrap();
        let left = heads(at);
        assert_eq!(left.len() as u64, done.windows_kept);
        assert!(!left.is_empty() && left.len() < all.len() && left.iter().all(|head| all.contains(head)));
        let latency = |head: &WindowHead| head.actual_ns - head.expected_ns;
        let most = |heads: &[WindowHead]| heads.iter().map(latency).max();
        assert_eq!(most(&left), most(&all), "the worst stays");
        // Nothing more is removed, and a spike whose window is gone is shown without it.
        assert_eq!(thin_windows(at, &kept, false).unwrap().window_bytes, 0);
        let order = (1..=run.spikes.len()).map(|number| study::page::spike(at, number).unwrap().unwrap());
        let windows = order.filter(|spike| spike.window.is_some()).count();
        assert_eq!(windows, left.len());
        let none = thin_windows(at, &WindowsKept::default(), false).unwrap();
        assert_eq!((none.windows_kept, at.join(EVENTS).exists()), (0, false));
        assert_eq!(thin_windows(at, &kept, false).unwrap(), ThinnedBundle::default());
    }
}
