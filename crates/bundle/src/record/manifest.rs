//! `record.json`: which files of the folder are the record, how long each is, and what was merged
//! and dropped. It is replaced by one rename, so that each step of keeping the record happens whole
//! or not at all.

use std::io;

use host::RecordDisk;
use model::keyword::Word;
use model::keywords;
use model::record::{RecordLosses, RecordTier, RecordTime};
use model::units::Nanos;
use serde::{Deserialize, Serialize};

use super::lines::WATCH_SCHEMA;
use super::sections::{DiskFile, SectionLine, SectionReader};

/// The manifest, and the next one until it is renamed.
pub const MANIFEST: &str = "record.json";
pub const NEXT: &str = "record.json.next";

/// No manifest is longer.
const MANIFEST_LIMIT: u64 = 16 << 20;

keywords! {
    /// What is in a segment.
    pub enum SegmentKind, default Rows {
        /// histograms, a file per series
        Rows = "rows",
        /// the worst wake-ups, coverage, marks and environments, in one file
        Worst = "worst",
    }
}

/// A file of a segment; what is behind its length was never part of the record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SegmentFile {
    pub name: String,
    /// `""` where it is not of one series.
    pub series: String,
    pub bytes: u64,
    /// Where each section ends. A packed one that is damaged hides where the next begins.
    pub ends: Vec<u64>,
}

impl SegmentFile {
    /// A section was added.
    pub fn grow(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.ends.push(self.bytes);
    }

    /// The stretches to read by themselves, up to a length: sections, and what no section is known
    /// for.
    pub fn stretches(&self, length: u64) -> Vec<(u64, u64)> {
        let length = length.min(self.bytes);
        let mut from = 0;
        let mut stretches = Vec::new();
        for &end in self.ends.iter().chain([&length]) {
            let end = end.min(length);
            if end > from {
                stretches.push((from, end));
                from = end;
            }
        }
        stretches
    }
}

/// Files of one stretch of time, which are kept, merged and dropped together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordSegment {
    pub kind: Word<SegmentKind>,
    pub tier: Word<RecordTier>,
    pub files: Vec<SegmentFile>,
    /// Intervals that are in it, added up or not, and how long they are together.
    pub intervals: u64,
    pub span_ns: Nanos,
    pub from: RecordTime,
    pub to: RecordTime,
}

impl RecordSegment {
    /// What it takes on the disk, where files take whole blocks.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes.next_multiple_of(4096)).sum()
    }
}

/// The whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    pub schema: String,
    /// The id of the recording.
    pub recording: String,
    /// The most that the folder may take.
    pub size: u64,
    /// The file that intervals are added to.
    pub tail: String,
    /// The number of the next file.
    pub next: u64,
    /// The last interval that is in a segment.
    pub last: RecordTime,
    /// Of each kind and tier the oldest first.
    pub segments: Vec<RecordSegment>,
    pub losses: RecordLosses,
}

/// Why there is no manifest to go by.
#[derive(Debug)]
pub enum ManifestFault {
    Missing,
    /// The schema that it has.
    Newer(String),
    /// It is not as it was written.
    Damaged,
    Io(io::Error),
}

impl Manifest {
    /// That of a folder in which nothing was recorded.
    pub fn new(recording: &str, size: u64) -> Manifest {
        Manifest {
            schema: WATCH_SCHEMA.to_owned(),
            recording: recording.to_owned(),
            size,
            ..Manifest::default()
        }
    }

    /// A name for a new file.
    pub fn name(&mut self, what: &str) -> String {
        self.next += 1;
        format!("{:08}.{what}", self.next)
    }

    /// Reads it.
    pub fn read(disk: &impl RecordDisk) -> Result<Manifest, ManifestFault> {
        let length = disk.length(MANIFEST).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ManifestFault::Missing,
            _ => ManifestFault::Io(error),
        })?;
        if length > MANIFEST_LIMIT {
            return Err(ManifestFault::Damaged);
        }
        let mut sections = SectionReader::new(DiskFile::new(disk, MANIFEST, 0, length), false);
        let Some(SectionLine::Line(line)) = sections.next_line().map_err(ManifestFault::Io)? else {
            return Err(ManifestFault::Damaged);
        };
        #[derive(Deserialize)]
        struct Schema {
            schema: String,
        }
        match serde_json::from_slice::<Schema>(line) {
            Ok(found) if found.schema == WATCH_SCHEMA => {}
            Ok(found) if found.schema.starts_with("onbeat.watch/") => {
                return Err(ManifestFault::Newer(found.schema));
            }
            _ => return Err(ManifestFault::Damaged),
        }
        let manifest: Manifest = serde_json::from_slice(line).map_err(|_| ManifestFault::Damaged)?;
        match sections.next_line().map_err(ManifestFault::Io)? {
            Some(SectionLine::Intact) if manifest.names_are_plain() => Ok(manifest),
            _ => Err(ManifestFault::Damaged),
        }
    }

    /// Whether all its files are in its folder.
    fn names_are_plain(&self) -> bool {
        let mut names = self.segments.iter().flat_map(|segment| &segment.files).map(|file| &file.name);
        names.all(|name| is_record_file(name)) && is_record_file(&self.tail)
    }

    /// Whether a file is the record's.
    pub fn has(&self, name: &str) -> bool {
        let mut files = self.segments.iter().flat_map(|segment| &segment.files);
        name == self.tail || files.any(|file| file.name == name)
    }

    /// The segments of a kind in order of time: the oldest were added up to days.
    pub fn in_order(&self, kind: SegmentKind) -> impl Iterator<Item = (RecordTier, &RecordSegment)> {
        [RecordTier::Day, RecordTier::Hour, RecordTier::Interval].into_iter().flat_map(move |tier| {
            let of = move |segment: &&RecordSegment| segment.kind == kind && segment.tier == tier;
            self.segments.iter().filter(of).map(move |segment| (tier, segment))
        })
    }

    /// What all segments of a kind and tier take.
    pub fn bytes_of(&self, kind: SegmentKind, tier: Option<RecordTier>) -> u64 {
        let segments = self.in_order(kind).filter(|(of, _)| tier.is_none_or(|tier| tier == *of));
        segments.map(|(_, segment)| segment.bytes()).sum()
    }
}

/// Whether a name is one that [`Manifest::name`] gives: a number, then what is in the file.
pub fn is_record_file(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".+-".contains(&byte);
    name.split_once('.').is_some_and(|(number, what)| {
        number.len() >= 8 && number.bytes().all(|byte| byte.is_ascii_digit()) && what.bytes().all(plain)
    })
}
