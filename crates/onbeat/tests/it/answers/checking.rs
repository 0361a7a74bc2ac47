//! Checks of programs as used by a script: the two examples, and refusals.

use std::path::Path;
use std::process::{Child, Command};

use super::place::*;
use serde_json::Value;

/// The eight mistakes of examples/robot/careless.c.
const MISTAKES: [&str; 8] = [
    "allocation-in-loop",
    "highest-priority",
    "lock-without-inheritance",
    "memory-unlocked",
    "no-affinity",
    "relative-sleep",
    "stack-untouched",
    "writes-in-loop",
];

/// A compiler, its flags, the ending of its files.
type Language = (&'static str, &'static [&'static str], &'static str);
const C: Language = ("cc", &["-O2", "-pthread", "-Wall", "-Werror"], "c");
const RUST: Language = ("rustc", &["--edition", "2024", "-O", "-D", "warnings"], "rs");

/// An example program that runs until it is dropped.
struct Robot(Child);

impl Drop for Robot {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Robot {
    /// Builds and starts an example; the error is a missing requirement.
    fn start(place: &Place, language: &Language, name: &str) -> Result<Robot, String> {
        if !host::is_root() {
            return Err("real-time threads and looking at them take root".into());
        }
        let (compiler, flags, ending) = *language;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/robot");
        let program = place.path(&format!("robot-{name}"));
        let mut build = Command::new(compiler);
        build.args(flags).args(["-o", &program]).arg(source.join(format!("{name}.{ending}")));
        let built = build.output().map_err(|error| format!("there is no {compiler} ({error})"))?;
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        // Writing to /dev/null is not a mistake.
        let output = std::fs::File::create(place.path("output")).unwrap();
        let errors = output.try_clone().unwrap();
        let mut child = Command::new(&program).arg("600").stdout(output).stderr(errors).spawn().unwrap();
        // It ends immediately if the kernel gives it no priority.
        for _ in 0..100 {
            if real_time(child.id()) {
                return Ok(Robot(child));
            }
            if child.try_wait().unwrap().is_some() {
                return Err("the kernel gives no real-time priority here".into());
            }
            host::clock::sleep_for(model::units::Nanos(20_000_000));
        }
        Ok(Robot(child))
    }
}

fn real_time(pid: u32) -> bool {
    host::threads::real_time_threads().iter().any(|thread| thread.process == pid)
}

/// Checks that fail with at least this severity, once each.
fn failed(check: &Value, severities: &[&str]) -> Vec<String> {
    let found = check["findings"].as_array().unwrap().iter();
    let grave = |found: &&Value| {
        found["verdict"] == "fail" && severities.contains(&found["severity"].as_str().unwrap())
    };
    let mut named: Vec<String> =
        found.filter(grave).map(|found| found["rule"].as_str().unwrap().to_owned()).collect();
    named.dedup();
    named
}

const GRAVE: &[&str] = &["fatal", "high", "medium"];

#[test]
fn the_careless_robot_has_its_mistakes_and_the_good_one_none() {
    robots(&C);
}

#[test]
fn the_robots_in_rust_are_like_those_in_c() {
    robots(&RUST);
}

fn robots(language: &Language) {
    let place = Place::new();
    let careless = match Robot::start(&place, language, "careless") {
        Ok(robot) => robot,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let check = json(&["check", &careless.0.id().to_string(), "-q"], 0);
    let found = failed(&check, GRAVE);
    // On a machine with one CPU each thread has the only one.
    let one_cpu = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1);
    let expected: Vec<&str> =
        MISTAKES.iter().copied().filter(|id| !(one_cpu && *id == "no-affinity")).collect();
    assert_eq!(found, expected, "{check:#}");
    assert_eq!(check["schema"], "onbeat.check/1");
    assert_eq!(check["process"]["comm"], "robot-careless");
    assert_eq!(check["threads"][0]["comm"], "control");
    drop(careless);

    let Ok(good) = Robot::start(&place, language, "good") else { return };
    let gate = onbeat(&["check", &good.0.id().to_string(), "-q", "--fail-on", "medium"]);
    assert_eq!(code(&gate), 0, "{}", String::from_utf8_lossy(&gate.stderr));
}

#[test]
fn what_is_no_program_is_refused_in_one_line() {
    for (wanted, said) in [
        ("999999999", "no process 999999999"),
        ("no-such-program", "no process named"),
        ("-5", "unexpected argument"),
    ] {
        assert!(refused(&["check", wanted], 2).contains(said), "{wanted}");
    }
    let own = std::process::id().to_string();
    for duration in ["0", "11m", "x"] {
        assert!(refused(&["check", &own, "-D", duration], 2).contains("--duration"), "{duration}");
    }
    assert!(refused(&["check", &own, "--strict"], 2).contains("--fail-on"));
    assert!(refused(&["check", &own, "--user", "nobody"], 2).contains("--user"));
}

/// A program without real-time threads: some of its checks stay unknown without privileges.
#[test]
fn a_strict_gate_fails_where_a_check_is_unknown() {
    let own = std::process::id().to_string();
    let gate = ["check", &own, "-D", "100ms", "--fail-on", "info", "--strict", "--json", "-"];
    let strict = onbeat(&gate);
    let check: Value = serde_json::from_slice(&strict.stdout).unwrap();
    let findings = check["findings"].as_array().unwrap();
    let is_unknown = findings.iter().any(|finding| finding["verdict"] == "unknown");
    assert_eq!(code(&strict), if is_unknown { 3 } else { 7 }, "{check:#}");
}

#[test]
fn a_program_that_ends_at_once_or_cannot_be_run_is_not_judged() {
    assert!(refused(&["check", "--", "/no/such/program"], 2).contains("cannot be run"));
    let code = refused(&["check", "--", "sh", "-c", "exit 3"], 7);
    assert!(code.contains("exit code 3") && code.contains("before it could be checked"), "{code}");
    let signal = refused(&["check", "--", "sh", "-c", "kill -SEGV $$"], 7);
    assert!(signal.contains("(SIGSEGV)") && !signal.contains("keep it running"), "{signal}");
    assert!(refused(&["check", "robot", "--", "sh"], 2).contains("cannot be used with"));
}

#[test]
fn what_a_started_program_leaves_running_is_said() {
    let place = Place::new();
    let note = place.path("number");
    // The shell in the middle ends immediately: the sleep becomes a child of the first process.
    let leaves = format!("(sh -c 'echo $$ > {note}; exec sleep 1000' > /dev/null 2>&1 &) ; ");
    let left = || {
        let pid = std::fs::read_to_string(&note).unwrap().trim().to_owned();
        Command::new("kill").arg(&pid).status().unwrap();
        pid
    };
    let words = format!("{leaves} while sleep 1; do :; done");
    let output = onbeat(&["check", "-q", "-D", "200ms", "--json", "-", "--", "sh", "-c", &words]);
    let pid = left();
    let check: Value = serde_json::from_slice(&output.stdout).unwrap();
    let said = check["remarks"].as_array().unwrap().iter().map(|said| said.as_str().unwrap());
    let said: Vec<&str> = said.filter(|said| said.contains("running")).collect();
    // The sleep that the loop waits for may be one of them.
    assert!(said.len() == 1 && said[0].contains(" and left ") && said[0].contains(&pid), "{said:?}, {pid}");
    let line = refused(&["check", "--", "sh", "-c", &format!("{leaves} sleep 0.5")], 7);
    let pid = left();
    assert!(line.contains("background") && line.contains(&format!("`onbeat check {pid}`")), "{line}");
}

#[test]
fn a_program_without_real_time_threads_passes_no_gate() {
    let own = std::process::id().to_string();
    let check = json(&["check", &own, "-D", "200ms", "-q"], 0);
    assert_eq!(check["threads"].as_array().unwrap().len(), 0);
    assert!(check["remarks"][0].as_str().unwrap().contains("No thread had a real-time policy"));
    assert_eq!(check["cost_ns_per_call"], 0, "calls were not recorded");
    let calls = json(&["check", &own, "-D", "200ms", "-q", "--syscalls"], 0);
    // Without the right to record them, or on a kernel without them, there are none.
    let said = calls["remarks"].to_string().contains("each call of the program took");
    assert_eq!(calls["cost_ns_per_call"] != 0, said, "{calls:#}");
    for severity in ["fatal", "low"] {
        let output = onbeat(&["check", &own, "-D", "200ms", "-q", "--fail-on", severity]);
        assert_eq!(code(&output), 7, "{severity}");
    }
}
