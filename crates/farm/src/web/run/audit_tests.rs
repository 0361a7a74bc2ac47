//! Audits of runs: what they say, who sees them, and what hostile files do to the server.
#![allow(clippy::disallowed_methods)] // Tests make bundles of their own.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::http::StatusCode;
use rules::audit::Audit;
use rules::intent::Profile;
use rules::judgement::AuditVerdict;
use serde_json::{Value, json};
use study::audit::{MachineSource, judge};

use crate::store::engines::on_page_engines;
use crate::web::tests::{app_of, get, header_of, place, text};
use crate::web::{AccessPolicy, App, FarmExposure, PublicReading};

fn corpus(machine: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus").join(machine)
}

/// The bundle of a run on a machine of the corpus, as onbeat writes it: the kernel's configuration
/// is a file, what was read for the audit alone is in `host.texts`.
fn bundle(folder: &Path, id: &str) -> PathBuf {
    let (machine, bundle) = (corpus("debian-6.12-rt"), folder.join(id));
    fs::create_dir(&bundle).unwrap();
    let run = fs::read_to_string(place("measured").join("run.json")).unwrap();
    let mut run: Value = serde_json::from_str(&run).unwrap();
    run["id"] = json!(id);
    fs::write(bundle.join("run.json"), run.to_string()).unwrap();
    fs::copy(place("measured").join("blocks.jsonl"), bundle.join("blocks.jsonl")).unwrap();
    for notes in ["host.errors", "host.lists", "host.links"] {
        fs::copy(machine.join(notes), bundle.join(notes)).unwrap();
    }
    let (host, mut texts) = (machine.join("host"), String::new());
    let mut left = vec![host.clone()];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let own = path.strip_prefix(&host).unwrap();
        if own.starts_with("boot") {
            fs::create_dir_all(bundle.join("host/boot")).unwrap();
            fs::copy(&path, bundle.join("host").join(own)).unwrap();
        } else {
            let note =
                json!({ "path": Path::new("/").join(own), "text": fs::read_to_string(&path).unwrap() });
            texts.push_str(&format!("{note}\n"));
        }
    }
    fs::write(bundle.join("host.texts"), texts).unwrap();
    bundle
}

fn append(file: PathBuf, note: &Value) {
    writeln!(fs::OpenOptions::new().append(true).open(file).unwrap(), "{note}").unwrap();
}

async fn answer(app: &Arc<App>, address: &str) -> (StatusCode, String) {
    let response = get(app, address).await;
    (response.status(), text(response).await)
}

async fn document(app: &Arc<App>, address: &str) -> Value {
    let (status, text) = answer(app, address).await;
    assert_eq!(status, StatusCode::OK, "{address}: {text}");
    serde_json::from_str(&text).unwrap()
}

fn wanted() -> Audit {
    judge(MachineSource::Captured(&corpus("debian-6.12-rt")), Profile::default(), None).unwrap().audit
}

