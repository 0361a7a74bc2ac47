//! Reads a bundle, complete or truncated at any byte.
//!
//! A run that was killed is read as of its last checkpoint, then the blocks of its tail are added,
//! up to its last second with all sums correct.

use std::io;
use std::path::{Path, PathBuf};

use super::five_minutes::{FIVE_MINUTES, FiveMinuteLine, FiveMinuteLineKind};
use super::foreign;
use super::manifest::{DEEPEST, MOST_FILES};
use super::{block_line, explained, folder_of, peak_line, read_ahead, recover};
use model::error::{Exit, Failure, Result};
use model::run::{Block, Peak, Run, SCHEMA};
use model::vocabulary::Command;

use model::sort::CompactSort;
use model::text::{quoted, several};

/// Maximum size of `run.json`: three thousand CPUs at 40 KiB each.
const RUN_LIMIT: u64 = 128 << 20;

/// Maximum size of a tail: ten seconds of as many CPUs.
const TAIL_LIMIT: u64 = 256 << 20;

/// Maximum length of a line of the block records; a longer one is counted as unreadable.
const LINE_LIMIT: usize = 1 << 20;

/// Maximum size of a capture's short files: a configuration and many values.
const MOST_BYTES: usize = 64 << 20;
/// Maximum length of a value; a longer one is a text.
const SHORT: usize = 4 << 10;

/// A bundle as read: the run, recovered up to its last second, and the paths of its blocks.
pub struct Bundle {
    /// The run; `complete` is false if it was killed.
    pub run: Run,
    /// Repairs and omissions, as text; empty for a complete bundle.
    pub remarks: Vec<String>,
    blocks: PathBuf,
    rows: PathBuf,
}

impl Bundle {
    /// Opens a bundle directory, or the `run.json` in it.
    pub fn open(path: &Path) -> Result<Bundle> {
        let dir = folder_of(path);
        let file = dir.join("run.json");
        let bytes =
            host::read_user_file(&file, RUN_LIMIT).map_err(|error| unreadable(path, &file, &error))?;
        let run = parse_run(&bytes).map_err(|what| not_read(&file, &what))?;
        let (blocks, rows) = (dir.join("blocks.jsonl"), dir.join(FIVE_MINUTES));
        let mut bundle = Bundle { run, remarks: Vec::new(), blocks, rows };
        if !bundle.run.complete {
            bundle.recover(&dir.join("tail"))?;
        }
        if bundle.run.command == Command::Hunt {
            bundle.put_spikes_back(&dir)?;
        }
        Ok(bundle)
    }

    /// Reads the block records in the order in which they were written, one at a time.
    ///
    /// Returns the number of lines that could not be read: a last one cut short, or damaged ones.
    pub fn each_block(&self, f: impl FnMut(&Block)) -> Result<u64> {
        let Some(mut lines) = open_lines(&self.blocks)? else { return Ok(0) };
        let mut unread = 0;
        let next = |block: &mut Block| {
            while let Some(line) = lines.next_line()? {
                if block_line::read(line, block) {
                    return Ok(true);
                }
                unread += 1;
            }
            Ok(false)
        };
        read_ahead::each_block(next, f).map_err(|error| unreadable(&self.blocks, &self.blocks, &error))?;
        Ok(unread + lines.too_long())
    }

    /// Like [`Bundle::each_block`], only with the largest latencies: a tenth of the time.
    pub fn each_peak(&self, mut f: impl FnMut(&Peak)) -> Result<u64> {
        each_line(&self.blocks, peak_line::parse, |peak: Peak| f(&peak))
    }

    /// Reads the five-minute histograms in the order of writing; older runs have none.
    pub fn each_five_minutes(&self, mut f: impl FnMut(FiveMinuteLine)) -> Result<u64> {
        let mut foreign = 0;
        let unread = each_line(&self.rows, json, |line: FiveMinuteLine| match line.kind() {
            FiveMinuteLineKind::Rows => f(line),
            FiveMinuteLineKind::Header => {}
            FiveMinuteLineKind::Foreign => foreign += 1,
        })?;
        Ok(unread + foreign)
    }

    fn put_spikes_back(&mut self, folder: &Path) -> Result<()> {
        let unread = explained::put_back(folder, &mut self.run).map_err(|error| {
            Failure::usage(format!("cannot read the explained spikes of {}: {error}", folder.display()))
        })?;
        if unread > 0 {
            let lines = several(unread, "explained spike", "explained spikes");
            self.remarks.push(format!("{lines} could not be read"));
        }
        Ok(())
    }

