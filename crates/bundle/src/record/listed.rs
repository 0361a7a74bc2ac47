//! Reads a file of lines section by section; lines that are wanted unchanged come only from
//! sections whose checksum is right.

use std::io;

use host::RecordDisk;
use model::record::RecordTier;
use model::watch::{WatchRun, WatchSeries};

use super::damage::DamagedSection;
use super::faults::{Faults, Seen};
use super::lines::{HeaderLine, ROWS_SCHEMA, WATCH_SCHEMA};
use super::sections::{DiskFile, SectionLine, SectionReader};

/// A file of lines.
#[derive(Clone, Debug)]
pub struct ListedFile {
    pub name: String,
    pub tier: RecordTier,
    /// Series of the file; `None` for worst wake-ups.
    pub series: Option<WatchSeries>,
    /// Ranges that are read separately, so that damage does not hide the following ones.
    pub stretches: Vec<(u64, u64)>,
    /// Length up to which sections were ended and complete.
    pub sealed: u64,
}

/// Section that is being read.
struct OpenSection<'a> {
    file: &'a ListedFile,
    from: u64,
    /// End of the range that contains it.
    to: u64,
    /// True if it is unchanged; `None` until that was checked.
    is_proven: Option<bool>,
    left_out: DamagedSection,
    unread: u64,
}

impl<'a> OpenSection<'a> {
    fn new(file: &'a ListedFile, from: u64, to: u64) -> OpenSection<'a> {
        OpenSection { file, from, to, is_proven: None, left_out: DamagedSection::default(), unread: 0 }
    }

    /// True if it was ended when it was written: without its end line it is damaged.
    fn is_sealed(&self) -> bool {
        self.to <= self.file.sealed
    }

    /// True if it is unchanged, or was cut off before its end, as by a loss of power.
    fn is_proven(&mut self, disk: &impl RecordDisk) -> io::Result<bool> {
        if let Some(known) = self.is_proven {
            return Ok(known);
        }
        let file = self.file;
        let mut lines = SectionReader::new(DiskFile::new(disk, &file.name, self.from, self.to), false);
        let found = loop {
            match lines.next_line()? {
                Some(SectionLine::Line(_)) => {}
                Some(SectionLine::Intact) => break true,
                Some(SectionLine::Changed) => break false,
                Some(SectionLine::Cut) | None => break !self.is_sealed(),
            }
        };
        self.is_proven = Some(found);
        Ok(found)
    }

    /// Adds the section, which has ended and is changed, to the faults.
    fn tell(self, faults: &mut Faults) {
        let rows = self.left_out.rows + self.unread;
        if rows > 0 {
            let (file, from) = (self.file.name.clone(), self.from);
            faults.damaged.push(DamagedSection { file, from, rows, ..self.left_out });
        }
    }
}

/// Reads a file. With `wants` only wanted values are handed over.
pub fn read_file<D: RecordDisk, T>(
    disk: &D,
    file: &ListedFile,
    seen: &mut Seen,
    faults: &mut Faults,
    parse: &impl Fn(RecordTier, &WatchRun, &[u8]) -> serde_json::Result<(Option<(u64, u64)>, T)>,
    wants: Option<&dyn Fn(&T) -> bool>,
    f: &mut impl FnMut(T),
) -> io::Result<()> {
    for &(from, to) in &file.stretches {
        let packed = file.series.is_none();
        let mut sections = SectionReader::new(DiskFile::new(disk, &file.name, from, to), packed);
        let schema = if packed { WATCH_SCHEMA } else { ROWS_SCHEMA };
        let (mut run, mut known) = (WatchRun::default(), true);
        let mut section = OpenSection::new(file, from, to);
        while let Some(next) = sections.next_line()? {
            let line = match next {
                SectionLine::Line(line) => line,
                SectionLine::Cut if wants.is_none() || !section.is_sealed() => {
                    faults.cut = true;
                    continue;
                }
                end => {
                    let is_changed = end != SectionLine::Intact;
                    let following = OpenSection::new(file, from + sections.read(), to);
                    let ended = std::mem::replace(&mut section, following);
                    if is_changed && wants.is_some() {
                        ended.tell(faults);
                    } else {
                        faults.changed += u64::from(is_changed);
                    }
                    continue;
                }
            };
            if line.starts_with(b"{\"schema\"") {
                match serde_json::from_slice::<HeaderLine>(line) {
                    Ok(header) => {
                        known = header.schema == schema;
                        faults.newer += u64::from(!known);
                        run = header.run;
                    }
                    Err(_) => {
                        faults.unread += 1;
                        // The following lines are of an unknown boot.
                        run = WatchRun::default();
                    }
                }
            } else if !known {
                section.unread += 1;
            } else {
                match parse(file.tier, &run, line) {
                    Ok((span, item)) => {
                        let is_wanted = wants.is_none_or(|wants| wants(&item));
                        if is_wanted && wants.is_some() && !section.is_proven(disk)? {
                            section.left_out.note(&run, line);
                        } else if !seen.is_new(&run, span) {
                            faults.repeated += 1;
                        } else if is_wanted {
                            f(item);
                        }
                    }
                    Err(_) => {
                        faults.unread += 1;
                        section.unread += 1;
                    }
                }
            }
        }
    }
    Ok(())
}
