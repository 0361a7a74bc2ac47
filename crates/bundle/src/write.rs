//! Writes a bundle during a run, so that a run killed at any moment leaves its measurements.
//!
//! `run.json` is only ever replaced by rename. Space for the last one is reserved from the start,
//! so that a disk that fills up during the run costs block records but no statistics.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::document::Document;
use super::events::Events;
use super::explained::Explained;
use super::five_minutes::{FIVE_MINUTES, FiveMinuteSums};
use super::host_files::HostFiles;
use super::tail::Tail;
use host::CreatedDirs;
use host::access::AccessRecorder;
use host::dir::Dir;
use model::error::{Exit, Failure, Result, meaning_of};
use model::run::{Block, Run};
use model::text::quoted;

const RUN: &str = "run.json";
const SPARE: &str = ".run.json.next";
const TAIL: &str = "tail";
const BLOCKS: &str = "blocks.jsonl";
const NEXT_SPARE: &str = ".spare";

/// Space for `run.json` without its CPUs.
const SPARE_BYTES: u64 = 32 << 10;
/// Space for a CPU: twice the largest observed need of a noisy CPU's histograms.
const SPARE_BYTES_PER_CPU: u64 = 24 << 10;

/// Size of the part of a document that is written with one system call.
const AT_ONCE: usize = 64 << 10;

/// A bundle being written. Dropped before its first checkpoint, it removes what it created.
pub struct BundleWriter {
    path: PathBuf,
    dir: Dir,
    /// Directories that onbeat may remove.
    created_dirs: CreatedDirs,
    /// True if it contains a run.
    has_run: bool,
    host: HostFiles,
    blocks: Option<File>,
    five_minutes: FiveMinuteSums,
    /// Created with its first line.
    rows: Option<File>,
    tail: Option<File>,
    spare: Option<File>,
    spare_bytes: u64,
    lines: Vec<u8>,
}

impl BundleWriter {
    /// Creates the directory, which must not exist or be empty; refuses with the remedy.
    pub fn create(path: &Path, cpus: usize) -> Result<BundleWriter> {
        let (dir, created_dirs) = Dir::create(path).map_err(|error| refusal(path, &error))?;
        let mut writer = BundleWriter {
            path: path.to_owned(),
            dir,
            created_dirs,
            has_run: false,
            host: HostFiles::default(),
            blocks: None,
            five_minutes: FiveMinuteSums::default(),
            rows: None,
            tail: None,
            spare: None,
            spare_bytes: SPARE_BYTES + SPARE_BYTES_PER_CPU * cpus as u64,
            lines: Vec::with_capacity(64 << 10),
        };
        writer.make_files().map_err(|error| refusal(path, &error))?;
        Ok(writer)
    }

    fn make_files(&mut self) -> io::Result<()> {
        self.spare = Some(self.dir.reserve(SPARE, self.spare_bytes)?);
        self.blocks = Some(self.dir.new_file(BLOCKS)?);
        self.tail = Some(self.dir.new_file(TAIL)?);
        Ok(())
    }

    /// Writes a first `run.json`, so that a kill at any moment leaves a bundle.
    pub fn begin(&mut self, run: &Run) -> Result<()> {
        self.five_minutes = FiveMinuteSums::of(run);
        let written = self.dir.new_file(RUN).and_then(|mut file| file.write_all(&serde_json::to_vec(run)?));
        written.map_err(|error| refusal(&self.path, &error))
    }

    /// Path of the bundle.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the machine's files: at their paths the sources of the run's facts, next to them the
    /// texts that its audit needs beyond these, refusals and lists.
    pub fn host(&mut self, recorder: &AccessRecorder, gathered: &BTreeSet<String>) -> Result<()> {
        let written = self.host.write(&self.dir, recorder, &|path| gathered.contains(path));
        written.map_err(|error| refusal(&self.path, &error))
    }

    /// Creates the files for the events around spikes.
    pub fn events(&mut self) -> Result<Events> {
        Events::create(&self.dir).map_err(|error| refusal(&self.path, &error))
    }

    /// Appends the blocks of a second, the same in full to the tail, and the five minutes that
    /// ended with it.
    pub fn second(&mut self, blocks: &[Block], tails: &[Tail]) -> Result<(), String> {
        self.lines.clear();
        tails.iter().for_each(|tail| tail.encode(&mut self.lines));
        let tail_result = append(self.tail.as_mut(), &self.lines);
        self.lines.clear();
        let written =
            write_lines(&mut self.lines, blocks).and_then(|()| append(self.blocks.as_mut(), &self.lines));
        self.lines.clear();
        let added = self.five_minutes.add(blocks, tails, &mut self.lines).and_then(|()| self.append_rows());
        const SINCE: &str = "; from then on only the sums of the run are stored";
        tail_result.and(written).map_err(|error| self.lost("block records", &error) + SINCE)?;
        added.map_err(|error| self.lost("the five-minute histograms", &error) + SINCE)
    }

