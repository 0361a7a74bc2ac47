//! Speed of decoding pages, compared with `trace-cmd report` on the same pages, and a check that
//! memory does not grow with the length.
//!
//! The trace consists of recorded pages (`tests/pages`), one after another with shifted times.
//! trace-cmd prints what it reads; with a filter that passes nothing it only decodes and filters.
//! The processor time of both is compared.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::units::Cpu;
use trace::catalog;
use trace::decode::Decoder;
use trace::event::Raw;

use super::program::tool;
use super::{Folder, Row, Rows, ratio};
use crate::debian::{self, Need};
use crate::tools::{Result, Tool, read, root, target};

/// The recorded kernel; its pages are memory pages, which trace-cmd's old format requires.
const KERNEL: &str = "tests/pages/debian-6.12-rt";
/// Bytes of the long trace; the short one has a tenth.
const LENGTH: u64 = 200 << 20;
const LEAST: f64 = 5.0;
const REPEATS: usize = 6;
/// Repetitions of a quick run, and the divisor of its trace's length.
const QUICK: (usize, u64) = (3, 5);
/// Far more than trace-cmd needs for a gigabyte on a busy machine.
const LIMIT: Duration = Duration::from_secs(1200);
/// A filter that is false for every record.
const NOTHING: &str = "sched_switch:prev_pid==-77";
const HEADER_EVENT: &str = "# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\
    \tarray       :   32 bits\n\n\tpadding     : type == 29\n\ttime_extend : type == 30\n\
    \ttime_stamp : type == 31\n\tdata max type_len  == 28\n";

/// Headers and event formats of the kernel.
struct Kernel {
    header: String,
    formats: String,
}

impl Kernel {
    fn load() -> Result<Kernel> {
        let text = |name: &str| {
            let bytes = read(&root().join(KERNEL).join(name))?;
            String::from_utf8(bytes).map_err(|error| format!("{name}: {error}"))
        };
        Ok(Kernel { header: text("header_page")?, formats: text("formats")? })
    }

    fn decoder(&self) -> Result<Decoder> {
        Decoder::new(&self.header, false, &catalog::formats(&self.formats))
    }
}

pub fn measure(quick: bool) -> Rows {
    debian::ensure(&[Need { program: "trace-cmd", package: "trace-cmd" }])?;
    let folder = Folder(target("lab/bench")?.join("decode"));
    std::fs::create_dir_all(&folder.0).map_err(|error| error.to_string())?;
    let long = if quick { LENGTH / QUICK.1 } else { LENGTH };
    let [short, long] = [("short", long / 10), ("long", long)].map(|(name, length)| {
        let path = folder.0.join(name);
        make(&path, length).map(|events| (path, events))
    });
    let (short, (long, events)) = (short?, long?);
    Tool::new("cargo").args(["build", "--quiet", "--release", "--package", "xtask"]).show()?;
    let ours = |path: &Path| {
        let own = target("release")?.join("xtask").display().to_string();
        run(&[own, "decode-pages".to_string(), path.display().to_string()])
    };
    let dat = long.with_extension("dat");
    let millions = events as f64 / 1e6;
    let (mut speeds, mut printing, mut filtering) = (Vec::new(), Vec::new(), Vec::new());
    let (mut peak, mut peer) = (0, 0);
    for _ in 0..if quick { QUICK.0 } else { REPEATS } {
        let (seconds, kib) = ours(&long)?;
        speeds.push(millions / seconds);
        let (printed, kib_printed) = report(&dat, &[])?;
        printing.push((millions / seconds, millions / printed));
        filtering.push((millions / seconds, millions / report(&dat, &["-F", NOTHING])?.0));
        (peak, peer) = (peak.max(kib), peer.max(kib_printed));
    }
    let (_, brief) = ours(&short.0)?;
    rows(
        &speeds,
        &[("printing", printing), ("with a filter that nothing passes", filtering)],
        brief,
        peak,
        peer,
    )
}

