//! Experiments as a user sees them. No setting is changed: scripts only write their arguments, and
//! plans, records and bundles are synthetic.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use model::histogram::Bucket;
use model::run::{Block, Run};
use model::units::Nanos;
use serde_json::{Value, json};

use super::place::{Place, code, json as answered, onbeat, refused};

/// A script that notes its word in `calls`, and then runs this text.
fn script(place: &Place, then: &str) -> String {
    let path =
        place.text("switch", &format!("#!/bin/sh\necho \"$1\" >>\"{}\"\n{then}\n", place.path("calls")));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn calls(place: &Place) -> String {
    fs::read_to_string(place.at("calls")).unwrap_or_default().split_whitespace().collect()
}

/// Sets this number of late wake-ups, of 50 us or more.
fn late(us: u64) -> impl Fn(&mut Run, &mut Vec<Block>) {
    move |run, _| {
        let rows = [(0, 50_000, run.cpus[0].cycles.unwrap() - us), (50_000, 100_000, us)];
        let rows = rows.into_iter().filter(|row| row.2 > 0);
        run.cpus[0].histogram = rows.map(|(from, to, n)| Bucket::new(Nanos(from), Nanos(to), n)).collect();
        run.cpus[0].max_ns = None;
        run.cpus[0].worst.clear();
        run.cpus[0].fill_quantiles();
    }
}

/// Bundles of several boots; the i-th without the change has `a[i]` late wake-ups.
fn boots(place: &Place, a: &[u64], b: &[u64]) -> Vec<String> {
    boots_for(place, a, b, [10, 10])
}

/// Bundles with runs of these lengths in seconds, without the change and with it.
fn boots_for(place: &Place, a: &[u64], b: &[u64], seconds: [usize; 2]) -> Vec<String> {
    let side = |name: &str, counts: &[u64]| -> Vec<String> {
        let maxima = vec![20.0; seconds[usize::from(name == "b")]];
        let of = |(at, count): (usize, &u64)| {
            // A B B A ...
            let is_first = (name == "a") == (at % 2 == 0);
            let started = format!("2026-11-23T{at:02}:{}0:00Z", if is_first { 1 } else { 3 });
            place.bundle(&format!("{name}{at}"), &maxima, |run, blocks| {
                late(*count)(run, blocks);
                run.started.clone_from(&started);
            })
        };
        counts.iter().enumerate().map(of).collect()
    };
    let (a, b) = (side("a", a), side("b", b));
    [vec!["prove".into(), "--limit".into(), "50us".into(), "--across-boots".into()], a, vec!["--".into()], b]
        .concat()
}

#[test]
fn boots_are_pairs_and_have_a_verdict() {
    let place = Place::new();
    let line = boots(&place, &[9, 10, 11, 12, 8, 9, 10], &[2, 1, 0, 3, 2, 2, 1]);
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    let document = answered(&line, 0);
    assert_eq!(
        (&document["schema"], &document["verdict"]),
        (&json!("onbeat.comparison/1"), &json!("better"))
    );
    assert_eq!((&document["units"], &document["metric"]), (&json!(7), &json!("late-wake-ups")));
    let experiment = &document["experiment"];
    assert_eq!((&experiment["stopped"], &experiment["confirmed"]), (&json!("e-value"), &json!(true)));
    assert_eq!((&experiment["order"], &experiment["late"]), (&json!("abbaabbaabbaab"), &json!([69, 11])));
    let (ratio, ci) = (document["rate_ratio"].as_f64().unwrap(), &document["ci"]);
    assert!((ratio - 11.0 / 69.0).abs() < 1e-9);
    assert!(
        ci[0].as_f64().unwrap() <= ratio && ratio <= ci[1].as_f64().unwrap() && ci[1].as_f64().unwrap() < 1.0
    );
    let worse = Place::new();
    let line = boots(&worse, &[2; 7], &[9; 7]);
    assert_eq!(code(&onbeat(&line.iter().map(String::as_str).collect::<Vec<_>>())), 3);
}

#[test]
fn runs_that_share_a_boot_count_once() {
    let place = Place::new();
    let line = boots(&place, &[9, 10, 11, 12, 8, 9, 10], &[2, 1, 0, 3, 2, 2, 1]);
    let said = |boot: &dyn Fn(&str, usize) -> String| {
        for side in ["a", "b"] {
            for at in 0..7 {
                let file = place.at(&format!("{side}{at}/run.json"));
                let mut run: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
                run["boot"] = json!(boot(side, at));
                fs::write(&file, run.to_string()).unwrap();
            }
        }
        let output = onbeat(&line.iter().map(String::as_str).collect::<Vec<_>>());
        // The folder's name decides where its lines are wrapped.
        let told = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        (code(&output), told)
    };
    assert_eq!(said(&|side, at| format!("{side}{at}")).0, 0);
    let (code, told) =
        said(&|side, at| if side == "b" && at < 2 { "b".into() } else { format!("{side}{at}") });
    assert!(code == 7 && told.contains("are from the same boot but in different pairs"), "{told}");
    // A change without a boot: the runs of a pair differ by it alone.
    assert_eq!(said(&|_, at| format!("{}", at / 2)).0, 0);
    assert_eq!(said(&|_, _| String::new()).0, 0, "not known");
}

#[test]
fn too_few_boots_say_what_to_run_next() {
    let place = Place::new();
    let line = boots(&place, &[9, 10, 11], &[2, 1]);
    let output = onbeat(&line.iter().map(String::as_str).collect::<Vec<_>>());
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(code(&output), 7);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("next boot with the change, then: onbeat measure -a 0 -i "), "{text}");
    assert!(text.contains(" -D 10s ") && text.contains("at least 5 pairs are missing"), "{text}");
    let lists = [place.list("a.csv", &[9.0; 20]), place.list("b.csv", &[8.0; 20])];
    let line = refused(&["prove", "--limit", "5us", "--across-boots", &lists[0], "--", &lists[1]], 2);
    assert!(line.contains("is a list of maxima"), "{line}");
}

