//! Probes as used by a script: their refusals, and the form of their answers. None of these tests
//! needs privilege or exact timing.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::place::{Place, code, json, onbeat, refused};

const ONBEAT: &str = env!("CARGO_BIN_EXE_onbeat");

/// First CPU that this process may use.
pub(super) fn cpu() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    list.split([',', '-']).next().unwrap().to_owned()
}

fn sum(cpu: &Value, rows: &str) -> u64 {
    cpu[rows].as_array().unwrap().iter().map(|row| row[2].as_u64().unwrap()).sum()
}

/// Checks the common properties of each CPU of each probe.
pub(super) fn counted(run: &Value, probe: &str) {
    assert_eq!((&run["command"], &run["plan"]["probe"]), (&Value::from("probe"), &Value::from(probe)));
    for cpu in run["cpus"].as_array().unwrap() {
        assert_eq!(cpu["cycles"].as_u64(), Some(sum(cpu, "histogram")));
        assert_eq!((&cpu["scheduled"], &cpu["missed"]), (&Value::Null, &Value::Null));
        assert_eq!(cpu["deadline_histogram"], Value::Null);
    }
}

/// Checks every command that reads bundles.
pub(super) fn is_read(bundle: &Path) {
    let bundle = bundle.display().to_string();
    for args in
        [&["report", &bundle][..], &["report", &bundle, "--format", "csv", "-o", "-"], &["bounds", &bundle]]
    {
        let output = onbeat(args);
        assert_eq!(code(&output), 0, "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn spin_keeps_its_gaps_and_its_bundle_is_read_as_a_run_s() {
    let (place, cpu) = (Place::new(), cpu());
    // Wake-ups on that CPU: more gaps than are kept.
    let line = ["load", "timers:8", "--load-cpus", &cpu, "-q", "-D", "60s"];
    let mut load = Command::new(ONBEAT).args(line).stdout(Stdio::null()).spawn().unwrap();
    let run = json(&["probe", "spin", "-a", &cpu, "-D", "1200ms", "-q", "-o", &place.path("run")], 0);
    load.kill().unwrap();
    load.wait().unwrap();
    counted(&run, "spin");
    let own = &run["cpus"][0];
    let (gaps, dropped) = (run["gaps"].as_array().unwrap(), run["gaps_dropped"].as_u64().unwrap());
    assert_eq!(gaps.len() as u64 + dropped, own["cycles"].as_u64().unwrap());
    let over = run["plan"]["over_ns"].as_i64().unwrap();
    for gap in gaps {
        assert_eq!(gap["cpu"], own["cpu"]);
        assert!(gap["ns"].as_i64().unwrap() >= over && gap["mono_ns"].as_i64().unwrap() > 0);
    }
    let lost = own["sum_ns"].as_f64().unwrap();
    let span = own["until_mono_ns"].as_f64().unwrap() - own["t0_mono_ns"].as_f64().unwrap();
    assert!((own["lost_ppm"].as_f64().unwrap() - lost / span * 1e6).abs() < 0.01 && lost < span);
    assert!(
        own["interrupts"].as_array().is_some_and(|all| all.iter().all(|irq| irq["count"].as_u64() > Some(0)))
    );
    assert_eq!((&run["plan"]["policy"], &run["plan"]["interval_ns"]), (&Value::from("other"), &Value::Null));
    is_read(&place.at("run"));
}

#[test]
fn a_spin_that_was_killed_is_known_to_its_last_second() {
    let place = Place::new();
    let args = ["probe", "spin", "-a", &cpu(), "-D", "60s", "-q", "-o", &place.path("run")];
    let mut child = Command::new(ONBEAT).args(args).stdout(Stdio::null()).spawn().unwrap();
    let blocks = place.at("run/blocks.jsonl");
    // Two lines: the second is complete then, too.
    while std::fs::read_to_string(&blocks).map_or(0, |text| text.lines().count()) < 2 {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let out = place.path("run.json");
    assert_eq!(code(&onbeat(&["report", &place.path("run"), "-o", &out])), 0);
    let run: Value = serde_json::from_slice(&std::fs::read(out).unwrap()).unwrap();
    counted(&run, "spin");
    assert_eq!(run["complete"], Value::Bool(false));
    assert!(
        run["cpus"][0]["lost_ppm"].as_f64().is_some() && run["elapsed_ns"].as_i64() >= Some(1_000_000_000)
    );
}

#[test]
fn each_kind_is_a_run_of_its_own_and_one_document() {
    let (place, cpu) = (Place::new(), cpu());
    let flags = ["-p", "0", "--idle", "as-is", "-a", &cpu, "-l", "50", "-D", "20s", "-q"];
    let folder = place.path("runs");
    let run = json(&[&["probe", "ipc", "ptsematest", "pipe", "-o", &folder][..], &flags].concat(), 0);
    counted(&run, "ipc");
    let kinds: Vec<&str> =
        run["cpus"].as_array().unwrap().iter().map(|own| own["kind"].as_str().unwrap()).collect();
    assert_eq!((kinds, &run["plan"]["kind"]), (vec!["futex", "pipe"], &Value::from("several")));
    for own in run["cpus"].as_array().unwrap() {
        assert_eq!((own["cycles"].as_u64(), &own["from_cpu"]), (Some(50), &own["cpu"]));
        assert!(own["min_ns"].as_i64() > Some(0));
    }
    let both = ["futex-same", "pipe-same"].map(|name| place.at("runs").join(name));
    both.iter().for_each(|bundle| is_read(bundle));
    let [one, other] = both.map(|path| path.display().to_string());
    let said = refused(&["compare", &one, &other], 2);
    assert!(said.contains("the measured quantity"), "{said}");
    let one =
        json(&[&["probe", "ipc", "pi", "--place", "same", "-o", &place.path("one")][..], &flags].concat(), 0);
    assert_eq!((&one["plan"]["kind"], &one["ended"]), (&Value::from("pi-mutex"), &Value::from("loops")));
    is_read(&place.at("one"));
}

#[test]
fn a_switch_is_counted_by_its_loops() {
    let place = Place::new();
    let run = json(
        &[
            "probe",
            "switch",
            "-p",
            "0",
            "--idle",
            "as-is",
            "-a",
            &cpu(),
            "-l",
            "200",
            "-q",
            "-o",
            &place.path("run"),
        ],
        0,
    );
    counted(&run, "switch");
    assert_eq!(run["cpus"][0]["cycles"], Value::from(200));
    is_read(&place.at("run"));
}

/// True if this process may use real-time priorities.
pub(super) fn may_be_real_time() -> bool {
    Command::new("chrt").args(["-f", "10", "true"]).status().is_ok_and(|status| status.success())
}

#[test]
fn an_inversion_is_resolved_with_inheritance_and_fails_without() {
    let (place, cpu) = (Place::new(), cpu());
    let paths = ["run", "pi", "shared", "plain", "again"].map(|name| place.path(name));
    let [run, pi, shared, plain, again] = paths.each_ref().map(String::as_str);
    let probe = ["probe", "pi", "--idle", "as-is", "-a", &cpu, "-p", "10", "-q", "-o"];
    if !may_be_real_time() {
        let said = refused(&[&probe[..], &[run]].concat(), 4);
        assert!(said.contains("CAP_SYS_NICE"), "{said}");
        return;
    }
    let run = json(&[&probe[..], &[pi, "-l", "200"]].concat(), 0);
    counted(&run, "pi");
    let own = &run["cpus"][0];
    assert_eq!((&run["plan"]["kind"], &own["measures"]), (&Value::from("pi"), &Value::from("inversion")));
    let of = &own["inversions"];
    assert_eq!((of["made"].as_u64(), of["resolved"].as_u64()), (Some(200), Some(200)));
    assert!(of["longest_hold_ns"].as_i64() > Some(0) && own["cycles"] == of["made"]);
    is_read(&place.at("pi"));
    let run = json(&[&probe[..], &[shared, "--mutex", "shared", "-l", "50"]].concat(), 0);
    assert_eq!(run["cpus"][0]["inversions"]["resolved"].as_u64(), Some(50));
    // Without inheritance the first inversion lasts as long as the medium thread computes.
    let without = ["--mutex", "plain", "--compute", "3ms"];
    let run = json(&[&probe[..], &[plain], &without].concat(), 3);
    let own = &run["cpus"][0];
    let of = &own["inversions"];
    assert_eq!((of["made"].as_u64(), of["resolved"].as_u64()), (Some(1), Some(0)));
    assert!(own["max_ns"].as_i64() >= Some(3_000_000), "{own}");
    assert_eq!((&run["ended"], &run["complete"]), (&Value::from("error"), &Value::from(true)));
    let named = |entry: &Value| entry["kind"] == "scheduler" && entry["invalidates"] == true;
    assert!(run["integrity"].as_array().unwrap().iter().any(named));
    let said = onbeat(&[&probe[..], &[again], &without].concat());
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.contains("was not resolved") && said.contains("--mutex pi"), "{said}");
    let said = refused(&["compare", pi, plain], 2);
    assert!(said.contains("the measured quantity"), "{said}");
}

#[test]
fn a_probe_names_the_load_beside_it_and_whether_it_held() {
    let cpu = cpu();
    let probes = [
        &["probe", "spin", "-p", "0"][..],
        &["probe", "ipc", "futex", "pipe", "--place", "same", "-p", "0", "--idle", "as-is"],
        &["probe", "switch", "-p", "0", "--idle", "as-is"],
    ];
    for load in ["timers:1", "cmd:sleep 0.5"] {
        for probe in probes {
            let place = Place::new();
            let folder = place.path("run");
            let flags = ["-a", &cpu, "-D", "2s", "-q", "-o", &folder, "--load", load, "--load-cpus", &cpu];
            let output = onbeat(&[probe, &flags[..], &["--json", "-"]].concat());
            let run: Value = serde_json::from_slice(&output.stdout).unwrap();
            let loads = run["loads"].as_array().unwrap();
            assert_eq!(loads.len(), if probe[1] == "ipc" { 2 } else { 1 }, "{probe:?}");
            assert!(loads.iter().all(|found| found["spec"] == load), "{probe:?}");
            // A busy machine may delay even a small load.
            let held = loads.iter().all(|found| found["held"] == true);
            assert!(!held || load == "timers:1", "{probe:?}: {loads:?}");
            assert_eq!(code(&output), if held { 0 } else { 7 }, "{probe:?}: {loads:?}");
            let noted = |entry: &Value| entry["kind"] == "load" && entry["invalidates"] == true;
            assert_eq!(run["integrity"].as_array().unwrap().iter().any(noted), !held, "{probe:?}");
        }
    }
}

#[test]
fn what_cannot_be_measured_is_refused_in_a_line_and_leaves_nothing() {
    let (place, cpu) = (Place::new(), cpu());
    let output = place.path("run");
    let refused_with = |args: &[&str], words: &[&str]| {
        let said = refused(&[args, &["-o", &output]].concat(), 2);
        assert!(words.iter().all(|word| said.contains(word)), "{args:?}: {said}");
        assert!(!place.at("run").exists(), "{args:?}");
    };
    refused_with(&["probe", "ipc", "fax"], &["fax", "futex", "pi-mutex", "mqueue", "semaphore", "socket"]);
    refused_with(&["probe", "ipc", "pipe", "--place", "across", "-a", &cpu], &["two CPUs", "--place same"]);
    refused_with(&["probe", "spin", "-a", "8000"], &["not online"]);
    refused_with(&["probe", "spin", "--over", "1ns"], &["one clock read"]);
    refused_with(&["probe", "spin", "-D", "0"], &["-D"]);
    refused_with(&["probe", "switch", "-i", "1us"], &["-i"]);
    refused_with(&["probe", "pi", "-p", "0", "-a", &cpu], &["-p 3"]);
    refused_with(&["probe", "pi", "-p", "2", "-a", &cpu], &["-p 3"]);
    refused_with(&["probe", "pi", "--compute", "1s"], &["--compute", "50 ms"]);
    refused_with(&["probe", "migrate", "-p", "1", "-a", &cpu], &["-p 2"]);
    refused_with(&["probe", "migrate", "--threads", "1", "-a", &cpu], &["at least 2"]);
    refused_with(&["probe", "migrate", "--work", "9ms", "-a", &cpu], &["80 %"]);
    refused_with(&["probe", "migrate", "--bound", "-a", &cpu], &["two CPUs"]);
    refused_with(&["probe", "migrate", "-P", "d:1ms:10ms"], &["probe deadline"]);
    refused_with(&["probe", "deadline", "-p", "5"], &["-P d:RUNTIME:PERIOD"]);
    refused_with(&["probe", "deadline", "-P", "d:2ms:1ms"], &["runtime <= deadline"]);
    refused_with(&["probe", "deadline", "--work", "2s"], &["--work"]);
    refused_with(&["probe", "net", "--size", "1"], &["32 to 1472"]);
    refused_with(&["probe", "net", "--time-limit", "2s"], &["--time-limit"]);
    refused_with(&["measure", "--policy", "deadline"], &["-P d:RUNTIME:PERIOD"]);
    for probe in ["spin", "ipc", "switch"] {
        refused_with(
            &["probe", probe, "-p", "0", "-a", &cpu, "--load", "memory"],
            &["--load", "choose from"],
        );
        refused_with(&["probe", probe, "-p", "0", "--load", "cpu"], &["no CPU is left", "--load-cpus"]);
    }
    // For root too: no threads that never sleep on all CPUs.
    refused_with(&["probe", "spin", "-a", &cpu, "--housekeeping", &cpu, "-p", "1"], &["-p 0"]);
}

#[test]
fn a_kill_leaves_no_semaphore() {
    let sets = || std::fs::read_to_string("/proc/sysvipc/sem").unwrap_or_default().lines().count();
    let (place, before) = (Place::new(), sets());
    let args =
        ["probe", "ipc", "semaphore", "-p", "0", "-a", &cpu(), "-D", "60s", "-q", "-o", &place.path("run")];
    let mut child = Command::new(ONBEAT).args(args).stdout(Stdio::null()).spawn().unwrap();
    while !place.at("run/semaphore-same/run.json").exists() && !place.at("run/run.json").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // The keeper of a process without a private namespace needs a moment.
    for _ in 0..200 {
        if sets() <= before {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{} sets of semaphores where there were {before}", sets());
}
