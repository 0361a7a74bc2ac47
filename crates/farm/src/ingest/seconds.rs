//! The five minutes of a run from the records of its seconds, and a check of their number against
//! the run's.

use std::collections::BTreeMap;

use bundle::read::Bundle;
use model::run::{CpuRun, Run};
use model::text::several;
use model::units::{Cpu, Nanos};

use super::run_rows::RunRows;
use super::slots::SlotFold;
use crate::records::FarmSlot;

/// Contents of its blocks.
pub struct SlotsRead {
    pub slots: Vec<FarmSlot>,
    /// Lines that could not be read.
    unread: u64,
    /// Blocks that have no place in time.
    unplaced: u64,
    /// Blocks that do not begin after all before of their CPU: they are there twice.
    repeated: u64,
    /// The samples of each CPU.
    samples: BTreeMap<Cpu, u64>,
}

impl SlotsRead {
    pub fn of(bundle: &Bundle, rows: Option<&RunRows>) -> Result<SlotsRead, String> {
        let mut fold = SlotFold::of(&bundle.run, rows);
        let mut last: BTreeMap<Cpu, Nanos> = BTreeMap::new();
        let mut samples: BTreeMap<Cpu, u64> = BTreeMap::new();
        let mut repeated = 0;
        let each = bundle.each_block(|block| {
            fold.add(block);
            let is_later = last.get(&block.cpu).is_none_or(|before| block.mono_ns > *before);
            if is_later {
                last.insert(block.cpu, block.mono_ns);
            } else {
                repeated += 1;
            }
            let sum = samples.entry(block.cpu).or_default();
            *sum = sum.saturating_add(block.n);
        });
        let unread = each.map_err(|failure| failure.message)?;
        let unplaced = fold.unplaced;
        Ok(SlotsRead { slots: fold.finish(&bundle.run), unread, unplaced, repeated, samples })
    }

    /// Reason to refuse them, in a line, if samples would count twice. A running run has more
    /// seconds than its document.
    pub fn fault(&self, run: &Run) -> Option<String> {
        if self.repeated > 0 {
            let seconds = several(self.repeated, "second", "seconds");
            return Some(format!("its blocks.jsonl has {seconds} twice or out of order"));
        }
        let counted = counted(run);
        let is_more = |(cpu, n): (&Cpu, &u64)| *n > counted.get(cpu).copied().unwrap_or_default();
        (run.complete && self.samples.iter().any(is_more))
            .then(|| "its blocks.jsonl has more samples than its histograms".to_owned())
    }

    /// Adds remarks on what is missing of them.
    pub fn remarks(&self, run: &Run, remarks: &mut Vec<String>) {
        if self.unread > 0 {
            let lines = several(self.unread, "line", "lines");
            remarks.push(format!("{lines} of blocks.jsonl could not be read"));
        }
        if self.unplaced > 0 {
            let blocks = several(self.unplaced, "second", "seconds");
            remarks.push(format!("{blocks} have no time: the run has no wall-clock time"));
        }
        // Measurements of other programs have none.
        let has_seconds = run.complete && run.cpus.iter().any(|cpu| cpu.t0_mono_ns.is_some());
        let sum = |of: &BTreeMap<Cpu, u64>| of.values().fold(0u64, |sum, n| sum.saturating_add(*n));
        let (there, all) = (sum(&self.samples), sum(&counted(run)));
        if has_seconds && there < all {
            remarks.push(format!(
                "its blocks.jsonl has {there} of {all} samples: the largest latency of some intervals of \
                 five minutes is unknown"
            ));
        }
    }
}

/// Number under which a thread's samples are stored: the store's key has no thread, so an imported
/// thread on an unknown CPU is stored under its thread number.
pub(super) fn stored_cpu(cpu: &CpuRun) -> Cpu {
    cpu.cpu.unwrap_or(Cpu(cpu.thread))
}

/// The samples of each CPU by its histogram.
fn counted(run: &Run) -> BTreeMap<Cpu, u64> {
    let mut counted: BTreeMap<Cpu, u64> = BTreeMap::new();
    for cpu in run.primary() {
        let sum = counted.entry(stored_cpu(cpu)).or_default();
        *sum = sum.saturating_add(cpu.cycles.unwrap_or_default());
    }
    counted
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests damage files.
mod tests {
    use crate::fixture::run_folder;
    use crate::ingest::bundle::read;
    use crate::ingest::find::FoundBundle;
    use crate::ingest::keep::keep;
    use crate::records::BundleRecord;
    use std::fs;
    use std::path::Path;

    fn record(place: &Path) -> (BundleRecord, Vec<String>) {
        read(&FoundBundle { place: place.to_owned(), board: Some("a".into()) }).unwrap()
    }

    fn samples(record: &BundleRecord) -> u64 {
        record.slots.iter().map(|slot| slot.n).sum()
    }

    #[test]
    fn seconds_that_are_there_twice_are_not_taken_and_missing_ones_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let from = run_folder("measured");
        let place = keep(&from, "run", folder.path()).unwrap().0;
        let blocks = fs::read_to_string(place.join("blocks.jsonl")).unwrap();
        let (whole, remarks) = record(&place);
        assert!(samples(&whole) == whole.run.cycles && remarks.is_empty(), "{remarks:?}");
        let lines: Vec<&str> = blocks.split_inclusive('\n').collect();
        let more = blocks.replacen("\"n\":", "\"n\":1", 1);
        assert_ne!(more, blocks);
        let (last, rest) = lines.split_last().unwrap();
        let document = fs::read_to_string(place.join("run.json")).unwrap();
        let on = document.replacen("\"complete\": true", "\"complete\": false", 1);
        let on = on.replacen("\"complete\":true", "\"complete\":false", 1);
        assert_ne!(on, document);
        for (text, named) in [
            (blocks.repeat(2), "9 seconds twice"),
            (format!("{last}{}", rest.concat()), "8 seconds twice"),
            (format!("{}{}", rest.concat(), rest[0]), "1 second twice"),
            (more, "more samples than its histograms"),
        ] {
            fs::write(place.join("blocks.jsonl"), text).unwrap();
            for (document, is_over) in [(&on, false), (&document, true)] {
                fs::write(place.join("run.json"), document).unwrap();
                let (left, remarks) = record(&place);
                let is_told = remarks.iter().any(|remark| remark.contains(named));
                // A running run has more seconds than its document.
                assert_eq!(is_told, is_over || named.contains("twice"), "{named}: {remarks:?}");
                assert_eq!(left.slots.is_empty(), is_told, "{named}");
                assert_eq!(left.whole, whole.whole, "{named}");
            }
        }
        for text in [Some(rest.concat()), None] {
            match &text {
                Some(text) => fs::write(place.join("blocks.jsonl"), text).unwrap(),
                None => fs::remove_file(place.join("blocks.jsonl")).unwrap(),
            }
            let (left, remarks) = record(&place);
            let named = format!("has {} of {} samples", samples(&left), whole.run.cycles);
            assert!(remarks.len() == 1 && remarks[0].contains(&named), "{named}: {remarks:?}");
            assert_eq!(left.slots.is_empty(), text.is_none());
        }
    }
}
