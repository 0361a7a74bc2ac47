//! Many boards that send to a separate server: latency of acknowledgements from the planned time
//! on, memory of the server, and a check that every row is stored once. Lines of description, value
//! and limit, separated by tabs; `cargo xtask farm-load` runs it.
//!
//! Open loop: a request is sent at its time even if responses are late. Each board has a separate
//! token and connection, and its hour and day exist in the store already.

// In place of `main.rs`: it accesses the process.
#![allow(clippy::disallowed_methods)]

#[path = "shared/server.rs"]
mod server;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use farm::fixture::cluster::MadeCluster;
use farm::ingest::bundle::read;
use farm::ingest::find::FoundBundle;
use farm::records::{CpuRows, SeriesKey, Tier, TierRow};
use farm::store::{FarmStore, StoreTotals};
use farm::web::login::sender::digest_of;
use flate2::Compression;
use flate2::write::GzEncoder;
use model::rng::SplitMix64;
use model::rows::RowCounts;
use model::units::{Cpu, Nanos};
use model::watch::WatchRow;
use server::{Outcome, RunningServer};
use tokio::net::TcpStream;

const CPUS: u32 = 4;
/// A board sends once in five minutes.
const EVERY_S: u64 = 300;
/// Contents that differ by chance alone.
const VARIANTS: usize = 64;
/// Number of boards inserted in one commit.
const TOGETHER: usize = 4_096;
/// Time limit of a response.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [server, folder, store, boards, seconds] = &words[..] else {
        return Err("give the server's program, a folder, sqlite, postgres or a URL, boards, seconds".into());
    };
    let (boards, seconds): (u64, u64) = (boards.parse()?, seconds.parse()?);
    let folder = Path::new(folder);
    // The cluster of its database ends with it.
    let cluster = if store == "postgres" { Some(MadeCluster::start(true)?) } else { None };
    let file = folder.join("load.db");
    let url = match (store.as_str(), &cluster) {
        (_, Some(cluster)) => cluster.url("public"),
        ("sqlite", _) => format!("sqlite:{}", file.display()),
        (url, _) => url.to_owned(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let store = match url.strip_prefix("sqlite:") {
            Some(path) => FarmStore::file(Path::new(path)).await?,
            None => FarmStore::postgres(&url).await?,
        };
        let load = Load::new(boards, seconds)?;
        load.fill(&store).await?;
        store.analyze().await?;
        let before = store.stored_totals().await?;
        let server = RunningServer::start(server, &url, &folder.join("objects"))?;
        let sent = load.send(&server.address).await?;
        let memory = server.peak_mib()?;
        drop(server);
        let (n, wanted) = (sent.latencies.len(), load.totals(&before));
        let lost = load.requests() - n as u64;
        let limit = if url.starts_with("sqlite:") { 500 } else { 2_000 };
        let each = load.requests() as f64 / seconds as f64;
        println!("{boards} boards, {seconds} s: rows a second\t{each:.0}\t");
        for (name, share, limit) in
            [("p50", 0.5, String::new()), ("p99", 0.99, limit.to_string()), ("largest", 1.0, String::new())]
        {
            println!("acknowledged, {name}: ms\t{:.1}\t{limit}", sent.quantile(share));
        }
        println!("server, largest: MiB\t{memory:.1}\t128");
        println!("answered otherwise and sent again\t{}\t", sent.again);
        println!("pages read, slowest: ms\t{:.1}\t", sent.slowest_page);
        println!("never acknowledged\t{lost}\t0");
        let there = store.stored_totals().await?;
        println!(
            "rows lost or doubled\t{}\t0",
            (there.rows.0 - wanted.rows.0).abs() + (there.rows.1 - wanted.rows.1).abs()
        );
        let differ: i64 = there.samples.iter().zip(&wanted.samples).map(|(is, of)| (is - of).abs()).sum();
        println!("samples lost or doubled, all tiers\t{differ}\t0");
        Ok(())
    })
}

/// Data to send.
struct Load {
    boards: u64,
    seconds: u64,
    /// Contents by the number of the row, packed, with their samples.
    contents: Vec<Vec<(Vec<u8>, u64)>>,
    before: Vec<(Tier, TierRow)>,
    key: SeriesKey,
    now_s: i64,
}

