//! The cost of the page of a run of two months: one CPU, a block each second.

use std::path::Path;
use std::time::Duration;

use super::block_records::{BlockRecords, enough_room};
use super::in_turns::CommandInTurns;
use super::{Folder, Rows};
use crate::tools::target;

const DAYS: i64 = 60;
const QUICK_DAYS: i64 = 6;
const REPEATS: usize = 6;
const SECONDS: f64 = 6.0;
const PEAK_KIB: u64 = 64 << 10;
/// Twice the size of the files.
const NEEDED_BYTES: u64 = 4_500_000_000;
/// Far more than any build needs, on a busy machine.
const WITHIN: Duration = Duration::from_secs(600);

pub fn measure(onbeat: &Path, before: Option<&Path>, quick: bool) -> Rows {
    let folder = Folder(target("lab/bench")?.join("long-report"));
    std::fs::create_dir_all(&folder.0).map_err(|error| error.to_string())?;
    enough_room(&folder.0, NEEDED_BYTES)?;
    let days = if quick { QUICK_DAYS } else { DAYS };
    let records = BlockRecords::write(&folder.0.join("all"), 1, days * 24)?;
    let run = folder.0.join("run");
    records.run(&run, 0..(days * 24) as usize, None)?;
    let page = folder.0.join("page.html");
    let args = ["report", "-q", &run.display().to_string(), "-o", &page.display().to_string()];
    let comparison = CommandInTurns {
        what: format!("report of {days} days of a CPU"),
        onbeat,
        before,
        args: args.map(str::to_string).to_vec(),
        repeats: if quick { 3 } else { REPEATS },
        limits: (SECONDS, PEAK_KIB),
        within: WITHIN,
    };
    comparison.measure()
}
