//! `bounds` and `compare` as a script sees them: the built binary, JSON, exit codes, one line per refusal.

#![allow(clippy::disallowed_methods)] // A test writes its inputs and starts the program itself.

use std::path::PathBuf;
use std::process::{Command, Output};

use onbeat::bundle::run::{Block, CpuRun, Integrity, Run, SCHEMA, Worst};
use onbeat::stats::dice::Dice;
use onbeat::units::{Cpu, Nanos};
use serde_json::Value;
use tempfile::TempDir;

const SECOND: i64 = 1_000_000_000;

fn onbeat(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onbeat")).args(args).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn json(args: &[&str], expected: i32) -> Value {
    let output = onbeat(&[args, &["--json", "-"]].concat());
    assert_eq!(code(&output), expected, "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The one line of a refusal.
fn refused(args: &[&str], expected: i32) -> String {
    let output = onbeat(args);
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(code(&output), expected, "{args:?}: {text}");
    assert!(output.stdout.is_empty(), "{args:?}");
    assert_eq!(text.lines().filter(|line| line.starts_with("onbeat:")).count(), 1, "{text}");
    text
}

/// Block maxima in us: Gumbel about 20 us.
fn gumbel(n: usize, seed: u64) -> Vec<f64> {
    let mut dice = Dice::new(seed);
    (0..n).map(|_| 20.0 - 2.0 * dice.exponential().ln()).collect()
}

struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A list of maxima, recorded in steps of 1 us.
    fn list(&self, name: &str, us: &[f64]) -> String {
        let text: String = us.iter().map(|us| format!("{}\n", us.floor() as i64 * 1_000)).collect();
        self.text(name, &text)
    }

    fn text(&self, name: &str, text: &str) -> String {
        std::fs::write(self.at(name), text).unwrap();
        self.at(name).display().to_string()
    }

    /// A bundle of one CPU, one block a second.
    fn bundle(&self, name: &str, us: &[f64], change: impl Fn(&mut Run, &mut Vec<Block>)) -> String {
        let (mut run, mut blocks) = made(name, us);
        change(&mut run, &mut blocks);
        std::fs::create_dir(self.at(name)).unwrap();
        let lines: String = blocks.iter().map(|block| serde_json::to_string(block).unwrap() + "\n").collect();
        self.text(&format!("{name}/blocks.jsonl"), &lines);
        self.text(&format!("{name}/run.json"), &serde_json::to_string(&run).unwrap());
        self.at(name).display().to_string()
    }
}

fn made(name: &str, us: &[f64]) -> (Run, Vec<Block>) {
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
        cpu: Cpu(0),
        interval_ns: Some(Nanos::MILLI),
        cycles,
        histogram: vec![(Nanos(0), Nanos(max.0 + 1), cycles)],
        max_ns: Some(max),
        worst: vec![Worst { latency_ns: Some(max), ..Worst::default() }],
        ..CpuRun::default()
    };
    cpu.fill_quantiles();
    let mut run = Run {
        schema: SCHEMA.into(),
        id: name.into(),
        // An import is not held to the exact extremes that a measured run has.
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

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn near(value: &Value, expected: f64, relative: f64) {
    assert!((number(value) - expected).abs() <= relative * expected.abs(), "{value} is not {expected}");
}

fn gate<'a>(answer: &'a Value, id: &str) -> &'a Value {
    answer["gates"].as_array().unwrap().iter().find(|gate| gate["id"] == id).unwrap()
}

#[test]
fn counting_bounds_are_those_of_the_textbook() {
    let place = Place::new();
    let list = place.list("hour.csv", &gumbel(3_600, 1));
    let answer = json(&["bounds", &list, "--resolution", "1us", "--limit", "90us", "--horizon", "1h"], 0);
    assert_eq!(
        (answer["schema"].as_str(), answer["blocks"].as_u64()),
        (Some("onbeat.bounds/1"), Some(3_600))
    );
    near(&answer["new_record_probability"], 0.5, 1e-9);
    near(&answer["rate_upper_per_hour"], 2.995_732_3, 1e-6);
    near(&answer["clean_seconds_needed"], 10_784.636, 1e-6);
    near(&answer["hidden_rate_per_hour"], 2.995_732_3, 1e-6);
    // An hour is too short to claim one an hour by counting; the extrapolation supports it.
    assert_eq!(
        (answer["verdict"].as_str(), answer["basis"].as_str()),
        (Some("supported"), Some("extrapolation"))
    );
    assert_eq!(answer["extrapolation"]["status"], "ok");
    let levels =
        ["typical_ns", "upper_ns", "guarded_upper_ns"].map(|name| number(&answer["extrapolation"][name]));
    assert!(levels[0] < levels[1] && levels[1] <= levels[2], "{levels:?}");
}

