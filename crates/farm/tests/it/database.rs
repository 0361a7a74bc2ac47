//! A store in PostgreSQL as a user has it: refusals, an hour without it, a second server, copies.

use std::process::Command;

use serde_json::json;

use super::cluster::MadeCluster;
use super::server::{Server, ask, codes, farm};

fn told(arguments: &[&str]) -> (i32, String, String) {
    let output = farm(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn cluster() -> Option<MadeCluster> {
    MadeCluster::start(false).map_err(|why| eprintln!("left out: PostgreSQL ({why})")).ok()
}

#[test]
fn without_its_database_a_farm_says_so_and_comes_back_by_itself() {
    let Some(cluster) = cluster() else { return };
    let folder = tempfile::tempdir().unwrap();
    let objects = folder.path().join("objects").display().to_string();
    let store = cluster.url("public");
    let code = codes(&store, 1).remove(0);
    let server = Server::with(&store, &["--objects", &objects]);
    let asked = json!({ "code": code, "name": "a" }).to_string();
    let (status, answer) = ask(&server.address, "POST", "/v1/enrol", "", "", &asked).unwrap();
    assert_eq!(status, 201, "{answer}");
    let token = answer["token"].as_str().unwrap().to_owned();
    let row = |seq: u64| {
        json!({ "seq": seq, "mono_ns": seq, "span_ns": 1, "wall_ns": seq, "cpus": [] }).to_string() + "\n"
    };
    let put = |seq: u64| {
        let path = format!("/v1/rows/b/r/timer/{seq}");
        ask(&server.address, "PUT", &path, &token, "", row(seq)).unwrap()
    };
    assert_eq!(put(0).0, 201);
    // No other server may serve it, wherever its bundles are.
    let elsewhere = folder.path().join("elsewhere").display().to_string();
    let (code, _, said) = told(&["serve", "--store", &store, "--objects", &elsewhere]);
    assert!(code == 4 && said.contains("another server uses the database"), "{said}");
    cluster.tell("stop");
    let (status, answer) = put(1);
    let detail = answer["detail"].as_str().unwrap_or_default();
    assert!(status == 503 && detail.contains("check that its database runs"), "{answer}");
    assert!(!detail.contains('\n') && !detail.contains("farm@"), "{detail}");
    assert_eq!(ask(&server.address, "GET", "/v1/boards", "", "", "").unwrap().0, 503);
    let (code, _, said) = told(&["check", "--store", &store.replace("farm@", "farm:secret@")]);
    assert!(code == 1 && said.contains("PostgreSQL") && !said.contains("secret"), "{said}");
    cluster.tell("start");
    assert_eq!((put(0).0, put(1).0), (200, 201));
    drop(server);
    assert_eq!(told(&["check", "--store", &store]).0, 0);
}

#[test]
fn a_database_is_looked_at_copied_and_handed_out() {
    let Some(cluster) = cluster() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (store, objects) = (cluster.url("public"), at("objects"));
    let runs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs");
    let runs = runs.display().to_string();
    let import = ["import", "--board", "a", "--store", &store, "--objects", &objects, &runs];
    for said in ["2 runs stored", "2 already stored"] {
        let (code, out, told) = told(&import);
        assert!(code == 0 && out.contains(said), "{out}{told}");
    }
    let (code, _, said) = told(&["backup", &at("copy"), "--store", &store]);
    assert!(code == 2 && said.contains("pg_dump"), "{said}");
    assert_eq!(told(&["prune", "--store", &store, "--objects", &objects]).0, 0);
    let (code, csv, _) = told(&["export", "--store", &store]);
    assert!(code == 0 && csv.lines().count() > 1, "{csv}");

    // A copy in another database is the same store.
    let dump = cluster.program("pg_dump", &["--no-owner", "postgres"]);
    let made = cluster.program("createdb", &["copy"]);
    assert!(
        Command::new("sh")
            .args(["-c", &format!("{made} && {dump} | {}", cluster.program("psql", &["-q", "copy"]))])
            .output()
            .unwrap()
            .status
            .success()
    );
    let copy = store.replace("/postgres?", "/copy?");
    let (code, out, said) = told(&["check", "--store", &copy]);
    assert!(code == 0 && out == "2 runs checked, 0 faults found\n", "{out}{said}");
    assert_eq!(told(&["export", "--store", &copy]).1, csv);
}
