//! A model of the boards' data against the farm's, while its server and its database are killed
//! repeatedly: no row is lost and none is counted twice.
//!
//! `ONBEAT_FARM_KILLS=1000` makes it longer; `cargo xtask experiments --only farm-kills` does so.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use model::rng::SplitMix64;
use model::rows::RowCounts;
use model::units::{Cpu, Nanos};
use model::watch::WatchRow;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::cluster::MadeCluster;
use super::scene::{Scene, below, kills_wanted};
use super::server::{ask, codes, farm};

/// Rows that a board has in the beginning, and those that it makes between two kills: each kill
/// meets new ones.
const FIRST: u64 = 100;
const EACH: u64 = 8;

fn rows_for(kills: u64) -> u64 {
    FIRST + kills * EACH
}

/// Wall clocks of the boards, in seconds since 1970: unset, 1970, 2038, right.
const CLOCKS: [Option<i64>; 4] = [None, Some(0), Some(2_150_000_000), Some(1_750_000_000)];
/// The board that sends a run over and over.
const RUNNER: &str = "runner";

/// State shared by all boards.
struct Outside {
    rows: u64,
    /// Number of those made.
    made: AtomicU64,
    /// Requests that stored something new.
    stored: AtomicU64,
    address: Mutex<String>,
    over: AtomicBool,
    /// Responses received and forgotten, as by a board that is killed before it records them.
    forgotten: AtomicU64,
    /// Requests without an answer.
    unanswered: AtomicU64,
}

impl Outside {
    fn ask(&self, method: &str, path: &str, token: &str, more: &str, body: &[u8]) -> Option<(u16, Value)> {
        let now = self.address.lock().unwrap().clone();
        let answer = ask(&now, method, path, token, more, body);
        if answer.is_none() {
            self.unanswered.fetch_add(1, Ordering::Relaxed);
            thread::sleep(Duration::from_millis(5));
        }
        // Too many requests, or the store is busy: later.
        answer.filter(|answer| ![429, 503].contains(&answer.0))
    }
}

fn samples(board: usize, seq: u64) -> u64 {
    1 + (seq * 7 + board as u64) % 50
}

fn line(board: usize, seq: u64) -> String {
    let n = samples(board, seq);
    let hist = RowCounts::of_rows([(100 + (seq % 300) as usize, n)]);
    let max_ns = Some(Nanos(1_000 + seq as i64));
    let row = WatchRow { cpu: Some(Cpu(0)), n, max_ns, hist, ..WatchRow::default() };
    let mono = seq as i64 * 300 * Nanos::SECOND.0;
    json!({ "seq": seq, "mono_ns": mono, "span_ns": 300_000_000_000i64, "wall_ns": mono, "cpus": [row] })
        .to_string()
        + "\n"
}

/// Sends its rows in parts, forgets some responses and occasionally all of them, and continues
/// until all are acknowledged and the kills are over.
fn board(at: usize, token: &str, outside: &Outside) {
    let mut draw = SplitMix64::new(at as u64);
    let rows = outside.rows;
    let mut acknowledged = vec![false; rows as usize];
    let clock = CLOCKS[at].map_or_else(String::new, |wall_s| {
        let mono = rows as i64 * 300 * Nanos::SECOND.0;
        format!("Onbeat-Clock: boot=boot-{at};mono={mono};wall={}\r\n", wall_s * Nanos::SECOND.0)
    });
    loop {
        let ended = outside.over.load(Ordering::Relaxed);
        let made = outside.made.load(Ordering::Relaxed);
        if !ended && below(&mut draw, 50 + rows / 2) == 0 {
            acknowledged.fill(false);
        }
        let open = acknowledged[..made as usize].iter().position(|done| !done).map(|seq| seq as u64);
        if ended && open.is_none() {
            return;
        }
        // An open part, or one that was sent already.
        let from =
            open.filter(|_| ended || below(&mut draw, 3) > 0).unwrap_or_else(|| below(&mut draw, made));
        let to = (from + 1 + below(&mut draw, 12)).min(made);
        let text: String = (from..to).map(|seq| line(at, seq)).collect();
        let path = format!("/v1/rows/boot-{at}/rec/timer/{from}");
        let answer = outside.ask("PUT", &path, token, &clock, text.as_bytes());
        outside
            .stored
            .fetch_add(u64::from(answer.as_ref().is_some_and(|one| one.0 == 201)), Ordering::Relaxed);
        match answer {
            Some((200 | 201, _)) if ended || below(&mut draw, 100) >= 15 => {
                acknowledged[from as usize..to as usize].fill(true);
            }
            Some((200 | 201, _)) => {
                outside.forgotten.fetch_add(1, Ordering::Relaxed);
            }
            Some((status, answer)) => panic!("{status}: {answer}"),
            None => {}
        }
    }
}

