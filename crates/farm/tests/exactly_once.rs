//! A model of what boards made against what the farm has, while its server is killed again and
//! again: no row is lost and none is counted twice.
//!
//! `ONBEAT_FARM_KILLS=1000` makes it longer.

#![allow(clippy::disallowed_methods)] // Processes, threads and sockets are what is tested here.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use model::rows::RowCounts;
use model::units::{Cpu, Nanos};
use model::watch::WatchRow;
use serde_json::{Value, json};

const BOARDS: usize = 3;
const ROWS: u64 = 150;

fn farm(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onbeat-farm"));
    command.args(arguments);
    command
}

/// Numbers that a seed repeats (splitmix64).
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % most.max(1)
    }
}

/// A server on a port of its own.
fn started(store: &str) -> (Child, String) {
    let mut child =
        farm(&["serve", "--store", store, "--listen", "127.0.0.1:0"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    said.read_line(&mut line).unwrap();
    let address = line.split("//").nth(1).unwrap_or_else(|| panic!("{line}")).trim_end_matches(['/', '\n']);
    let address = address.to_owned();
    // What it says later must not fill the pipe.
    thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    (child, address)
}

/// A request, and its answer where there is a whole one.
fn ask(address: &str, method: &str, path: &str, token: &str, body: &str) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(address).ok()?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Authorization: Bearer {token}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, serde_json::from_str(body).ok()?))
}

fn samples(board: usize, seq: u64) -> u64 {
    1 + (seq * 7 + board as u64) % 50
}

fn line(board: usize, seq: u64) -> String {
    let n = samples(board, seq);
    let hist = RowCounts::of_rows([(100 + (seq % 300) as usize, n)]);
    let row = WatchRow {
        cpu: Some(Cpu(0)),
        n,
        max_ns: Some(Nanos(1_000 + seq as i64)),
        hist,
        ..WatchRow::default()
    };
    let mono = seq as i64 * 300 * Nanos::SECOND.0;
    json!({ "seq": seq, "mono_ns": mono, "span_ns": 300_000_000_000i64, "wall_ns": mono, "cpus": [row] })
        .to_string()
        + "\n"
}

/// Sends its rows in cuts, forgets some answers, and goes on until all are acknowledged and the
/// kills are over.
fn board(at: usize, token: &str, address: &Mutex<String>, over: &AtomicBool) {
    let mut draw = Draw(at as u64);
    let mut acknowledged = vec![false; ROWS as usize];
    loop {
        let ended = over.load(Ordering::Relaxed);
        let open = acknowledged.iter().position(|done| !done).map(|seq| seq as u64);
        if ended && open.is_none() {
            return;
        }
        // What is open, or something that was sent already.
        let from = open.filter(|_| ended || draw.below(3) > 0).unwrap_or_else(|| draw.below(ROWS));
        let to = (from + 1 + draw.below(12)).min(ROWS);
        let text: String = (from..to).map(|seq| line(at, seq)).collect();
        let path = format!("/v1/rows/boot-{at}/rec/timer/{from}");
        let now = address.lock().unwrap().clone();
        match ask(&now, "PUT", &path, token, &text) {
            Some((200 | 201, _)) if ended || draw.below(100) >= 15 => {
                acknowledged[from as usize..to as usize].fill(true);
            }
            Some((200 | 201 | 503, _)) => {}
            Some((status, answer)) => panic!("{status}: {answer}"),
            None => thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn check(address: &str) {
    for at in 0..BOARDS {
        let wanted: u64 = (0..ROWS).map(|seq| samples(at, seq)).sum();
        let all = |path: &str, list: &str| -> Vec<Value> {
            let (status, answer) = ask(address, "GET", path, "", "").unwrap();
            assert_eq!(status, 200, "{answer}");
            answer[list].as_array().unwrap().clone()
        };
        let total = |rows: &[Value]| rows.iter().map(|row| row["n"].as_u64().unwrap()).sum::<u64>();
        let slots = all(&format!("/v1/boards/board-{at}/slots"), "slots");
        assert_eq!((slots.len() as u64, total(&slots)), (ROWS, wanted), "board {at}");
        for tier in ["5m", "1h", "1d"] {
            let rows = all(&format!("/v1/boards/board-{at}/histograms?tier={tier}"), "histograms");
            assert_eq!(total(&rows), wanted, "{tier} of board {at}");
            let buckets = rows.iter().flat_map(|row| row["cpus"].as_array().unwrap());
            let buckets = buckets.flat_map(|cpu| cpu["histogram"].as_array().unwrap());
            assert_eq!(buckets.map(|bucket| bucket[2].as_u64().unwrap()).sum::<u64>(), wanted, "{tier}");
        }
    }
}

#[test]
fn kills_lose_no_row_and_double_none() {
    let kills: u64 = std::env::var("ONBEAT_FARM_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", Path::new(folder.path()).join("farm.db").display());
    let codes = farm(&["enrol", "--count", &BOARDS.to_string(), "--store", &store]).output().unwrap();
    let codes = String::from_utf8(codes.stdout).unwrap();
    let (mut child, first) = started(&store);
    let tokens: Vec<String> = codes
        .lines()
        .enumerate()
        .map(|(at, code)| {
            let asked = json!({ "code": code, "name": format!("board-{at}") }).to_string();
            let (status, answer) = ask(&first, "POST", "/v1/enrol", "", &asked).unwrap();
            assert_eq!(status, 201, "{answer}");
            answer["token"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(tokens.len(), BOARDS);
    let (address, over) = (Arc::new(Mutex::new(first)), Arc::new(AtomicBool::new(false)));
    let boards: Vec<_> = tokens
        .into_iter()
        .enumerate()
        .map(|(at, token)| {
            let (address, over) = (address.clone(), over.clone());
            thread::spawn(move || board(at, &token, &address, &over))
        })
        .collect();
    let mut draw = Draw(99);
    for _ in 0..kills {
        thread::sleep(Duration::from_millis(draw.below(120)));
        child.kill().unwrap();
        child.wait().unwrap();
        let (next, now) = started(&store);
        child = next;
        *address.lock().unwrap() = now;
    }
    over.store(true, Ordering::Relaxed);
    boards.into_iter().for_each(|board| board.join().unwrap());
    let now = address.lock().unwrap().clone();
    check(&now);
    child.kill().unwrap();
    child.wait().unwrap();
}
