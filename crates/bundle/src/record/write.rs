//! Adds intervals to a record: each is on the disk when `append` returns, by one flush.

use std::io;
use std::path::Path;

use host::{FolderLock, RecordDisk, RecordFolder};
use model::error::{Exit, Failure, Result, meaning_of};
use model::text::quoted;
use model::units::Nanos;
use model::watch::{WatchEnvironment, WatchInterval, WatchRun};

use super::limits::KeepLimits;
use super::manifest::{MANIFEST, Manifest, ManifestFault, NEXT, is_record_file};
use super::tail::{self, BlockHead, TailContents};
use model::record::{RecordLosses, RecordTier};

/// Default of the maximum size of a record.
pub const DEFAULT_SIZE: u64 = 64 << 20;

/// Smallest size that a user may set: a tail, and two segments of each kind.
pub const LEAST_SIZE: u64 = 1 << 20;

/// A record that is being written, by one process at a time.
pub struct RecordWriter<D> {
    pub(super) disk: D,
    pub(super) manifest: Manifest,
    pub(super) limits: KeepLimits,
    /// Contents of the tail; `end` is its length.
    pub(super) tail: TailContents,
    /// Environment of the last interval, to be stated in each tail once.
    environment: Option<WatchEnvironment>,
    stated: bool,
    /// Number of intervals that were given up since the last written one.
    unwritten: u64,
    buffer: Vec<u8>,
    _lock: Option<FolderLock>,
}

/// Outcome of adding an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    pub seq: u64,
    /// Failure of a further step, which is tried again; the interval is on the disk.
    pub trouble: Option<String>,
}

impl RecordWriter<RecordFolder> {
    /// Opens the record in a folder, or begins one there; returns remarks on repairs.
    pub fn open_folder(path: &Path, size: u64) -> Result<(RecordWriter<RecordFolder>, Vec<String>)> {
        let name = quoted(path);
        if size < LEAST_SIZE {
            return Err(Failure::usage(format!(
                "invalid --size: expected at least {} MiB",
                LEAST_SIZE >> 20
            )));
        }
        let failed = |error: &io::Error| {
            Failure::of_call(
                format!("cannot write to {name}"),
                error,
                Exit::Usage,
                "choose another folder with -o",
            )
        };
        let folder = RecordFolder::make(path).map_err(|error| failed(&error))?;
        let lock = folder.lock().map_err(|error| failed(&error))?.ok_or_else(|owner| {
            let who = if owner.pid > 0 { format!("process {}", owner.pid) } else { "another onbeat".into() };
            Failure::not_permitted(format!(
                "{who} records to {name}: stop it, or choose another folder with -o"
            ))
        })?;
        let id = format!("{:016x}", host::random_u64());
        let opened = RecordWriter::open(folder, size, &id).map_err(|fault| fault.failure(&name))?;
        let (mut writer, remarks) = opened;
        writer._lock = Some(lock);
        Ok((writer, remarks.into_iter().map(|remark| format!("{name}: {remark}")).collect()))
    }
}

/// Reason why nothing can be recorded in a folder.
#[derive(Debug)]
pub enum RecordFault {
    Io(io::Error),
    Manifest(ManifestFault),
    /// A file of another program is in the folder.
    Foreign(String),
}

impl From<io::Error> for RecordFault {
    fn from(error: io::Error) -> RecordFault {
        RecordFault::Io(error)
    }
}

impl RecordFault {
    fn failure(self, folder_name: &str) -> Failure {
        match self {
            RecordFault::Io(error) | RecordFault::Manifest(ManifestFault::Io(error)) => Failure::of_call(
                format!("cannot write to {folder_name}"),
                &error,
                Exit::Usage,
                "choose another folder with -o",
            ),
            RecordFault::Manifest(ManifestFault::Newer(schema)) => Failure::usage(format!(
                "the record in {folder_name} has schema {schema:?} of a newer onbeat: use that version, or \
                 choose another folder with -o"
            )),
            RecordFault::Manifest(_) => Failure::usage(format!(
                "{MANIFEST} in {folder_name} is damaged: `onbeat report` still shows the readable part; record \
                 to another folder with -o"
            )),
            RecordFault::Foreign(name) => Failure::usage(format!(
                "{folder_name} contains {} but no record: choose a new folder with -o",
                quoted(&name)
            )),
        }
    }
}

