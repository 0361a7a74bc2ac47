//! A board whose own program is killed, and the data that it made.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bundle::record::made::MadeRecord;
use bundle::record::write::{DEFAULT_SIZE, RecordWriter};
use host::RecordFolder;
use model::rng::SplitMix64;
use model::units::Nanos;
use push::cli::{PushEnvironment, run};
use serde_json::Value;

use super::super::scene::below;
use super::runs::LaidRun;
use super::wire::{PATIENCE, Wire};
use super::{HOME, PROGRAM};

/// SIGKILL.
const KILLED: i32 = 9;
const SECOND: i64 = Nanos::SECOND.0;
/// Intervals that a board has recorded before its program is started for the first time.
const FIRST: u64 = 30;
/// Rounds after which nothing may be left.
const ROUNDS: usize = 20;

/// Five minutes of all CPUs by the second at which they began: samples, and the longest in
/// nanoseconds.
pub type MadeRows = BTreeMap<i64, (u64, i64)>;

/// A board, its program, and the expected data on the farm.
pub struct KilledBoard {
    pub name: String,
    pub wire: Wire,
    /// Rows by series.
    pub rows: BTreeMap<&'static str, MadeRows>,
    pub runs: Vec<LaidRun>,
    home: PathBuf,
    made: MadeRecord,
    writer: RecordWriter<RecordFolder>,
    recorded: u64,
    program: Option<Child>,
    /// Number of parts passed, and version of the notes, at the start of the program.
    parts: u64,
    noted: Option<(u64, u64)>,
    /// Notes as damaged by the test.
    damaged: Option<Vec<u8>>,
}

/// The board's program in this process.
pub fn push(home: &Path, arguments: &[&str]) -> u8 {
    let environment = PushEnvironment { state_home: None, home: Some(home.into()) };
    run(["onbeat-push"].iter().chain(arguments).map(OsString::from), &environment)
}

impl KilledBoard {
    /// A board with a token, a record and a run.
    pub fn enrolled(at: usize, code: &str, server: &Arc<Mutex<String>>, folder: &Path) -> KilledBoard {
        let (name, wire) = (format!("board-{at}"), Wire::to(server));
        let home = folder.join(&name);
        let url = format!("http{}{}", "://", wire.address);
        assert_eq!(push(&home, &["enrol", &url, code, "--name", &name]), 0);
        let record = home.join(".local/state/onbeat/watch");
        let (writer, _) = RecordWriter::open_folder(&record, DEFAULT_SIZE).unwrap();
        let span = Nanos(300 * SECOND);
        let (reboot, wakeups) = (20 + 9 * at as u64, 1_000 + 37 * at as u64);
        let mut board = KilledBoard {
            name,
            wire,
            rows: BTreeMap::new(),
            runs: Vec::new(),
            home,
            made: MadeRecord { cpus: 2, span, reboot, wakeups },
            writer,
            recorded: 0,
            program: None,
            parts: 0,
            noted: None,
            damaged: None,
        };
        (0..FIRST).for_each(|_| board.record());
        board.lay(LaidRun::whole);
        board
    }

    fn state(&self, path: &str) -> PathBuf {
        self.home.join(".local/state/onbeat").join(path)
    }

    fn notes(&self) -> PathBuf {
        self.state("push/sent.json")
    }

    /// Adds five minutes to the record, and to the expected data.
    pub fn record(&mut self) {
        let interval = self.made.interval(self.recorded);
        let t = interval.wall_ns.0 / SECOND;
        for of in &interval.series {
            let n = of.cpus.iter().map(|row| row.n).sum();
            let longest = of.cpus.iter().filter_map(|row| row.max_ns).max().unwrap();
            self.rows.entry(of.series.name()).or_default().insert(t, (n, longest.0));
        }
        let appended = self.writer.append(&self.made.run(self.recorded), &interval).unwrap();
        assert_eq!(appended.trouble, None);
        self.recorded += 1;
    }

    fn lay(&mut self, made: fn(&Path, String) -> LaidRun) {
        let id = format!("20261122T053837-{}-{:04}", self.name, self.runs.len());
        let run = made(&self.state("runs"), id);
        self.runs.push(run);
    }

    /// Makes new data: rows, occasionally a run, and more of the active one.
    pub fn grow(&mut self, draw: &mut SplitMix64) {
        (0..=below(draw, 3)).for_each(|_| self.record());
        if below(draw, 8) == 0 {
            self.lay(LaidRun::whole);
        }
        let begins = below(draw, 5) == 0;
        match self.runs.iter_mut().find(|run| run.is_on()) {
            Some(run) => run.grow(),
            None if begins => self.lay(LaidRun::begun),
            None => {}
        }
    }