/// Alters one field of a bundle's document.
fn altered(place: &Place, bundle: &str, field: &str, value: Value) {
    let file = place.at(&format!("{bundle}/run.json"));
    let mut run: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    run[field] = value;
    fs::write(&file, run.to_string()).unwrap();
}

#[test]
fn boots_in_one_order_decide_nothing() {
    let place = Place::new();
    let line = boots(&place, &[40, 36, 32, 28, 24, 20, 16], &[38, 34, 30, 26, 22, 18, 14]);
    for at in 0..7 {
        for (side, minute) in [("a", 1), ("b", 3)] {
            let started = json!(format!("2026-11-23T{at:02}:{minute}0:00Z"));
            altered(&place, &format!("{side}{at}"), "started", started);
        }
    }
    let output = onbeat(&line.iter().map(String::as_str).collect::<Vec<_>>());
    let told = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(code(&output) == 7 && told.contains("began with the run without the change"), "{told}");
}

#[test]
fn boots_that_were_not_measured_alike_are_refused_or_dropped() {
    let place = Place::new();
    let line = boots_for(&place, &[9, 10, 11, 12, 8, 9, 10], &[2, 1, 0, 3, 2, 2, 1], [10, 60]);
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    let document = answered(&line, 7);
    let experiment = &document["experiment"];
    assert_eq!((&experiment["dropped"], &experiment["unequal"]), (&json!(7), &json!(7)));
    assert_eq!((&document["verdict"], &experiment["confirmed"]), (&json!("inconclusive"), &json!(false)));
    altered(&place, "b3", "loads", json!([{ "name": "mem", "spec": "mem:2x1G" }]));
    assert!(refused(&line, 2).contains("the load of"));
}