    fn recover(&mut self, tail: &Path) -> Result<()> {
        let before = self.run.elapsed_ns;
        let bytes = match host::read_user_file(tail, TAIL_LIMIT) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(unreadable(tail, tail, &error)),
        };
        let found = recover::replay(&mut self.run, &bytes);
        let reach = match (self.run.elapsed_ns, before) {
            (Some(now), Some(before)) if now > before => {
                format!(", its last {} from block records", now - before)
            }
            _ => String::new(),
        };
        let length = self.run.elapsed_ns.unwrap_or_default();
        self.remarks.push(format!(
            "the run is incomplete: it was killed or is still in progress; {length} of it are stored{reach}"
        ));
        self.remarks.extend(found.remarks());
        self.run.check().map_err(|what| Failure::usage(format!("the bundle contradicts itself: {what}")))
    }
}

/// Files of the kernel in the bundle, by path, that are short or a configuration; links out of it
/// are not followed.
pub fn host_files(path: &Path) -> Vec<(String, Vec<u8>)> {
    // Opened at the bundle's folder, because its `host` may be a link that leads elsewhere.
    let host = host::MachineFiles::folder(folder_of(path));
    let (mut files, mut folders, mut seen, mut bytes_read) = (Vec::new(), vec![(String::new(), 0)], 0, 0);
    while let Some((folder, depth)) = folders.pop() {
        let names = host.list(&format!("/host{folder}/.")).known().cloned().unwrap_or_default();
        for path in names.iter().map(|name| format!("{folder}/{name}")) {
            seen += 1;
            if seen > MOST_FILES || depth >= DEEPEST || bytes_read > MOST_BYTES {
                break;
            }
            match host.read(&format!("/host{path}")) {
                model::fact::Fact::Known(bytes) => {
                    bytes_read += bytes.len();
                    if bytes.len() <= SHORT || path.contains("config") {
                        files.push((path, bytes));
                    }
                }
                _ => folders.push((path, depth + 1)),
            }
        }
    }
    files.compact_sort();
    files
}

/// Maximum nesting: a run is six levels deep, and later versions will not be much deeper.
const DEPTH_LIMIT: usize = 64;

/// Depth of nested brackets and braces, outside strings.
fn depth(bytes: &[u8]) -> usize {
    let (mut now, mut deepest, mut string, mut escaped) = (0usize, 0, false, false);
    for &byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if string => escaped = true,
            b'"' => string = !string,
            b'[' | b'{' if !string => {
                now += 1;
                deepest = deepest.max(now);
            }
            b']' | b'}' if !string => now = now.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Refuses a bundle whose `run.json` this version does not read, for readers of its other files; a
/// capture has none.
pub fn check_run(path: &Path) -> Result<()> {
    let file = folder_of(path).join("run.json");
    match host::read_user_file(&file, RUN_LIMIT) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(unreadable(path, &file, &error)),
        Ok(bytes) => check_schema(&bytes).map_err(|what| not_read(&file, &what)),
    }
}

fn not_read(file: &Path, what: &str) -> Failure {
    Failure::usage(format!("{} is not a run that this version reads: {what}", quoted(file)))
}

/// Parses and checks `run.json`; the error states what was expected.
pub fn parse_run(bytes: &[u8]) -> Result<Run, String> {
    // The schema first: a newer run may differ in any other field.
    check_schema(bytes)?;
    let run: Run = serde_json::from_slice(bytes).map_err(|error| damaged(&error))?;
    run.check().map_err(|what| format!("it contradicts itself ({what}): use another copy of the bundle"))?;
    Ok(run)
}

/// Checks that a document is whole, and of this version's schema.
fn check_schema(bytes: &[u8]) -> Result<(), String> {
    #[derive(serde::Deserialize)]
    struct Schema {
        schema: String,
    }
    if depth(bytes) > DEPTH_LIMIT {
        return Err(format!("it is nested more than {DEPTH_LIMIT} deep"));
    }
    let schema = serde_json::from_slice::<Schema>(bytes).map_err(|error| damaged(&error))?.schema;
    if schema != SCHEMA {
        let newer =
            schema.strip_prefix("onbeat.run/").and_then(|n| n.parse::<u64>().ok()).is_some_and(|n| n > 1);
        let remedy = if newer {
            "it was written by a newer onbeat, use that version"
        } else {
            "expected a run of onbeat"
        };
        return Err(format!("schema {schema:?} instead of {SCHEMA:?}: {remedy}"));
    }
    Ok(())
}

/// Fault of a `run.json`, with the source of a whole one.
fn damaged(error: &serde_json::Error) -> String {
    let what = if error.is_eof() { "it is cut short" } else { "it is damaged" };
    format!("{what} ({error}): copy the bundle again from its origin")
}

