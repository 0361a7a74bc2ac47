//! The lines of rows as they were written, for who passes them on.

use std::io;

use host::RecordDisk;
use model::record::RecordTier;
use model::watch::{WatchRun, WatchSeries};

use super::lines::LineSpan;
use super::manifest::RecordSegment;
use super::read::RecordReader;

/// A line of rows, and what it is of.
#[derive(Clone, Debug, PartialEq)]
pub struct RowText {
    pub tier: RecordTier,
    pub run: WatchRun,
    pub at: LineSpan,
    /// Without its newline; it is the same bytes wherever the record keeps it.
    pub line: Vec<u8>,
}

impl<D: RecordDisk> RecordReader<D> {
    /// The lines of a series, in order of time.
    pub fn each_row_text(&mut self, series: WatchSeries, f: impl FnMut(RowText)) -> io::Result<()> {
        let parse = |tier, run: &WatchRun, line: &[u8]| {
            let at: LineSpan = serde_json::from_slice(line)?;
            let span = Some((at.seq, at.last_seq()));
            Ok((span, RowText { tier, run: run.clone(), at, line: line.to_vec() }))
        };
        self.each_line(Some(series), parse, f)
    }

    /// Leaves out the files of segments of which this is true.
    pub fn leave_out(&mut self, is_done: impl Fn(&RecordSegment) -> bool) {
        let segments = self.manifest().into_iter().flat_map(|manifest| &manifest.segments);
        let done = segments.filter(|segment| is_done(segment)).flat_map(|segment| &segment.files);
        let names: Vec<String> = done.map(|file| file.name.clone()).collect();
        self.drop_files(&names);
    }
}
