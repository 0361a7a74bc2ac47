//! A board's program against a server, over a socket: the farm shows the board's data.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::server::{Server, ask, codes};
use bundle::record::made::MadeRecord;
use bundle::record::read::RecordReader;
use bundle::record::write::{DEFAULT_SIZE, RecordWriter};
use model::units::Nanos;
use model::watch::WatchSeries;
use push::cli::{PushEnvironment, run};

const MADE: MadeRecord =
    MadeRecord { cpus: 2, span: Nanos(300 * Nanos::SECOND.0), reboot: 25, wakeups: 300_000 };

/// `ONBEAT_FARM_BACKLOG=8640` sends a month of five minutes, and prints the time.
fn intervals() -> u64 {
    std::env::var("ONBEAT_FARM_BACKLOG").ok().and_then(|n| n.parse().ok()).unwrap_or(60)
}

fn push(home: &Path, arguments: &[&str]) -> u8 {
    let environment = PushEnvironment { state_home: None, home: Some(home.into()) };
    let words = ["onbeat-push"].iter().chain(arguments).map(OsString::from);
    run(words, &environment)
}

/// A board with a run, a phase of a suite and a record; returns the path of its state.
fn made_board(home: &Path) -> PathBuf {
    let state = home.join(".local/state/onbeat");
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs");
    for (run, place) in [("measured", "runs/measured"), ("hunt", "suites/enea/phases/none-cpu")] {
        fs::create_dir_all(state.join(place)).unwrap();
        for file in ["run.json", "blocks.jsonl"] {
            fs::copy(fixtures.join(run).join(file), state.join(place).join(file)).unwrap();
        }
    }
    let (mut writer, _) = RecordWriter::open_folder(&state.join("watch"), DEFAULT_SIZE).unwrap();
    for n in 0..intervals() {
        writer.append(&MADE.run(n), &MADE.interval(n)).unwrap();
    }
    drop(writer);
    state
}

#[test]
fn what_a_board_has_is_what_the_farm_shows() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("board");
    let state = made_board(&home);
    let store = format!("sqlite:{}", folder.path().join("farm.db").display());
    let server = Server::start(&store);
    let url = format!("http{}{}", "://", server.address);
    let code = codes(&store, 1).remove(0);
    // Nothing can be sent before it is enrolled, nothing in the clear, and no code is good twice.
    assert_eq!(push(&home, &["--once"]), 2);
    assert_eq!(push(&home, &["--json", "-"]), 2, "it is of --once");
    assert_eq!(push(&home, &["enrol", &format!("http{}farm.example", "://"), &code]), 2);
    assert_eq!(push(&home, &["enrol", &url, "wrong"]), 4);
    assert_eq!(push(&home, &["enrol", &url, &code, "--name", "press-3"]), 0);
    assert_eq!(push(&home, &["enrol", &url, &code, "--name", "press-4"]), 4);
    let document = folder.path().join("sent.json");
    for runs in [2, 0] {
        let began = std::time::Instant::now();
        let file = document.to_str().unwrap();
        assert_eq!(push(&home, &["--once", "--when", "always", "--quiet", "--json", file]), 0);
        let told: serde_json::Value = serde_json::from_slice(&fs::read(&document).unwrap()).unwrap();
        assert_eq!((&told["schema"], &told["runs"]), (&"onbeat.push/1".into(), &runs.into()), "{told}");
        assert_eq!((told["rows"].as_u64().unwrap() > 0, &told["left"]), (runs > 0, &false.into()), "{told}");
        println!("{} intervals of three series took {:.1?}", intervals(), began.elapsed());
        let mut wanted = 0;
        let mut reader = RecordReader::open_folder(&state.join("watch")).unwrap();
        reader
            .each_row(WatchSeries::Wakeup, |_, _, line| {
                wanted += line.cpus.iter().map(|row| row.n).sum::<u64>()
            })
            .unwrap();
        assert!(wanted > 0);
        let get = |path: &str| {
            let (status, answer) = ask(&server.address, "GET", path, "", "", "").unwrap();
            assert_eq!(status, 200, "{answer}");
            answer
        };
        let board = get("/v1/boards/press-3");
        assert_eq!(board["runs"].as_array().unwrap().len(), 2);
        let series = board["series"].as_array().unwrap();
        let of_wakeups = series.iter().filter(|one| one["series"].as_str().unwrap().starts_with("wakeup"));
        let total: u64 = of_wakeups
            .map(|one| {
                let (series, plan) = (one["series"].as_str().unwrap(), one["plan"].as_str().unwrap());
                let path = format!("/v1/boards/press-3/histograms?tier=1d&series={series}&plan={plan}");
                let days = get(&path);
                let days = days["histograms"].as_array().unwrap().clone();
                days.iter().map(|day| day["n"].as_u64().unwrap()).sum::<u64>()
            })
            .sum();
        assert_eq!(total, wanted);
        // The same record on a stick adds nothing.
        let record = state.join("watch").display().to_string();
        let mut import = super::server::farm(&["import", "--board", "press-3", &record, "--store", &store]);
        let imported = import.output().unwrap();
        let (words, had) = (String::from_utf8(imported.stdout).unwrap(), 3 * intervals());
        assert!(words.ends_with(&format!("; 1 record: 0 rows stored, {had} already stored\n")), "{words}");
        assert_eq!(imported.status.code(), Some(0));
        assert_eq!(get("/v1/boards/press-3")["series"], board["series"]);
        // The second time it has lost the acknowledgements.
        let _ = fs::remove_file(state.join("push/sent.json"));
    }
    revoked_and_enrolled_again(&home, &store, &url);
    removed_and_not_sent_again(&home, &store, &document);
}

