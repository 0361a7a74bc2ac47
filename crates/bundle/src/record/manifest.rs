//! `record.json`: the files of the record with their lengths, and the account of merged and dropped
//! lines. It is replaced by one rename, so that each step of keeping the record happens whole or
//! not at all.

use std::io;

use host::RecordDisk;
use model::keyword::Word;
use model::keywords;
use model::record::{RecordLosses, RecordTier, RecordTime};
use model::units::Nanos;
use serde::{Deserialize, Serialize};

use super::lines::WATCH_SCHEMA;
use super::sections::{DiskFile, SectionLine, SectionReader};

/// Name of the manifest.
pub const MANIFEST: &str = "record.json";
/// Name of the next manifest until it is renamed.
pub const NEXT: &str = "record.json.next";

/// Maximum length of a manifest.
const MANIFEST_LIMIT: u64 = 16 << 20;

keywords! {
    /// Contents of a segment.
    pub enum SegmentKind, default Rows {
        /// histograms, a file per series
        Rows = "rows",
        /// the worst wake-ups, coverage, marks and environments, in one file
        Worst = "worst",
    }
}

/// A file of a segment; bytes beyond its length were never part of the record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SegmentFile {
    pub name: String,
    /// Series of the file; `""` if it has several.
    pub series: String,
    pub bytes: u64,
    /// End of each section. Damage of a packed section hides the begin of the next one.
    pub ends: Vec<u64>,
}

impl SegmentFile {
    /// Adds a section of this size.
    pub fn grow(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.ends.push(self.bytes);
    }

    /// Ranges to read separately, up to a length: sections, and parts without known sections.
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
    /// Number of intervals in it, added up or not.
    pub intervals: u64,
    /// Total length of these intervals.
    pub span_ns: Nanos,
    pub from: RecordTime,
    pub to: RecordTime,
}

impl RecordSegment {
    /// Size on the disk, where files take whole blocks.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes.next_multiple_of(4096)).sum()
    }
}

/// Manifest of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    pub schema: String,
    /// Id of the recording.
    pub recording: String,
    /// Maximum size of the folder.
    pub size: u64,
    /// File to which intervals are added.
    pub tail: String,
    /// Number of the next file.
    pub next: u64,
    /// Last interval that is in a segment.
    pub last: RecordTime,
    /// Segments, of each kind and tier the oldest first.
    pub segments: Vec<RecordSegment>,
    pub losses: RecordLosses,
}

/// Reason why there is no usable manifest.
#[derive(Debug)]
pub enum ManifestFault {
    Missing,
    /// A newer schema.
    Newer(String),
    /// Contents that differ from what was written.
    Damaged,
    Io(io::Error),
}

impl Manifest {
    /// Manifest of a folder in which nothing was recorded.
    pub fn new(recording: &str, size: u64) -> Manifest {
        Manifest {
            schema: WATCH_SCHEMA.to_owned(),
            recording: recording.to_owned(),
            size,
            ..Manifest::default()
        }
    }

    /// Name for a new file.
    pub fn name(&mut self, what: &str) -> String {
        self.next += 1;
        format!("{:08}.{what}", self.next)
    }

    /// Reads the manifest of a folder.
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

    /// True if all its files are in its folder.
    fn names_are_plain(&self) -> bool {
        let mut names = self.segments.iter().flat_map(|segment| &segment.files).map(|file| &file.name);
        names.all(|name| is_record_file(name)) && is_record_file(&self.tail)
    }

    /// True if a file belongs to the record.
    pub fn has(&self, name: &str) -> bool {
        let mut files = self.segments.iter().flat_map(|segment| &segment.files);
        name == self.tail || files.any(|file| file.name == name)
    }

    /// Segments of a kind in order of time: the oldest were added up to days.
    pub fn in_order(&self, kind: SegmentKind) -> impl Iterator<Item = (RecordTier, &RecordSegment)> {
        [RecordTier::Day, RecordTier::Hour, RecordTier::Interval].into_iter().flat_map(move |tier| {
            let of = move |segment: &&RecordSegment| segment.kind == kind && segment.tier == tier;
            self.segments.iter().filter(of).map(move |segment| (tier, segment))
        })
    }

    /// Size of all segments of a kind and tier.
    pub fn bytes_of(&self, kind: SegmentKind, tier: Option<RecordTier>) -> u64 {
        let segments = self.in_order(kind).filter(|(of, _)| tier.is_none_or(|tier| tier == *of));
        segments.map(|(_, segment)| segment.bytes()).sum()
    }
}

/// True if [`Manifest::name`] gives such names: a number, then the contents of the file.
pub fn is_record_file(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".+-".contains(&byte);
    name.split_once('.').is_some_and(|(number, what)| {
        number.len() >= 8 && number.bytes().all(|byte| byte.is_ascii_digit()) && what.bytes().all(plain)
    })
}
