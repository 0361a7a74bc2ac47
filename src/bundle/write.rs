//! Writes a bundle while a run is on, so that whatever kills the run leaves what was measured.
//!
//! `run.json` is only ever replaced by rename. Space for the last one is set aside from the start, so
//! that a disk that fills up in mid-run costs block records but no statistics.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::run::{Block, Run};
use super::tail::Tail;
use crate::error::{Outcome, Trouble};
use crate::host::dir::Dir;
use crate::host::record::{Recorder, Seen};

const RUN: &str = "run.json";
const SPARE: &str = ".run.json.next";
const TAIL: &str = "tail";

/// Room for `run.json`: twice what the histograms of a noisy CPU were seen to need.
const SPARE_BYTES: u64 = 32 << 10;
const SPARE_BYTES_PER_CPU: u64 = 24 << 10;

/// A bundle being written.
pub struct Writer {
    path: PathBuf,
    dir: Dir,
    blocks: File,
    tail: File,
    spare: Option<File>,
    spare_bytes: u64,
    lines: Vec<u8>,
    document: Vec<u8>,
}

impl Writer {
    /// Makes the directory, which must not exist or be empty; refuses with the remedy.
    pub fn create(path: &Path, cpus: usize) -> Outcome<Writer> {
        let refused = |error: io::Error| refusal(path, &error);
        let dir = Dir::create(path).map_err(refused)?;
        let spare_bytes = SPARE_BYTES + SPARE_BYTES_PER_CPU * cpus as u64;
        let spare = dir.reserve(SPARE, spare_bytes).map_err(refused)?;
        let blocks = dir.new_file("blocks.jsonl").map_err(refused)?;
        let tail = dir.new_file(TAIL).map_err(refused)?;
        let lines = Vec::with_capacity(64 << 10);
        let document = Vec::with_capacity(128 << 10);
        Ok(Writer {
            path: path.to_owned(),
            dir,
            blocks,
            tail,
            spare: Some(spare),
            spare_bytes,
            lines,
            document,
        })
    }

    /// Where the bundle is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the files that were read of the machine, at their own paths, refusals and lists beside.
    pub fn host(&self, recorder: &Recorder) -> Outcome<()> {
        let failed = |error: io::Error| refusal(&self.path, &error);
        let root = self.dir.subdir("host").map_err(failed)?;
        let mut errors = Vec::new();
        let mut lists = Vec::new();
        for (path, seen) in recorder.accesses() {
            match seen {
                Seen::File(bytes) => write_at(&root, &path, &bytes).map_err(failed)?,
                Seen::Absent => {
                    push_line(&mut errors, &serde_json::json!({ "path": path, "errno": libc::ENOENT }))
                }
                Seen::Refused(errno) => {
                    push_line(&mut errors, &serde_json::json!({ "path": path, "errno": errno }))
                }
                Seen::List(names) => {
                    push_line(&mut lists, &serde_json::json!({ "path": path, "names": names }))
                }
            }
        }
        self.dir.replace("host.errors", &errors).map_err(failed)?;
        self.dir.replace("host.lists", &lists).map_err(failed)
    }

    /// Appends the blocks of a second, and the same whole to the tail.
    pub fn second(&mut self, blocks: &[Block], tails: &[Tail]) -> Result<(), String> {
        self.lines.clear();
        tails.iter().for_each(|tail| tail.encode(&mut self.lines));
        let kept = append(&mut self.tail, &self.lines);
        self.lines.clear();
        let written =
            write_lines(&mut self.lines, blocks).and_then(|()| append(&mut self.blocks, &self.lines));
        kept.and(written).map_err(|error| self.lost("block records", &error))
    }

    /// Replaces `run.json`, and empties the tail, which it now contains; `durable` has it reach the disk.
    pub fn checkpoint(&mut self, run: &Run, durable: bool) -> Result<(), String> {
        self.document.clear();
        let written =
            serialize(run, &mut self.document).and_then(|()| self.replace_run(run.complete, durable));
        written.and_then(|()| self.empty_tail()).map_err(|error| self.lost("a checkpoint", &error))
    }

