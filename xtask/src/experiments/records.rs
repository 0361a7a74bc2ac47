//! Records of years, and the size of their lines: on a disk in memory, interval by interval.

use bundle::record::fake::MemoryDisk;
use bundle::record::made::MadeRecord;
use bundle::record::read::{RecordItem, RecordReader};
use bundle::record::write::{DEFAULT_SIZE, RecordWriter};
use model::units::Nanos;
use model::watch::{WatchInterval, WatchRun};

use super::line::ResultLine;
use super::{Experiment, Length};

const YEAR: u64 = 365 * 288;
/// Number of synthetic intervals, which are reused: making one takes longer than writing it.
const DRAWN: u64 = 288;
const MIB: f64 = 1_048_576.0;

/// The experiments of this file.
pub fn all() -> Vec<Experiment> {
    vec![("record-years", Box::new(years))]
}

fn drawn_record(cpus: u32) -> (MadeRecord, Vec<WatchInterval>) {
    let record = MadeRecord { cpus, span: Nanos(300 * Nanos::SECOND.0), reboot: u64::MAX, wakeups: 300_000 };
    (record, (0..DRAWN).map(|n| record.interval(n)).collect())
}

/// Sixteen CPUs for ten years of five minutes each: below the size at any moment, with no interval
/// lost, and the names of the last 90 days those of single intervals.
fn years(length: Length) -> Vec<ResultLine> {
    let years = length.of(10, 1);
    let (record, drawn) = drawn_record(16);
    let disk = MemoryDisk::default();
    let (mut writer, _) = RecordWriter::open(&disk, DEFAULT_SIZE, "years").expect("an empty folder");
    let run: WatchRun = record.run(0);
    let intervals = u64::from(years) * YEAR;
    let mut bytes = 0u64;
    for n in 0..intervals {
        let mut interval = drawn[(n % DRAWN) as usize].clone();
        let moved = Nanos((n as i64) * record.span.0 - interval.mono_ns.0);
        interval.mono_ns = interval.mono_ns + moved;
        interval.wall_ns = interval.wall_ns + moved;
        interval.worst.iter_mut().for_each(|worst| worst.mono_ns = worst.mono_ns + moved);
        let before = disk.size();
        let appended = writer.append(&run, &interval).expect("there is room");
        assert_eq!(appended.trouble, None);
        if n < 6 {
            bytes += disk.size() - before;
        }
    }
    let mut reader = RecordReader::open(&disk).expect("a record");
    let (mut found, mut named) = (0u64, 0u64);
    reader
        .each_item(|item| {
            if let RecordItem::Worst(_, _, line) = item {
                found += line.intervals;
                named += u64::from(line.intervals == 1);
            }
        })
        .expect("a disk in memory");
    let histograms = 6.0 * drawn[0].series.iter().map(|series| series.cpus.len()).sum::<usize>() as f64;
    let of = format!("16 CPUs, {years} years");
    vec![
        ResultLine::rate(
            format!("{of}: the most on the disk, of its size"),
            disk.peak.get() as f64 / MIB / 64.0,
            years,
        )
        .at_most(1.0),
        ResultLine::rate(
            format!("{of}: intervals whose coverage is kept"),
            found as f64 / intervals as f64,
            years,
        )
        .at_least(1.0),
        ResultLine::rate(
            format!("{of}: of 90 days, named by single intervals"),
            named as f64 / (90.0 * 288.0),
            years,
        )
        .at_least(1.0),
        ResultLine::rate("kB of a histogram and interval", bytes as f64 / histograms / 1e3, 6).at_most(1.5),
    ]
}