    fn append_rows(&mut self) -> io::Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        if self.rows.is_none() {
            self.rows = Some(self.dir.new_file(FIVE_MINUTES)?);
        }
        append(self.rows.as_mut(), &self.lines)
    }

    /// Replaces `run.json`, and empties the tail, which it now contains.
    pub fn checkpoint(&mut self, run: &Run) -> Result<(), String> {
        let placed = self.replace_run(&Document::of(run, &run.spikes), run.complete);
        placed.and_then(|()| self.empty_tail()).map_err(|error| self.lost("a checkpoint", &error))
    }

    /// Writes the last `run.json` with its spikes, from memory or a file, and removes files that
    /// only a running measurement needs.
    pub fn finish<S: Serialize>(self, run: &Run, spikes: &S) -> Result<PathBuf> {
        self.finish_or(run, spikes, Run::clone)
    }

    /// Like [`BundleWriter::finish`]; if there is no space for the list, writes a document without
    /// it, with the run that `left` makes.
    pub fn finish_or<S: Serialize>(
        mut self,
        run: &Run,
        spikes: &S,
        left: impl FnOnce(&Run) -> Run,
    ) -> Result<PathBuf> {
        // Records may wait in the kernel's memory; a run marked as complete must not lose them.
        self.lines.clear();
        let last = self.five_minutes.finish(&mut self.lines).and_then(|()| self.append_rows());
        let files = [&self.blocks, &self.rows];
        let flushed = files.into_iter().flatten().try_for_each(File::sync_all).and(last);
        let placed = match self.replace_run(&Document::of(run, spikes), true) {
            Ok(()) => {
                Explained::remove(&self.dir);
                Ok(())
            }
            // Spikes take most of the space: the statistics alone may still fit, and the spikes
            // stay in their file.
            Err(error) => self.replace_run(&Document::of(&left(run), &[(); 0]), true).map_err(|_| error),
        };
        self.dir.remove(SPARE);
        // The tail is what the last checkpoint lacks: it stays if that one could not be replaced.
        const AS_OF: &str = "; it is stored as of its last checkpoint";
        placed.map_err(|error| Failure::internal(self.lost("the end of the run", &error) + AS_OF))?;
        self.dir.remove(TAIL);
        flushed.map_err(|error| Failure::internal(self.lost("block records", &error)))?;
        Ok(self.path.clone())
    }

    /// Removes the files of a run that did not take place.
    pub fn discard(mut self) {
        self.has_run = false;
    }

    /// Writes the document into the reserved space and renames it.
    ///
    /// The space for the next one is reserved first: if that fails, the old space is left for the
    /// run's last document, and this checkpoint is skipped.
    fn replace_run(&mut self, document: &impl Serialize, last: bool) -> io::Result<()> {
        let next = if last {
            None
        } else {
            // A file left over from a failed rename would block all others.
            self.dir.remove(NEXT_SPARE);
            Some(self.dir.reserve(NEXT_SPARE, self.spare_bytes)?)
        };
        let placed = self.fill_spare(document).and_then(|()| self.dir.rename(SPARE, RUN, true));
        if placed.is_ok() {
            // The spare is now run.json, and must not be written to any more.
            (self.has_run, self.spare) = (true, None);
        }
        match next {
            Some(next) if placed.is_ok() && self.dir.rename(NEXT_SPARE, SPARE, false).is_ok() => {
                self.spare = Some(next);
            }
            // Without reserved space, the next document has to find some.
            Some(_) => self.dir.remove(NEXT_SPARE),
            None => {}
        }
        placed
    }

    /// Overwrites from the start, so that no reserved block is given up before all is written. A
    /// document may be longer than the memory: it is written while it is serialized.
    fn fill_spare(&mut self, document: &impl Serialize) -> io::Result<()> {
        let file = match &mut self.spare {
            Some(file) => file,
            spare => spare.insert(self.dir.reserve(SPARE, self.spare_bytes)?),
        };
        file.seek(SeekFrom::Start(0))?;
        let mut to = BufWriter::with_capacity(AT_ONCE, &mut *file);
        serde_json::to_writer(&mut to, document)?;
        to.write_all(b"\n")?;
        to.flush()?;
        drop(to);
        let length = file.stream_position()?;
        file.set_len(length)?;
        // A rename may reach the disk before the contents of the file do.
        file.sync_all()
    }

    fn empty_tail(&mut self) -> io::Result<()> {
        let Some(tail) = &mut self.tail else { return Ok(()) };
        tail.set_len(0)?;
        tail.seek(SeekFrom::Start(0)).map(drop)
    }

    fn lost(&self, what: &str, error: &io::Error) -> String {
        let remedy = meaning_of(error).map_or("", |(_, remedy)| remedy);
        let remedy = if remedy.is_empty() { "make its folder writable again" } else { remedy };
        format!("cannot write {what} to {} ({error}): {remedy}", quoted(&self.path))
    }
}

