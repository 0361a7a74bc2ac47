//! Unchanged lines of rows, for passing them on.

use std::io;
use std::path::Path;

use host::{RecordDisk, RecordFolder};
use model::record::RecordTier;
use model::watch::{WatchRun, WatchSeries};

use super::damage::{DamagedSection, DamagedSpan};
use super::lines::LineSpan;
use super::manifest::{MANIFEST, Manifest, RecordSegment, is_record_file};
use super::read::RecordReader;

/// A line of rows, with its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct RowText {
    pub tier: RecordTier,
    pub run: WatchRun,
    pub at: LineSpan,
    /// The line without its newline; it has the same bytes wherever the record keeps it.
    pub line: Vec<u8>,
}

/// Files of a record with their lengths: they differ as soon as an interval is added.
pub fn record_state(path: &Path) -> io::Result<Vec<(String, u64)>> {
    let folder = RecordFolder::open(path)?;
    let mut names = folder.names()?;
    names.retain(|name| name == MANIFEST || is_record_file(name));
    names.sort_unstable();
    // A file may be merged or dropped during this: then there is another state anyway.
    let with_length = |name: String| {
        let length = folder.length(&name).unwrap_or(0);
        (name, length)
    };
    Ok(names.into_iter().map(with_length).collect())
}

impl<D: RecordDisk> RecordReader<D> {
    /// Reads the wanted lines of a series, in order of time. The checksum of a section is checked
    /// before the first of them is handed over; if it is wrong, none is, and
    /// [`RecordReader::damaged`] has the section.
    pub fn each_row_text(
        &mut self,
        series: WatchSeries,
        wants: impl Fn(&RowText) -> bool,
        f: impl FnMut(RowText),
    ) -> io::Result<()> {
        let wants: &dyn Fn(&RowText) -> bool = &wants;
        let parse = |tier, run: &WatchRun, line: &[u8]| {
            let at: LineSpan = serde_json::from_slice(line)?;
            let span = Some((at.seq, at.last_seq()));
            Ok((span, RowText { tier, run: run.clone(), at, line: line.to_vec() }))
        };
        self.each_line(Some(series), parse, Some(wants), f)
    }

    /// Numbers that are lost with a section, apart from those that are elsewhere. The lines of the
    /// section may state anything: in a segment of one boot these are all numbers, and otherwise
    /// none that is still to come.
    pub fn lost_with(&self, section: &DamagedSection) -> Vec<DamagedSpan> {
        // A record without its manifest does not grow any more.
        let Some((_, segment)) = self.segment_of(&section.file) else { return section.spans.clone() };
        if let Some(all) = self.span_of(&section.file) {
            return vec![all];
        }
        let to = &segment.to;
        let is_recorded = |span: &&DamagedSpan| span.boot != to.boot || span.last <= to.seq;
        section.spans.iter().filter(is_recorded).cloned().collect()
    }

    /// Numbers of all rows of a file's segment, if they are of one boot: they include the missing
    /// ones.
    pub fn span_of(&self, file: &str) -> Option<DamagedSpan> {
        let (manifest, RecordSegment { from, to, .. }) = self.segment_of(file)?;
        let (recording, boot) = (manifest.recording.clone(), from.boot.clone());
        (from.boot == to.boot).then_some(DamagedSpan { recording, boot, first: from.seq, last: to.seq })
    }

    fn segment_of(&self, file: &str) -> Option<(&Manifest, &RecordSegment)> {
        let has_it = |segment: &&RecordSegment| segment.files.iter().any(|one| one.name == file);
        let manifest = self.manifest()?;
        Some((manifest, manifest.segments.iter().find(has_it)?))
    }

    /// Excludes the files of segments for which `is_done` is true.
    pub fn leave_out(&mut self, is_done: impl Fn(&RecordSegment) -> bool) {
        let segments = self.manifest().into_iter().flat_map(|manifest| &manifest.segments);
        let done = segments.filter(|segment| is_done(segment)).flat_map(|segment| &segment.files);
        let names: Vec<String> = done.map(|file| file.name.clone()).collect();
        self.drop_files(&names);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::made::MadeRecord;
    use crate::record::write::{DEFAULT_SIZE, RecordWriter};
    use model::units::Nanos;

    #[test]
    fn each_interval_makes_another_state() {
        let source = MadeRecord { cpus: 1, span: Nanos(300 * Nanos::SECOND.0), reboot: 9, wakeups: 1_000 };
        let place = tempfile::tempdir().unwrap();
        let record = place.path().join("watch");
        assert!(record_state(&record).is_err());
        let (mut writer, _) = RecordWriter::open_folder(&record, DEFAULT_SIZE).unwrap();
        let mut states = vec![record_state(&record).unwrap()];
        for n in 0..20 {
            writer.append(&source.run(n), &source.interval(n)).unwrap();
            let state = record_state(&record).unwrap();
            assert_eq!(record_state(&record).unwrap(), state);
            assert!(!states.contains(&state), "{n}");
            states.push(state);
        }
    }
}
