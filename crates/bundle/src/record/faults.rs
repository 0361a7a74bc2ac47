//! What reading a damaged record meets, and which of its lines say the same twice.

use std::collections::BTreeMap;

use model::text::several;
use model::watch::WatchRun;

use super::damage::DamagedSection;

/// What reading a file met.
#[derive(Default)]
pub struct Faults {
    pub changed: u64,
    pub unread: u64,
    pub newer: u64,
    pub cut: bool,
    /// Lines of which an earlier file has the intervals.
    pub repeated: u64,
    /// Sections whose rows were wanted as they were written, and are not.
    pub damaged: Vec<DamagedSection>,
}

/// Which intervals there were: files that no manifest tells apart may hold the same ones, added up
/// and not.
pub struct Seen {
    /// Whether there is need to look.
    wanted: bool,
    spans: BTreeMap<String, Vec<(u64, u64)>>,
}

impl Seen {
    /// Looks at lines only where that is asked for.
    pub fn new(wanted: bool) -> Seen {
        Seen { wanted, spans: BTreeMap::new() }
    }

    /// Whether a line's intervals are in no earlier one; it is noted.
    pub fn is_new(&mut self, run: &WatchRun, span: Option<(u64, u64)>) -> bool {
        let (true, Some((from, to))) = (self.wanted, span) else { return true };
        let spans = self.spans.entry(run.boot.clone()).or_default();
        if spans.iter().any(|known| from <= known.1 && known.0 <= to) {
            return false;
        }
        match spans.last_mut() {
            // Nearly always the next one.
            Some(last) if last.1 + 1 == from => last.1 = to,
            _ => spans.push((from, to)),
        }
        true
    }
}

impl Faults {
    /// In sentences.
    pub fn remarks(&self, name: &str) -> Vec<String> {
        let lines = |n| several(n, "line", "lines");
        let mut remarks = Vec::new();
        if self.changed > 0 {
            remarks.push(format!(
                "{name} was changed after it was written: the checksum of {} is another",
                several(self.changed, "section", "sections")
            ));
        }
        if self.cut {
            remarks.push(format!("{name} is cut short"));
        }
        if self.unread > 0 {
            remarks.push(format!("{} of {name} cannot be read", lines(self.unread)));
        }
        if self.newer > 0 {
            remarks.push(format!("{name} is of another schema: use a newer onbeat"));
        }
        if self.repeated > 0 {
            remarks.push(format!(
                "{} of {name} repeat what another file holds, and are not counted twice",
                lines(self.repeated)
            ));
        }
        remarks
    }
}