impl<D: RecordDisk> RecordWriter<D> {
    /// Opens a record on any disk, which has no other writer; `id` names a recording that begins.
    pub fn open(
        disk: D,
        size: u64,
        id: &str,
    ) -> std::result::Result<(RecordWriter<D>, Vec<String>), RecordFault> {
        let mut writer = RecordWriter {
            disk,
            manifest: Manifest::new(id, size),
            limits: KeepLimits::of(size),
            tail: TailContents::default(),
            environment: None,
            stated: false,
            unwritten: 0,
            buffer: Vec::new(),
            _lock: None,
        };
        let mut remarks = Vec::new();
        match Manifest::read(&writer.disk) {
            Ok(manifest) => {
                writer.manifest = Manifest { size, ..manifest };
                writer.repair(&mut remarks)?;
            }
            Err(ManifestFault::Missing) => {
                // An empty tail: a kill came before the first manifest.
                let is_ours = |name: &String| {
                    name == "lock"
                        || name == NEXT
                        || is_record_file(name) && writer.disk.length(name).is_ok_and(|length| length == 0)
                };
                if let Some(other) = writer.disk.names()?.into_iter().find(|name| !is_ours(name)) {
                    return Err(RecordFault::Foreign(other));
                }
                writer.begin()?;
            }
            Err(fault) => return Err(RecordFault::Manifest(fault)),
        }
        Ok((writer, remarks))
    }

    fn begin(&mut self) -> io::Result<()> {
        self.manifest.tail = self.manifest.name("tail");
        let name = self.manifest.tail.clone();
        self.disk.append(&name, b"")?;
        self.commit()
    }

