//! Records that are damaged, edited, newer or foreign: the readable part is read and reported.

use super::super::damage::{DamagedSection, DamagedSpan, LackingFile};
use super::super::fake::MemoryDisk;
use super::super::lines::LineSpan;
use super::super::manifest::{MANIFEST, ManifestFault, RecordSegment, SegmentFile, SegmentKind};
use super::super::read::RecordReader;
use super::super::write::{DEFAULT_SIZE, RecordFault, RecordWriter};
use super::*;
use host::RecordDisk;
use model::record::RecordTier;

/// Last closed rows of intervals: the segment, its file of the timer, and the contents of that.
fn last_timer_rows(disk: &MemoryDisk) -> (RecordSegment, SegmentFile, Vec<u8>) {
    let manifest = RecordReader::open(disk).unwrap().manifest().unwrap().clone();
    let intervals = manifest.in_order(SegmentKind::Rows).filter(|(tier, _)| *tier == RecordTier::Interval);
    let segment = intervals.map(|(_, segment)| segment).last().unwrap().clone();
    let file = segment.files.iter().find(|file| file.series == "timer").unwrap().clone();
    let bytes = disk.bytes(&file.name).unwrap();
    (segment, file, bytes)
}

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
            // A time or a flag in a packed member's head does not change its contents.
            let same = || sums(&copy) == whole;
            assert!(!reader.remarks.is_empty() || same(), "{name} at {at}: nothing is said");
            assert!(rows > 0 && intervals > 0, "{name} at {at}: {rows} {intervals}");
            // The record can be written further.
            let (mut writer, _) = RecordWriter::open(&copy, 1 << 20, "r1").unwrap();
            assert_eq!(writer.append(&run("b1"), &interval(200, 1, 20)).unwrap().trouble, None);
        }
    }
}

/// A damaged packed section does not affect those after it, neither for a reader nor when they are
/// added up.
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
    // All lines are added up.
    let (mut writer, _) = RecordWriter::open(&disk, 1 << 20, "r1").unwrap();
    writer.limits = super::super::limits::KeepLimits { segment: 1_000, most: 4_000, closed: 10_000 };
    writer.append(&run("b1"), &interval(151, 1, 20)).unwrap();
    assert!(writer.losses().damaged_sections > 0, "{:?}", writer.losses());
    assert_eq!(sums(&disk).intervals, found.intervals + 1);
}

/// Rows of a series that are passed on, the excluded ones, and the losses by those.
fn passed_on(disk: &MemoryDisk) -> (Vec<u64>, Vec<DamagedSection>, Vec<DamagedSpan>) {
    let mut reader = RecordReader::open(disk).unwrap();
    let mut seqs = Vec::new();
    let wants = |text: &super::super::texts::RowText| text.tier == RecordTier::Interval;
    reader.each_row_text(WatchSeries::Timer, wants, |text| seqs.push(text.at.seq)).unwrap();
    let lost = reader.damaged.iter().flat_map(|section| reader.lost_with(section)).collect();
    (seqs, reader.damaged, lost)
}

/// A boot cannot take back its sent rows: only numbers that a checksum proves are passed on.
#[test]
fn no_row_of_a_changed_section_is_passed_on_and_all_others_are() {
    let disk = recorded();
    let (segment, file, bytes) = last_timer_rows(&disk);
    let text = String::from_utf8(bytes[..file.ends[0] as usize].to_vec()).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("{\"seq\""));
    let own: Vec<u64> = rows.map(|line| serde_json::from_str::<LineSpan>(line).unwrap().seq).collect();
    assert!(own.len() > 2, "{own:?}");
    let at = text.find("\"max_ns\":").unwrap() + 9;
    let end = text.find("{\"end\"").unwrap();
    for (with_manifest, at) in [(true, at), (true, end + 3), (false, at)] {
        let copy = disk.copy();
        if !with_manifest {
            copy.put(MANIFEST, None);
        }
        let (mut wanted, damaged, lost) = passed_on(&copy);
        assert_eq!((damaged, lost), (vec![], vec![]));
        let read = sums(&copy).rows;
        let mut changed = bytes.clone();
        changed[at] = if changed[at] == b'9' { b'8' } else { b'9' };
        copy.put(&file.name, Some(&changed));
        let (found, damaged, lost) = passed_on(&copy);
        wanted.retain(|seq| !own.contains(seq));
        assert_eq!(found, wanted, "{with_manifest} {at}");
        assert_eq!((damaged.len(), &damaged[0].file, damaged[0].from), (1, &file.name, 0));
        assert!(damaged[0].rows >= own.len() as u64, "{damaged:?}");
        let (first, last) =
            if with_manifest { (segment.from.seq, segment.to.seq) } else { (own[0], own[own.len() - 1]) };
        let all = DamagedSpan { recording: "r1".into(), boot: "b1".into(), first, last };
        assert_eq!(lost, [all]);
        // The readable part is shown as before.
        assert_eq!(sums(&copy).rows, read);
    }
    // Rows that were cut off before their checksum are neither proven nor known to be changed.
    let copy = disk.copy();
    copy.put(&file.name, Some(&bytes[..end]));
    let (found, damaged, _) = passed_on(&copy);
    assert!(own.iter().all(|seq| found.contains(seq)) && damaged.is_empty(), "{damaged:?}");
}

