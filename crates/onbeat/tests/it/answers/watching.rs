//! Watches as a user sees them: they record, refuse in one line, and leave a complete record at any
//! end. A kernel that takes no programs is refused with the reason.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use host::tracefs::Tracing;
use rustix::process::Signal;

use super::place::{Place, json, onbeat, refused};

/// True if this machine can be watched; if not, one line says so.
fn records(place: &Place) -> bool {
    records_by(place, &[])
}

/// True if it can be watched by this method.
fn records_by(place: &Place, way: &[&str]) -> bool {
    let path = place.path("try");
    let all = ["watch", "-q", "-D", "1s", "--interval", "1s", "-o", &path];
    let tried = onbeat(&[&all[..], way].concat());
    let said = String::from_utf8(tried.stderr).unwrap();
    match tried.status.code() {
        Some(0) => true,
        Some(4 | 5) => {
            assert!(said.lines().count() == 1 && said.starts_with("onbeat: "), "{said}");
            assert!(!place.at("try").exists(), "nothing is made before it is refused");
            false
        }
        other => panic!("{other:?}: {said}"),
    }
}

#[test]
fn every_wake_up_of_a_measurement_is_in_the_record() {
    measured_beside(&[]);
}

#[test]
fn the_switch_is_in_the_record_where_the_kernel_shows_it() {
    let Some(report) = measured_beside(&["--switch"]) else { return };
    let wakeups = |series: &str| -> u64 {
        let all = report["series"].as_array().unwrap().iter();
        let own = all.filter(|of| of["series"] == series && of["class"] != "kernel-threads");
        own.flat_map(|of| of["cpus"].as_array().unwrap()).map(|cpu| cpu["n"].as_u64().unwrap()).sum()
    };
    assert!(wakeups("switch") >= 1400 && wakeups("switch") <= wakeups("wakeup"), "{report}");
    let (with, without) = (wakeups("timer+wakeup+switch"), wakeups("timer+wakeup"));
    assert!(with > 0 && with <= without, "{with} {without}");
    let worst = report["worst"].as_array().unwrap();
    assert!(worst.iter().any(|worst| worst["switch_ns"].is_i64() && worst["timer_ns"].is_i64()), "{worst:?}");
}

