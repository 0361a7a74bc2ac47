//! Runs of the measuring loop: ended, refused and limited from outside. None needs privilege or
//! exact timing.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bundle::read::Bundle;
use model::rows::{RowCounts, RowSums, row_of};
use model::units::{Cpu, Nanos};
use serde_json::Value;

use super::place::{Place, refused};

const ONBEAT: &str = env!("CARGO_BIN_EXE_onbeat");

/// Arguments of every run here.
const PLAIN: &str = "measure -p 0 --idle as-is -i 5000 -q";

fn run_in(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("run.json")).unwrap()).unwrap()
}

/// Checks that the lines of `rows.jsonl` add up to the run's histogram, to the sample.
fn five_minutes_add_up(folder: &Path) {
    let bundle = Bundle::open(folder).unwrap();
    let mut sums: BTreeMap<Cpu, RowSums> = BTreeMap::new();
    let unread = bundle.each_five_minutes(|line| {
        line.cpus.iter().for_each(|cpu| sums.entry(cpu.cpu).or_default().add_all(&cpu.hist));
    });
    assert_eq!(unread.unwrap(), 0);
    for cpu in &bundle.run.cpus {
        let rows = cpu.histogram.iter().map(|bucket| (row_of(bucket.upper - Nanos(1)), bucket.count));
        assert_eq!(sums.remove(&cpu.cpu.unwrap()).unwrap_or_default().counts(), RowCounts::of_rows(rows));
    }
    assert!(sums.is_empty(), "{sums:?}");
}

fn shell(script: &str) -> std::process::Output {
    Command::new("sh").arg("-c").arg(script).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn signals_that_were_ignored_stay_ignored() {
    let place = Place::new();
    let (folder, shown) = (place.at("run"), place.path("run"));
    let output = shell(&format!(
        "trap '' INT TERM HUP; {ONBEAT} {PLAIN} -D 1s -o {shown} & pid=$!\n\
         sleep 0.6; kill -INT $pid; kill -HUP $pid; kill -TERM $pid; wait $pid"
    ));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(run_in(&folder)["ended"], "duration");
    five_minutes_add_up(&folder);
}

#[test]
fn a_signal_at_any_time_leaves_a_whole_run_or_none() {
    let place = Place::new();
    for delay in [0, 1, 3, 10, 30, 60, 100, 200, 400] {
        let folder = place.at(&format!("after-{delay}"));
        let mut line: Vec<&str> = PLAIN.split(' ').collect();
        let shown = folder.display().to_string();
        line.extend(["-o", &shown]);
        let quiet = || Stdio::null();
        let child = Command::new(ONBEAT).args(line).stdout(quiet()).stderr(quiet()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay));
        assert!(shell(&format!("kill -TERM {}", child.id())).status.success());
        let status = child.wait_with_output().unwrap().status;
        match (status.code(), folder.exists()) {
            // Before anything was created or measured.
            (None | Some(6), false) => {}
            (Some(6), true) => {
                let run = run_in(&folder);
                assert_eq!((&run["complete"], &run["ended"]), (&Value::from(true), &Value::from("signal")));
                five_minutes_add_up(&folder);
            }
            other => panic!("after {delay} ms: {other:?}"),
        }
    }
}

#[test]
fn threads_are_counted_as_cyclictest_counts_them() {
    let place = Place::new();
    for spelling in ["-t9999", "--threads=9999"] {
        let said = refused(&["measure", "-p", "0", "-D", "1s", spelling, "-o", &place.path("run")], 2);
        assert!(said.contains("-a"), "{said}");
    }
    assert!(!place.at("run").exists());
}

#[test]
fn a_run_says_what_it_belongs_to() {
    let place = Place::new();
    let folder = place.path("run");
    let mut line: Vec<&str> = PLAIN.split(' ').collect();
    line.extend(["-l", "5", "--label", "build=123", "--label", "job=https:/ci/7?a=b", "-o", &folder]);
    let output = Command::new(ONBEAT).args(&line).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let labels = serde_json::json!({ "build": "123", "job": "https:/ci/7?a=b" });
    assert_eq!(run_in(&place.at("run"))["labels"], labels);
    for wrong in [&["--label", "build"][..], &["--label", "a=1", "--label", "a=2"], &["--label", "1=x"]] {
        let none = place.path("none");
        let said = refused(&[&["measure", "-D", "1s", "-o", &none], wrong].concat(), 2);
        assert!(said.contains("--label: "), "{said}");
    }
    assert!(!place.at("none").exists());
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_like_a_full_disk() {
    let place = Place::new();
    let output = shell(&format!("ulimit -f 1; exec {ONBEAT} rules --json {}", place.path("rules.json")));
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
}
