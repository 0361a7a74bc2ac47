//! `onbeat explain` compared with `trace-cmd report` on one trace.dat: the ratio of their speeds,
//! and a check that its memory does not grow with the length.
//!
//! The trace is a recorded one (`tests/fixtures/foreign/traces`) whose pages are repeated with
//! shifted times; trace-cmd itself writes it without compression first. The processor time of both
//! is compared.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use super::decode::{moved, report, run};
use super::{Folder, Row, Rows, ratio};
use crate::debian::{self, Need};
use crate::tools::{Result, Tool, read, root, target};

/// Two CPUs with cyclictest and a busy thread before it; scheduling, interrupts and timers.
const RECORDED: &str = "tests/fixtures/foreign/traces/v7-marker.dat";
/// Bytes of the trace.
const LENGTH: u64 = 1 << 30;
const LEAST: f64 = 20.0;
const MOST_KIB: u64 = 64 << 10;
const REPEATS: usize = 6;
/// Repetitions of a quick run, and the divisor of its trace's length.
const QUICK: (usize, u64) = (3, 8);
/// The words before the places of each CPU's pages: trace-cmd.dat.v6(5).
const PLACES: &[u8] = b"flyrecord\0";
const CPUS: usize = 2;
const PAGE: usize = 4096;
/// Nanoseconds from the start of the last page to the next repetition; a page is shorter.
const BETWEEN: u64 = 50_000_000;

pub fn measure(onbeat: &Path, quick: bool) -> Rows {
    debian::ensure(&[Need { program: "trace-cmd", package: "trace-cmd" }])?;
    let folder = Folder(target("lab/bench")?.join("explain"));
    std::fs::create_dir_all(&folder.0).map_err(|error| error.to_string())?;
    let dat = folder.0.join("trace.dat");
    let (repeats, part) = if quick { QUICK } else { (REPEATS, 1) };
    let length = make(&dat, LENGTH / part)?;
    let file = dat.display().to_string();
    let line = [&onbeat.display().to_string(), "explain", &file, "--json", "/dev/null", "-q"];
    let line: Vec<String> = line.into_iter().map(str::to_string).collect();
    let megabytes = length as f64 / 1e6;
    let (mut speeds, mut peak, mut peer) = (Vec::new(), 0, 0);
    for _ in 0..repeats {
        let (seconds, kib) = run(&line)?;
        let (printed, kib_printed) = report(&dat, &[])?;
        speeds.push((megabytes / seconds, megabytes / printed));
        (peak, peer) = (peak.max(kib), peer.max(kib_printed));
    }
    let ratio = ratio::of_pairs(&speeds).ok_or("no ratio")?;
    let of = |which: fn(&(f64, f64)) -> f64| ratio::median(speeds.iter().map(which)).unwrap_or_default();
    let ends = ratio.interval.map_or(String::new(), |(low, high)| format!(" [{low:.1}, {high:.1}]"));
    Ok(vec![
        Row {
            what: format!("explain, {megabytes:.0} MB: MB per CPU second"),
            ours: format!("{:.1}", of(|pair| pair.0)),
            peer: format!("trace-cmd {:.1}", of(|pair| pair.1)),
            limit: String::new(),
            holds: None,
        },
        Row {
            what: "explain, times trace-cmd report".to_string(),
            ours: format!("{:.1}{ends}", ratio.median),
            peer: String::new(),
            limit: format!("{LEAST}"),
            holds: Some(ratio.median >= LEAST),
        },
        Row {
            what: "explain, peak KiB".to_string(),
            ours: peak.to_string(),
            peer: format!("trace-cmd {peer}"),
            limit: MOST_KIB.to_string(),
            holds: Some(peak <= MOST_KIB),
        },
    ])
}

/// Writes the trace and gives its length.
fn make(path: &Path, length: u64) -> Result<u64> {
    let plain = path.with_extension("recorded").display().to_string();
    let recorded = root().join(RECORDED).display().to_string();
    let convert = ["convert", "-i", &recorded, "-o", &plain, "--file-version", "6"];
    Tool::new("trace-cmd").args(convert).quiet().text()?;
    let bytes = read(Path::new(&plain))?;
    let unknown = || format!("{plain}: not in the format of trace-cmd");
    let long = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?) as usize);
    let places = bytes.windows(PLACES.len()).position(|part| part == PLACES).ok_or_else(unknown)?;
    let places = places + PLACES.len();
    let pages = |cpu: usize| {
        let (offset, size) = long(places + 16 * cpu).zip(long(places + 16 * cpu + 8))?;
        Some(bytes.get(offset..)?.get(..size)?.chunks_exact(PAGE).collect::<Vec<_>>())
    };
    let cpus = (0..CPUS).map(pages).collect::<Option<Vec<_>>>().ok_or_else(unknown)?;
    let times = || cpus.iter().flatten().filter_map(|page| Some(u64::from_le_bytes(*page.first_chunk()?)));
    let (first, last) = times().min().zip(times().max()).ok_or_else(unknown)?;
    let span = last - first + BETWEEN;
    let repeats = length / (cpus.iter().map(Vec::len).sum::<usize>() * PAGE) as u64 + 1;
    let begin = long(places).ok_or_else(unknown)?;
    let mut head = bytes.get(..begin).ok_or_else(unknown)?.to_vec();
    let mut offset = begin as u64;
    for (cpu, pages) in cpus.iter().enumerate() {
        let size = repeats * (pages.len() * PAGE) as u64;
        let place = [offset.to_le_bytes(), size.to_le_bytes()].concat();
        head[places + 16 * cpu..][..16].copy_from_slice(&place);
        offset += size;
    }
    let fault = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut dat = BufWriter::new(File::create(path).map_err(fault)?);
    dat.write_all(&head).map_err(fault)?;
    for pages in &cpus {
        for nth in 0..repeats {
            pages.iter().try_for_each(|page| dat.write_all(&moved(page, nth * span))).map_err(fault)?;
        }
    }
    dat.flush().map_err(fault)?;
    Ok(offset)
}
