//! Suites as a user sees them, with short phases. No setting is changed: the recipes here compare
//! no preemption models.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::place::{Place, code, json, onbeat, refused};

/// Two phases of 20 wake-ups, the second under a load.
const RECIPE: &str = "name = \"own\"\ntitle = \"a test\"\ninterval = \"10ms\"\npriority = 1\n\
    settle = \"1ms\"\n\n[[phase]]\nid = \"idle\"\nsamples = 20\n\n\
    [[phase]]\nid = \"cpu\"\nload = \"LOAD\"\nsamples = 150\n";

fn phases(suite: &Value) -> Vec<(String, bool)> {
    let phases = suite["phases"].as_array().unwrap().iter();
    phases.map(|phase| (phase["id"].as_str().unwrap().into(), phase["valid"].as_bool().unwrap())).collect()
}

#[test]
fn flags_of_a_suite_are_refused_beside_the_list_of_all() {
    for flags in [&["--with", "/runs/x"][..], &["--plan"], &["-o", "x"], &["--yes"], &["--label", "a=b"]] {
        let line = refused(&[&["suite"], flags].concat(), 2);
        assert!(line.contains(&format!("{} needs a suite", flags[0])), "{line}");
    }
    assert_eq!(code(&onbeat(&["suite", "-q"])), 0);
}

#[test]
fn a_suite_is_run_tabulated_and_gone_on_with() {
    let place = Place::new();
    let recipe = place.text("own.toml", &RECIPE.replace("LOAD", "cpu:1"));
    let folder = place.path("suite");
    // A machine that does not permit the priority has invalid phases, which are reported.
    let expected =
        if onbeat(&["measure", "-p", "1", "-D", "100ms", "-q", "-o", &place.path("try")]).status.success() {
            (0, true)
        } else {
            (7, false)
        };
    let suite = json(&["suite", &recipe, "-q", "-o", &folder], expected.0);
    assert_eq!(phases(&suite), [("idle".to_owned(), expected.1), ("cpu".to_owned(), expected.1)]);
    if !expected.1 {
        return;
    }
    assert_eq!((&suite["complete"], &suite["schema"]), (&Value::from(true), &Value::from("onbeat.suite/1")));
    // As if it had been killed in the second phase, after its bundle was created.
    let mut cut = suite.clone();
    cut["phases"].as_array_mut().unwrap().pop();
    cut["complete"] = Value::from(false);
    fs::remove_dir_all(format!("{folder}/phases/2-2-cpu")).unwrap();
    fs::create_dir(format!("{folder}/phases/2-2-cpu")).unwrap();
    fs::write(format!("{folder}/suite.json"), cut.to_string()).unwrap();
    let resumed = json(&["suite", &recipe, "-q", "--resume", &folder], 0);
    assert_eq!(phases(&resumed).len(), 2);
    assert_eq!(resumed["phases"][0], suite["phases"][0], "what was there is not run again");
    assert_eq!(resumed["phases"][1]["bundle"], "phases/2-2-cpu-again-2");
    for (flags, said) in [
        (&["--phase", "5s"][..], "--phase: the suite was started with another value"),
        (&["--seed", "1"], "--seed: the suite was started with another value"),
        (&["-a", "900"], "-a: the suite was started with another value"),
        (&["--with", &folder], "is given twice"),
    ] {
        let line = refused(&[&["suite", &recipe, "--resume", &folder], flags].concat(), 2);
        assert!(line.contains(said), "{flags:?}: {line}");
    }
    for (from, to, said) in [
        ("priority = 1", "priority = 2", "priority was 1 and is 2 now"),
        ("interval = \"10ms\"", "interval = \"5ms\"", "interval was 10 ms and is 5 ms now"),
        ("samples = 20\n", "samples = 30\n", "samples of idle was 20 and is 30 now"),
        ("cpu:1", "cpu:2", "load of cpu was cpu:1 and is cpu:2 now"),
        ("settle", "order = \"abba\"\nsettle", "order was listed and is abba now"),
    ] {
        let changed = RECIPE.replace("LOAD", "cpu:1").replacen(from, to, 1);
        let changed = place.text("changed.toml", &changed);
        let line = refused(&["suite", &changed, "--resume", &folder], 2);
        assert!(line.contains(said) && line.contains("start a new suite"), "{to}: {line}");
    }
    let line = refused(&["suite", "quick", "--resume", &folder], 2);
    assert!(line.contains("is own, not quick"), "{line}");
    // Resumed on another kernel: the rows of the first stay, and none of them counts for this one.
    let mut begun = suite.clone();
    begun["kernel"] = Value::from("9.9-rt");
    for phase in begun["phases"].as_array_mut().unwrap() {
        phase["kernel"] = Value::from("9.9-rt");
    }
    fs::write(format!("{folder}/suite.json"), begun.to_string()).unwrap();
    let both = json(&["suite", &recipe, "-q", "--resume", &folder], 0);
    let kernels: Vec<&Value> =
        both["phases"].as_array().unwrap().iter().map(|phase| &phase["kernel"]).collect();
    let own = &suite["phases"][0]["kernel"];
    assert_eq!(kernels, [&Value::from("9.9-rt"), &Value::from("9.9-rt"), own, own]);
    fs::write(format!("{folder}/suite.json"), resumed.to_string()).unwrap();
    // A suite from another kernel is a separate row.
    let mut other = suite.clone();
    other["phases"][0]["kernel"] = Value::from("9.9-rt");
    fs::create_dir(place.at("other")).unwrap();
    fs::write(place.at("other/suite.json"), other.to_string()).unwrap();
    let table = onbeat(&["suite", &recipe, "-q", "--resume", &folder, "--with", &place.path("other")]);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.contains("kernel 9.9-rt") && table.contains("worst (p99.99)"), "{table}");
}

