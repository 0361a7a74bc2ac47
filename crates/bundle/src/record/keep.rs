//! Keeps a record below its size: old lines are added up, and the oldest histograms are dropped if
//! that is not enough. Each step takes effect with the rename of the manifest, or did not happen.
//!
//! Age is recorded time, not that of a clock: a clock that was at 1970, and a machine that was off
//! for a year, make no line old.

use std::io;

use host::RecordDisk;
use model::units::Nanos;

use super::manifest::{RecordSegment, SegmentKind};
use super::merge::{MergeCounts, merge_rows, merge_worst};
use super::sections::{DiskFile, SectionReader, SectionWriter};
use super::write::RecordWriter;
use model::record::RecordTier;

const DAY: i64 = 86_400 * Nanos::SECOND.0;

/// Recorded time after which lines are added up; `None` for days, which stay.
fn keeps(kind: SegmentKind, tier: RecordTier) -> Option<Nanos> {
    let days = match (kind, tier) {
        (SegmentKind::Rows, RecordTier::Interval) => 30,
        (SegmentKind::Rows, RecordTier::Hour) => 365,
        (SegmentKind::Worst, RecordTier::Interval) => 90,
        (SegmentKind::Worst, RecordTier::Hour) => 730,
        (_, RecordTier::Day) => return None,
    };
    Some(Nanos(days * DAY))
}

/// Next step of keeping a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Adds up the oldest segment of a kind and tier to the next tier.
    AddUp(SegmentKind, RecordTier),
    /// Drops the oldest segment of a kind and tier.
    Drop(SegmentKind, RecordTier),
}

impl<D: RecordDisk> RecordWriter<D> {
    /// Does the steps that are due; at most as many as there are segments.
    pub(super) fn keep(&mut self) -> io::Result<()> {
        for _ in 0..=self.manifest.segments.len() {
            let Some(step) = self.next_step() else { break };
            let before = self.manifest.clone();
            if let Err(error) = self.step(step) {
                self.manifest = before;
                self.cut_back();
                return Err(error);
            }
            for file in before.segments.iter().flat_map(|segment| &segment.files) {
                if !self.manifest.has(&file.name) {
                    let _ = self.disk.remove(&file.name);
                }
            }
        }
        Ok(())
    }

    fn next_step(&self) -> Option<Step> {
        let old = [SegmentKind::Rows, SegmentKind::Worst].into_iter().find_map(|kind| self.outdated(kind));
        old.or_else(|| self.over_size())
    }

    /// Step for the tier whose oldest segment is older than its lines are kept.
    fn outdated(&self, kind: SegmentKind) -> Option<Step> {
        let segments: Vec<(RecordTier, &RecordSegment)> = self.manifest.in_order(kind).collect();
        // Time recorded since each segment's end.
        let mut since = self.tail.span_ns.0;
        let mut found = None;
        for (tier, segment) in segments.iter().rev() {
            if keeps(kind, *tier).is_some_and(|limit| since >= limit.0) {
                found = Some(Step::AddUp(kind, *tier));
            }
            since = since.saturating_add(segment.span_ns.0);
        }
        found
    }