#[test]
fn limits_end_in_the_contract_s_codes() {
    let place = Place::new();
    let hour = place.list("hour.csv", &gumbel(3_600, 2));
    assert_eq!(
        json(&["bounds", &hour, "--resolution", "1us", "-l", "90us", "--horizon", "20m"], 0)["basis"],
        "counting"
    );
    assert_eq!(
        json(&["bounds", &hour, "--resolution", "1us", "-l", "22us", "--horizon", "1h"], 3)["verdict"],
        "failed"
    );
    assert_eq!(
        json(&["bounds", &hour, "--resolution", "1us", "-l", "50kHz", "--horizon", "1h"], 3)["claim"]["limit_ns"],
        20_000
    );
    assert_eq!(json(&["bounds", &hour, "--resolution", "1us", "-l", "90us"], 7)["verdict"], "inconclusive");
    let far = json(&["bounds", &hour, "--resolution", "1us", "--horizon", "30d"], 0);
    assert_eq!(
        (gate(&far, "G8")["passed"].as_bool(), far["extrapolation"]["status"].as_str()),
        (Some(false), Some("refused"))
    );
    assert!(far["extrapolation"]["reason"].as_str().unwrap().contains("10 h"));
}

#[test]
fn a_comb_is_a_mechanism_and_no_tail() {
    let place = Place::new();
    let mut us = gumbel(600, 3);
    us.iter_mut().skip(17).step_by(60).for_each(|us| *us = 51.0);
    let answer = json(&["bounds", &place.list("comb.csv", &us), "--resolution", "1us"], 0);
    assert_eq!(answer["extrapolation"]["status"], "refused");
    let reason = answer["extrapolation"]["reason"].as_str().unwrap();
    assert!(reason.contains("recur every 60.00 s"), "{reason}");
    near(&answer["periods"][0]["period_s"], 60.0, 1e-3);
    assert_eq!(answer["periods"][0]["members"], 10);
    assert!(answer["extrapolation"]["upper_ns"].is_null() && answer["extrapolation"]["gev"].is_object());
}

#[test]
fn what_carries_no_tail_is_said_and_is_no_error() {
    let place = Place::new();
    for (name, us) in
        [("few", gumbel(20, 4)), ("equal", vec![5.0; 600]), ("zero", vec![0.0; 600]), ("one", vec![7.0])]
    {
        let answer = json(&["bounds", &place.list(name, &us)], 0);
        assert_eq!(answer["extrapolation"]["status"], "refused", "{name}");
        assert_eq!(gate(&answer, "G7")["passed"], false, "{name}");
        assert!(answer["extrapolation"]["reason"].as_str().unwrap().starts_with("Too little data"), "{name}");
        assert_eq!(answer["observed_max_ns"], us.iter().copied().fold(0.0, f64::max) as i64 * 1_000);
    }
}