/// Files that lack rows of a series, and the numbers that may be among these.
fn lacking(disk: &MemoryDisk, series: WatchSeries) -> (Vec<LackingFile>, Option<DamagedSpan>) {
    let mut reader = RecordReader::open(disk).unwrap();
    reader.each_row_text(series, |_| true, |_| {}).unwrap();
    let span = reader.lacking.first().and_then(|file| reader.span_of(&file.name));
    (reader.lacking, span)
}

#[test]
fn what_a_file_lacks_is_told_from_an_end_that_is_being_written() {
    let disk = recorded();
    let (segment, file, bytes) = last_timer_rows(&disk);
    let length = bytes.len();
    for (rest, lacks) in [(None, None), (Some(0), Some(length)), (Some(length - 1), Some(1))] {
        let copy = disk.copy();
        copy.put(&file.name, rest.map(|rest| &bytes[..rest]));
        let lost = LackingFile { name: file.name.clone(), bytes: lacks.map(|lacks| lacks as u64) };
        let (first, last) = (segment.from.seq, segment.to.seq);
        let span = DamagedSpan { recording: "r1".into(), boot: "b1".into(), first, last };
        assert_eq!(lacking(&copy, WatchSeries::Timer), (vec![lost], Some(span)), "{rest:?}");
        assert_eq!(lacking(&copy, WatchSeries::Wakeup), (vec![], None), "{rest:?}");
    }
    // A writer continues with the rest, and reports the loss.
    for rest in [0, length / 2] {
        let copy = disk.copy();
        copy.put(&file.name, Some(&bytes[..rest]));
        let (mut writer, _) = RecordWriter::open(&copy, 1 << 20, "r1").unwrap();
        writer.limits = super::super::limits::KeepLimits { segment: 1, most: 1, closed: 1 << 20 };
        assert_eq!(writer.append(&run("b1"), &interval(200, 1, 20)).unwrap().trouble, None);
        let lost = LackingFile { name: file.name.clone(), bytes: Some(0) };
        assert_eq!(lacking(&copy, WatchSeries::Timer).0, [lost], "{rest}");
    }
    // Bytes beyond the length in the manifest are being written, and so is the tail's end.
    let copy = disk.copy();
    let mut longer = bytes.clone();
    longer.extend_from_slice(b"{\"seq\"");
    copy.put(&file.name, Some(&longer));
    assert!(lacking(&copy, WatchSeries::Timer).0.is_empty());
    let manifest = RecordReader::open(&disk).unwrap().manifest().unwrap().clone();
    let tail = disk.bytes(&manifest.tail).unwrap();
    for rest in [0, tail.len() / 2, tail.len().saturating_sub(1)] {
        copy.put(&manifest.tail, Some(&tail[..rest]));
        assert!(lacking(&copy, WatchSeries::Timer).0.is_empty(), "{rest}");
    }
    copy.put(&manifest.tail, None);
    let gone = LackingFile { name: manifest.tail.clone(), bytes: None };
    for series in [WatchSeries::Timer, WatchSeries::Wakeup] {
        assert_eq!(lacking(&copy, series), (vec![gone.clone()], None));
    }
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
    // The manifest is lost too, so that only the lines identify the intervals.
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
    // The folder is unchanged.
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