/// Parses a line of JSON.
fn json<T: serde::de::DeserializeOwned>(line: &[u8]) -> Option<T> {
    serde_json::from_slice(line).ok()
}

/// Lines of a file; `None` if it is missing.
fn open_lines(path: &Path) -> Result<Option<host::Lines>> {
    match host::Lines::open(path, LINE_LIMIT) {
        Ok(lines) => Ok(Some(lines)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(path, path, &error)),
    }
}

/// Parses a file of lines one by one; a missing file has none. Returns how many were unreadable.
fn each_line<T>(path: &Path, parse: impl Fn(&[u8]) -> Option<T>, mut f: impl FnMut(T)) -> Result<u64> {
    let Some(mut lines) = open_lines(path)? else { return Ok(0) };
    let mut unread = 0;
    loop {
        match lines.next_line() {
            Ok(Some(line)) => match parse(line) {
                Some(record) => f(record),
                None => unread += 1,
            },
            Ok(None) => return Ok(unread + lines.too_long()),
            Err(error) => return Err(unreadable(path, path, &error)),
        }
    }
}

fn unreadable(path: &Path, file: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound if super::capture::is_capture(path) => Failure::usage(format!(
            "{} is a capture without a run: use `onbeat audit --bundle`",
            quoted(path)
        )),
        io::ErrorKind::NotFound if super::record::read::is_record(path) => Failure::usage(format!(
            "{} is a record of `onbeat watch` without a run: use `onbeat report`",
            quoted(path)
        )),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory if is_file(path) => {
            Failure::usage(match known_content(path) {
                Some(what) => format!("{}: {what}", quoted(path)),
                None => format!(
                    "{} is a file, not a bundle: convert a result of cyclictest with `onbeat import`; \
                     `onbeat bounds` reads a list of block maxima",
                    quoted(path)
                ),
            })
        }
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Failure::usage(format!(
            "{} is not a bundle: expected a folder with run.json, made by `onbeat measure -o`",
            quoted(path)
        )),
        _ => {
            let remedy = match error.kind() {
                io::ErrorKind::PermissionDenied => "run as its owner",
                _ => "expected a bundle, made by `onbeat measure -o`",
            };
            Failure::of_call(format!("cannot read {}", quoted(file)), error, Exit::Usage, remedy)
        }
    }
}

/// Kind of a file that is not a bundle, and the command that reads it.
fn known_content(path: &Path) -> Option<String> {
    let bytes = host::read_user_file(path, foreign::FILE_LIMIT as u64).ok()?;
    foreign::known_file(&bytes)
}

fn is_file(path: &Path) -> bool {
    host::identity(path).is_some() && !host::is_dir(path).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_counted_outside_strings() {
        for (text, wanted) in [("[[{}]]", 3), ("[\"[[\\\"[[\", []]", 2), ("]]]", 0), ("", 0)] {
            assert_eq!(depth(text.as_bytes()), wanted, "{text}");
        }
        let deep = format!("{{\"schema\":\"{SCHEMA}\",\"x\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(parse_run(deep.as_bytes()).expect_err("too deep").contains("nested"));
    }

    #[test]
    fn other_schemas_are_refused_by_name() {
        let refused = |text: &str| parse_run(text.as_bytes()).expect_err("not a run");
        assert!(refused(r#"{"schema":"onbeat.run/2"}"#).contains("newer onbeat"));
        assert!(refused(r#"{"schema":"other"}"#).contains("expected a run of onbeat"));
        for (text, what) in [("", "cut short"), ("{\"schema\":", "cut short"), ("{]", "damaged")] {
            let message = refused(text);
            assert!(message.contains(what) && message.contains("copy the bundle again"), "{text}: {message}");
        }
        assert!(refused(&format!("{}{}", "[".repeat(10_000), "]".repeat(10_000))).len() < 200);
    }

    #[test]
    fn a_run_of_another_version_is_refused_for_its_machine_too() {
        let dir = tempfile::tempdir().unwrap();
        assert!(check_run(dir.path()).is_ok(), "a capture has none");
        for (text, why) in [
            ("{\"schema\":\"onbeat.run/2\"}", "newer onbeat"),
            ("{\"schema\":\"onbeat.run/1\",", "cut short"),
            ("[]", "damaged"),
        ] {
            host::write_user_file(&dir.path().join("run.json"), text.as_bytes()).unwrap();
            let failure = check_run(dir.path()).expect_err("a refusal");
            assert!(failure.exit == Exit::Usage && failure.message.contains(why), "{}", failure.message);
        }
        host::write_user_file(&dir.path().join("run.json"), b"{\"schema\":\"onbeat.run/1\"}").unwrap();
        assert!(check_run(dir.path()).is_ok());
    }
}
