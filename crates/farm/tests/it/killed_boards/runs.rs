//! Runs that appear on a board as onbeat writes them: complete, or growing between states.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Seconds of the runs in the fixtures, and the growth of an active one in seconds.
const SECONDS: usize = 9;
const STEP: usize = 3;

/// A run, with its current number of seconds.
pub struct LaidRun {
    pub id: String,
    pub place: PathBuf,
    fixture: &'static str,
    seconds: usize,
}

impl LaidRun {
    /// A run that is over.
    pub fn whole(runs: &Path, id: String) -> LaidRun {
        let run = LaidRun { place: runs.join(&id), id, fixture: "measured", seconds: SECONDS };
        run.write();
        run
    }

    /// A run that is on.
    pub fn begun(runs: &Path, id: String) -> LaidRun {
        let run = LaidRun { place: runs.join(&id), id, fixture: "hunt", seconds: STEP };
        run.write();
        run
    }

    pub fn is_on(&self) -> bool {
        self.seconds < SECONDS
    }

    /// Adds some seconds.
    pub fn grow(&mut self) {
        self.seconds += STEP;
        self.write();
    }

    /// Its samples, and the longest of them in nanoseconds, by the seconds in its folder.
    pub fn sums(&self) -> (u64, i64) {
        let text = fs::read_to_string(self.place.join("blocks.jsonl")).unwrap();
        let blocks: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let n = blocks.iter().map(|block| block["n"].as_u64().unwrap()).sum();
        (n, blocks.iter().map(|block| block["max_ns"].as_i64().unwrap()).max().unwrap())
    }

    /// The paths of its files.
    pub fn files(&self) -> Vec<&'static str> {
        let all = ["run.json", "blocks.jsonl", "events/spikes.jsonl"];
        all.into_iter().filter(|file| self.place.join(file).exists()).collect()
    }

    /// Writes its files, the document last, and atomically.
    fn write(&self) {
        let from =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs").join(self.fixture);
        fs::create_dir_all(self.place.join("events")).unwrap();
        let spikes = "events/spikes.jsonl";
        if from.join(spikes).exists() && !self.place.join(spikes).exists() {
            fs::copy(from.join(spikes), self.place.join(spikes)).unwrap();
        }
        let blocks = fs::read_to_string(from.join("blocks.jsonl")).unwrap();
        assert_eq!(blocks.lines().count(), SECONDS);
        let blocks: Vec<&str> = blocks.split_inclusive('\n').take(self.seconds).collect();
        let mut document: Value =
            serde_json::from_str(&fs::read_to_string(from.join("run.json")).unwrap()).unwrap();
        self.cut(&mut document, &blocks);
        fs::write(self.place.join("blocks.jsonl"), blocks.concat()).unwrap();
        fs::write(self.place.join(".next"), document.to_string()).unwrap();
        fs::rename(self.place.join(".next"), self.place.join("run.json")).unwrap();
    }

    /// Reduces a document to its first seconds.
    fn cut(&self, run: &mut Value, blocks: &[&str]) {
        run["id"] = self.id.as_str().into();
        if !self.is_on() {
            return;
        }
        (run["complete"], run["ended"]) = (false.into(), "".into());
        let sum = |field: &str| {
            let of = |line: &&str| serde_json::from_str::<Value>(line).unwrap()[field].as_u64().unwrap();
            blocks.iter().map(of).sum::<u64>()
        };
        let (n, missed) = (sum("n"), sum("missed"));
        let cpu = &mut run["cpus"][0];
        for (field, count) in [("cycles", n), ("missed", missed), ("scheduled", n + missed)] {
            cpu[field] = count.into();
        }
        for quantile in ["p50_ns", "p90_ns", "p99_ns", "p999_ns", "p9999_ns"] {
            cpu[quantile] = Value::Null;
        }
        first_of(&mut cpu["histogram"], n);
        first_of(&mut cpu["deadline_histogram"], n + missed);
    }
}

/// Leaves a histogram the first of its samples.
fn first_of(histogram: &mut Value, mut left: u64) {
    let rows = histogram.as_array_mut().unwrap();
    for row in rows.iter_mut() {
        let count = row[2].as_u64().unwrap().min(left);
        row[2] = count.into();
        left -= count;
    }
    rows.retain(|row| row[2] != 0);
    assert_eq!(left, 0, "the histogram has fewer samples than the seconds");
}