#[test]
fn killed_in_its_first_phase_it_can_be_gone_on_with() {
    let place = Place::new();
    let recipe = place.text("own.toml", &RECIPE.replace("LOAD", "cpu:1").replace("20", "2000"));
    let folder = place.path("suite");
    let mut suite = std::process::Command::new(env!("CARGO_BIN_EXE_onbeat"))
        .args(["suite", &recipe, "-q", "-o", &folder])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !place.at("suite/phases").exists() && suite.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    suite.kill().unwrap();
    suite.wait().unwrap();
    let plan = onbeat(&["suite", &recipe, "--plan", "--resume", &folder]);
    assert_eq!(code(&plan), 0, "{}", String::from_utf8_lossy(&plan.stderr));
}

#[test]
fn a_phase_whose_load_does_not_load_is_a_hole() {
    let place = Place::new();
    let recipe = place.text("own.toml", &RECIPE.replace("LOAD", "cmd:sleep 1000").replace("150", "450"));
    let output = onbeat(&["suite", &recipe, "-q", "-o", &place.path("suite")]);
    let table = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(code(&output), 7, "{table}");
    assert!(table.contains("! cpu: "), "{table}");
}

#[test]
fn a_plan_runs_nothing_and_refusals_are_one_line() {
    let place = Place::new();
    let plan = onbeat(&["suite", "osadl", "--plan"]);
    let plan = String::from_utf8(plan.stdout).unwrap();
    assert!(plan.contains("64000000 samples") && plan.contains("changes no setting"), "{plan}");
    let wrong = place.text("wrong.toml", &RECIPE.replace("priority", "prio").replace("LOAD", "cpu"));
    let taken = place.path("");
    for (arguments, exit, said) in [
        (&["suite", "slow"][..], 2, "choose from"),
        (&["suite", &wrong], 2, "wrong.toml:4:1: unknown field `prio`"),
        (&["suite", "./no-such.toml"], 2, "cannot read"),
        (&["suite", "quick", "--phase", "0"], 2, "more than 0"),
        (&["suite", "quick", "-o", &taken], 2, "already exists"),
        (&["suite", "quick", "--resume", &taken], 2, "suite.json"),
        (&["suite", "quick", "--models", "quantum"], 5, ""),
    ] {
        let line = refused(arguments, exit);
        assert!(line.contains(said), "{arguments:?}: {line}");
    }
}