/// The board notices that the farm lacks a run, sends it again, is refused and skips it, until it
/// may return.
fn removed_and_not_sent_again(home: &Path, store: &str, document: &Path) {
    let file = fs::read_to_string(home.join(".local/state/onbeat/runs/measured/run.json")).unwrap();
    let run: serde_json::Value = serde_json::from_str(&file).unwrap();
    let id = run["id"].as_str().unwrap();
    let forget = super::server::farm(&["forget", id, "--store", store]).output().unwrap();
    assert_eq!(forget.status.code(), Some(0), "{}", String::from_utf8_lossy(&forget.stderr));
    let mut left_out = 0;
    for _ in 0..3 {
        let asked = ["--once", "--when", "always", "--quiet", "--json", document.to_str().unwrap()];
        push(home, &asked);
        let told: serde_json::Value = serde_json::from_slice(&fs::read(document).unwrap()).unwrap();
        assert_eq!(&told["runs"], &serde_json::json!(0), "{told}");
        left_out += told["refused"].as_u64().unwrap();
    }
    assert_eq!(left_out, 1, "it is tried once");
    let known = super::server::farm(&["forget", "--store", store]).output().unwrap();
    assert!(String::from_utf8(known.stdout).unwrap().starts_with(&format!("{id}\t")));
    let allow = super::server::farm(&["forget", "--allow", id, "--store", store]).output().unwrap();
    let said = String::from_utf8(allow.stderr).unwrap();
    assert!(allow.status.success() && said.contains("within a day"), "{said}");
    // A day later the board asks again, and sends it.
    let sent = home.join(".local/state/onbeat/push/sent.json");
    let mut noted: serde_json::Value = serde_json::from_slice(&fs::read(&sent).unwrap()).unwrap();
    assert_eq!(noted["removed"].as_object().unwrap().len(), 1, "{noted}");
    noted["removed_asked_s"] = 0.into();
    fs::write(&sent, noted.to_string()).unwrap();
    for runs in [1, 0] {
        let asked = ["--once", "--when", "always", "--quiet", "--json", document.to_str().unwrap()];
        assert_eq!(push(home, &asked), 0);
        let told: serde_json::Value = serde_json::from_slice(&fs::read(document).unwrap()).unwrap();
        assert_eq!(&told["runs"], &serde_json::json!(runs), "{told}");
    }
}

fn revoked_and_enrolled_again(home: &Path, store: &str, url: &str) {
    // A token that is revoked ends it.
    let revoked = super::server::farm(&["enrol", "--revoke", "press-3", "--store", store]).status().unwrap();
    assert!(revoked.success());
    assert_eq!(push(home, &["--once", "--when", "always"]), 4);
    // A code made for its name gives it that name.
    let made = || super::server::farm(&["enrol", "--name", "press-3", "--store", store]).output().unwrap();
    let code = String::from_utf8(made().stdout).unwrap();
    assert_eq!(push(home, &["enrol", url, code.trim(), "--name", "press-3"]), 0);
    assert_eq!(push(home, &["--once", "--when", "always"]), 0);
    let (refused, said) = (made(), |bytes| String::from_utf8(bytes).unwrap());
    assert_eq!((refused.status.code(), said(refused.stdout)), (Some(2), String::new()));
    let words = said(refused.stderr);
    assert!(words.lines().count() == 1 && words.contains("enrol --revoke press-3"), "{words}");
}