    /// Removes remains of a kill, and reads the extent of the record.
    fn repair(&mut self, remarks: &mut Vec<String>) -> io::Result<()> {
        for name in self.disk.names()? {
            if name == NEXT || is_record_file(&name) && !self.manifest.has(&name) {
                let _ = self.disk.remove(&name);
            }
        }
        let mut short = Vec::new();
        for segment in &mut self.manifest.segments {
            for file in &mut segment.files {
                let length = match self.disk.length(&file.name) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
                    length => length?,
                };
                if length > file.bytes {
                    self.disk.truncate(&file.name, file.bytes)?;
                } else if length < file.bytes {
                    short.push(format!("{} is truncated by {} bytes", file.name, file.bytes - length));
                    file.bytes = length;
                    file.ends.retain(|end| *end <= length);
                }
            }
        }
        self.manifest.losses.damaged_sections += short.len() as u64;
        remarks.append(&mut short);
        let name = self.manifest.tail.clone();
        let length = match self.disk.length(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                remarks.push(format!("{name} is missing, with the latest data"));
                self.disk.append(&name, b"")?;
                self.disk.sync_names()?;
                0
            }
            length => length?,
        };
        self.tail = tail::each_block(&self.disk, &name, length, |_| Ok(()))?;
        if self.tail.end < length {
            self.disk.truncate(&name, self.tail.end)?;
            self.manifest.losses.cut_bytes += length - self.tail.end;
            remarks.push(format!("{} bytes of an incomplete interval were removed", length - self.tail.end));
        }
        Ok(())
    }

    /// Makes the next interval state its environment in full.
    pub(super) fn restate(&mut self) {
        self.stated = false;
    }

    /// Adds an interval and flushes it. The record sets its number: `seq` of the value is ignored.
    /// A failed interval may be tried again, or given up.
    pub fn append(
        &mut self,
        run: &WatchRun,
        interval: &WatchInterval,
    ) -> std::result::Result<Appended, String> {
        let run = WatchRun { recording: self.manifest.recording.clone(), ..run.clone() };
        if interval.environment.is_some() && interval.environment != self.environment {
            (self.environment, self.stated) = (interval.environment.clone(), false);
        }
        let seq = self.next_seq(&run.boot);
        let stated = self.environment.as_ref().filter(|_| !self.stated);
        self.buffer.clear();
        let written = tail::encode(&mut self.buffer, &run, interval, seq, self.unwritten, stated)
            .and_then(|()| self.write_block());
        if let Err(error) = written {
            // Half a block is invalid; if it cannot be cut, the next reader skips it.
            let _ = self.disk.truncate(&self.manifest.tail, self.tail.end);
            return Err(self.lost(&error));
        }
        (self.stated, self.unwritten) = (true, 0);
        self.note(BlockHead {
            run,
            seq,
            mono_ns: interval.mono_ns,
            span_ns: interval.span_ns,
            wall_ns: interval.wall_ns,
            env: interval.env.clone(),
        });
        let result = if self.is_due() { self.close() } else { Ok(()) };
        let result = result.and_then(|()| self.keep());
        Ok(Appended { seq, trouble: result.err().map(|error| self.lost(&error)) })
    }

    /// Gives up an interval that could not be written: the next one counts it.
    pub fn give_up(&mut self) {
        self.unwritten += 1;
    }

    fn write_block(&mut self) -> io::Result<()> {
        self.disk.append(&self.manifest.tail, &self.buffer)?;
        self.disk.sync(&self.manifest.tail)
    }

    fn note(&mut self, head: BlockHead) {
        self.tail.blocks += 1;
        self.tail.end += self.buffer.len() as u64;
        self.tail.span_ns = Nanos(self.tail.span_ns.0.saturating_add(head.span_ns.0));
        if self.tail.first.is_none() {
            self.tail.first = Some(head.clone());
        }
        self.tail.last = Some(head);
    }

    /// Next number: they continue within a boot, however often the watch is started.
    fn next_seq(&self, boot: &str) -> u64 {
        let last = match &self.tail.last {
            Some(head) => (head.run.boot.as_str(), head.seq),
            None => (self.manifest.last.boot.as_str(), self.manifest.last.seq),
        };
        if last.0 == boot { last.1 + 1 } else { 1 }
    }

    /// True if the tail should be closed: it is long, and the next interval belongs to another
    /// hour, so that hours stay whole; or it is far too long.
    fn is_due(&self) -> bool {
        let Some(last) = &self.tail.last else { return false };
        let hour = |mono: Nanos| mono.0.div_euclid(RecordTier::Hour.span().0);
        let next = Nanos(last.mono_ns.0.saturating_add(last.span_ns.0));
        let long = self.tail.end >= self.limits.segment || self.tail.span_ns >= RecordTier::Day.span();
        long && hour(next) != hour(last.mono_ns) || self.tail.end >= self.limits.most
    }

    /// Writes the current manifest to the folder.
    pub(super) fn commit(&mut self) -> io::Result<()> {
        if self.disk.length(NEXT).is_ok() {
            self.disk.truncate(NEXT, 0)?;
        }
        let mut section = super::sections::SectionWriter::new(&self.disk, NEXT, false);
        section.json(&self.manifest)?;
        section.finish()?;
        // New files have to exist before the manifest that names them.
        self.disk.sync_names()?;
        self.disk.rename(NEXT, MANIFEST)?;
        self.disk.sync_names()
    }

    /// Account of merged and dropped lines, and of repairs.
    pub fn losses(&self) -> &RecordLosses {
        &self.manifest.losses
    }

    /// Id of the recording.
    pub fn recording(&self) -> &str {
        &self.manifest.recording
    }

    /// Returns the disk.
    pub fn into_disk(self) -> D {
        self.disk
    }

    fn lost(&self, error: &io::Error) -> String {
        let remedy = meaning_of(error).map_or("", |(_, remedy)| remedy);
        let remedy = if remedy.is_empty() { "make its folder writable again" } else { remedy };
        format!("cannot write to the record ({error}): {remedy}; data on the disk stay")
    }
}
