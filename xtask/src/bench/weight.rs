//! Weight of the static binary: bytes, instructions, resident memory. The load of the machine does
//! not affect these, so each has a limit in the gate, 5 % above the measured value.

use std::path::Path;

use crate::dist;
use crate::tools::Result;

use super::program::Onbeat;
use super::{Row, Rows, instructions, memory};

const BYTES: u64 = 10_980_000;
const START_INSTRUCTIONS: u64 = 81_400;
const LOOP_INSTRUCTIONS: u64 = 940_000;

/// The rows of the binary at this path.
pub fn measure(fixed: &Path) -> Rows {
    let with_symbols = Onbeat::at(dist::symbols_of(fixed))?;
    let fixed = &Onbeat::at(fixed.to_owned())?;
    let row = |what: &str, ours: u64, limit: u64| Row {
        what: format!("static build: {what}"),
        ours: ours.to_string(),
        peer: String::new(),
        limit: limit.to_string(),
        holds: Some(ours <= limit),
    };
    let resident = row("peak resident KiB of measure", memory::resident(fixed)?, memory::RESIDENT_KIB);
    // Older kernels map more than is used.
    let holds = resident.holds.filter(|_| host::rt::map_page_by_page());
    Ok(vec![
        row("bytes", fixed.bytes()?, BYTES),
        row("instructions of a start", instructions::of_start(fixed)?, START_INSTRUCTIONS),
        row("instructions in its loop", instructions::of_loop(&with_symbols)?, LOOP_INSTRUCTIONS),
        Row { holds, ..resident },
    ])
}

/// Fails with the names of values above their limits.
pub fn check() -> Result<()> {
    let rows = measure(&dist::kept(std::env::consts::ARCH)?)?;
    for row in &rows {
        println!("  {}: {}, limit {}", row.what, row.ours, row.limit);
    }
    let heavy: Vec<&str> = rows.iter().filter(|row| row.holds == Some(false)).map(|row| &*row.what).collect();
    if heavy.is_empty() { Ok(()) } else { Err(format!("over its limit: {}", heavy.join(", "))) }
}