fn write_lines<T: Serialize>(lines: &mut Vec<u8>, records: &[T]) -> io::Result<()> {
    for record in records {
        serde_json::to_writer(&mut *lines, record)?;
        lines.push(b'\n');
    }
    Ok(())
}

/// Writes all with one system call; an incomplete write is truncated again.
fn append(file: Option<&mut File>, bytes: &[u8]) -> io::Result<()> {
    let Some(file) = file else { return Ok(()) };
    let before = file.stream_position()?;
    file.write_all(bytes).inspect_err(|_| {
        // The reader copes with half a record; none is better.
        let _ = file.set_len(before);
        let _ = file.seek(SeekFrom::Start(before));
    })
}

impl Drop for BundleWriter {
    /// Removes what this writer created: a run that was refused leaves nothing.
    fn drop(&mut self) {
        if self.has_run {
            return;
        }
        for name in [RUN, SPARE, NEXT_SPARE, TAIL, BLOCKS, FIVE_MINUTES] {
            self.dir.remove(name);
        }
        Events::remove(&self.dir);
        self.host.remove(&self.dir);
        self.created_dirs.undo();
    }
}

/// Reason why a bundle cannot be written there, with the remedy.
pub(super) fn refusal(path: &Path, error: &io::Error) -> Failure {
    let name = quoted(path);
    match error.raw_os_error() {
        Some(libc::ENOTEMPTY) => {
            Failure::usage(format!("{name} exists and is not empty: choose a new folder with -o"))
        }
        _ => {
            let what = format!("cannot create the bundle {name}");
            Failure::of_call(what, error, Exit::Usage, "choose another folder with -o")
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)] // What was written has to be read.

    use super::*;
    use std::fs;

    fn run(id: &str, complete: bool) -> Run {
        Run { id: id.into(), complete, ..Run::default() }
    }

    #[test]
    fn a_second_rename_that_fails_costs_the_spare_and_never_writes_into_the_run() {
        let top = tempfile::tempdir().unwrap();
        let place = top.path().join("bundle");
        let at = |name: &str| place.join(name);
        let mut writer = BundleWriter::create(&place, 1).unwrap();
        writer.begin(&run("first", false)).unwrap();
        // Like after the rename to run.json: then no open file leads to it.
        writer.replace_run(&run("second", true), true).unwrap();
        assert!(writer.spare.is_none() && !at(SPARE).exists());
        let linked = top.path().join("linked");
        fs::hard_link(at(RUN), &linked).unwrap();
        // Without a spare, checkpoints continue, and each is a new file.
        writer.checkpoint(&run("third", false)).unwrap();
        assert!(fs::read_to_string(&linked).unwrap().contains("second"), "run.json was written in place");
        assert!(fs::read_to_string(at(RUN)).unwrap().contains("third"));
        assert!(writer.spare.is_some() && at(SPARE).exists() && !at(NEXT_SPARE).exists());
        writer.finish(&run("last", true), &[(); 0]).unwrap();
        assert!(!at(SPARE).exists() && !at(TAIL).exists());
    }

    #[test]
    fn a_tail_that_cannot_be_emptied_does_not_affect_a_complete_run() {
        let top = tempfile::tempdir().unwrap();
        let place = top.path().join("bundle");
        let mut writer = BundleWriter::create(&place, 1).unwrap();
        writer.begin(&run("first", false)).unwrap();
        // Open for reading only: ftruncate(2) fails.
        writer.tail = Some(File::open(place.join(TAIL)).unwrap());
        assert!(writer.checkpoint(&run("second", false)).is_err());
        writer.finish(&run("last", true), &["a spike"]).unwrap();
        let names: Vec<_> = fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(!names.iter().any(|name| name == TAIL || name == SPARE), "{names:?}");
        let text = fs::read_to_string(place.join(RUN)).unwrap();
        assert!(text.contains("last") && text.contains("a spike"), "{text}");
    }
}