#[test]
fn a_run_is_as_good_as_a_list_and_its_flaws_are_named() {
    let place = Place::new();
    let us = gumbel(600, 5);
    let plain = place.bundle("plain", &us, |_, _| {});
    let answer = json(&["bounds", &plain], 0);
    assert_eq!(
        (answer["extrapolation"]["status"].as_str(), answer["blocks"].as_u64()),
        (Some("ok"), Some(600))
    );
    let joined = place.bundle("joined", &us, |_, blocks| {
        blocks.drain(301..310);
        blocks[300].span_ns = Some(Nanos(10 * SECOND));
        blocks[300].max_mono_ns = Some(Nanos(305 * SECOND));
    });
    let answer = json(&["bounds", &joined], 0);
    assert!(gate(&answer, "G11")["detail"].as_str().unwrap().contains("span several blocks"), "{answer}");
    assert_eq!(answer["blocks"], 591);
    let spoiled = place.bundle("spoiled", &us, |run, _| {
        run.integrity.push(Integrity { kind: "suspend".into(), invalidates: true, ..Integrity::default() });
    });
    let answer = json(&["bounds", &spoiled, "--limit", "90us", "--horizon", "1m"], 7);
    assert_eq!(
        (answer["basis"].as_str(), gate(&answer, "G11")["passed"].as_bool()),
        (Some("integrity"), Some(false))
    );
    assert!(refused(&["bounds", &plain, "-a", "3"], 2).contains("CPU 3 was not measured"));
    let empty = place.bundle("empty", &us, |run, blocks| {
        blocks.clear();
        run.cpus.clear();
        run.plan.cpus.clear();
    });
    assert!(refused(&["bounds", &empty], 2).contains("no wake-up"));
}

#[test]
fn lists_that_are_none_are_refused_in_a_line() {
    let place = Place::new();
    for (name, text, word) in [
        ("negative", "5\n-7\n", "line 2"),
        ("fraction", "5.5\n", "whole number"),
        ("huge", "99999999999999999999\n", "292 years"),
        ("columns", "1,2\n", "several columns"),
        ("nothing", "", "no values"),
        ("json", "{}\n", "is JSON"),
    ] {
        let said = refused(&["bounds", &place.text(name, text)], 2);
        assert!(said.contains(word), "{name}: {said}");
    }
    assert!(refused(&["bounds", "/nonexistent"], 2).contains("cannot read"));
    let list = place.text("ok.csv", "max_ns\n5\n\n7\n");
    let output = onbeat(&["bounds", &list]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("'max_ns'") && said.contains("blank"), "{said}");
    let answer = json(&["bounds", &list, "-q"], 0);
    assert_eq!((answer["blocks"].as_u64(), answer["observed_ns"].as_i64()), (Some(2), Some(3 * SECOND)));
    for flags in
        [["--block", "0"], ["--block", "x"], ["--resolution", "-1"], ["--horizon", "0"], ["--reach", "500"]]
    {
        refused(&["bounds", &list, flags[0], flags[1]], 2);
    }
}

fn side(place: &Place, name: &str, n: usize, shift: f64, spikes: usize) -> Vec<String> {
    let run = |i: usize| {
        let seed = i as u64 + (shift * 7.0) as u64 * 100 + spikes as u64 * 1_000 + name.len() as u64 * 31;
        let mut us: Vec<f64> = gumbel(300, seed).iter().map(|us| us + shift).collect();
        (0..spikes).for_each(|k| us[(k * 37 + i) % 300] = 70.0);
        place.list(&format!("{name}{i}.csv"), &us)
    };
    (0..n).map(run).collect()
}