    /// Step that reduces the size. Histograms go before names, and of histograms intervals get half
    /// of the space, hours and days a quarter each.
    fn over_size(&self) -> Option<Step> {
        use RecordTier::{Day, Hour, Interval};
        use SegmentKind::{Rows, Worst};
        let bytes = |kind, tier| self.manifest.bytes_of(kind, tier);
        let (rows, names) = (bytes(Rows, None), bytes(Worst, None));
        let limit = self.limits.closed;
        if rows + names <= limit {
            return None;
        }
        let room = limit.saturating_sub(names);
        let held = |kind, tier| bytes(kind, Some(tier)) > 0;
        let names_first = names > limit / 2;
        let steps = [
            (names_first && held(Worst, Interval), Step::AddUp(Worst, Interval)),
            (names_first && held(Worst, Hour), Step::AddUp(Worst, Hour)),
            (bytes(Rows, Some(Interval)) > room / 2, Step::AddUp(Rows, Interval)),
            (bytes(Rows, Some(Hour)) > room / 4, Step::AddUp(Rows, Hour)),
            (held(Rows, Day), Step::Drop(Rows, Day)),
            (held(Rows, Hour), Step::Drop(Rows, Hour)),
            (held(Rows, Interval), Step::Drop(Rows, Interval)),
            (held(Worst, Interval), Step::AddUp(Worst, Interval)),
            (held(Worst, Hour), Step::AddUp(Worst, Hour)),
            (held(Worst, Day), Step::Drop(Worst, Day)),
        ];
        steps.into_iter().find(|(due, _)| *due).map(|(_, step)| step)
    }

    fn step(&mut self, step: Step) -> io::Result<()> {
        let (kind, tier) = match step {
            Step::AddUp(kind, tier) | Step::Drop(kind, tier) => (kind, tier),
        };
        let of = |segment: &RecordSegment| segment.kind == kind && segment.tier == tier;
        let Some(at) = self.manifest.segments.iter().position(of) else { return Ok(()) };
        let segment = self.manifest.segments.remove(at);
        match (step, tier.next()) {
            (Step::AddUp(..), Some(next)) => self.add_up(&segment, kind, next)?,
            _ => self.drop_segment(&segment, kind),
        }
        self.commit()
    }

    fn add_up(&mut self, from: &RecordSegment, kind: SegmentKind, tier: RecordTier) -> io::Result<()> {
        let part = RecordSegment { tier: tier.into(), files: Vec::new(), ..from.clone() };
        let to = self.segment_for(part);
        let mut sum = MergeCounts::default();
        for file in &from.files {
            let tag = if file.series.is_empty() { "worst" } else { file.series.as_str() };
            let at = self.file_for(to, tag);
            let name = self.manifest.segments[to].files[at].name.clone();
            let packed = kind == SegmentKind::Worst;
            let readers = file.stretches(file.bytes).into_iter().map(|(from, to)| {
                SectionReader::new(DiskFile::new(&self.disk, &file.name, from, to), packed)
            });
            let mut section = SectionWriter::new(&self.disk, &name, packed);
            let counts = match kind {
                SegmentKind::Rows => merge_rows(readers, tier, &mut section)?,
                SegmentKind::Worst => merge_worst(readers, tier, &mut section)?,
            };
            let added = section.finish()?;
            self.manifest.segments[to].files[at].grow(added);
            sum.unread += counts.unread;
            sum.damaged += counts.damaged;
        }
        let losses = &mut self.manifest.losses;
        losses.unread_lines += sum.unread;
        losses.damaged_sections += sum.damaged;
        *match (kind, tier) {
            (SegmentKind::Rows, RecordTier::Day) => &mut losses.rows_to_days,
            (SegmentKind::Rows, _) => &mut losses.rows_to_hours,
            (SegmentKind::Worst, RecordTier::Day) => &mut losses.worst_to_days,
            (SegmentKind::Worst, _) => &mut losses.worst_to_hours,
        } += from.intervals;
        Ok(())
    }

    fn drop_segment(&mut self, segment: &RecordSegment, kind: SegmentKind) {
        let losses = &mut self.manifest.losses;
        let (dropped, span, until) = match kind {
            SegmentKind::Rows => {
                (&mut losses.rows_dropped, &mut losses.rows_dropped_ns, &mut losses.rows_dropped_until)
            }
            SegmentKind::Worst => {
                (&mut losses.worst_dropped, &mut losses.worst_dropped_ns, &mut losses.worst_dropped_until)
            }
        };
        *dropped += segment.intervals;
        *span = Nanos(span.0.saturating_add(segment.span_ns.0));
        *until = segment.to.clone();
    }
}