    /// Starts its program; returns false if that runs already.
    pub fn start(&mut self) -> bool {
        if self.program.is_some() {
            return false;
        }
        (self.parts, self.noted) = (self.wire.begin().parts, host::file_version(&self.notes()));
        let log = File::options().create(true).append(true).open(self.home.join("push.log")).unwrap();
        let program = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", PROGRAM, "--include-ignored", "--nocapture"])
            .env(HOME, &self.home)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.program = Some(program.unwrap());
        true
    }

    /// Lets the program go on from its start to a point that is drawn: in its beginning, in a
    /// request or an answer, at its notes; half of the times a little further.
    pub fn wait(&self, draw: &mut SplitMix64) {
        match below(draw, 4) {
            0 => thread::sleep(Duration::from_millis(below(draw, 80))),
            1 => self.wait_for_notes(),
            _ => self.wire.wait(self.parts, 1 + below(draw, 12)),
        }
        let further = if below(draw, 2) == 0 { 0 } else { below(draw, 3_000) };
        thread::sleep(Duration::from_micros(further));
    }

    fn wait_for_notes(&self) {
        let began = Instant::now();
        while host::file_version(&self.notes()) == self.noted && began.elapsed() < PATIENCE {
            thread::sleep(Duration::from_micros(50));
        }
    }

    /// Ends its program with SIGKILL, and checks the remains; returns true for an open request, and
    /// for changed notes.
    pub fn kill(&mut self) -> (bool, bool) {
        let is_open = self.wire.passed().is_open;
        let has_noted = host::file_version(&self.notes()) != self.noted;
        let mut program = self.program.take().unwrap();
        program.kill().unwrap();
        let status = program.wait().unwrap();
        let said = || fs::read_to_string(self.home.join("push.log")).unwrap_or_default();
        assert_eq!(status.signal(), Some(KILLED), "{} ended by itself, {status}: {}", self.name, said());
        let notes = fs::read(self.notes()).ok();
        if let Some(notes) = notes.filter(|notes| Some(notes) != self.damaged.as_ref()) {
            let noted: Value = serde_json::from_slice(&notes).unwrap();
            assert_eq!(noted["board"], self.name.as_str());
        }
        assert!(self.unfinished().len() <= 1, "{:?}", self.unfinished());
        (is_open, has_noted)
    }

    /// Ends its program, if that runs.
    pub fn stop(&mut self) {
        if self.program.is_some() {
            self.kill();
        }
    }

    /// Files of the program's that were being written.
    fn unfinished(&self) -> Vec<OsString> {
        let names = fs::read_dir(self.state("push")).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with('.')).collect()
    }

    /// Removes the notes, truncates them, or leaves half of them in a separate file, as a kill in
    /// the middle of a write does; mostly none of this.
    pub fn damage(&mut self, draw: &mut SplitMix64) {
        let Ok(notes) = fs::read(self.notes()) else { return };
        match below(draw, 12) {
            0 => fs::remove_file(self.notes()).unwrap(),
            1 => {
                let cut = &notes[..below(draw, notes.len() as u64) as usize];
                fs::write(self.notes(), cut).unwrap();
                self.damaged = Some(cut.to_vec());
            }
            2 if self.unfinished().is_empty() => {
                let half = &notes[..notes.len() / 2];
                fs::write(self.state("push/.onbeat.0123456789abcdef"), half).unwrap();
            }
            _ => {}
        }
    }

    /// Ends the active run, and sends until a round finds nothing. Nothing was refused or lost, and
    /// nothing remains in the state folder.
    pub fn send_rest(&mut self) {
        while let Some(run) = self.runs.iter_mut().find(|run| run.is_on()) {
            run.grow();
        }
        self.record();
        let file = self.home.join("round.json").display().to_string();
        let told = (0..ROUNDS).find_map(|_| {
            let code = push(&self.home, &["--once", "--when", "always", "--quiet", "--json", &file]);
            assert!([0, 7].contains(&code), "{}: {code}", self.name);
            let told: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
            let short = ["refused", "lost", "dropped"].map(|field| told[field].as_u64().unwrap());
            assert_eq!(short, [0; 3], "{}: {told}", self.name);
            (code == 0 && told["rows"] == 0 && told["runs"] == 0).then_some(told)
        });
        assert!(told.is_some_and(|told| told["left"] == false), "{} comes to no end", self.name);
        let noted: Value = serde_json::from_slice(&fs::read(self.notes()).unwrap()).unwrap();
        assert_eq!(noted["refused"].as_array().map(Vec::len), Some(0), "{noted}");
        let rows = noted["rows"].as_array().unwrap();
        assert!(rows.iter().all(|of| of["left_out"].as_array().unwrap().is_empty()), "{noted}");
        assert!(self.unfinished().is_empty(), "{:?}", self.unfinished());
    }

    pub fn recorded(&self) -> u64 {
        self.recorded
    }
}

impl Drop for KilledBoard {
    fn drop(&mut self) {
        if let Some(program) = &mut self.program {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}
