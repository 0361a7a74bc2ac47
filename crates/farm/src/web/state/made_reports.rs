//! Cache of reports of finished runs: generating one takes half a second, and its data do not
//! change.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use report::html::PageParts;

use crate::records::FarmRun;

/// Limit of the bytes of all cached reports.
const MOST_BYTES: usize = 16 << 20;

/// A report, and the command that repeats its run.
#[derive(Clone, Debug)]
pub struct MadeReport {
    pub parts: PageParts,
    pub again: Option<String>,
    /// Number of stored spikes; each has a page.
    pub kept_spikes: u64,
    /// Reason for which the bundle has no archive.
    pub lacking: Option<String>,
}

impl MadeReport {
    fn bytes(&self) -> usize {
        self.parts.heading.len() + self.parts.body.0.len()
    }
}

/// Most recently requested reports.
#[derive(Debug, Default)]
pub struct MadeReports {
    kept: Mutex<VecDeque<(String, Arc<MadeReport>)>>,
}

impl MadeReports {
    /// Key of a report; `None` for an unfinished run. A changed or truncated file gives another
    /// key.
    pub fn key(run: &FarmRun, place: &Path) -> Option<String> {
        let file = host::file_version(&place.join("run.json")).filter(|_| run.complete)?;
        Some(format!("{} {} {file:?} {}", run.id, place.display(), run.thinned))
    }

    pub fn get(&self, key: &str) -> Option<Arc<MadeReport>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| known == key)?;
        let found = kept.remove(at)?;
        kept.push_front(found);
        kept.front().map(|(_, report)| report.clone())
    }

    /// Caches a report; evicts the least recently used. An incomplete bundle is not cached, as it
    /// may be repaired.
    pub fn keep(&self, key: String, report: Arc<MadeReport>) {
        if report.bytes() > MOST_BYTES || report.lacking.is_some() {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| *known != key);
        kept.push_front((key, report));
        let mut bytes = 0;
        let mut fits = |(_, one): &(String, Arc<MadeReport>)| {
            bytes += one.bytes();
            bytes <= MOST_BYTES
        };
        let count = kept.iter().take_while(|one| fits(one)).count();
        kept.truncate(count);
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make files.
mod tests {
    use super::*;

    fn report(bytes: usize) -> Arc<MadeReport> {
        let body = maud::PreEscaped("x".repeat(bytes));
        let parts = PageParts { heading: String::new(), body, script: None };
        Arc::new(MadeReport { parts, again: None, kept_spikes: 0, lacking: None })
    }

    #[test]
    fn those_that_were_asked_for_last_are_kept_up_to_a_bound() {
        let all = MadeReports::default();
        for name in ["a", "b", "c"] {
            all.keep(name.into(), report(MOST_BYTES / 3));
        }
        assert!(all.get("a").is_some());
        all.keep("d".into(), report(9));
        assert!(all.get("b").is_none() && all.get("a").is_some() && all.get("c").is_some());
        all.keep("a".into(), report(7));
        assert_eq!(all.get("a").map(|one| one.bytes()), Some(7));
        all.keep("large".into(), report(MOST_BYTES + 1));
        let lacking = MadeReport { lacking: Some("its host cannot be read".into()), ..(*report(1)).clone() };
        all.keep("lacking".into(), Arc::new(lacking));
        assert!(all.get("lacking").is_none());
        assert!(all.get("large").is_none() && all.get("d").is_some());
    }

    #[test]
    fn a_run_that_is_on_or_is_replaced_has_no_report_of_before() {
        let folder = tempfile::tempdir().unwrap();
        let run = FarmRun { id: "r".into(), complete: true, ..FarmRun::default() };
        assert_eq!(MadeReports::key(&run, folder.path()), None);
        std::fs::write(folder.path().join("run.json"), "{}").unwrap();
        let key = MadeReports::key(&run, folder.path());
        assert!(key.is_some() && key == MadeReports::key(&run, folder.path()));
        let thinned = FarmRun { thinned: "blocks".into(), ..run.clone() };
        assert_ne!(MadeReports::key(&thinned, folder.path()), key);
        assert_eq!(MadeReports::key(&FarmRun { complete: false, ..run }, folder.path()), None);
    }
}
