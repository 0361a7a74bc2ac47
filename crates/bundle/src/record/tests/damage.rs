//! Records that are damaged, edited, newer or another's: what can be read is read, and said.

use super::super::fake::MemoryDisk;
use super::super::manifest::{MANIFEST, ManifestFault};
use super::super::read::RecordReader;
use super::super::write::{DEFAULT_SIZE, RecordFault, RecordWriter};
use super::*;
use host::RecordDisk;

/// Closed files of all tiers, and a tail.
fn recorded() -> MemoryDisk {
    let disk = MemoryDisk::default();
    let (mut writer, _) = RecordWriter::open(&disk, 1 << 20, "r1").unwrap();
    writer.limits = super::super::limits::KeepLimits { segment: 20_000, most: 80_000, closed: 150_000 };
    for i in 0..150 {
        writer.append(&run("b1"), &interval(i, 1, 20)).unwrap();
    }
    disk
}

fn names(disk: &MemoryDisk) -> Vec<String> {
    RecordDisk::names(disk).unwrap()
}

#[test]
fn one_changed_byte_is_said_and_the_rest_is_read() {
    let disk = recorded();
    let whole = sums(&disk);
    assert!(whole.remarks.is_empty() && whole.intervals == 150, "{whole:?}");
    for name in names(&disk).iter().filter(|name| *name != MANIFEST) {
        let bytes = disk.bytes(name).unwrap();
        for at in (0..bytes.len()).step_by(1 + bytes.len() / 40) {
            let copy = disk.copy();
            let mut changed = bytes.clone();
            changed[at] ^= 4;
            copy.put(name, Some(&changed));
            let mut reader = RecordReader::open(&copy).unwrap();
            let mut intervals = 0;
            reader
                .each_item(|item| {
                    if let RecordItem::Worst(_, _, line) = item {
                        intervals += line.intervals;
                    }
                })
                .unwrap();
            let mut rows = 0;
            for series in WatchSeries::ALL {
                reader.each_row(*series, |_, _, line| rows += line.cpus.len()).unwrap();
            }
            // A time or a flag in a packed member's head changes nothing of what is in it.
            let same = || sums(&copy) == whole;
            assert!(!reader.remarks.is_empty() || same(), "{name} at {at}: nothing is said");
            assert!(rows > 0 && intervals > 0, "{name} at {at}: {rows} {intervals}");
            // And it can be written on.
            let (mut writer, _) = RecordWriter::open(&copy, 1 << 20, "r1").unwrap();
            assert_eq!(writer.append(&run("b1"), &interval(200, 1, 20)).unwrap().trouble, None);
        }
    }
}

/// A packed section that is damaged takes none of those behind it along, neither for a reader nor
/// when they are added up.
#[test]
fn damage_stays_in_its_section() {
    let disk = recorded();
    let name = names(&disk).into_iter().find(|name| name.ends_with("worst.jsonl.gz")).unwrap();
    let manifest = RecordReader::open(&disk).unwrap().manifest().unwrap().clone();
    let files = manifest.segments.iter().flat_map(|segment| &segment.files);
    let ends = files.into_iter().find(|file| file.name == name).unwrap().ends.clone();
    assert!(ends.len() > 2, "{ends:?}");
    let whole = sums(&disk);
    let mut bytes = disk.bytes(&name).unwrap();
    (bytes[ends[0] as usize + 2], bytes[ends[0] as usize + 40]) = (0, 0);
    disk.put(&name, Some(&bytes));
    let found = sums(&disk);
    assert!(found.named.contains(&1) && found.named.last() == whole.named.last(), "{:?}", found.named);
    assert!(found.intervals > 100 && found.intervals < 150, "{}", found.intervals);
    assert_eq!(found.rows, whole.rows);
    // Everything is added up.
    let (mut writer, _) = RecordWriter::open(&disk, 1 << 20, "r1").unwrap();
    writer.limits = super::super::limits::KeepLimits { segment: 1_000, most: 4_000, closed: 10_000 };
    writer.append(&run("b1"), &interval(151, 1, 20)).unwrap();
    assert!(writer.losses().damaged_sections > 0, "{:?}", writer.losses());
    assert_eq!(sums(&disk).intervals, found.intervals + 1);
}

