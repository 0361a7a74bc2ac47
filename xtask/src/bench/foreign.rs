//! The recorder next to a foreign program: one that takes some ten microseconds at each system
//! call, as tools of tracing and security do. While it runs, the kernel skips programs at events
//! that are read by their formats, on that CPU.

use host::bpf::{Attached, Link, Program};
use host::tracefs::Tracing;
use recorder::Reading;
use recorder::assembler::{Assembler, Helper, R0};

use super::watched::{OwnLatencies, WAYS, own_latencies, row};
use super::{Row, Rows};
use crate::tools::Result;

/// Reads of the clock in the program: some 30 us.
const READS: usize = 1_000;
/// Part of the sleeps that is recorded all the same, by types.
const COVERED: f64 = 98.0;
/// Permitted relative error of the printed loss, by formats.
const APART: f64 = 0.1;

/// A program that runs until it is dropped.
struct ForeignProgram {
    _link: Link,
    _program: Program,
}

fn foreign_program() -> Result<ForeignProgram> {
    let tracing = Tracing::open().map_err(|_| "tracefs cannot be read")?;
    let id = tracing.read("events/raw_syscalls/sys_enter/id").map_err(|error| error.to_string())?;
    let id = id.trim().parse().map_err(|_| format!("{id} is not the id of an event"))?;
    let mut code = Assembler::default();
    (0..READS).for_each(|_| code.call(Helper::KtimeGetNs));
    code.set(R0, 0);
    code.exit();
    let code = code.finish().map_err(|bad| bad.to_string())?;
    let program = Program::load("foreign", Attached::Event(id), &code)
        .map_err(|refused| format!("{}: {}", refused.error, refused.log))?;
    let link = Link::new(&program, 0).map_err(|error| error.to_string())?;
    Ok(ForeignProgram { _link: link, _program: program })
}

/// Sleeps next to it, with both ways of reading.
pub fn measure(quick: bool) -> Rows {
    let cycles = if quick { 1_000 } else { 3_000 };
    let mut rows = Vec::new();
    for (reading, name) in WAYS {
        let program = foreign_program()?;
        let own = own_latencies(reading, cycles)?;
        drop(program);
        rows.push(of_way(reading, name, cycles, &own));
        let negative = own.seen.iter().filter(|(own, both)| *both > *own).count();
        rows.push(row(
            format!("{name}, with another BPF program: own - (T + W) negative"),
            negative.to_string(),
            "",
            "0".into(),
            Some(negative == 0),
        ));
    }
    Ok(rows)
}

fn of_way(reading: Reading, name: &str, cycles: usize, own: &OwnLatencies) -> Row {
    let covered = own.drained.threads.iter().find(|thread| thread.tid == own.tid).copied();
    let covered = covered.unwrap_or_default();
    let voluntary = covered.voluntary.unwrap_or(0);
    let share = 100.0 * covered.recorded as f64 / voluntary.max(1) as f64;
    if reading == Reading::Types {
        return row(
            format!("{name}, with another BPF program: recorded of {voluntary} sleeps, %"),
            format!("{share:.2}"),
            "",
            format!("{COVERED}"),
            Some(share >= COVERED),
        );
    }
    // The thread's own counts: its sleeps, and a wait each for start and end.
    let lost = cycles as f64 - covered.recorded.min(cycles as u64) as f64;
    let printed = voluntary.saturating_sub(covered.recorded) as f64;
    row(
        format!("{name}, with another BPF program: loss printed, of {cycles} sleeps"),
        format!("{printed}"),
        &format!("{lost} lost"),
        format!("{} % apart", 100.0 * APART),
        Some((printed - lost).abs() <= (APART * lost).max(10.0)),
    )
}