impl Load {
    fn new(boards: u64, seconds: u64) -> Outcome<Load> {
        let place = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs/measured");
        let recorded = read(&FoundBundle { place, board: Some("recorded".into()) })?.0.whole.cpus;
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() as i64;
        let mut draw = SplitMix64::new(7);
        let variants: Vec<Vec<CpuRows>> = (0..VARIANTS).map(|_| redrawn(&recorded, &mut draw)).collect();
        let rows = seconds.div_ceil(EVERY_S) + 1;
        let contents = (0..rows)
            .map(|seq| variants.iter().map(|cpus| content(seq, cpus)).collect())
            .collect::<Outcome<Vec<Vec<_>>>>();
        let sum = |tier: Tier| {
            let mut row = TierRow { t: tier.begin(now_s), ..TierRow::default() };
            for cpus in variants.iter().take(8) {
                let n = cpus.iter().map(|cpu| cpu.rows.total()).sum();
                row.add(&TierRow { n, cpus: cpus.clone(), ..TierRow::default() });
            }
            (tier, row)
        };
        let before = vec![sum(Tier::Hour), sum(Tier::Day)];
        let key = SeriesKey { series: "timer".into(), plan: String::new() };
        Ok(Load { boards, seconds, contents: contents?, before, key, now_s })
    }

    async fn fill(&self, store: &FarmStore) -> Outcome<()> {
        let board = |at: u64| (format!("board-{at}"), digest_of(&token(at)));
        for from in (0..self.boards).step_by(TOGETHER) {
            let boards: Vec<_> = (from..self.boards.min(from + TOGETHER as u64)).map(board).collect();
            store.put_boards(&boards, &self.key, &self.before).await?;
        }
        Ok(())
    }

    /// Number of requests: one of each board in five minutes.
    fn requests(&self) -> u64 {
        self.boards * self.seconds / EVERY_S
    }

    /// Board, row and contents of a request.
    fn request(&self, at: u64) -> (u64, u64, &(Vec<u8>, u64)) {
        let (board, seq) = (at % self.boards, at / self.boards);
        (board, seq, &self.contents[seq as usize][at as usize % VARIANTS])
    }

    /// Expected totals at the end.
    fn totals(&self, before: &StoreTotals) -> StoreTotals {
        let requests = self.requests() as i64;
        let sent: i64 = (0..self.requests()).map(|at| self.request(at).2.1 as i64).sum();
        StoreTotals {
            rows: (before.rows.0 + requests, before.rows.1 + requests),
            samples: before.samples.iter().map(|n| n + sent).collect(),
        }
    }

    async fn send(self: &Load, address: &str) -> Outcome<Sent> {
        let sent = Arc::new(Answers::default());
        let pages = tokio::spawn(pages(address.to_owned(), self.boards, self.seconds, sent.clone()));
        let began = Instant::now();
        let mut waiting = Vec::new();
        for at in 0..self.requests() {
            let planned = began + Duration::from_secs_f64(at as f64 * EVERY_S as f64 / self.boards as f64);
            tokio::time::sleep_until(planned.into()).await;
            let (board, seq, (content, _)) = self.request(at);
            let head = head(board, seq, content.len(), self.now_s);
            let message = [head.as_bytes(), content].concat();
            waiting.push(tokio::spawn(acknowledged(address.to_owned(), message, planned, sent.clone())));
        }
        for one in waiting {
            one.await?;
        }
        pages.await?;
        let mut latencies = sent.latencies.lock().unwrap_or_else(PoisonError::into_inner).clone();
        latencies.sort_unstable();
        let (again, slowest) =
            (sent.again.load(Ordering::Relaxed), sent.slowest_page.load(Ordering::Relaxed));
        Ok(Sent { latencies, again, slowest_page: slowest as f64 / 1e3 })
    }
}

fn token(board: u64) -> String {
    format!("obt_{board:032x}")
}

/// The same shapes with the scatter of chance: each count by the normal law of counts.
fn redrawn(recorded: &[CpuRows], draw: &mut SplitMix64) -> Vec<CpuRows> {
    let mut normal = || (0..12).map(|_| draw.next_u64() as f64 / u64::MAX as f64).sum::<f64>() - 6.0;
    let mut count = |n: u64| (n as f64 + (n as f64).sqrt() * normal()).round().max(0.0) as u64;
    (0..CPUS)
        .map(|cpu| {
            let of = &recorded[cpu as usize % recorded.len()].rows;
            CpuRows { cpu: Cpu(cpu), rows: RowCounts::of_rows(of.iter().map(|(row, n)| (row, count(n)))) }
        })
        .collect()
}