type Pairs = (&'static str, Vec<(f64, f64)>);

fn rows(speeds: &[f64], beside: &[Pairs], brief: u64, peak: u64, peer: u64) -> Rows {
    let speed = ratio::median(speeds.to_vec()).ok_or("nothing was measured")?;
    let ends = [f64::min, f64::max].map(|end| speeds.iter().copied().fold(speed, end));
    let mut rows = vec![Row {
        what: "decode, million events per CPU second".to_string(),
        ours: format!("{speed:.1} [{:.1}, {:.1}]", ends[0], ends[1]),
        peer: String::new(),
        limit: format!("{LEAST}"),
        holds: Some(speed >= LEAST),
    }];
    for (how, pairs) in beside {
        let ratio = ratio::of_pairs(pairs).ok_or("no ratio")?;
        let theirs = ratio::median(pairs.iter().map(|pair| pair.1)).unwrap_or_default();
        let interval = ratio.interval.map_or(String::new(), |(low, high)| format!(" [{low:.0}, {high:.0}]"));
        rows.push(Row {
            what: format!("times trace-cmd report, {how}"),
            ours: format!("{:.0}{interval}", ratio.median),
            peer: format!("{theirs:.2} M/s"),
            limit: String::new(),
            holds: None,
        });
    }
    rows.push(Row {
        what: format!("decode, peak KiB (a tenth of it: {brief})"),
        ours: peak.to_string(),
        peer: format!("trace-cmd {peer}"),
        limit: format!("{}", brief + 512),
        holds: Some(peak <= brief + 512),
    });
    Ok(rows)
}

/// Time and memory of `trace-cmd report`, its output thrown away.
pub(super) fn report(dat: &Path, more: &[&str]) -> Result<(f64, u64)> {
    let file = dat.display().to_string();
    let line = ["sh", "-c", "exec trace-cmd report -i \"$0\" \"$@\" >/dev/null", &file];
    run(&line.iter().chain(more).map(|word| (*word).to_string()).collect::<Vec<_>>())
}

/// Seconds of processor time, which other programs do not lengthen as they do the clock's, and peak
/// KiB.
pub(super) fn run(line: &[String]) -> Result<(f64, u64)> {
    let report = target("lab/bench")?.join("decoded");
    let mut timed: Vec<String> = ["time", "-q", "-f", "%U %S %M", "-o"].map(str::to_string).to_vec();
    timed.push(report.display().to_string());
    timed.extend_from_slice(line);
    tool(&timed).within(LIMIT).text()?;
    let text = String::from_utf8_lossy(&read(&report)?).into_owned();
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [user, system, peak] = numbers[..] else { return Err(format!("time says {text}")) };
    Ok(((user + system).max(0.01), peak as u64))
}

/// The program under measurement: decodes a file of pages, with one in memory at a time.
pub fn decode_pages(path: &str) -> Result<()> {
    let decoder = Kernel::load()?.decoder()?;
    let mut page = vec![0; decoder.layout().page_size()];
    let mut file = File::open(path).map_err(|error| format!("{path}: {error}"))?;
    let mut events = 0u64;
    while file.read_exact(&mut page).is_ok() {
        let notes = decoder.page(Cpu(0), &page, &mut |event: Raw| {
            events += 1;
            black_box(event);
        });
        if notes.cut || notes.malformed + notes.unknown > 0 {
            return Err(format!("{path}: a page was not read whole: {notes:?}"));
        }
    }
    println!("{events} events");
    Ok(())
}

/// Writes the pages, and next to them a `.dat` for trace-cmd; returns the number of events.
fn make(path: &Path, length: u64) -> Result<u64> {
    let kernel = Kernel::load()?;
    let decoder = kernel.decoder()?;
    let recorded = read(&root().join(KERNEL).join("cpu0.raw"))?;
    let size = decoder.layout().page_size();
    let of = |page: &[u8]| decoder.page(Cpu(0), page, &mut |_| {});
    // Whole pages only, without absolute time stamps, which cannot be shifted.
    let pages: Vec<&[u8]> = recorded
        .chunks_exact(size)
        .filter(|page| !of(&moved(page, 1 << 50)).cut && of(page).records > 20)
        .collect();
    let (first, last) = pages.first().zip(pages.last()).ok_or("no page to repeat")?;
    let span = (of(last).end.0 - of(first).start.0 + 1000) as u64;
    let fault = |error: std::io::Error| format!("{}: {error}", path.display());
    let dat: PathBuf = path.with_extension("dat");
    let mut plain = BufWriter::new(File::create(path).map_err(fault)?);
    let mut dat = BufWriter::new(File::create(dat).map_err(fault)?);
    let count = length / size as u64;
    dat.write_all(&head(&kernel, size, count * size as u64)).map_err(fault)?;
    let mut events = 0;
    for n in 0..count {
        let page = pages[n as usize % pages.len()];
        let page = moved(page, n / pages.len() as u64 * span);
        events += of(&page).records;
        plain.write_all(&page).and_then(|()| dat.write_all(&page)).map_err(fault)?;
    }
    plain.flush().and_then(|()| dat.flush()).map_err(fault)?;
    Ok(events)
}

/// A page with its time moved on.
pub(super) fn moved(page: &[u8], by: u64) -> Vec<u8> {
    let mut page = page.to_vec();
    if let Some(time) = page.first_chunk_mut::<8>() {
        *time = (u64::from_le_bytes(*time) + by).to_le_bytes();
    }
    page
}

/// Part of a trace.dat (version 6) before its one CPU's pages: trace-cmd.dat.v6(5).
fn head(kernel: &Kernel, page: usize, length: u64) -> Vec<u8> {
    let mut bytes = b"\x17\x08\x44tracing6\0\0\x08".to_vec();
    let small = |bytes: &mut Vec<u8>, n: usize| bytes.extend((n as u32).to_le_bytes());
    let text = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.bytes());
    };
    small(&mut bytes, page);
    bytes.extend(b"header_page\0");
    text(&mut bytes, &kernel.header);
    bytes.extend(b"header_event\0");
    text(&mut bytes, HEADER_EVENT);
    let formats = catalog::formats(&kernel.formats);
    let (own, others): (Vec<_>, Vec<_>) = formats.into_iter().partition(|(wanted, _)| !wanted.has_switch());
    small(&mut bytes, own.len());
    own.iter().for_each(|(_, format)| text(&mut bytes, format));
    let mut systems: Vec<&str> = others.iter().map(|(wanted, _)| wanted.system).collect();
    systems.sort_unstable();
    systems.dedup();
    small(&mut bytes, systems.len());
    for system in systems {
        bytes.extend(system.bytes().chain([0]));
        let of: Vec<_> = others.iter().filter(|(wanted, _)| wanted.system == system).collect();
        small(&mut bytes, of.len());
        of.iter().for_each(|(_, format)| text(&mut bytes, format));
    }
    // No symbols, no formats of printk, no names of threads.
    small(&mut bytes, 0);
    small(&mut bytes, 0);
    text(&mut bytes, "");
    small(&mut bytes, 1);
    bytes.extend(b"options  \0\0\0flyrecord\0");
    let begin = (bytes.len() + 16).next_multiple_of(page);
    bytes.extend((begin as u64).to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.resize(begin, 0);
    bytes
}