    /// Writes the last `run.json` and takes away what only a run that is on needs.
    pub fn finish(mut self, run: &Run) -> Outcome<PathBuf> {
        // Records may wait in memory of the kernel; a run that says it is complete must not lose them.
        let flushed = self.blocks.sync_all();
        self.checkpoint(run, true).map_err(Trouble::internal)?;
        self.dir.remove(TAIL);
        self.dir.remove(SPARE);
        flushed.map_err(|error| Trouble::internal(self.lost("block records", &error)))?;
        Ok(self.path)
    }

    /// Takes everything away again: the run did not take place.
    pub fn abandon(self) {
        // Nothing measured is in it, and what cannot be removed hurts nobody.
        if self.dir.clear().is_ok() {
            crate::host::remove_empty_dir(&self.path);
        }
    }

    /// Writes into the space set aside and renames it; sets the same aside again before the old is given up.
    fn replace_run(&mut self, last: bool, durable: bool) -> io::Result<()> {
        let mut file = match self.spare.take() {
            Some(file) => file,
            None => self.dir.reserve(SPARE, self.spare_bytes)?,
        };
        let filled = file.write_all(&self.document).and_then(|()| file.set_len(self.document.len() as u64));
        if let Err(error) = filled.and_then(|()| if durable { file.sync_all() } else { Ok(()) }) {
            // Whatever was written is begun anew next time.
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            self.spare = Some(file);
            return Err(error);
        }
        if last {
            return self.dir.rename(SPARE, RUN, durable);
        }
        // The next run.json's space first: without it this checkpoint is the one to do without.
        match self.dir.reserve(".spare", self.spare_bytes) {
            Ok(next) => {
                self.dir.rename(SPARE, RUN, durable)?;
                self.dir.rename(".spare", SPARE, false)?;
                self.spare = Some(next);
                Ok(())
            }
            Err(error) => {
                file.set_len(0)?;
                file.seek(SeekFrom::Start(0))?;
                self.spare = Some(file);
                Err(error)
            }
        }
    }

    fn empty_tail(&mut self) -> io::Result<()> {
        self.tail.set_len(0)?;
        self.tail.seek(SeekFrom::Start(0))?;
        Ok(())
    }

    fn lost(&self, what: &str, error: &io::Error) -> String {
        format!(
            "cannot write {what} to {} ({error}): free some space; the statistics are kept in memory",
            self.path.display()
        )
    }
}

/// Serialises compactly: a run of 256 CPUs stays a few megabytes.
fn serialize(run: &Run, into: &mut Vec<u8>) -> io::Result<()> {
    serde_json::to_writer(&mut *into, run)?;
    into.push(b'\n');
    Ok(())
}

fn write_lines<T: Serialize>(lines: &mut Vec<u8>, records: &[T]) -> io::Result<()> {
    for record in records {
        serde_json::to_writer(&mut *lines, record)?;
        lines.push(b'\n');
    }
    Ok(())
}

/// Writes all with one system call; what did not fit whole is cut off again.
fn append(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let before = file.stream_position()?;
    file.write_all(bytes).inspect_err(|_| {
        // The reader copes with half a record; none is better.
        let _ = file.set_len(before);
        let _ = file.seek(SeekFrom::Start(before));
    })
}

fn push_line(lines: &mut Vec<u8>, value: &serde_json::Value) {
    lines.extend_from_slice(value.to_string().as_bytes());
    lines.push(b'\n');
}

fn write_at(root: &Dir, path: &str, bytes: &[u8]) -> io::Result<()> {
    let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut deepest: Option<Dir> = None;
    for part in above.split('/').filter(|part| !part.is_empty()) {
        deepest = Some(deepest.as_ref().unwrap_or(root).subdir(part)?);
    }
    deepest.as_ref().unwrap_or(root).new_file(name)?.write_all(bytes)
}

fn refusal(path: &Path, error: &io::Error) -> Trouble {
    let shown = path.display();
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM | libc::EROFS) => Trouble::not_permitted(format!(
            "cannot write to {shown} ({error}): choose another folder with -o"
        )),
        Some(libc::ENOTEMPTY) => {
            Trouble::usage(format!("{shown} exists and is not empty: choose a new folder with -o"))
        }
        Some(libc::ENOSPC | libc::EDQUOT) => Trouble::internal(format!(
            "no space for a run in {shown} ({error}): free some, or choose another folder with -o"
        )),
        _ => Trouble::usage(format!("cannot make the folder {shown} ({error}): choose another with -o")),
    }
}