/// A run's files and its manifest.
fn run() -> (String, Vec<Vec<u8>>, Vec<u8>) {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs/measured");
    let names = ["run.json", "blocks.jsonl"];
    let files: Vec<Vec<u8>> = names.iter().map(|name| std::fs::read(place.join(name)).unwrap()).collect();
    let document: Value = serde_json::from_slice(&files[0]).unwrap();
    let listed: Vec<Value> = names
        .iter()
        .zip(&files)
        .map(|(name, bytes)| json!({ "path": name, "bytes": bytes.len(), "pieces": [digest(bytes)] }))
        .collect();
    let manifest = json!({ "schema": "onbeat.manifest/1", "files": listed, "signature": null });
    (document["id"].as_str().unwrap().to_owned(), files, manifest.to_string().into_bytes())
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sends a run, repeating each step, until the kills are over and it was acknowledged.
fn runner(token: &str, outside: &Outside) {
    let (id, files, manifest) = run();
    let path = format!("/v1/runs/{id}");
    loop {
        let ended = outside.over.load(Ordering::Relaxed);
        match outside.ask("PUT", &path, token, "", &manifest) {
            Some((200 | 201, _)) if ended => return,
            Some((202, answer)) => {
                for piece in answer["missing"].as_array().unwrap() {
                    let bytes = files.iter().find(|bytes| digest(bytes) == *piece.as_str().unwrap()).unwrap();
                    let path = format!("/v1/pieces/{}", piece.as_str().unwrap());
                    let answer = outside.ask("PUT", &path, token, "", bytes);
                    assert!(answer.is_none_or(|answer| answer.0 / 100 == 2));
                }
            }
            None | Some((200 | 201, _)) => thread::sleep(Duration::from_millis(10)),
            Some((status, answer)) => panic!("{status}: {answer}"),
        }
    }
}

fn all(address: &str, path: &str, list: &str) -> Vec<Value> {
    let (status, answer) = ask(address, "GET", path, "", "", "").unwrap();
    assert_eq!(status, 200, "{answer}");
    answer[list].as_array().unwrap().clone()
}

fn total(rows: &[Value]) -> u64 {
    rows.iter().map(|row| row["n"].as_u64().unwrap()).sum()
}

fn check(address: &str, at: usize, rows: u64, began: i64) {
    let wanted: u64 = (0..rows).map(|seq| samples(at, seq)).sum();
    let (status, slots) = ask(address, "GET", &format!("/v1/boards/board-{at}/slots"), "", "", "").unwrap();
    let slots = slots.as_array().unwrap_or_else(|| panic!("{status}: {slots}")).clone();
    assert_eq!((slots.len() as u64, total(&slots)), (rows, wanted), "board {at}");
    for tier in ["5m", "1h", "1d"] {
        let path = format!("/v1/boards/board-{at}/histograms?tier={tier}");
        // One response is limited to that many.
        let first = slots[0]["t"].as_i64().unwrap() - 86_400;
        let spans = (0..rows as i64 / 288 + 3).map(|day| first + day * 86_400);
        let parts =
            spans.map(|from| all(address, &format!("{path}&from={from}&to={}", from + 86_400), "histograms"));
        let rows: Vec<Value> = parts.flatten().collect();
        assert_eq!(total(&rows), wanted, "{tier} of board {at}");
        let cpus = rows.iter().flat_map(|row| row["cpus"].as_array().unwrap());
        let buckets = cpus.flat_map(|cpu| cpu["histogram"].as_array().unwrap());
        assert_eq!(buckets.map(|bucket| bucket[2].as_u64().unwrap()).sum::<u64>(), wanted, "{tier}");
    }
    // Whatever a board believes, its last row began five minutes before it was sent.
    if CLOCKS[at].is_some() {
        let last = slots.last().unwrap()["t"].as_i64().unwrap();
        assert!((began - 900..began + 86_400).contains(&last), "board {at}: {last}, {began}");
    }
}

fn killed(mut scene: Scene, few: u64) {
    let kills = kills_wanted(few);
    let names: Vec<String> =
        (0..CLOCKS.len()).map(|at| format!("board-{at}")).chain([RUNNER.to_owned()]).collect();
    let codes = codes(&scene.store, names.len());
    let mut address = scene.start();
    let enrolled = |(code, name): (&String, &String)| {
        let asked = json!({ "code": code, "name": name }).to_string();
        let (status, answer) = ask(&address, "POST", "/v1/enrol", "", "", &asked).unwrap();
        assert_eq!(status, 201, "{answer}");
        answer["token"].as_str().unwrap().to_owned()
    };
    let tokens: Vec<String> = codes.iter().zip(&names).map(enrolled).collect();
    let began = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    let rows = rows_for(kills);
    let outside = Arc::new(Outside {
        rows,
        made: AtomicU64::new(FIRST),
        stored: AtomicU64::new(0),
        address: Mutex::new(address.clone()),
        over: AtomicBool::new(false),
        forgotten: AtomicU64::new(0),
        unanswered: AtomicU64::new(0),
    });
    let boards: Vec<_> = tokens
        .into_iter()
        .enumerate()
        .map(|(at, token)| {
            let outside = outside.clone();
            thread::spawn(move || {
                if at < CLOCKS.len() { board(at, &token, &outside) } else { runner(&token, &outside) }
            })
        })
        .collect();
    let mut draw = SplitMix64::new(99);
    for _ in 0..kills {
        let before = outside.stored.load(Ordering::Relaxed);
        outside.made.fetch_add(EACH, Ordering::Relaxed);
        // It has restarted, and stores rows, however long that takes.
        let goes_on = || !boards.iter().any(|board| board.is_finished());
        while outside.stored.load(Ordering::Relaxed) == before && goes_on() {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(below(&mut draw, 60)));
        if let Some(elsewhere) = scene.kill(&mut draw) {
            address = elsewhere;
            *outside.address.lock().unwrap() = address.clone();
        }
    }
    outside.over.store(true, Ordering::Relaxed);
    boards.into_iter().for_each(|board| board.join().unwrap());
    (0..CLOCKS.len()).for_each(|at| check(&address, at, rows, began));
    let (id, ..) = run();
    let runs = all(&address, &format!("/v1/boards/{RUNNER}"), "runs");
    assert_eq!((runs.len(), runs[0]["id"].as_str()), (1, Some(id.as_str())));
    let days = all(&address, &format!("/v1/boards/{RUNNER}/histograms?tier=1d"), "histograms");
    assert_eq!(total(&days), runs[0]["cycles"].as_u64().unwrap());
    let looked = farm(&["check", "--store", &scene.store]).output().unwrap();
    assert!(looked.status.success(), "{}", String::from_utf8_lossy(&looked.stdout));
    println!(
        "{kills} kills, {}: {} requests without an answer, {} answers forgotten: {} rows, each once",
        scene.name(),
        outside.unanswered.load(Ordering::Relaxed),
        outside.forgotten.load(Ordering::Relaxed),
        rows * CLOCKS.len() as u64
    );
}

#[test]
fn kills_of_the_server_lose_no_row_and_double_none() {
    killed(Scene::new(None), 20);
}

#[test]
fn kills_of_server_and_database_lose_no_row_and_double_none() {
    match MadeCluster::start(true) {
        Ok(cluster) => killed(Scene::new(Some(cluster)), 8),
        Err(why) => println!("left out: PostgreSQL ({why})"),
    }
}