#[test]
fn a_plan_is_the_same_for_a_seed_and_calls_nothing() {
    let place = Place::new();
    let script = script(&place, "");
    let plan = |seed: &str| {
        let line = ["prove", "--script", &script, "--limit", "1ms", "--seed", seed, "--dry-run", "-a", "0"];
        let output = onbeat(&line);
        assert_eq!(code(&output), 0);
        String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(plan("7"), plan("7"));
    assert!(plan("7").contains("order: ababbabaabababababababbababababa equivalent"), "{}", plan("7"));
    assert!(plan("7").contains("7 pairs if all agree), or after 16 pairs"), "{}", plan("7"));
    assert_eq!(calls(&place), "");
}

#[test]
fn what_cannot_be_proven_is_refused_in_one_line() {
    let place = Place::new();
    let (script, folder) = (script(&place, ""), place.path("."));
    for (line, said) in [
        (&["--limit", "1ms"][..], "a change is missing"),
        (&["--script", &script], "--limit is missing"),
        (&["--script", &folder, "--limit", "1ms"], "give an executable file"),
        (&["--script", &script, "--limit", "1ms", "--pairs", "6"], "fewer than 7 cannot decide"),
        (&["--script", &script, "--limit", "1ms", "--segment", "1s"], "--segment: expected 2s or more"),
        (&["--script", &script, "--limit", "1ms", "--load", "nothing"], "--load:"),
        (&["--script", &script, "--limit", "1ms", "--for", "1s"], "--for: 1.0 s is too short"),
        (&["--script", &script, "--limit", "1ms", "--for", "1s", "--dry-run"], "7 pairs"),
        (&["--change", "vmstat-interval=", "--limit", "1ms"], "expected RULE or RULE=VALUE"),
        (&["--change", "isolate", "--limit", "1ms"], "expected RULE or RULE=VALUE"),
        (&["--change", "no-such-rule", "--limit", "1ms"], "unknown rule"),
        (&["--change", "no-such-rule=1", "--limit", "1ms"], "unknown rule"),
        (&["--resume", &folder], "contains experiment.json"),
        (&["--limit", "1ms", "--across-boots", "a", "b"], "put `--` between"),
    ] {
        let told = refused(&[&["prove", "-q"], line].concat(), 2);
        assert!(told.contains(said), "{line:?}: {told}");
    }
    assert_eq!(calls(&place), "");
}

fn proving(place: &Place, script: &str, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onbeat"));
    let folder = place.path("experiment");
    command.args(["prove", "-q", "--script", script, "-a", "0", "-o", &folder]);
    command.args(["--warm-up", "2s", "--settle", "0"]).args(more);
    command
}

#[test]
fn a_script_that_does_not_switch_ends_the_experiment_with_a_put_back() {
    for (then, said) in [
        ("test \"$1\" = a || { echo 'no such knob' >&2; exit 3; }", "ended with 3 (no such knob)"),
        ("test \"$1\" = a || sleep 1000", "and was killed"),
        ("test \"$1\" = a || { setsid sleep 1000 & }", "left 1 process running"),
    ] {
        let place = Place::new();
        let script = script(&place, then);
        // The first coin of this seed puts the change first.
        let more = ["--limit", "10s", "--segment", "2s", "--script-time", "5s", "--seed", "1"];
        let output = proving(&place, &script, &more).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains(said), "{told}");
        assert_eq!((code(&output), told.trim_end().lines().count()), (2, 1), "{told}");
        assert!(calls(&place).ends_with("ba"), "{}", calls(&place));
    }
}