/// Two phases twice, one of them a thread that never sleeps; no setting is changed.
const MIRRORED: &str = "name = \"own\"\ntitle = \"a test\"\npriority = 1\nsettle = \"1ms\"\n\
    order = \"abba\"\n\n\
    [[phase]]\nid = \"idle\"\nsamples = 20\n\n\
    [[phase]]\nid = \"spin\"\nmeasure = \"spin\"\nlength = \"1s\"\nhog = true\n";

#[test]
fn a_mirrored_suite_spins_and_wakes_up_twice() {
    let place = Place::new();
    let recipe = place.text("own.toml", MIRRORED);
    let output = onbeat(&["suite", &recipe, "--plan"]);
    if code(&output) == 5 {
        let line = String::from_utf8(output.stderr).unwrap();
        assert!(line.contains("it needs a machine with two or more"), "{line}");
        return;
    }
    let plan = String::from_utf8(output.stdout).unwrap();
    assert!(plan.contains("it changes no setting") && plan.contains("spinning for 1 s"), "{plan}");
    let output = onbeat(&["suite", &recipe, "-q", "-o", &place.path("suite")]);
    let table = String::from_utf8(output.stdout).unwrap();
    let document = fs::read_to_string(place.at("suite/suite.json")).unwrap();
    let suite: Value = serde_json::from_str(&document).unwrap();
    let ids: Vec<String> = phases(&suite).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["idle", "spin", "spin.2", "idle.2"], "{table}");
    for phase in suite["phases"].as_array().unwrap() {
        let spins = phase["id"].as_str().unwrap().starts_with("spin");
        assert_eq!(phase["measure"], if spins { "spin" } else { "wake-ups" });
        let valid = phase["valid"] == true;
        assert!(!valid || spins != phase["stops"].as_array().unwrap().is_empty(), "{phase}");
    }
    assert!(table.contains("never sleeps was off"), "{table}");
}

#[test]
fn a_recipe_of_two_boots_says_which_is_missing() {
    let plan = onbeat(&["suite", "enea-threadirqs", "--plan"]);
    let plan = String::from_utf8(plan.stdout).unwrap();
    assert!(
        plan.contains("threadirqs on the kernel's command line") || plan.contains("PREEMPT_RT"),
        "{plan}"
    );
}

#[test]
fn what_a_suite_may_not_do_is_refused_before_anything_is_made() {
    let place = Place::new();
    let both = MIRRORED.replace("length = \"1s\"", "length = \"11s\"");
    let long = place.text("long.toml", &both);
    let load = place.text("load.toml", &MIRRORED.replace("hog = true", "load = \"cpu\""));
    let limit =
        place.text("limit.toml", &MIRRORED.replace("hog = true", "settings = [\"rt-limit=1/1000000\"]"));
    let word = place.text("word.toml", &MIRRORED.replace("hog = true", "settings = [\"fast\"]"));
    for (recipe, said) in [
        (&long, "long.toml:12:7: spin: length: expected 1 s to 10 s"),
        (&load, "load.toml:12:7: spin: spinning takes a length"),
        (&limit, "expected RUNTIME/PERIOD"),
        (&word, "word.toml:15:14: spin: invalid setting 'fast'"),
    ] {
        let line = refused(&["suite", recipe, "-o", &place.path("suite")], 2);
        assert!(line.contains(said), "{line}");
    }
    assert!(!place.at("suite").exists());
}

/// Like the phases of a suite whose program file has capabilities: a request to the kernel before
/// the program's start is lost then, so the program makes it itself.
#[test]
fn a_run_ends_with_its_starter() {
    let place = Place::new();
    let line = "\"$0\" --starter=$$ measure -q -p 0 --idle as-is -i 10000 -D 1000s -o \"$1\" & wait";
    let mut starter = Command::new("sh")
        .args(["-c", line, env!("CARGO_BIN_EXE_onbeat"), &place.path("run")])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let document = || -> Value {
        let text = fs::read(place.at("run/run.json")).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    };
    while fs::read(place.at("run/blocks.jsonl")).unwrap_or_default().is_empty() {
        assert!(starter.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(20));
    }
    starter.kill().unwrap();
    starter.wait().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while document()["ended"] != "signal" {
        assert!(Instant::now() < until, "it measures on");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(refused(&["--starter", "4194304", "rules"], 2).contains("onbeat's own processes"));
}