fn compared(a: &[String], b: &[String], flags: &[&str], expected: i32) -> Value {
    let mut args = vec!["compare"];
    args.extend(a.iter().map(String::as_str));
    args.push("--");
    args.extend(b.iter().map(String::as_str));
    args.extend(flags);
    args.extend(["--json", "-"]);
    let output = onbeat(&args);
    assert_eq!(code(&output), expected, "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn comparisons_end_in_four_verdicts() {
    let place = Place::new();
    let (calm, wild) = (side(&place, "calm", 6, 0.0, 2), side(&place, "wild", 6, 0.0, 20));
    let limit = ["--limit", "60us"];
    let worse = compared(&calm, &wild, &limit, 3);
    assert_eq!(
        (worse["verdict"].as_str(), worse["schema"].as_str()),
        (Some("worse"), Some("onbeat.comparison/1"))
    );
    near(&worse["rate_ratio"], 10.0, 1e-9);
    let ends = [&worse["ci"][0], &worse["ci"][1]].map(number);
    assert!(ends[0] < 10.0 && 10.0 < ends[1], "{ends:?}");
    assert!(number(&worse["p_value"]) < 0.05 && worse["units"] == 12);
    assert_eq!(compared(&wild, &calm, &limit, 0)["verdict"], "better");
    let same = compared(&wild[..3], &wild[3..], &limit, 7);
    assert!(same["reason"].as_str().unwrap().contains("4 v 4"), "{same}");
    let again = side(&place, "other", 6, 0.0, 20);
    assert_eq!(compared(&wild, &again, &limit, 0)["verdict"], "equivalent");
    let one = compared(&calm[..1], &wild[..1], &limit, 7);
    assert!(one["p_value"].is_null() && one["reason"].as_str().unwrap().contains("one run each"));
    let shifted = side(&place, "shifted", 6, 5.0, 2);
    let quantile = compared(&calm, &shifted, &["--metric", "p50"], 3);
    near(&quantile["difference_ns"], 5_000.0, 0.2);
}

#[test]
fn lengths_and_lost_records_make_no_verdict() {
    let place = Place::new();
    let quiet = |name: &str, n: usize, seconds: usize| -> Vec<String> {
        (0..n).map(|i| place.list(&format!("{name}{i}.csv"), &vec![20.0 + i as f64; seconds])).collect()
    };
    let (long, short) = (quiet("long", 5, 600), quiet("short", 5, 60));
    let found = compared(&long, &short, &["--limit", "50us"], 7);
    assert!(found["rate_ratio"].is_null() && found["p_value"] == 1.0, "{found}");
    // The second half of the blocks was never written; the run itself knows its maximum.
    let mut us = gumbel(120, 12);
    us[110] = 90.0;
    let lost = place.bundle("lost", &us, |_, blocks| blocks.truncate(60));
    let answer = json(&["bounds", &lost, "--limit", "50us", "--horizon", "20s"], 7);
    assert_eq!(
        (answer["claim"]["exceedances"].as_u64(), answer["observed_ns"].as_i64()),
        (Some(1), Some(60 * SECOND))
    );
    assert!(!gate(&answer, "G11")["passed"].as_bool().unwrap());
    let killed = place.bundle("killed", &us, |run, blocks| {
        run.complete = false;
        run.cpus.clear();
        run.elapsed_ns = None;
        blocks.clear();
    });
    assert_eq!(json(&["bounds", &killed], 0)["observed_max_ns"], Value::Null);
    let imported = place.bundle("imported", &us, |run, blocks| {
        (run.elapsed_ns, run.plan.interval_ns) = (None, None);
        run.cpus[0].interval_ns = None;
        blocks.clear();
    });
    assert_eq!(json(&["bounds", &imported, "--limit", "50us"], 7)["observed_ns"], 0);
}

#[test]
fn few_events_in_long_runs_are_not_better_than_none_in_short_ones() {
    let place = Place::new();
    let some = |name: &str, seconds: usize, events: &[usize]| -> Vec<String> {
        let run = |(i, n): (usize, &usize)| {
            let mut us = vec![20.0; seconds];
            us.iter_mut().take(*n).for_each(|us| *us = 60.0);
            place.list(&format!("{name}{i}.csv"), &us)
        };
        events.iter().enumerate().map(run).collect()
    };
    let (long, short) = (some("long", 600, &[2, 1, 2, 1, 2]), some("short", 60, &[0; 5]));
    assert_eq!(compared(&long, &short, &["--limit", "50us"], 7)["verdict"], "inconclusive");
    let past = some("past", 3_600, &[6; 20]);
    assert_eq!(compared(&past, &some("new", 60, &[1]), &["--limit", "50us"], 7)["baseline"]["worse"], false);
}

#[test]
fn what_was_measured_and_not_recorded_carries_no_verdict() {
    let place = Place::new();
    let mut us = gumbel(120, 21);
    (60..66).for_each(|i| us[i] = 90.0);
    let runs = |name: &str, kept: usize| -> Vec<String> {
        (0..4).map(|i| place.bundle(&format!("{name}{i}"), &us, |_, blocks| blocks.truncate(kept))).collect()
    };
    let found = compared(&runs("whole", 120), &runs("cut", 60), &["--limit", "50us"], 7);
    assert!(found["reason"].as_str().unwrap().contains("lost records"), "{found}");
    let silent = place.bundle("silent", &us, |run, _| {
        let other = CpuRun { cpu: Cpu(1), ..run.cpus[0].clone() };
        run.cpus.push(other);
        run.plan.cpus.push(Cpu(1));
    });
    let answer = json(&["bounds", &silent, "--limit", "80us", "--horizon", "10s"], 7);
    assert!(gate(&answer, "G11")["detail"].as_str().unwrap().contains("CPU 1"), "{answer}");
    // A second without a due wake-up was watched all the same, and a line without its length is as long as its wake-ups.
    let slow = place.bundle("slow", &us, |run, blocks| {
        run.plan.interval_ns = Some(Nanos(2 * SECOND));
        run.cpus[0].interval_ns = Some(Nanos(2 * SECOND));
        blocks.iter_mut().skip(1).step_by(2).for_each(|block| (block.max_ns, block.n) = (None, 0));
    });
    let answer = json(&["bounds", &slow], 0);
    assert_eq!(
        (answer["observed_ns"].as_i64(), gate(&answer, "G11")["passed"].as_bool()),
        (Some(120 * SECOND), Some(true))
    );
    let long = place.bundle("long", &us, |_, blocks| {
        blocks.drain(21..30);
        (blocks[20].n, blocks[20].span_ns) = (10_000, None);
    });
    let answer = json(&["bounds", &long], 0);
    assert!(gate(&answer, "G11")["detail"].as_str().unwrap().contains("span several blocks"), "{answer}");
}

#[test]
fn the_environment_is_compared_and_nonsense_is_refused() {
    let place = Place::new();
    let us = gumbel(300, 9);
    let plain = place.bundle("plain", &us, |_, _| {});
    let tuned = place.bundle("tuned", &us, |run, _| {
        run.host.cmdline = "isolcpus=2-3".into();
        run.plan.policy = "other".into();
    });
    let output = onbeat(&["compare", &plain, &tuned, "--json", "-"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found: Vec<&str> = answer["environment_diff"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["what"].as_str().unwrap())
        .collect();
    assert_eq!(found, ["cmdline isolcpus", "plan.policy"]);
    assert_eq!(answer["environment_diff"][0]["b"], "2-3");
    assert!(refused(&["compare", &plain, &plain], 2).contains("given twice"));
    let slow = place.bundle("slow", &us, |run, _| run.plan.interval_ns = Some(Nanos(2_000_000)));
    let said = refused(&["compare", &plain, &slow], 2);
    assert!(said.contains("plan.interval_ns") && said.contains("interval"), "differences first: {said}");
    let wide = place.bundle("wide", &us, |run, blocks| {
        let other = CpuRun { cpu: Cpu(1), ..run.cpus[0].clone() };
        run.cpus.push(other);
        run.plan.cpus.push(Cpu(1));
        let twins: Vec<Block> = blocks.iter().map(|block| Block { cpu: Cpu(1), ..block.clone() }).collect();
        blocks.extend(twins);
    });
    assert!(refused(&["compare", &plain, &wide], 2).contains("CPUs"));
    let half = onbeat(&["compare", &plain, &wide, "-a", "0"]);
    assert_eq!(code(&half), 7, "with the CPU that both have it can be compared");
    let spoiled = place.bundle("spoiled", &us, |run, _| {
        run.integrity.push(Integrity { kind: "throttled".into(), invalidates: true, ..Integrity::default() });
    });
    assert_eq!(code(&onbeat(&["compare", &plain, &spoiled])), 7);
    assert!(refused(&["compare", &plain], 2).contains("--"));
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let place = Place::new();
    let mut us = gumbel(600, 11);
    us[70] = 80.0;
    let list = place.list("list.csv", &us);
    let first = onbeat(&["bounds", &list, "--json", "-"]);
    assert_eq!(first.stdout, onbeat(&["bounds", &list, "--json", "-"]).stdout);
    for word in [["WC", "ET"].concat(), "guarantee".into()] {
        assert!(!String::from_utf8_lossy(&onbeat(&["bounds", &list]).stdout).contains(&word));
    }
}