#[test]
fn that_nothing_is_late_in_the_warm_up_is_told_before_the_pairs() {
    for (quiet, said) in [(false, 1), (true, 0)] {
        let place = Place::new();
        // It ends with the first call for the change, after the warm-up.
        let script = script(&place, "[ \"$1\" = a ]");
        let mut line = vec!["prove", "--script", &script, "--limit", "10s", "-a", "0", "--warm-up", "2s"];
        let folder = place.path("experiment");
        line.extend(["--settle", "0", "--segment", "2s", "--seed", "1", "-o", &folder]);
        line.extend(quiet.then_some("-q"));
        let output = onbeat(&line);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let lines = told.lines().filter(|line| line.contains("no wake-up reached 10 s in the warm-up"));
        assert_eq!((code(&output), lines.count()), (2, said), "{told}");
    }
}

#[test]
fn a_limit_that_every_wake_up_reaches_is_refused() {
    let place = Place::new();
    let script = script(&place, "");
    let output = proving(&place, &script, &["--limit", "1ns"]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("choose a higher limit") && code(&output) == 2, "{told}");
    assert_eq!(calls(&place), "a");
}

/// Waits until the change is in force; returns the running experiment.
fn in_force(place: &Place) -> Child {
    in_force_by(place, &script(place, ""))
}

