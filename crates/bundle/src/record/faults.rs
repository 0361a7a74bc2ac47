//! Faults met while reading a damaged record, and detection of lines that repeat intervals.

use std::collections::BTreeMap;

use model::text::several;
use model::watch::WatchRun;

use super::damage::DamagedSection;

/// Faults met while reading a file.
#[derive(Default)]
pub struct Faults {
    pub changed: u64,
    pub unread: u64,
    pub newer: u64,
    pub cut: bool,
    /// Number of lines whose intervals an earlier file has.
    pub repeated: u64,
    /// Sections whose rows were wanted unchanged, and are changed.
    pub damaged: Vec<DamagedSection>,
}

/// Intervals read so far: files that no manifest distinguishes may hold the same ones, added up and
/// not.
pub struct Seen {
    /// True if lines have to be checked.
    wanted: bool,
    spans: BTreeMap<String, Vec<(u64, u64)>>,
}

impl Seen {
    /// Checks lines only if `wanted`.
    pub fn new(wanted: bool) -> Seen {
        Seen { wanted, spans: BTreeMap::new() }
    }

    /// True if no earlier line has the line's intervals, which are added.
    pub fn is_new(&mut self, run: &WatchRun, span: Option<(u64, u64)>) -> bool {
        let (true, Some((from, to))) = (self.wanted, span) else { return true };
        let spans = self.spans.entry(run.boot.clone()).or_default();
        if spans.iter().any(|known| from <= known.1 && known.0 <= to) {
            return false;
        }
        match spans.last_mut() {
            // Nearly always the next interval.
            Some(last) if last.1 + 1 == from => last.1 = to,
            _ => spans.push((from, to)),
        }
        true
    }
}

impl Faults {
    /// Describes the faults in sentences.
    pub fn remarks(&self, name: &str) -> Vec<String> {
        let lines = |n| several(n, "line", "lines");
        let mut remarks = Vec::new();
        if self.changed > 0 {
            remarks.push(format!(
                "{name} was changed after it was written: the checksum of {} differs",
                several(self.changed, "section", "sections")
            ));
        }
        if self.cut {
            remarks.push(format!("{name} is truncated"));
        }
        if self.unread > 0 {
            remarks.push(format!("{} of {name} cannot be read", lines(self.unread)));
        }
        if self.newer > 0 {
            remarks.push(format!("{name} has another schema: use a newer onbeat"));
        }
        if self.repeated > 0 {
            remarks.push(format!(
                "{} of {name} repeat the content of another file, and are not counted twice",
                lines(self.repeated)
            ));
        }
        remarks
    }
}
