//! Weight of the program: bytes, instructions, resident memory. The load of the machine does not
//! affect these, so each has a limit in the gate, 5 % above the measured value: a landing checks
//! the build of the tests, the night the static one, whose linker takes minutes.

use crate::tools::{Result, read};
use crate::{built, dist, elf};

use super::program::Onbeat;
use super::{Row, Rows, instructions, memory};

/// A build's limits.
struct Limits {
    build: &'static str,
    /// Of the file; of the tests' build, those that are loaded.
    bytes: u64,
    start_instructions: u64,
    loop_instructions: u64,
    resident_kib: u64,
}

const STATIC: Limits = Limits {
    build: "static build",
    bytes: 10_545_000,
    start_instructions: 81_400,
    loop_instructions: 940_000,
    resident_kib: memory::RESIDENT_KIB,
};

const TESTED: Limits = Limits {
    build: "build of the tests",
    bytes: 45_900_000,
    start_instructions: 2_516_000,
    loop_instructions: 7_505_000,
    resident_kib: 19_400,
};

/// The rows of the tests' build, and with `whole` those of the static one.
pub fn measure(whole: bool) -> Rows {
    let path = built::program("onbeat")?;
    let (bytes, onbeat) = (elf::loaded(&read(&path)?)?, Onbeat::at(path)?);
    let mut rows = TESTED.rows(bytes, &onbeat, &onbeat)?;
    if whole {
        let path = dist::build(std::env::consts::ARCH)?;
        let (bytes, symbols) = (read(&path)?.len() as u64, dist::symbols_of(&path));
        rows.extend(STATIC.rows(bytes, &Onbeat::at(path)?, &Onbeat::at(symbols)?)?);
    }
    Ok(rows)
}

impl Limits {
    fn rows(&self, bytes: u64, onbeat: &Onbeat, with_symbols: &Onbeat) -> Rows {
        let row = |what: &str, ours: u64, limit: u64| Row {
            what: format!("{}: {what}", self.build),
            ours: ours.to_string(),
            peer: String::new(),
            limit: limit.to_string(),
            holds: Some(ours <= limit),
        };
        let (start, in_loop) = (instructions::of_start(onbeat)?, instructions::of_loop(with_symbols)?);
        let resident = row("peak resident KiB of measure", memory::resident(onbeat)?, self.resident_kib);
        // Older kernels map more than is used.
        let holds = resident.holds.filter(|_| host::rt::map_page_by_page());
        Ok(vec![
            row("bytes", bytes, self.bytes),
            row("instructions of a start", start, self.start_instructions),
            row("instructions in its loop", in_loop, self.loop_instructions),
            Row { holds, ..resident },
        ])
    }
}

/// Prints the rows; fails with the names of values above their limits.
pub fn check(whole: bool) -> Result<()> {
    let rows = measure(whole)?;
    for row in &rows {
        println!("  {}: {}, limit {}", row.what, row.ours, row.limit);
    }
    let heavy: Vec<&str> = rows.iter().filter(|row| row.holds == Some(false)).map(|row| &*row.what).collect();
    if heavy.is_empty() { Ok(()) } else { Err(format!("over its limit: {}", heavy.join(", "))) }
}