/// Measures during a watch with these flags; returns the report's document.
fn measured_beside(more: &[&str]) -> Option<serde_json::Value> {
    let place = Place::new();
    if !records_by(&place, more) {
        return None;
    }
    let record = place.path("record");
    let mut watch = Command::new(env!("CARGO_BIN_EXE_onbeat"))
        .args(["watch", "-q", "--interval", "2s", "-o", &record])
        .args(more)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let has_tail = || fs::read_dir(&record).into_iter().flatten().flatten().count() > 1;
    while !has_tail() {
        std::thread::sleep(Duration::from_millis(20));
        assert!(watch.try_wait().unwrap().is_none());
    }
    let measured =
        onbeat(&["measure", "-p", "50", "-i", "2000", "-D", "3s", "-q", "-a", "0", "-o", &place.path("run")]);
    let pid = rustix::process::Pid::from_raw(watch.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let said = watch.wait_with_output().unwrap();
    assert_eq!(said.status.code(), Some(6), "interrupted, with all saved");
    let said = String::from_utf8(said.stdout).unwrap();
    measured.status.success().then(|| {
        let answer = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let counted = answer.split_once(" wake-ups in ").unwrap().0;
        let wakeups: u64 = counted.rsplit(' ').next().unwrap().parse().unwrap();
        assert!(wakeups >= 1400, "{said}");
        let tail = fs::read_dir(&record).unwrap().flatten().map(|entry| entry.path());
        let tail = tail.filter(|path| path.extension().is_some_and(|kind| kind == "tail"));
        let text: String =
            tail.map(|path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()).collect();
        assert!(text.contains("\"onbeat/0\""), "its thread is among the worst of an interval: {text}");
        json(&["report", &record], 0)
    })
}

/// Number of tracing instances that a process has left.
fn instances_of(pid: u32) -> usize {
    let names = Tracing::open().map(|tracing| tracing.others().instances).unwrap_or_default();
    names.iter().filter(|name| name.starts_with(&format!("onbeat-{pid}-"))).count()
}

#[test]
fn a_ring_records_and_goes_with_its_process_whatever_ends_it() {
    let place = Place::new();
    if !records_by(&place, &["--by", "ring"]) {
        return;
    }
    for signal in [Signal::TERM, Signal::KILL] {
        let record = place.path(&format!("record-{}", signal.as_raw()));
        let mut watch = Command::new(env!("CARGO_BIN_EXE_onbeat"))
            .args(["watch", "--by", "ring", "--interval", "1s", "-o", &record])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while fs::read_dir(&record).into_iter().flatten().count() < 2 {
            std::thread::sleep(Duration::from_millis(20));
            assert!(watch.try_wait().unwrap().is_none());
        }
        assert_eq!(instances_of(watch.id()), 1);
        let pid = rustix::process::Pid::from_raw(watch.id() as i32).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        let said = watch.wait_with_output().unwrap();
        let told = String::from_utf8(said.stderr).unwrap();
        // A killed one may have had no time to report it.
        let is_told = told.contains("a trace ring of ") || signal == Signal::KILL;
        assert!(is_told && !told.contains("keeper"), "{told}");
        // Another process removes the instances of a killed one.
        for _ in 0..1_000 {
            if instances_of(pid.as_raw_nonzero().get() as u32) == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(instances_of(pid.as_raw_nonzero().get() as u32), 0);
        let report = onbeat(&["report", &record, "-q", "--json", &place.path("r.json")]);
        assert!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
    }
}

#[test]
fn a_record_has_one_writer() {
    let place = Place::new();
    if !records(&place) {
        return;
    }
    let record = place.path("record");
    let arguments = ["watch", "-q", "-o", &record];
    let mut first =
        Command::new(env!("CARGO_BIN_EXE_onbeat")).args(arguments).stdout(Stdio::null()).spawn().unwrap();
    while !place.at("record/lock").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(200));
    let line = refused(&arguments, 4);
    assert!(line.contains(&first.id().to_string()), "{line}");
    first.kill().unwrap();
    first.wait().unwrap();
    // Killed in its first interval, it leaves a record that can be continued.
    let again = onbeat(&["watch", "-q", "-D", "1s", "--interval", "1s", "-o", &record]);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    for (arguments, said) in [
        (&["watch", "--interval", "10ms"][..], "expected at least 1 s"),
        (&["watch", "--by", "magic"], "--by"),
        (&["watch", "--size", "12KiB"], "--size"),
        (&["watch", "--size", "many"], "--size"),
        (&["watch", "--on-alarm", "trace-off"], "--alarm"),
        (&["watch", "--alarm", "1ms", "--on-alarm", "mail me"], "--on-alarm: expected exec:PROGRAM"),
        (&["hunt", "--on-spike", "signal:USR1"], "--on-spike: expected exec:PROGRAM"),
    ] {
        let line = refused(arguments, 2);
        assert!(line.contains(said), "{arguments:?}: {line}");
    }
    let many: Vec<String> = (1..=65).map(|n| n.to_string()).collect();
    let line = refused(&["watch", "--threads", &many.join(",")], 2);
    assert!(line.contains("at most 64"), "{line}");
}

#[test]
fn a_unit_runs_what_was_asked_for() {
    let unit =
        onbeat(&["watch", "--unit", "--alarm", "200us", "--on-alarm", "exec:mail 'a b'", "-o", "/var/w"]);
    let text = String::from_utf8(unit.stdout).unwrap();
    let line = text.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
    assert!(line.contains(" watch -o /var/w --interval 5m --size 64MiB --alarm 200us"), "{line}");
    assert!(!line.contains("--switch"), "{line}");
    let with = String::from_utf8(onbeat(&["watch", "--unit", "--switch"]).stdout).unwrap();
    assert!(with.lines().any(|line| line.starts_with("ExecStart=") && line.ends_with(" --switch")), "{with}");
    assert!(text.contains("SuccessExitStatus=6") && text.contains("[Install]"), "{text}");
    let unit = onbeat(&["watch", "--unit", "--label", "image=i 7"]);
    assert!(String::from_utf8(unit.stdout).unwrap().contains(" --label 'image=i 7'\n"));
    refused(&["watch", "--unit", "--label", "image"], 2);
    let unit = onbeat(&["watch", "--unit", "--by", "ring"]);
    assert!(String::from_utf8(unit.stdout).unwrap().contains(" --by ring\n"));
}
