//! Reads a record, line by line in order of time, while it is written or later; of a damaged one
//! the readable lines, with remarks on the others.

use std::io;
use std::path::Path;

use host::{RecordDisk, RecordFolder};
use model::error::{Exit, Failure, Result};
use model::keyword::Keyword;
use model::text::{quoted, several};
use model::watch::{WatchEnvironment, WatchRun, WatchSeries};

use super::damage::{DamagedSection, LackingFile};
use super::faults::{Faults, Seen};
use super::lines::{EnvironmentLine, RowsLine, WATCH_SCHEMA, WorstLine};
use super::listed::{ListedFile, read_file};
use super::manifest::{MANIFEST, Manifest, ManifestFault, SegmentKind, is_record_file};
use super::tail::each_block;
use model::record::RecordTier;

/// Attempts to read a manifest whose files are missing, in case they are being merged.
const TRIES: usize = 3;

/// Item of the files of worst wake-ups.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordItem {
    Environment(Box<WatchEnvironment>),
    Worst(RecordTier, WatchRun, Box<WorstLine>),
}

/// A record as it is at one moment.
pub struct RecordReader<D> {
    disk: D,
    /// Manifest; `None` if it is lost: then the files are identified by their names.
    manifest: Option<Manifest>,
    files: Vec<ListedFile>,
    tail: Option<(String, u64)>,
    /// Missing parts of files with rows of one series, or of the tail, which has all.
    short: Vec<(Option<WatchSeries>, LackingFile)>,
    /// Faults, in sentences.
    pub remarks: Vec<String>,
    /// Sections that [`RecordReader::each_row_text`] skipped.
    pub damaged: Vec<DamagedSection>,
    /// Incomplete or missing files of the last request.
    pub lacking: Vec<LackingFile>,
    /// The tail, and the number of its intervals that cannot be read before others that can, if
    /// there are any: they are of each series.
    pub damaged_tail: Option<(String, u64)>,
}

/// True if a folder is a record, whole or not.
pub fn is_record(path: &Path) -> bool {
    let Ok(folder) = RecordFolder::open(path) else { return false };
    is_record_of(&folder.names().unwrap_or_default())
}

/// True if a folder with files of these names is a record.
pub fn is_record_of(names: &[String]) -> bool {
    names.iter().any(|name| name == MANIFEST || is_record_file(name) && !name.ends_with(".json"))
}

impl RecordReader<RecordFolder> {
    /// Opens the record in a folder.
    pub fn open_folder(path: &Path) -> Result<RecordReader<RecordFolder>> {
        let name = quoted(path);
        let failed = |error: &io::Error| {
            Failure::of_call(
                format!("cannot read {name}"),
                error,
                Exit::Usage,
                "expected a record of `onbeat watch`",
            )
        };
        let folder = RecordFolder::open(path).map_err(|error| failed(&error))?;
        RecordReader::open(folder).map_err(|fault| match fault {
            ManifestFault::Newer(schema) => Failure::usage(format!(
                "the record in {name} is of schema {schema:?} instead of {WATCH_SCHEMA:?}: it was written \
                 by a newer onbeat, use that version"
            )),
            ManifestFault::Io(error) => failed(&error),
            ManifestFault::Missing | ManifestFault::Damaged => {
                Failure::usage(format!("{name} is not a record: expected a folder of `onbeat watch`"))
            }
        })
    }
}

impl<D: RecordDisk> RecordReader<D> {
    /// Opens a record on any disk.
    pub fn open(disk: D) -> std::result::Result<RecordReader<D>, ManifestFault> {
        let mut reader = RecordReader {
            disk,
            manifest: None,
            files: Vec::new(),
            tail: None,
            short: Vec::new(),
            remarks: Vec::new(),
            damaged: Vec::new(),
            lacking: Vec::new(),
            damaged_tail: None,
        };
        match Manifest::read(&reader.disk) {
            Ok(manifest) => reader.list_latest(manifest).map_err(ManifestFault::Io)?,
            Err(ManifestFault::Missing | ManifestFault::Damaged) => {
                reader.salvage().map_err(ManifestFault::Io)?;
            }
            Err(fault) => return Err(fault),
        }
        Ok(reader)
    }

