//! Cures as a user sees them before the first run. No machine is cured here: that happens in
//! virtual machines.

use std::fs;

use serde_json::{Value, json};

use super::place::{Place, onbeat, refused};

#[test]
fn what_cannot_be_cured_is_refused_before_anything_is_measured() {
    let place = Place::new();
    let folder = place.path("");
    for (line, said) in [
        (&[][..], "--limit is missing"),
        (&["--limit", "0"], "--limit: expected more than 0"),
        (
            &["--limit", "1ms", "--for", "10m"],
            "--for: 10 min is too short. A horizon of 10 min needs a clean run of 30 min 3 s",
        ),
        (&["--limit", "1ms", "--for", "1000y"], "--for:"),
        (&["--limit", "1ms", "--horizon", "0"], "--horizon: expected more than 0"),
        (&["--limit", "1ms", "-a", "4095"], "CPU 4095 is offline or not permitted"),
        (&["--limit", "1ms", "--look", "1s"], "--look: expected 2s or more"),
        (&["--limit", "1ms", "--load", "nothing"], "--load:"),
        (&["--resume", &folder], "contains cure.json"),
        (&["--resume", &folder, "--limit", "1ms"], "cannot be used with"),
    ] {
        let told = refused(&[&["cure", "-q"], line].concat(), 2);
        assert!(told.contains(said), "{line:?}: {told}");
    }
}

#[test]
fn a_plan_says_what_is_fixed_and_what_could_be_tried() {
    let output =
        onbeat(&["cure", "--limit", "100us", "-a", "0", "--horizon", "1m", "--seed", "3", "--dry-run"]);
    let told = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(output.status.success(), "{told}");
    for part in ["late is 100 us or more; CPU 0, no load;", "seed 3 ", "a run of 3 min 3 s", "40, 120, 240"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn a_record_that_cannot_be_gone_on_with_says_why() {
    let place = Place::new();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let plan = json!({ "limit_ns": 50_000, "horizon_ns": 1_000, "at_most_ns": 1_000, "cpus": "0",
        "interval_ns": 1_000_000, "look_ns": 1_000, "hunt_ns": 1_000 });
    let record = json!({ "schema": "onbeat.cure/1", "plan": plan, "kernel": kernel.trim(), "ended": "held", "held": true });
    let refuses = |change: &dyn Fn(&mut Value), said: &str| {
        let mut changed = record.clone();
        change(&mut changed);
        fs::create_dir_all(place.at("done")).unwrap();
        fs::write(place.at("done/cure.json"), changed.to_string()).unwrap();
        let line = refused(&["cure", "--resume", &place.path("done")], 2);
        assert!(line.contains(said), "{line}");
    };
    refuses(&|_| {}, "the limit holds");
    refuses(&|record| record["kernel"] = json!("9.9-rt"), "it was started on kernel 9.9-rt");
    refuses(&|record| record["schema"] = json!("onbeat.cure/2"), "its schema is");
    refuses(&|record| record["plan"]["look_ns"] = json!(0), "out of range");
    refuses(
        &|record| record["steps"] = json!([{ "kept": true, "experiment": "/etc" }]),
        "names a folder outside of its own",
    );
    refuses(
        &|record| (record["boot"], record["steps"]) = (json!("another"), json!([{ "kept": true }])),
        "the machine was rebooted",
    );
}

/// A finished cure, with the bundles of its runs.
fn story(place: &Place) -> String {
    let run = |name: &str, us: f64, changes: u64, late: u64| {
        let bundle = format!("runs/{name}");
        place.bundle(&format!("told/{bundle}"), &[us; 30], |_, _| {});
        json!({ "bundle": bundle, "changes": changes, "valid": true, "late": late, "samples": 30_000,
            "observed_ns": 30_000_000_000u64, "max_ns": us as u64 * 1_000, "long": late == 0,
            "verdict": if late == 0 { "supported" } else { "" } })
    };
    fs::create_dir_all(place.at("told/runs")).unwrap();
    let (before, after) = (run("001", 700.0, 0, 12), run("002", 20.0, 1, 0));
    let plan = json!({ "limit_ns": 100_000, "horizon_ns": 10_000_000_000u64, "at_most_ns": 600_000_000_000u64,
        "cpus": "0", "interval_ns": 1_000_000, "look_ns": 1_000, "hunt_ns": 1_000 });
    let step = json!({ "culprit": "an interrupt's thread", "change": "irq-affinity", "verdict": "better",
        "kept": true, "why": "so",
        "candidate": { "rules": ["irq-affinity"], "changes": ["irq:24: 0-3 -> 0-1"], "risk": "medium" },
        "rate_ratio": 0.0, "ci": [0.0, 0.04], "pairs": 8, "wins": 8, "late": [90, 0],
        "e_value": 50.3, "level": 40.0, "before": "", "after": "", "experiment": "" });
    let hunt = json!({ "length_ns": 10_000_000_000u64, "latency_ns": 9_000_000, "spikes": 12, "culprits": [
        { "name": "an interrupt's thread", "lost_ns": 8_000_000, "spikes": 12 }] });
    let record = json!({ "schema": "onbeat.cure/1", "limit_ns": 100_000, "held": true, "ended": "held",
        "plan": plan, "steps": [step], "runs": [before, after], "hunts": [hunt] });
    fs::write(place.at("told/cure.json"), record.to_string()).unwrap();
    place.path("told")
}

#[test]
fn a_story_is_told_again_from_its_folder() {
    let place = Place::new();
    let (folder, page) = (story(&place), place.path("story.html"));
    let output = onbeat(&["report", &folder]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && text.contains("irq-affinity, against an interrupt's thread: kept"),
        "{text}"
    );
    assert!(text.contains("Held: 1 change is kept."), "{text}");
    assert!(onbeat(&["report", &folder, "-o", &page]).status.success());
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("Culprits") && page.matches("<svg").count() >= 6, "{}", page.len());
    assert!(
        refused(&["report", &folder, "-o", &place.path("story.svg")], 2)
            .contains("expected the folder of a cure alone")
    );
}
