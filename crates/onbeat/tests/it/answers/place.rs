//! Synthetic inputs in a temporary folder, the program run on them, and its parsed output.

use std::path::PathBuf;
use std::process::{Command, Output};

use model::histogram::Bucket;
use model::run::{Block, CpuRun, Run, SCHEMA, Worst};
use model::units::{Cpu, Nanos};
use serde_json::Value;
use stats::rng::Rng;
use tempfile::TempDir;

pub const SECOND: i64 = 1_000_000_000;

pub fn onbeat(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onbeat")).args(args).output().unwrap()
}

pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

pub fn json(args: &[&str], expected: i32) -> Value {
    let output = onbeat(&[args, &["--json", "-"]].concat());
    assert_eq!(code(&output), expected, "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Line of a refusal.
pub fn refused(args: &[&str], expected: i32) -> String {
    let output = onbeat(args);
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(code(&output), expected, "{args:?}: {text}");
    assert!(output.stdout.is_empty(), "{args:?}");
    assert_eq!(text.lines().filter(|line| line.starts_with("onbeat:")).count(), 1, "{text}");
    text
}

/// Block maxima in us: Gumbel about 20 us.
pub fn gumbel(n: usize, seed: u64) -> Vec<f64> {
    let mut rng = Rng::new(seed);
    (0..n).map(|_| 20.0 - 2.0 * rng.exponential().ln()).collect()
}

pub struct Place(TempDir);

impl Place {
    pub fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A path in it that does not exist yet.
    pub fn path(&self, name: &str) -> String {
        self.at(name).display().to_string()
    }

    /// A list of maxima, recorded in steps of 1 us.
    pub fn list(&self, name: &str, us: &[f64]) -> String {
        let text: String = us.iter().map(|us| format!("{}\n", us.floor() as i64 * 1_000)).collect();
        self.text(name, &text)
    }

    pub fn text(&self, name: &str, text: &str) -> String {
        std::fs::write(self.at(name), text).unwrap();
        self.at(name).display().to_string()
    }

    /// A bundle of one CPU, with one block a second.
    pub fn bundle(&self, name: &str, us: &[f64], change: impl Fn(&mut Run, &mut Vec<Block>)) -> String {
        let (mut run, mut blocks) = run_of(name, us);
        change(&mut run, &mut blocks);
        std::fs::create_dir(self.at(name)).unwrap();
        let lines: String = blocks.iter().map(|block| serde_json::to_string(block).unwrap() + "\n").collect();
        self.text(&format!("{name}/blocks.jsonl"), &lines);
        self.text(&format!("{name}/run.json"), &serde_json::to_string(&run).unwrap());
        self.at(name).display().to_string()
    }
}

fn run_of(name: &str, us: &[f64]) -> (Run, Vec<Block>) {
    let block = |(i, us): (usize, &f64)| Block {
        cpu: Cpu(0),
        mono_ns: Nanos(i as i64 * SECOND),
        span_ns: Some(Nanos(SECOND)),
        n: 1_000,
        max_ns: Some(Nanos((us * 1_000.0) as i64)),
        max_mono_ns: Some(Nanos(i as i64 * SECOND + SECOND / 2)),
        ..Block::default()
    };
    let blocks: Vec<Block> = us.iter().enumerate().map(block).collect();
    let max = blocks.iter().filter_map(|block| block.max_ns).max().unwrap();
    let cycles = us.len() as u64 * 1_000;
    let mut cpu = CpuRun {
        cpu: Some(Cpu(0)),
        interval_ns: Some(Nanos::MILLI),
        cycles: Some(cycles),
        histogram: vec![Bucket::new(Nanos(0), Nanos(max.0 + 1), cycles)],
        max_ns: Some(max),
        worst: vec![Worst { latency_ns: Some(max), ..Worst::default() }],
        ..CpuRun::default()
    };
    cpu.fill_quantiles();
    let mut run = Run {
        schema: SCHEMA.into(),
        id: name.into(),
        // An import need not have the exact extremes of a measured run.
        command: "import".into(),
        complete: true,
        elapsed_ns: Some(Nanos(us.len() as i64 * SECOND)),
        cpus: vec![cpu],
        ..Run::default()
    };
    run.plan.cpus = vec![Cpu(0)];
    run.plan.interval_ns = Some(Nanos::MILLI);
    (run, blocks)
}

pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

pub fn near(value: &Value, expected: f64, relative: f64) {
    assert!((number(value) - expected).abs() <= relative * expected.abs(), "{value} is not {expected}");
}

pub fn gate<'a>(answer: &'a Value, id: &str) -> &'a Value {
    answer["gates"].as_array().unwrap().iter().find(|gate| gate["id"] == id).unwrap()
}