#[test]
fn the_audit_of_a_run_is_that_of_its_machine() {
    on_page_engines(async |store| {
        let folder = tempfile::tempdir().unwrap();
        let bundle = bundle(folder.path(), "r1");
        let app = app_of(store, &[(&bundle, "west"), (&place("measured"), "east")]).await;
        let wanted = wanted();
        assert_eq!(document(&app, "/v1/runs/r1/audit").await, serde_json::to_value(&wanted).unwrap());

        let response = get(&app, "/runs/r1/audit").await;
        let policy = header_of(&response, "content-security-policy");
        assert!(
            policy.contains("script-src 'sha256-") && policy.starts_with("default-src 'none'"),
            "{policy}"
        );
        let page = text(response).await;
        let failing = wanted.findings.iter().filter(|found| found.verdict == AuditVerdict::Fail);
        assert!(failing.clone().count() > 3);
        for found in failing {
            assert!(page.contains(&format!("id=\"{}\"", found.rule)), "{}", found.rule);
        }
        assert!(page.contains("/assets/farm.css") && page.contains("href=\"/v1/runs/r1/audit\""));
        assert!(page.contains("href=\"/b/west\"") && !page.contains("://"));

        let counts = wanted.summary;
        let line = format!("{} of {} checks fail", counts.fail, counts.fail + counts.pass);
        for address in ["/b/west", "/runs/r1"] {
            assert!(answer(&app, address).await.1.contains("href=\"/runs/r1/audit\""), "{address}");
        }
        assert!(answer(&app, "/b/west").await.1.contains(&line), "{line}");
        let board = document(&app, "/v1/boards/west").await;
        assert_eq!(board["audit"]["run"], "r1");
        assert_eq!(board["audit"]["summary"], serde_json::to_value(counts).unwrap());
        // What a board's page says was judged once, however often it is asked for.
        fs::write(bundle.join("host.texts"), "none\n").unwrap();
        assert!(answer(&app, "/b/west").await.1.contains(&line));

        let other = app.store.runs("east", 1).await.unwrap().remove(0).id;
        assert_eq!(answer(&app, &format!("/runs/{other}/audit")).await.0, StatusCode::NOT_FOUND);
        assert!(!answer(&app, &format!("/runs/{other}")).await.1.contains("/audit\""));
        assert!(!answer(&app, "/b/east").await.1.contains("/audit\""));
        assert_eq!(document(&app, "/v1/boards/east").await["audit"], Value::Null);
        assert_eq!(answer(&app, "/runs/none/audit").await.0, StatusCode::NOT_FOUND);
    });
}

#[test]
fn two_runs_show_in_what_their_machines_differ() {
    on_page_engines(async |store| {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (bundle(folder.path(), "r1"), bundle(folder.path(), "r2"));
        // Of two notes of one path the last counts.
        let off = json!({ "path": "/proc/sys/vm/compaction_proactiveness", "text": "0\n" });
        append(second.join("host.texts"), &off);
        let app = app_of(store, &[(&first, "a"), (&second, "b")]).await;
        let found = document(&app, "/v1/runs/r2/audit?before=r1").await;
        assert_eq!((&found["schema"], &found["verdict"]), (&json!("onbeat.audit-diff/1"), &json!("better")));
        let rules: Vec<_> = found["findings"].as_array().unwrap().iter().map(|one| &one["rule"]).collect();
        assert_eq!(rules, ["proactive-compaction"]);
        let (status, page) = answer(&app, "/runs/r2/audit?before=r1").await;
        assert_eq!(status, StatusCode::OK);
        assert!(page.contains("Better: 1 rule fails no longer.") && page.contains(">0 (pass)<"), "{page}");
        for link in page.split("href=\"/").skip(1).filter_map(|rest| rest.split('"').next()) {
            let (status, _) = answer(&app, &format!("/{}", link.replace("&amp;", "&"))).await;
            assert_eq!(status, StatusCode::OK, "{link}");
        }
        assert_eq!(answer(&app, "/v1/runs/r2/audit?before=none").await.0, StatusCode::NOT_FOUND);
    });
}

#[test]
fn the_public_that_sees_no_names_sees_no_audit() {
    on_page_engines(async |store| {
        let folder = tempfile::tempdir().unwrap();
        let made = app_of(store, &[(&bundle(folder.path(), "r1"), "west")]).await;
        let store = Arc::into_inner(made).unwrap().store;
        let policy = AccessPolicy { public: Some(PublicReading::Read), metrics_open: false };
        let app = Arc::new(App::new(store, FarmExposure::Loopback, None).with_policy(policy));
        let (status, page) = answer(&app, "/b/west").await;
        assert_eq!(status, StatusCode::OK);
        assert!(!page.contains("/audit\"") && !page.contains("checks fail"), "{page}");
        assert_eq!(document(&app, "/v1/boards/west").await["audit"], Value::Null);
        for address in ["/runs/r1/audit", "/v1/runs/r1/audit", "/v1/runs/r1/audit?before=r1"] {
            let (status, text) = answer(&app, address).await;
            assert!(!status.is_success() && !text.contains("rt-throttling"), "{address}: {status}");
        }
    });
}

