//! A board that was offline for a number of days sends its record: the time from the start of its
//! `onbeat-push` to the last acknowledgement, over HTTP and with each commit on the disk, and the
//! memory of the sender. Lines of description, value and limit, separated by tabs; `cargo xtask
//! bench --only farm` runs it.

// In place of `main.rs`: it accesses the process.
#![allow(clippy::disallowed_methods)]

#[path = "shared/board.rs"]
mod board;
#[path = "shared/server.rs"]
mod server;

use std::path::Path;
use std::time::{Duration, Instant};

use board::{MadeBoard, codes, is_sound};
use farm::store::FarmStore;
use server::{Outcome, RunningServer, peak_mib};

const CPUS: u32 = 4;
/// Rows of a series in a day.
const A_DAY: u64 = 288;
/// Interval of reading the sender's memory.
const LOOK: Duration = Duration::from_millis(10);

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [farm, push, folder, days] = &words[..] else {
        return Err("give the programs of farm and board, a folder, days".into());
    };
    let (folder, days): (&Path, u64) = (Path::new(folder), days.parse()?);
    let mut board = MadeBoard::new(folder.join("board"), CPUS)?;
    board.record(days * A_DAY)?;
    let (rows, samples) = board.recorded()?;
    let file = folder.join("backlog.db");
    let store = format!("sqlite:{}", file.display());
    let code = codes(farm, &store, 1)?.pop().ok_or("the farm printed no code")?;
    let server = RunningServer::start(farm, &store, &folder.join("objects"))?;
    board.enrol(push, &format!("http://{}", server.address), &code, "board")?;

    let began = Instant::now();
    let mut sender = board.send(push, "--once")?;
    let mut memory = 0.0f64;
    let ended = loop {
        // After its end there is no memory to read.
        memory = memory.max(peak_mib(sender.child.id()).unwrap_or(0.0));
        if let Some(ended) = sender.child.try_wait()? {
            break ended;
        }
        std::thread::sleep(LOOK);
    };
    let took = began.elapsed();
    if !ended.success() {
        return Err(format!("the board's sender ended with {ended}: {}", sender.said()?).into());
    }
    println!("{days} days of {CPUS} CPUs in three series: rows\t{rows}\t");
    println!("sent and acknowledged: s\t{:.1}\t60", took.as_secs_f64());
    println!("onbeat-push, largest: MiB\t{memory:.1}\t8");
    println!("server, largest: MiB\t{:.1}\t128", server.peak_mib()?);
    drop(server);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let there = runtime.block_on(async { FarmStore::file(&file).await?.stored_totals().await })?;
    let lost = (there.rows.0 - rows).abs() + (there.rows.1 - rows).abs();
    println!("rows lost or doubled\t{lost}\t0");
    let differ: i64 = there.samples.iter().map(|sum| (sum - samples).abs()).sum();
    println!("samples lost or doubled, all tiers\t{differ}\t0");
    println!("faults that `onbeat-farm check` finds\t{}\t0", i32::from(!is_sound(farm, &store)?));
    Ok(())
}