fn content(seq: u64, cpus: &[CpuRows]) -> Outcome<(Vec<u8>, u64)> {
    let row = |cpu: &CpuRows| WatchRow {
        cpu: Some(cpu.cpu),
        n: cpu.rows.total(),
        max_ns: Some(Nanos(1_000_000)),
        max_mono_ns: Some(Nanos(1)),
        hist: cpu.rows.clone(),
        ..WatchRow::default()
    };
    let rows: Vec<WatchRow> = cpus.iter().map(row).collect();
    let samples = rows.iter().map(|row| row.n).sum();
    let mono = (seq + 1) * EVERY_S * Nanos::SECOND.0 as u64;
    let line = serde_json::json!({
        "seq": seq, "mono_ns": mono, "span_ns": EVERY_S * Nanos::SECOND.0 as u64, "wall_ns": mono,
        "cpus": rows,
    });
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(format!("{line}\n").as_bytes())?;
    Ok((packed.finish()?, samples))
}

/// By its clock the first row is of the time of its arrival: its hour and day exist.
fn head(board: u64, seq: u64, length: usize, now_s: i64) -> String {
    let mono = EVERY_S as i64 * Nanos::SECOND.0;
    let wall = now_s * Nanos::SECOND.0;
    format!(
        "PUT /v1/rows/boot-{board}/rec/timer/{seq} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Authorization: Bearer {}\r\nOnbeat-Clock: boot=boot-{board};mono={mono};wall={wall}\r\n\
         Content-Encoding: gzip\r\nContent-Length: {length}\r\n\r\n",
        token(board)
    )
}

#[derive(Default)]
struct Answers {
    /// Latencies in microseconds, from the planned time of sending.
    latencies: Mutex<Vec<u64>>,
    again: AtomicU64,
    slowest_page: AtomicU64,
}

struct Sent {
    latencies: Vec<u64>,
    again: u64,
    slowest_page: f64,
}

impl Sent {
    fn quantile(&self, share: f64) -> f64 {
        let at = (self.latencies.len() as f64 * share) as usize;
        self.latencies.get(at.min(self.latencies.len().saturating_sub(1))).map_or(0.0, |us| *us as f64 / 1e3)
    }
}

/// Sends until it is acknowledged.
async fn acknowledged(address: String, message: Vec<u8>, planned: Instant, sent: Arc<Answers>) {
    while planned.elapsed() < 2 * PATIENCE {
        match tokio::time::timeout(PATIENCE, exchanged(&address, &message)).await {
            Ok(Ok(status @ (200 | 201))) if status > 0 => {
                let took = planned.elapsed().as_micros() as u64;
                sent.latencies.lock().unwrap_or_else(PoisonError::into_inner).push(took);
                return;
            }
            _ => {
                sent.again.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(1_000)).await;
            }
        }
    }
}

/// A page each second, each of another board.
async fn pages(address: String, boards: u64, seconds: u64, sent: Arc<Answers>) {
    for second in 0..seconds {
        let began = Instant::now();
        let board = second * 7_919 % boards;
        let message =
            format!("GET /b/board-{board} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let status = tokio::time::timeout(PATIENCE, exchanged(&address, message.as_bytes())).await;
        let took = began.elapsed();
        if !matches!(status, Ok(Ok(200))) {
            eprintln!("page: {status:?}");
        }
        sent.slowest_page.fetch_max(took.as_micros() as u64, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(1).saturating_sub(took)).await;
    }
}

/// Sends a request over a new connection; returns the status of the response.
async fn exchanged(address: &str, message: &[u8]) -> std::io::Result<u16> {
    let stream = TcpStream::connect(address).await?;
    let mut left = message;
    while !left.is_empty() {
        stream.writable().await?;
        match stream.try_write(left) {
            Ok(n) => left = &left[n..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    let (mut answer, mut part) = (Vec::new(), [0; 4_096]);
    loop {
        stream.readable().await?;
        match stream.try_read(&mut part) {
            Ok(0) => break,
            // Only the head matters.
            Ok(n) if answer.len() < 64 => answer.extend_from_slice(&part[..n]),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    let head = String::from_utf8_lossy(&answer);
    Ok(head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default())
}