    /// Lists the files of a manifest; if some are missing and there is a new manifest by now, they
    /// were merged, and the files of that one are listed.
    fn list_latest(&mut self, mut manifest: Manifest) -> io::Result<()> {
        for left in (0..TRIES).rev() {
            (self.files, self.short, self.remarks) = (Vec::new(), Vec::new(), Vec::new());
            self.list(&manifest)?;
            if left == 0 || self.short.is_empty() {
                break;
            }
            match Manifest::read(&self.disk) {
                Ok(next) if next != manifest => manifest = next,
                _ => break,
            }
        }
        Ok(())
    }

    fn list(&mut self, manifest: &Manifest) -> io::Result<()> {
        for kind in [SegmentKind::Worst, SegmentKind::Rows] {
            for (tier, segment) in manifest.in_order(kind) {
                for file in &segment.files {
                    let series = WatchSeries::named(&file.series);
                    if (kind == SegmentKind::Rows) != series.is_some() {
                        self.remarks.push(format!("{} has an unknown series", file.name));
                        continue;
                    }
                    // Rows of hours and days are not passed on.
                    let has_rows = series.is_some() && tier == RecordTier::Interval;
                    let short = |bytes| (series, LackingFile { name: file.name.clone(), bytes });
                    let length = match self.disk.length(&file.name) {
                        Ok(length) if length >= file.bytes => {
                            // A writer found the file empty.
                            self.short.extend((has_rows && file.bytes == 0).then(|| short(Some(0))));
                            length
                        }
                        Ok(length) => {
                            self.remarks.push(format!("{} is truncated", file.name));
                            self.short.extend(has_rows.then(|| short(Some(file.bytes - length))));
                            length
                        }
                        Err(error) if error.kind() == io::ErrorKind::NotFound => {
                            self.remarks.push(format!("{} is missing, with its content", file.name));
                            self.short.extend(has_rows.then(|| short(None)));
                            continue;
                        }
                        Err(error) => return Err(error),
                    };
                    let stretches = file.stretches(length);
                    let sealed = file.ends.iter().copied().filter(|end| *end <= length).max().unwrap_or(0);
                    self.files.push(ListedFile { name: file.name.clone(), tier, series, stretches, sealed });
                }
            }
        }
        self.tail = match self.disk.length(&manifest.tail) {
            Ok(length) => Some((manifest.tail.clone(), length)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.remarks.push(format!("{} is missing, with the latest data", manifest.tail));
                self.short.push((None, LackingFile { name: manifest.tail.clone(), bytes: None }));
                None
            }
            Err(error) => return Err(error),
        };
        self.manifest = Some(manifest.clone());
        Ok(())
    }

    /// Lists all files that belong to a record by their names.
    fn salvage(&mut self) -> io::Result<()> {
        let mut names = self.disk.names()?;
        names.sort_unstable();
        for tier in [RecordTier::Day, RecordTier::Hour, RecordTier::Interval] {
            for name in names.iter().filter(|name| is_record_file(name)) {
                let parts: Vec<&str> = name.split('.').collect();
                let series = match parts.as_slice() {
                    [_, of, "worst", "jsonl", "gz"] if *of == tier.name() => None,
                    [_, of, series, "rows", "jsonl"] if *of == tier.name() => {
                        match WatchSeries::named(series) {
                            None => continue,
                            known => known,
                        }
                    }
                    _ => continue,
                };
                let stretches = vec![(0, self.disk.length(name)?)];
                self.files.push(ListedFile { name: name.clone(), tier, series, stretches, sealed: 0 });
            }
        }
        if let Some(name) = names.iter().rfind(|name| is_record_file(name) && name.ends_with(".tail")) {
            self.tail = Some((name.clone(), self.disk.length(name)?));
        }
        if self.files.is_empty() && self.tail.is_none() {
            return Err(io::Error::other("it holds no files of a record"));
        }
        self.remarks.push(format!(
            "{MANIFEST} is missing or damaged: the content of the other files is shown; dropped data are not \
             known"
        ));
        Ok(())
    }

    /// Manifest of the record; `None` if it is lost.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    /// Reads environments, worst wake-ups, coverage and marks, in order of time.
    pub fn each_item(&mut self, f: impl FnMut(RecordItem)) -> io::Result<()> {
        let parse = |tier, run: &WatchRun, line: &[u8]| {
            if line.starts_with(b"{\"environment\"") {
                let line: EnvironmentLine = serde_json::from_slice(line)?;
                return Ok((None, RecordItem::Environment(Box::new(line.environment))));
            }
            let line: WorstLine = serde_json::from_slice(line)?;
            let span = Some((line.at.seq, line.at.last_seq()));
            Ok((span, RecordItem::Worst(tier, run.clone(), Box::new(line))))
        };
        self.each_line(None, parse, None, f)
    }

