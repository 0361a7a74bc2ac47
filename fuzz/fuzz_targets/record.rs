//! The folder of a record: any files are read or refused, and what can be opened is written on
//! without a loss.

#![cfg_attr(fuzzing, no_main)]

use bundle::record::fake::MemoryDisk;
use bundle::record::made::MadeRecord;
use bundle::record::read::{RecordItem, RecordReader};
use bundle::record::write::RecordWriter;
use entry::fuzz_target;
use model::units::Nanos;
use model::watch::WatchSeries;

const MADE: MadeRecord = MadeRecord { cpus: 1, span: Nanos(1_800_000_000_000), reboot: 9, wakeups: 1_000 };

/// How many intervals there are, by their lines.
fn intervals(disk: &MemoryDisk) -> Option<u64> {
    let mut reader = RecordReader::open(disk).ok()?;
    let mut intervals = 0u64;
    reader
        .each_item(|item| {
            if let RecordItem::Worst(_, _, line) = item {
                intervals = intervals.saturating_add(line.intervals);
            }
        })
        .expect("a disk in memory");
    for series in WatchSeries::ALL {
        reader.each_row(*series, |_, _, _| ()).expect("a disk in memory");
    }
    Some(intervals)
}

/// Kind of series, cut, file and the bytes that are damaged.
type Input = (u8, u16, Vec<u8>, Vec<(u8, u32, u8)>);

fuzz_target!(|input: Input| {
    let (n, file, more, changes) = input;
    let disk = MemoryDisk::default();
    let (mut writer, _) = RecordWriter::open(&disk, 1 << 20, "r").expect("an empty folder");
    for at in 0..u64::from(n % 64) {
        writer.append(&MADE.run(at), &MADE.interval(at)).expect("there is room");
    }
    drop(writer);
    let names = host::RecordDisk::names(&disk).expect("a disk in memory");
    let name = &names[usize::from(file) % names.len()];
    let mut bytes = disk.bytes(name).unwrap_or_default();
    for (how, at, byte) in changes {
        let at = at as usize % (bytes.len() + 1);
        match how % 3 {
            0 if at < bytes.len() => bytes[at] = byte,
            1 => bytes.truncate(at),
            _ => bytes.extend_from_slice(&more),
        }
    }
    disk.put(name, Some(&bytes));
    let Ok((mut writer, _)) = RecordWriter::open(&disk, 1 << 20, "r") else {
        intervals(&disk);
        return;
    };
    let before = intervals(&disk).expect("what can be written can be read");
    writer.append(&MADE.run(99), &MADE.interval(99)).expect("there is room");
    drop(writer);
    assert_eq!(intervals(&disk), Some(before.saturating_add(1)));
});