/// What is done to a bundle, in words and as it is done.
type BundleDamage = (&'static str, fn(&Path));

#[test]
fn hostile_files_of_a_machine_are_a_refusal_and_the_server_goes_on() {
    let damage: [BundleDamage; 5] = [
        ("notes that are none", |at| fs::write(at.join("host.lists"), "none\n").unwrap()),
        ("notes without an end", |at| {
            fs::File::create(at.join("host.texts")).unwrap().set_len(1 << 40).unwrap();
        }),
        ("notes that lead elsewhere", |at| {
            fs::remove_file(at.join("host.texts")).unwrap();
            symlink("/etc/passwd", at.join("host.texts")).unwrap();
        }),
        ("a folder that leads elsewhere", |at| {
            fs::remove_dir_all(at.join("host")).unwrap();
            symlink("/etc", at.join("host")).unwrap();
        }),
        ("more names than fit", |at| {
            let names: Vec<String> =
                (0..190_000).map(|number| format!("cpu{number}-{}", "x".repeat(60))).collect();
            append(at.join("host.lists"), &json!({ "path": "/sys/devices/system/cpu", "names": names }));
        }),
    ];
    on_page_engines(async |store| {
        let folder = tempfile::tempdir().unwrap();
        let places: Vec<PathBuf> =
            (0..damage.len()).map(|n| bundle(folder.path(), &format!("r{n}"))).collect();
        let names: Vec<String> = (0..damage.len()).map(|n| format!("board{n}")).collect();
        let all: Vec<_> = places.iter().zip(&names).map(|(at, name)| (at.as_path(), name.as_str())).collect();
        let app = app_of(store, &all).await;
        for (number, (what, does)) in damage.iter().enumerate() {
            does(&places[number]);
            for address in [format!("/runs/r{number}/audit"), format!("/v1/runs/r{number}/audit")] {
                let (status, text) = answer(&app, &address).await;
                assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{what}: {text}");
                assert!(!text.contains(folder.path().to_str().unwrap()) && !text.contains("root:"), "{text}");
            }
            let (status, page) = answer(&app, &format!("/b/board{number}")).await;
            assert_eq!(status, StatusCode::OK, "{what}");
            assert!(
                page.contains(&format!("/runs/r{number}/audit\"")) && !page.contains("checks fail"),
                "{what}"
            );
        }
        assert_eq!(answer(&app, "/").await.0, StatusCode::OK);
    });
}

#[test]
fn a_machine_with_more_than_any_has_is_judged_up_to_a_bound() {
    on_page_engines(async |store| {
        let folder = tempfile::tempdir().unwrap();
        let bundle = bundle(folder.path(), "r1");
        let names: Vec<String> = (0..40_000).map(|number| format!("cpu{number}")).collect();
        append(bundle.join("host.lists"), &json!({ "path": "/sys/devices/system/cpu", "names": names }));
        let app = app_of(store, &[(&bundle, "west")]).await;
        let found = document(&app, "/v1/runs/r1/audit").await;
        let verdict = |rule: &str| {
            let all = found["findings"].as_array().unwrap();
            all.iter().find(|one| one["rule"] == rule).unwrap()["verdict"].clone()
        };
        // What is read before those CPUs is judged, what comes after them is unknown and never a
        // pass.
        assert_eq!(
            (verdict("proactive-compaction"), verdict("kernel-samepage-merging")),
            (json!("fail"), json!("unknown"))
        );
        let merging = wanted().findings.into_iter().find(|one| one.rule == "kernel-samepage-merging");
        assert_eq!(merging.map(|one| one.verdict), Some(AuditVerdict::Pass));
        assert_eq!(answer(&app, "/b/west").await.0, StatusCode::OK);
    });
}
