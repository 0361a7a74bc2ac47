//! Closes the tail: its lines go to files of one series each, and a new tail begins.

use std::io;

use host::RecordDisk;

use super::lines::{HeaderLine, ROWS_SCHEMA, WATCH_SCHEMA};
use super::manifest::{RecordSegment, SegmentFile, SegmentKind};
use super::sections::SectionWriter;
use super::tail::{BlockHead, TailContents, each_block};
use super::write::RecordWriter;
use model::keyword::Keyword;
use model::record::{RecordTier, RecordTime};
use model::units::Nanos;
use model::watch::WatchSeries;

/// Tags of the lines that are not histograms.
const WORST: &str = "worst";
const ENVIRONMENT: &str = "environment";

impl<D: RecordDisk> RecordWriter<D> {
    /// Moves the contents of the tail to segments; the rename of the manifest makes it final.
    pub(super) fn close(&mut self) -> io::Result<()> {
        let before = self.manifest.clone();
        let tail = std::mem::take(&mut self.tail);
        let closed = self.move_tail(&tail);
        if closed.is_err() {
            // Bytes that were added to files lie beyond the lengths that count.
            self.manifest = before.clone();
            self.tail = tail;
            self.cut_back();
            return closed;
        }
        let _ = self.disk.remove(&before.tail);
        self.restate();
        Ok(())
    }

    fn move_tail(&mut self, tail: &TailContents) -> io::Result<()> {
        let (Some(first), Some(last)) = (&tail.first, &tail.last) else { return Ok(()) };
        let whole = RecordSegment {
            tier: RecordTier::Interval.into(),
            intervals: tail.blocks,
            span_ns: tail.span_ns,
            from: first.time(),
            to: last.time(),
            ..RecordSegment::default()
        };
        let name = self.manifest.tail.clone();
        let mut series: Vec<String> = Vec::new();
        let found = each_block(&self.disk, &name, tail.end, |block| {
            for (tag, _) in
                block.lines().filter(|(tag, _)| *tag == WORST || WatchSeries::named(tag).is_some())
            {
                if !series.iter().any(|known| known == tag) {
                    series.push(tag.to_owned());
                }
            }
            Ok(())
        })?;
        self.manifest.losses.damaged_intervals += found.damaged;
        for kind in [SegmentKind::Rows, SegmentKind::Worst] {
            let tags: Vec<&str> = series
                .iter()
                .map(String::as_str)
                .filter(|tag| (*tag == WORST) == (kind == SegmentKind::Worst))
                .collect();
            let at = self.segment_for(RecordSegment { kind: kind.into(), ..whole.clone() });
            for tag in tags {
                self.move_lines(at, tag, &name, tail.end)?;
            }
        }
        self.manifest.last = last.time();
        self.manifest.tail = self.manifest.name("tail");
        self.disk.append(&self.manifest.tail, b"")?;
        self.commit()
    }

    fn move_lines(&mut self, at: usize, tag: &str, tail: &str, end: u64) -> io::Result<()> {
        let (file, packed) = (self.file_for(at, tag), tag == WORST);
        let name = self.manifest.segments[at].files[file].name.clone();
        let mut section = SectionWriter::new(&self.disk, &name, packed);
        let mut header: Option<HeaderLine> = None;
        each_block(&self.disk, tail, end, |block| {
            let wanted = |(of, _): &(&str, &[u8])| *of == tag || packed && *of == ENVIRONMENT;
            for (_, line) in block.lines().filter(wanted) {
                let next = header_of(&block.head, tag);
                if header.as_ref() != Some(&next) {
                    section.json(&next)?;
                    header = Some(next);
                }
                section.line(line)?;
            }
            Ok(())
        })?;
        let added = section.finish()?;
        self.manifest.segments[at].files[file].grow(added);
        Ok(())
    }

    /// Segment for a stretch of time: the newest of its kind and tier, or a new one if that is
    /// large enough and the next span of the next tier begins; the stretch is added to it.
    pub(super) fn segment_for(&mut self, part: RecordSegment) -> usize {
        let newest = self
            .manifest
            .segments
            .iter()
            .rposition(|segment| (&segment.kind, &segment.tier) == (&part.kind, &part.tier));
        let limits = &self.limits;
        let fits = |segment: &RecordSegment| {
            let span = part.tier.known().and_then(RecordTier::next).unwrap_or(RecordTier::Day).span();
            let period = |time: &RecordTime| (time.boot.clone(), time.mono_ns.0.div_euclid(span.0));
            let same = period(&segment.to) == period(&part.from);
            segment.bytes() < limits.segment || same && segment.bytes() < limits.most
        };
        match newest.filter(|&at| fits(&self.manifest.segments[at])) {
            Some(at) => {
                let segment = &mut self.manifest.segments[at];
                segment.intervals += part.intervals;
                segment.span_ns = Nanos(segment.span_ns.0.saturating_add(part.span_ns.0));
                segment.to = part.to;
                at
            }
            None => {
                self.manifest.segments.push(part);
                self.manifest.segments.len() - 1
            }
        }
    }

    /// File of a segment for a series; `worst` for all lines that are not histograms.
    pub(super) fn file_for(&mut self, at: usize, tag: &str) -> usize {
        let series = if tag == WORST { "" } else { tag };
        let segment = &self.manifest.segments[at];
        if let Some(file) = segment.files.iter().position(|file| file.series == series) {
            return file;
        }
        let tier = segment.tier.as_str().to_owned();
        let what = match tag {
            WORST => format!("{tier}.worst.jsonl.gz"),
            _ => format!("{tier}.{tag}.rows.jsonl"),
        };
        let name = self.manifest.name(&what);
        let files = &mut self.manifest.segments[at].files;
        files.push(SegmentFile { name, series: series.to_owned(), ..SegmentFile::default() });
        files.len() - 1
    }

    /// Cuts all files to the lengths that count, and removes the others.
    pub(super) fn cut_back(&mut self) {
        for file in self.manifest.segments.iter().flat_map(|segment| &segment.files) {
            if self.disk.length(&file.name).is_ok_and(|length| length > file.bytes) {
                let _ = self.disk.truncate(&file.name, file.bytes);
            }
        }
        for name in self.disk.names().unwrap_or_default() {
            if super::manifest::is_record_file(&name) && !self.manifest.has(&name) {
                let _ = self.disk.remove(&name);
            }
        }
    }
}

fn header_of(head: &BlockHead, tag: &str) -> HeaderLine {
    HeaderLine {
        schema: if tag == WORST { WATCH_SCHEMA } else { ROWS_SCHEMA }.to_owned(),
        run: head.run.clone(),
        span_ns: head.run.interval_ns,
        series: if tag == WORST { "" } else { tag }.into(),
        env: head.env.clone(),
    }
}