#[test]
fn a_file_that_is_missing_or_cut_short_is_said() {
    let disk = recorded();
    for name in names(&disk).iter().filter(|name| *name != MANIFEST) {
        let bytes = disk.bytes(name).unwrap();
        for rest in [None, Some(0), Some(bytes.len() / 2), Some(bytes.len() - 1)] {
            let copy = disk.copy();
            copy.put(name, rest.map(|length| &bytes[..length]));
            let found = sums(&copy);
            let empty_tail = name.ends_with("tail") && rest == Some(0);
            assert!(!found.remarks.is_empty() || empty_tail, "{name} {rest:?}");
            let (mut writer, remarks) = RecordWriter::open(&copy, 1 << 20, "r1").unwrap();
            assert!(!remarks.is_empty() || empty_tail, "{name} {rest:?}");
            writer.append(&run("b1"), &interval(200, 1, 20)).unwrap();
        }
    }
}

#[test]
fn without_its_manifest_a_record_is_read_and_not_written() {
    let disk = recorded();
    let whole = sums(&disk);
    let manifest = disk.bytes(MANIFEST).unwrap();
    let mut changed = manifest.clone();
    let digit = changed.iter().rposition(|byte| *byte == b'1').unwrap();
    changed[digit] = b'2';
    for bytes in [None, Some(&manifest[..99]), Some(&changed[..]), Some(&[][..])] {
        let copy = disk.copy();
        copy.put(MANIFEST, bytes);
        let found = sums(&copy);
        assert_eq!((found.intervals, found.rows), (whole.intervals, whole.rows));
        assert!(found.remarks.iter().any(|remark| remark.contains(MANIFEST)), "{:?}", found.remarks);
        assert!(RecordWriter::open(&copy, 1 << 20, "r1").is_err());
    }
}

#[test]
fn files_that_a_killed_merge_left_are_not_counted_twice() {
    let disk = recorded();
    let whole = sums(&disk);
    // The manifest is lost too, so that only the lines tell: hours of intervals that are there.
    let hours = names(&disk).into_iter().find(|name| name.contains(".hour.timer.")).expect("hours");
    disk.put("00009999.hour.timer.rows.jsonl", disk.bytes(&hours).as_deref());
    disk.put(MANIFEST, None);
    let found = sums(&disk);
    assert_eq!(found.rows, whole.rows);
    assert!(found.remarks.iter().any(|remark| remark.contains("repeat")), "{:?}", found.remarks);
}

#[test]
fn newer_and_foreign_folders_are_refused() {
    let disk = MemoryDisk::default();
    disk.put("notes.txt", Some(b"mine"));
    let refused = RecordWriter::open(&disk, DEFAULT_SIZE, "x");
    assert!(matches!(refused, Err(RecordFault::Foreign(name)) if name == "notes.txt"));
    let disk = recorded();
    disk.put(MANIFEST, Some(b"{\"schema\":\"onbeat.watch/2\",\"tail\":7}\n"));
    assert!(matches!(
        RecordWriter::open(&disk, DEFAULT_SIZE, "x"),
        Err(RecordFault::Manifest(ManifestFault::Newer(schema))) if schema == "onbeat.watch/2"
    ));
    assert!(matches!(RecordReader::open(&disk), Err(ManifestFault::Newer(_))));
    // Nothing was touched.
    assert_eq!(names(&disk).len(), names(&recorded()).len());
}

#[test]
fn a_manifest_leads_to_no_file_outside_of_its_folder() {
    let disk = recorded();
    let text = String::from_utf8(disk.bytes(MANIFEST).unwrap()).unwrap();
    let line = text.lines().next().unwrap().replacen(".tail\"", ".tail/../../x\"", 1);
    let copy = disk.copy();
    let mut bytes = format!("{line}\n").into_bytes();
    let sum = super::super::sections::checksum(&bytes);
    bytes.extend_from_slice(format!("{{\"end\":{{\"lines\":1,\"crc32\":{sum}}}}}\n").as_bytes());
    copy.put(MANIFEST, Some(&bytes));
    assert!(RecordWriter::open(&copy, DEFAULT_SIZE, "x").is_err());
    assert_eq!(sums(&copy).intervals, 150, "the files' own names are gone by");
}
