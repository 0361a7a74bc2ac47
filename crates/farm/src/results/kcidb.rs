//! Runs as a report for KCIDB, the kernel projects' common database of results.
//!
//! By the schema of reports, version 5.3 (kernelci/kcidb-io, `kcidb_io/schema/v05_03.py`): a test
//! belongs to a build, a build to a checkout; ids begin with their origin; nothing is null. A farm
//! has no sources, so that a checkout is named by its kernel's release and a build by the
//! environment that ran.

use std::collections::BTreeSet;

use model::units::Nanos;
use model::wall_time::wall_time;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::RunResult;
use crate::environments::KnownRecords;
use crate::ingest::environment::hex;
use crate::records::{EnvironmentRecord, FarmRun};

/// The version of the schema.
const VERSION: [u64; 2] = [5, 3];

/// True for a valid origin of a report: lowercase letters, digits and underscores.
pub fn is_origin(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    (1..=64).contains(&text.len()) && text.chars().all(plain)
}

/// The report; environments by their digests.
pub fn report(origin: &str, runs: &[FarmRun], environments: &KnownRecords, limit: Option<Nanos>) -> Value {
    let of = |run: &FarmRun| environments.get(&run.environment).map(|one| &**one);
    let (mut checkouts, mut builds, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    for run in runs {
        let checkout = checkout_id(origin, &run.release);
        if seen.insert(checkout.clone()) {
            checkouts.push(present(&[
                ("id", json!(checkout)),
                ("origin", json!(origin)),
                ("comment", text(&run.release)),
            ]));
        }
        let build = format!("{origin}:{}", run.environment);
        if seen.insert(build.clone()) {
            builds.push(present(&[
                ("id", json!(build)),
                ("origin", json!(origin)),
                ("checkout_id", json!(checkout)),
                ("comment", of(run).map_or(Value::Null, |known| text(&known.preempt))),
            ]));
        }
    }
    let tests: Vec<Value> = runs.iter().map(|run| test(origin, run, of(run), limit)).collect();
    json!({
        "version": { "major": VERSION[0], "minor": VERSION[1] },
        "checkouts": checkouts, "builds": builds, "tests": tests,
    })
}

fn checkout_id(origin: &str, release: &str) -> String {
    format!("{origin}:{}", hex(&Sha256::digest(format!("kernel {release}"))[..16]))
}

fn test(origin: &str, run: &FarmRun, of: Option<&EnvironmentRecord>, limit: Option<Nanos>) -> Value {
    let status = match RunResult::of(run, limit) {
        RunResult::Within => "PASS",
        RunResult::Over => "FAIL",
        RunResult::Measured => "DONE",
        RunResult::Void => "ERROR",
    };
    let seconds = |ns: Nanos| json!(ns.0 as f64 / 1e9);
    let labels = run.labels.iter().map(|(name, value)| (name.to_owned(), json!(model::text::clean(value))));
    let labels = Map::from_iter(labels);
    let model = of.map_or(Value::Null, |known| text(&known.model));
    let machine =
        present(&[("board", json!(run.board)), ("model", model), ("environment", json!(run.environment))]);
    let details = present(&[
        ("command", json!(run.command)),
        ("limit_ns", limit.map_or(Value::Null, |limit| json!(limit))),
        ("cpus", json!(run.cpus)),
        ("cycles", json!(run.cycles)),
        ("missed", json!(run.missed)),
        ("p9999_ns", json!(run.p9999_ns)),
        ("spikes", json!(run.spikes)),
        ("reasons_not_to_count", json!(run.invalid)),
        ("labels", if labels.is_empty() { Value::Null } else { Value::Object(labels) }),
    ]);
    present(&[
        ("id", json!(format!("{origin}:{}", run.id))),
        ("origin", json!(origin)),
        ("build_id", json!(format!("{origin}:{}", run.environment))),
        ("path", json!(format!("onbeat.{}", plain_path(&run.key.series)))),
        ("status", json!(status)),
        ("comment", json!("the largest latency of a run")),
        ("start_time", second(run.started)),
        ("duration", run.length_ns.map_or(Value::Null, seconds)),
        (
            "number",
            run.max_ns.map_or(
                Value::Null,
                |max| json!({ "value": max.0 as f64 / 1e9, "unit": "s", "prefix": "metric" }),
            ),
        ),
        ("environment", json!({ "comment": run.board, "misc": machine })),
        ("misc", json!({ "onbeat": details })),
    ])
}

/// A time in seconds; null if unknown.
fn second(t: i64) -> Value {
    let time = t.checked_mul(Nanos::SECOND.0).filter(|time| *time > 0).map(|time| wall_time(Nanos(time)));
    time.as_ref()
        .and_then(|text| text.split_once('.'))
        .map_or(Value::Null, |(whole, _)| json!(format!("{whole}Z")))
}

/// A part of a path: letters, digits, underlines and hyphens.
fn plain_path(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

/// A text without characters that the schema forbids; null if it is empty.
fn text(of: &str) -> Value {
    let clean = model::text::clean(of);
    if clean.is_empty() { Value::Null } else { json!(clean) }
}

/// An object of the known fields: the schema has no null.
fn present(fields: &[(&str, Value)]) -> Value {
    let known = fields.iter().filter(|(_, value)| !value.is_null());
    Value::Object(Map::from_iter(known.map(|(name, value)| ((*name).to_owned(), value.clone()))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::SeriesKey;
    use model::labels::Labels;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    fn run(id: &str, max: Option<i64>) -> FarmRun {
        FarmRun {
            id: id.into(),
            board: "press-3".into(),
            command: "measure".into(),
            key: SeriesKey { series: "probe-ipc".into(), plan: "p".into() },
            started: 1_700_000_000,
            complete: true,
            max_ns: max.map(Nanos),
            release: "6.12.1-rt1".into(),
            environment: "e1".into(),
            labels: Labels::parse(&["build=a b".to_owned(), "job=7".to_owned()]).unwrap(),
            ..FarmRun::default()
        }
    }

    /// Checks one object against the schema: permitted and required fields, formats of texts, and
    /// no null.
    fn check(object: &Value, allowed: &[&str], required: &[&str]) {
        let object = object.as_object().unwrap();
        assert!(required.iter().all(|name| object.contains_key(*name)), "{object:?}");
        assert!(object.keys().all(|name| allowed.contains(&name.as_str())), "{object:?}");
        for (name, value) in object {
            let origin = object["origin"].as_str().unwrap();
            match name.as_str() {
                "id" | "build_id" | "checkout_id" => {
                    assert!(value.as_str().unwrap().starts_with(&format!("{origin}:")));
                }
                "origin" => assert!(is_origin(origin)),
                "path" => {
                    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
                    assert!(value.as_str().unwrap().chars().all(plain));
                }
                "status" => {
                    let known = ["FAIL", "ERROR", "MISS", "PASS", "DONE", "SKIP"];
                    assert!(known.contains(&value.as_str().unwrap()));
                }
                "comment" => assert!(!value.as_str().unwrap().contains('\0')),
                "start_time" => assert!(model::wall_time::nanos_of(value.as_str().unwrap()).is_some()),
                "duration" => assert!(value.is_number()),
                "number" => {
                    let number = value.as_object().unwrap();
                    assert!(number["value"].is_number() && number["prefix"] == "metric");
                    assert!(number.keys().all(|name| ["value", "unit", "prefix"].contains(&name.as_str())));
                }
                "environment" => {
                    let fields = value.as_object().unwrap().keys();
                    let known = ["compatible", "comment", "misc"];
                    assert!(fields.into_iter().all(|name| known.contains(&name.as_str())));
                }
                _ => assert!(value.is_object(), "{name}"),
            }
        }
    }

    fn has_null(value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Array(all) => all.iter().any(has_null),
            Value::Object(all) => all.values().any(has_null),
            _ => false,
        }
    }

    #[test]
    fn a_test_has_the_labels_of_its_run_and_its_time_as_it_is_known() {
        let of = |run: FarmRun| report("a_lab", &[run], &BTreeMap::new(), None)["tests"][0].clone();
        let labelled = of(run("r1", Some(1)));
        assert_eq!(labelled["misc"]["onbeat"]["labels"], json!({ "build": "a b", "job": "7" }));
        assert_eq!(labelled["start_time"], "2023-11-14T22:13:20Z");
        let none = of(FarmRun { labels: Labels::default(), started: 0, ..run("r1", Some(1)) });
        assert!(none["misc"]["onbeat"]["labels"].is_null() && none["start_time"].is_null(), "{none}");
    }

    #[test]
    fn a_report_keeps_the_rules_of_the_schema() {
        let record = EnvironmentRecord {
            digest: "e1".into(),
            model: "a\0b\u{202e}".into(),
            preempt: "full".into(),
            ..EnvironmentRecord::default()
        };
        let environments = KnownRecords::from([("e1".to_owned(), Arc::new(record))]);
        let other = FarmRun {
            environment: "e2".into(),
            length_ns: Some(Nanos(1_500_000_000)),
            release: String::new(),
            key: SeriesKey { series: "a b/c".into(), plan: String::new() },
            ..run("r3", None)
        };
        let runs = [run("r1", Some(40_000)), run("r2", Some(60_000)), other];
        for limit in [None, Some(Nanos(50_000))] {
            let report = report("a_lab", &runs, &environments, limit);
            let fields: Vec<&String> = report.as_object().unwrap().keys().collect();
            assert!(
                fields
                    .iter()
                    .all(|name| ["version", "checkouts", "builds", "tests"].contains(&name.as_str()))
            );
            assert_eq!(report["version"], json!({ "major": 5, "minor": 3 }));
            assert!(!has_null(&report));
            let of = |name: &str| report[name].as_array().unwrap().clone();
            let ids = |all: &[Value]| -> BTreeSet<String> {
                all.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
            };
            for one in of("checkouts") {
                check(&one, &["id", "origin", "comment"], &["id", "origin"]);
            }
            for one in of("builds") {
                check(&one, &["id", "origin", "checkout_id", "comment"], &["id", "origin", "checkout_id"]);
                assert!(ids(&of("checkouts")).contains(one["checkout_id"].as_str().unwrap()));
            }
            let allowed = [
                "id",
                "origin",
                "build_id",
                "path",
                "status",
                "comment",
                "start_time",
                "duration",
                "number",
                "environment",
                "misc",
            ];
            for one in of("tests") {
                check(&one, &allowed, &["id", "origin", "build_id"]);
                assert!(ids(&of("builds")).contains(one["build_id"].as_str().unwrap()));
            }
            assert_eq!(ids(&of("tests")).len(), 3);
            let statuses: Vec<Value> = of("tests").iter().map(|one| one["status"].clone()).collect();
            match limit {
                None => assert_eq!(statuses, ["DONE", "DONE", "ERROR"]),
                Some(_) => assert_eq!(statuses, ["PASS", "FAIL", "ERROR"]),
            }
        }
        assert_eq!(report("x", &[], &environments, None)["tests"], json!([]));
        assert!(is_origin("my_lab2") && !is_origin("") && !is_origin("My lab") && !is_origin("a:b"));
    }
}
