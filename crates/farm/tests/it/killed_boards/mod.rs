//! The boards' own program under SIGKILL at random points, against a server that is killed, too:
//! all data of the boards are on the farm, each row and run once.
//!
//! Its numbers of kills are those of `exactly_once.rs`.

mod board;
mod check;
mod runs;
mod wire;

use std::ffi::OsString;
use std::io::Read;
use std::process::exit;
use std::sync::{Arc, Mutex};
use std::thread;

use model::rng::SplitMix64;
use push::cli::{PushEnvironment, run};

use super::cluster::MadeCluster;
use super::scene::{Scene, below, kills_wanted};
use super::server::codes;
use board::KilledBoard;

const BOARDS: usize = 4;
const SEED: u64 = 20;
/// One of that many kills also hits the server or its database.
const OF_SERVER: u64 = 9;
/// Names the board's home to the test that is its program.
const HOME: &str = "ONBEAT_TEST_BOARD";
/// Name of that test.
const PROGRAM: &str = "killed_boards::sends_until_it_is_killed";

#[test]
#[ignore = "the board's program in the tests below"]
fn sends_until_it_is_killed() {
    let Some(home) = std::env::var_os(HOME) else { return };
    // It ends with its parent.
    thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        exit(1);
    });
    let environment = PushEnvironment { state_home: None, home: Some(home) };
    let words = ["onbeat-push", "--when", "always"].iter().map(OsString::from);
    exit(i32::from(run(words, &environment)))
}

/// States met by the kills.
#[derive(Default)]
struct KillsMet {
    /// The program with a request under way, and with something noted since it was started.
    open: u64,
    noted: u64,
    of_server: u64,
}

fn killed(mut scene: Scene, few: u64) {
    let kills = kills_wanted(few);
    let folder = tempfile::tempdir().unwrap();
    let codes = codes(&scene.store, BOARDS);
    let server = Arc::new(Mutex::new(scene.start()));
    let enrolled = |(at, code): (usize, &String)| KilledBoard::enrolled(at, code, &server, folder.path());
    let mut boards: Vec<KilledBoard> = codes.iter().enumerate().map(enrolled).collect();
    let (mut draw, mut met) = (SplitMix64::new(SEED), KillsMet::default());
    let stored = |boards: &[KilledBoard]| boards.iter().map(|board| board.wire.passed().stored).sum::<u64>();
    let before = stored(&boards);
    for kill in 1..=kills {
        let board = &mut boards[below(&mut draw, BOARDS as u64) as usize];
        board.grow(&mut draw);
        let has_begun = board.start();
        // More data are made while it sends.
        board.grow(&mut draw);
        if has_begun {
            board.wait(&mut draw);
        }
        if kill.is_multiple_of(OF_SERVER) {
            met.of_server += 1;
            if let Some(elsewhere) = scene.kill(&mut draw) {
                *server.lock().unwrap() = elsewhere;
            }
        }
        let (is_open, has_noted) = board.kill();
        met.open += u64::from(is_open);
        met.noted += u64::from(has_noted);
        board.damage(&mut draw);
        // It continues during the next kill of another one.
        if below(&mut draw, 3) == 0 {
            board.start();
        }
    }
    let stored = stored(&boards) - before;
    assert!(stored > 0 && met.open > 0 && met.noted > 0, "the kills met nothing that goes on");
    let address = server.lock().unwrap().clone();
    for board in &mut boards {
        board.stop();
        board.send_rest();
        check::check(&address, board);
    }
    check::check_store(&scene.store, &boards);
    let rows: u64 = boards.iter().map(KilledBoard::recorded).sum();
    println!(
        "{kills} kills of boards, {}: {} with a request under way, {} after notes, {} also of the server, \
         {stored} requests stored something meanwhile: {rows} intervals and {} runs, each once",
        scene.name(),
        met.open,
        met.noted,
        met.of_server,
        boards.iter().map(|board| board.runs.len()).sum::<usize>()
    );
}

#[test]
fn kills_of_boards_lose_nothing_and_double_nothing() {
    killed(Scene::new(None), 40);
}

#[test]
fn kills_of_boards_server_and_database_lose_nothing_and_double_nothing() {
    match MadeCluster::start(true) {
        Ok(cluster) => killed(Scene::new(Some(cluster)), 20),
        Err(why) => println!("left out: PostgreSQL ({why})"),
    }
}
