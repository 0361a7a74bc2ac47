//! A farm without its PostgreSQL for a number of seconds: boards send during the outage and after
//! it with their own `onbeat-push`, and pages are requested. Measures the responses, the boards'
//! attempts, the time to catch up, and checks that every row is stored once. Lines of description,
//! value and limit, separated by tabs; `cargo xtask experiments --only farm-outage` runs it.

// In place of `main.rs`: it accesses the process.
#![allow(clippy::disallowed_methods)]

#[path = "shared/board.rs"]
mod board;
#[path = "shared/server.rs"]
mod server;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use board::{MadeBoard, Sender, codes, is_sound};
use farm::fixture::cluster::MadeCluster;
use farm::store::{FarmStore, StoreTotals};
use server::{Outcome, RunningServer};

const CPUS: u32 = 4;
/// Intervals recorded by a board before it first sends: a day.
const FIRST: u64 = 288;
/// Interval in which each board records, and pages are requested, during the outage.
const PACE: Duration = Duration::from_secs(5);
/// Twice the longest wait of a board, and a minute between two rounds.
const PATIENCE: Duration = Duration::from_secs(1_260);
const PAGES: [&str; 5] = ["/", "/b/board-0", "/runs", "/v1/boards", "/metrics"];
/// Text of a page during the outage.
const AWAY: &str = "check that its database runs";

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [farm, push, folder, boards, seconds] = &words[..] else {
        return Err("give the programs of farm and board, a folder, boards, seconds".into());
    };
    let (boards, seconds): (usize, u64) = (boards.parse()?, seconds.parse()?);
    let folder = Path::new(folder);
    // It ends with this program.
    let cluster = MadeCluster::start(true)?;
    let url = cluster.url("public");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let store = runtime.block_on(FarmStore::postgres(&url))?;
    let there = || runtime.block_on(store.stored_totals());
    let codes = codes(farm, &url, boards)?;
    let server = RunningServer::start(farm, &url, &folder.join("objects"))?;
    let mut all = Vec::new();
    for (at, code) in codes.iter().enumerate() {
        all.push(OutageBoard::new(folder, push, at, code, &server.address)?);
    }
    // Half of them send before the outage, the others begin during it.
    let (early, late) = all.split_at_mut(boards / 2);
    for one in &mut *early {
        one.begin(push)?;
    }
    reached(recorded(early)?.rows, Duration::from_secs(300), || Ok(there()?.rows))?;

    let began = Instant::now();
    cluster.tell("stop");
    for one in &mut *late {
        one.begin(push)?;
    }
    let mut pages = AskedPages::default();
    while began.elapsed() < Duration::from_secs(seconds) {
        for one in &mut all {
            one.board.record(1)?;
        }
        PAGES.iter().for_each(|page| pages.ask(&server.address, page));
        sleep(PACE.min(Duration::from_secs(seconds).saturating_sub(began.elapsed())));
    }
    let tries: Vec<usize> = all.iter().map(|one| one.way.since(began)).collect();
    cluster.tell("start");
    let back = Instant::now();
    let answered = reached(200, PATIENCE, || Ok(answer(&server.address, PAGES[0]).map_or(0, |one| one.0)))?;
    let wanted = recorded(&all)?;
    let caught_up = reached(wanted.rows, PATIENCE, || Ok(there()?.rows))?;
    let found = there()?;
    let ended = all.iter_mut().map(OutageBoard::has_ended).filter(|ended| *ended).count();
    let after: usize = all.iter().map(|one| one.way.since(back)).sum();
    let memory = server.peak_mib()?;
    drop(all);
    drop(server);

    let away = back.duration_since(began).as_secs_f64();
    println!("boards, seconds without a database: s\t{away:.0}\t");
    println!("pages requested in that time\t{}\t", pages.asked);
    println!("pages without a line that says so\t{}\t0", pages.otherwise);
    println!("slowest of them: s\t{:.2}\t10", pages.slowest.as_secs_f64());
    println!(
        "largest number of requests of a board in that time\t{}\t{}",
        most(&tries),
        tries_at_most(seconds)
    );
    println!("boards that tried\t{}\t", tries.iter().filter(|tries| **tries > 0).count());
    println!("boards whose sender ended\t{ended}\t0");
    println!("pages are back after: s\t{:.1}\t60", answered.as_secs_f64());
    println!("rows of all boards\t{}\t", wanted.rows.0);
    println!("all of them stored after: s\t{:.0}\t{}", caught_up.as_secs_f64(), wait_at_most(seconds) + 120);
    println!("requests for that\t{after}\t");
    println!("server, largest: MiB\t{memory:.1}\t128");
    let lost = (found.rows.0 - wanted.rows.0).abs() + (found.rows.1 - wanted.rows.1).abs();
    println!("rows lost or doubled\t{lost}\t0");
    let differ: i64 = found.samples.iter().map(|sum| (sum - wanted.samples[0]).abs()).sum();
    println!("samples lost or doubled, all tiers\t{differ}\t0");
    println!("faults that `onbeat-farm check` finds\t{}\t0", i32::from(!is_sound(farm, &url)?));
    Ok(())
}