fn in_force_by(place: &Place, script: &str) -> Child {
    let more = ["--limit", "10s", "--segment", "60s", "--seed", "1"];
    let mut child =
        proving(place, script, &more).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !calls(place).ends_with('b') {
        assert!(child.try_wait().unwrap().is_none(), "it ended, called {}", calls(place));
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

#[test]
fn of_another_program_cycles_are_counted_and_its_arguments_are_its_own() {
    let place = Place::new();
    let script = script(&place, "");
    let planned = |more: &[&str]| {
        let line = ["prove", "--script", &script, "--limit", "1ms", "--seed", "3", "--dry-run"];
        let output = onbeat(&[&line, more].concat());
        assert_eq!(code(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let program = planned(&["--", "./robot", "--limit", "5"]);
    assert!(program.contains("late is 1 ms or more; cycles of the program ./robot"), "{program}");
    assert!(program.contains("whether fewer cycles are late"), "{program}");
    assert!(planned(&["--victim", "jackd"]).contains("cycles of jackd"));
    assert!(planned(&["-a", "0"]).contains("whether fewer wake-ups are late"));
    let both = ["prove", "--script", &script, "--limit", "1ms", "-a", "0", "--victim", "jackd"];
    assert_eq!(code(&onbeat(&both)), 2);
}

#[test]
fn an_experiment_that_is_stopped_puts_back_and_can_be_gone_on_with() {
    let place = Place::new();
    let mut child = in_force(&place);
    let pid = child.id().to_string();
    assert!(Command::new("kill").arg(&pid).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(6));
    assert_eq!(calls(&place), "aba");
    let record: Value =
        serde_json::from_slice(&fs::read(place.at("experiment/experiment.json")).unwrap()).unwrap();
    assert_eq!((&record["schema"], &record["segments"]), (&json!("onbeat.experiment/1"), &json!([])));
    assert_eq!(record["pilot"]["valid"], true);
    let spans = ["script_time_ns", "warm_up_ns"].map(|name| &record["plan"][name]);
    assert_eq!(spans, [&json!(60_000_000_000u64), &json!(2_000_000_000u64)]);
}

#[test]
fn what_is_gone_on_with_has_the_times_that_were_fixed() {
    let place = Place::new();
    let mut record = saved_experiment(&place, 10, 1);
    // The first coin of this seed puts the change first.
    (record["segments"], record["pilot"], record["plan"]["seed"]) = (json!([]), Value::Null, json!(1));
    record["plan"]["limit_ns"] = json!(10_000_000_000u64);
    record["plan"]["script_time_ns"] = json!(1_500_000_000u64);
    record["plan"]["warm_up_ns"] = json!(3_000_000_000u64);
    fs::write(place.at("done/experiment.json"), record.to_string()).unwrap();
    script(&place, "[ \"$1\" = a ] || sleep 1000");
    let told = refused(&["prove", "-q", "--resume", &place.path("done")], 2);
    assert!(told.contains("b had not ended after 1.5 s and was killed"), "{told}");
    let record: Value = serde_json::from_slice(&fs::read(place.at("done/experiment.json")).unwrap()).unwrap();
    let observed = record["pilot"]["observed_ns"].as_u64().unwrap();
    assert!((2_000_000_000..10_000_000_000).contains(&observed), "{observed}");
    refused(&["prove", "-q", "--warm-up", "5s", "--resume", &place.path("done")], 2);
}

#[test]
fn a_stop_ends_a_script_that_hangs_and_says_so() {
    let place = Place::new();
    let script = script(&place, "[ \"$1\" = a ] || sleep 1000");
    let more = ["--limit", "10s", "--segment", "60s", "--seed", "1", "--script-time", "10m"];
    let mut command = proving(&place, &script, &more);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    while !calls(&place).ends_with('b') {
        std::thread::sleep(Duration::from_millis(20));
    }
    // Not SIGINT, which a background process may have inherited as ignored.
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("b had not ended yet and was ended when the run stopped"), "{told}");
    assert_eq!((code(&output), calls(&place).as_str()), (6, "aba"), "{told}");
}

#[test]
fn a_killed_experiment_is_put_back_by_its_keeper() {
    let place = Place::new();
    let mut child = in_force(&place);
    child.kill().unwrap();
    child.wait().unwrap();
    while !calls(&place).ends_with("ba") {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_keeper_whose_call_fails_tries_again_and_takes_nothing_for_put_back_before() {
    let place = Place::new();
    let fails = place.path("fails");
    let script = script(&place, &format!("[ \"$1\" = b ] || ! [ -e {fails} ] || {{ rm {fails}; exit 5; }}"));
    let mut child = in_force_by(&place, &script);
    fs::write(&fails, "").unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    while !calls(&place).ends_with("baa") {
        let said = fs::read_to_string(place.at("experiment/script-arm")).unwrap_or_default();
        assert!(!said.starts_with('a') || calls(&place).ends_with("baa"), "{said}");
        std::thread::sleep(Duration::from_millis(20));
    }
    while fs::read_to_string(place.at("experiment/script-arm")).unwrap() != "a" {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_experiment_is_gone_on_with_by_one_process_at_a_time() {
    let place = Place::new();
    let mut child = in_force(&place);
    let told = refused(&["prove", "--resume", &place.path("experiment")], 4);
    assert!(told.contains(&format!("another onbeat (process {})", child.id())), "{told}");
    let pid = child.id().to_string();
    assert!(Command::new("kill").arg(&pid).status().unwrap().success());
    child.wait().unwrap();
    assert_eq!(calls(&place), "aba", "the other one switched nothing");
}

#[test]
fn what_a_killed_experiment_left_in_force_is_put_back_first() {
    let place = Place::new();
    let record = saved_experiment(&place, 10, 1);
    fs::write(place.at("done/experiment.json"), record.to_string()).unwrap();
    fs::write(place.at("done/script-arm"), "b\n/x a ended with 5").unwrap();
    let output = onbeat(&["prove", "-q", "--resume", &place.path("done")]);
    assert_eq!((output.status.code(), calls(&place).as_str()), (Some(0), "a"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("after the kill, /x a ended with 5; trying again now"), "{told}");
    assert_eq!(fs::read_to_string(place.at("done/script-arm")).unwrap(), "a");
}

/// A record of seven pairs in its folder, each with its bundle.
fn saved_experiment(place: &Place, a: u64, b: u64) -> Value {
    fs::create_dir_all(place.at("done/segments")).unwrap();
    let segment = |pair: u64, arm: &str, count: u64| {
        let name = format!("segments/{pair}-{arm}");
        place.bundle(&format!("done/{name}"), &[20.0; 10], late(count));
        json!({ "pair": pair, "arm": arm, "valid": true, "bundle": name, "late": count, "samples": 10_000,
            "observed_ns": 10_000_000_000u64, "late_blocks": [0, 0], "p50_ns": 20_000 })
    };
    let segments: Vec<Value> =
        (0..7).flat_map(|pair| [segment(pair, "b", b), segment(pair, "a", a)]).collect();
    let plan = json!({ "change": "", "script": script(place, ""), "limit_ns": 50_000, "seed": 3,
        "segment_ns": 10_000_000_000u64, "settle_ns": 0, "most_pairs": 16, "stop_at": 20.0,
        "rate_margin": 2.0,
        "p50_factor": 1.1, "p50_ns": 1_000, "load_share": 0.8, "cpus": "0", "interval_ns": 1_000_000 });
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    json!({ "schema": "onbeat.experiment/1", "plan": plan, "kernel": kernel.trim(), "segments": segments,
        "pilot": { "valid": true } })
}

#[test]
fn how_long_a_change_takes_to_settle_is_told_before_the_first_pair() {
    let place = Place::new();
    let mut record = saved_experiment(&place, 10, 1);
    record["segments"] = json!([]);
    // The first coin of this seed puts the change first.
    record["plan"]["seed"] = json!(1);
    record["plan"]["settle_trial_ns"] = json!(2_000_000_000u64);
    fs::write(place.at("done/experiment.json"), record.to_string()).unwrap();
    let once = place.path("once");
    script(&place, &format!("[ \"$1\" = a ] || ! [ -e {once} ] || exit 3\n[ \"$1\" = a ] || touch {once}"));
    let output = onbeat(&["prove", "-q", "--resume", &place.path("done")]);
    // The trial, and the first pair, whose script fails.
    assert_eq!((code(&output), calls(&place).as_str()), (2, "baba"));
    let kept: Value = serde_json::from_slice(&fs::read(place.at("done/experiment.json")).unwrap()).unwrap();
    let arms: Vec<&Value> = kept["trial"].as_array().unwrap().iter().map(|run| &run["arm"]).collect();
    assert_eq!(arms, ["b", "a"]);
    assert_eq!(kept["plan"]["settle_ns"], json!(2_000_000_000u64), "the least");
    assert_eq!(kept["segments"], json!([]));
}

#[test]
fn a_record_that_decides_is_answered_without_measuring() {
    let place = Place::new();
    let record = saved_experiment(&place, 10, 1);
    let (folder, page) = (place.path("done"), place.path("page.html"));
    fs::write(place.at("done/experiment.json"), record.to_string()).unwrap();
    let document = answered(&["prove", "-q", "--resume", &folder, "--page", &page], 0);
    // It is shown without a lock, a script or the same kernel.
    let shown = answered(&["report", &folder], 0);
    assert_eq!((&shown["verdict"], &shown["experiment"]), (&document["verdict"], &document["experiment"]));
    assert!(refused(&["report", &folder, "-o", &place.path("x.svg")], 2).contains("alone: `report DIR`"));
    assert_eq!((&document["verdict"], &document["experiment"]["wins"]), (&json!("better"), &json!(7)));
    assert_eq!(document["experiment"]["segments"], 14);
    assert_eq!(calls(&place), "", "nothing was switched");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("Better: fewer late") && page.contains("fewer in 7 of 7 pairs"));
    let refuses = |change: &dyn Fn(&mut Value), said: &str| {
        let mut changed = record.clone();
        change(&mut changed);
        fs::write(place.at("done/experiment.json"), changed.to_string()).unwrap();
        let line = refused(&["prove", "--resume", &folder], 2);
        assert!(line.contains(said), "{line}");
    };
    refuses(&|record| record["kernel"] = json!("9.9-rt"), "it was started on kernel 9.9-rt");
    refuses(&|record| record["plan"]["stop_at"] = json!(0.5), "out of range");
    refuses(&|record| record["schema"] = json!("onbeat.experiment/2"), "its schema is");
}