    /// Reads the histograms of a series, in order of time.
    pub fn each_row(
        &mut self,
        series: WatchSeries,
        mut f: impl FnMut(RecordTier, &WatchRun, RowsLine),
    ) -> io::Result<()> {
        let mut wrong = 0;
        let parse = |tier, run: &WatchRun, line: &[u8]| {
            let line: RowsLine = serde_json::from_slice(line)?;
            let span = Some((line.at.seq, line.at.last_seq()));
            Ok((span, (tier, run.clone(), line)))
        };
        self.each_line(Some(series), parse, None, |(tier, run, line)| {
            let rows = line.cpus.iter().chain(&line.threads);
            wrong += rows.filter(|row| !row.layout.0.is_empty() && row.hist.total() != row.n).count() as u64;
            f(tier, &run, line);
        })?;
        if wrong > 0 {
            self.remark(format!(
                "{} of {} do not add up to their wake-ups",
                several(wrong, "histogram", "histograms"),
                series.name()
            ));
        }
        Ok(())
    }

    fn remark(&mut self, remark: String) {
        // Several series may be read, and each more than once.
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// Excludes some of the files.
    pub(super) fn drop_files(&mut self, names: &[String]) {
        self.files.retain(|file| !names.contains(&file.name));
    }

    /// Reads lines; with `wants` only the wanted ones, and only from unchanged sections.
    pub(super) fn each_line<T>(
        &mut self,
        series: Option<WatchSeries>,
        parse: impl Fn(RecordTier, &WatchRun, &[u8]) -> serde_json::Result<(Option<(u64, u64)>, T)>,
        wants: Option<&dyn Fn(&T) -> bool>,
        mut f: impl FnMut(T),
    ) -> io::Result<()> {
        if wants.is_some() {
            let of_it = self.short.iter().filter(|(of, _)| of.is_none() || *of == series);
            self.lacking = of_it.map(|(_, file)| file.clone()).collect();
        }
        let mut seen = Seen::new(self.manifest.is_none());
        let files: Vec<ListedFile> =
            self.files.iter().filter(|file| file.series == series).cloned().collect();
        for file in files {
            let mut faults = Faults::default();
            let read = read_file(&self.disk, &file, &mut seen, &mut faults, &parse, wants, &mut f);
            match read {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.remark(format!(
                        "{} was merged or dropped while it was read: read it again",
                        file.name
                    ));
                }
                read => read?,
            }
            // Up to the length in the manifest each section was ended; a writer that found less
            // states that.
            let is_cut = faults.cut && file.tier == RecordTier::Interval && self.manifest.is_some();
            if is_cut && wants.is_some() && self.lacking.iter().all(|one| one.name != file.name) {
                self.lacking.push(LackingFile { name: file.name.clone(), bytes: Some(0) });
            }
            faults.remarks(&file.name).into_iter().for_each(|remark| self.remark(remark));
            self.damaged.append(&mut faults.damaged);
        }
        let Some((name, length)) = self.tail.clone() else { return Ok(()) };
        let tag = series.map_or("worst", WatchSeries::name);
        let mut faults = Faults::default();
        let found = each_block(&self.disk, &name, length, |block| {
            for (of, line) in block.lines() {
                if of == tag || series.is_none() && of == "environment" {
                    match parse(RecordTier::Interval, &block.head.run, line) {
                        Ok((span, _)) if !seen.is_new(&block.head.run, span) => faults.repeated += 1,
                        Ok((_, item)) if wants.is_none_or(|wants| wants(&item)) => f(item),
                        Ok(_) => {}
                        Err(_) => faults.unread += 1,
                    }
                }
            }
            Ok(())
        })?;
        if found.damaged > 0 {
            self.damaged_tail = Some((name.clone(), found.damaged));
            self.remark(format!(
                "{} in {name} can no longer be read",
                several(found.damaged, "interval", "intervals")
            ));
        }
        if found.end < length {
            self.remark(format!(
                "the last {} bytes of {name} belong to an incomplete interval",
                length - found.end
            ));
        }
        faults.remarks(&name).into_iter().for_each(|remark| self.remark(remark));
        Ok(())
    }
}