/// Seconds that a board waits at most: its waits double, up to ten minutes.
fn wait_at_most(seconds: u64) -> u64 {
    (2 * seconds).clamp(60, 600)
}

/// Limit of a board's attempts in that time, twice the expected number: the first waits double, and
/// on average half of each is waited.
fn tries_at_most(seconds: u64) -> u64 {
    2 * (u64::from(seconds.ilog2()) + 2 + seconds / 300)
}

fn most(of: &[usize]) -> usize {
    of.iter().copied().max().unwrap_or_default()
}

/// Totals recorded by all boards.
fn recorded(of: &[OutageBoard]) -> Outcome<StoreTotals> {
    let mut sum = (0, 0);
    for one in of {
        let (rows, samples) = one.board.recorded()?;
        sum = (sum.0 + rows, sum.1 + samples);
    }
    Ok(StoreTotals { rows: (sum.0, sum.0), samples: vec![sum.1] })
}

/// Time until a value is reached.
fn reached<T: PartialEq + std::fmt::Debug>(
    wanted: T,
    patience: Duration,
    mut look: impl FnMut() -> Outcome<T>,
) -> Outcome<Duration> {
    let began = Instant::now();
    loop {
        let is = look();
        if is.as_ref().is_ok_and(|is| *is == wanted) {
            return Ok(began.elapsed());
        }
        if began.elapsed() > patience {
            return Err(format!("after {patience:?} it is {is:?}, and {wanted:?} was awaited").into());
        }
        sleep(Duration::from_millis(250));
    }
}

/// A board, the counter of its requests, and its sender while it runs.
struct OutageBoard {
    board: MadeBoard,
    way: CountedWay,
    sender: Option<Sender>,
}

impl OutageBoard {
    fn new(folder: &Path, push: &str, at: usize, code: &str, farm: &str) -> Outcome<OutageBoard> {
        let name = format!("board-{at}");
        let mut board = MadeBoard::new(folder.join(&name), CPUS)?;
        board.record(FIRST)?;
        let way = CountedWay::to(farm)?;
        board.enrol(push, &format!("http://{}", way.address), code, &name)?;
        Ok(OutageBoard { board, way, sender: None })
    }

    fn begin(&mut self, push: &str) -> Outcome<()> {
        self.sender = Some(self.board.send(push, "--follow")?);
        Ok(())
    }

    fn has_ended(&mut self) -> bool {
        self.sender.as_mut().is_none_or(|sender| {
            let ended = !matches!(sender.child.try_wait(), Ok(None));
            if ended {
                eprintln!("{}", sender.said().unwrap_or_default());
            }
            ended
        })
    }
}

/// Proxy between a board and the farm: records the times of the board's requests.
struct CountedWay {
    address: String,
    asked: Arc<Mutex<Vec<Instant>>>,
}

impl CountedWay {
    fn to(farm: &str) -> Outcome<CountedWay> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (farm, noted) = (farm.to_owned(), asked.clone());
        spawn(move || {
            for stream in listener.incoming().flatten() {
                let (farm, noted) = (farm.clone(), noted.clone());
                // A connection that breaks is the board's to notice.
                spawn(move || passed_on(stream, &farm, &noted));
            }
        });
        Ok(CountedWay { address, asked })
    }

    /// Requests since then.
    fn since(&self, then: Instant) -> usize {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.iter().filter(|at| **at >= then).count()
    }
}

fn passed_on(mut board: TcpStream, farm: &str, noted: &Mutex<Vec<Instant>>) -> std::io::Result<()> {
    let mut server = TcpStream::connect(farm)?;
    let (mut answers, mut to_board) = (server.try_clone()?, board.try_clone()?);
    spawn(move || {
        let _ = std::io::copy(&mut answers, &mut to_board);
        let _ = to_board.shutdown(std::net::Shutdown::Both);
    });
    let mut part = vec![0; 64 << 10];
    loop {
        let read = board.read(&mut part)?;
        if read == 0 {
            return server.shutdown(std::net::Shutdown::Both);
        }
        // A head is written separately; compressed data do not begin like one.
        if ["PUT /", "GET /", "POST /"].iter().any(|head| part[..read].starts_with(head.as_bytes())) {
            noted.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
        }
        server.write_all(&part[..read])?;
    }
}

/// Pages requested during the outage.
#[derive(Default)]
struct AskedPages {
    asked: u32,
    otherwise: u32,
    slowest: Duration,
}

impl AskedPages {
    fn ask(&mut self, address: &str, page: &str) {
        let began = Instant::now();
        let answer = answer(address, page);
        self.asked += 1;
        self.slowest = self.slowest.max(began.elapsed());
        let is_said = |text: &str| text.lines().filter(|line| line.contains(AWAY)).count() == 1;
        if !answer.as_ref().is_ok_and(|(status, text)| *status == 503 && is_said(text)) {
            self.otherwise += 1;
            if self.otherwise < 9 {
                eprintln!("{page}: {answer:?}");
            }
        }
    }
}

/// The status of an answer, and all of it as text.
fn answer(address: &str, page: &str) -> Outcome<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let head = format!("GET {page} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or("no status")?;
    Ok((status, text))
}
