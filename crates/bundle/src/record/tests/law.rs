//! Law of a record: after a cut at any place, every interval whose `append` returned is there,
//! once, with all its counts; and the record continues from there.

use super::super::fake::{MemoryDisk, Survives};
use super::super::limits::KeepLimits;
use super::super::manifest::SegmentKind;
use super::super::read::RecordReader;
use super::super::write::RecordWriter;
use super::*;

const SIZE: u64 = 1 << 20;

/// So small that a few intervals fill a tail, and a few tails a segment.
const SMALL: KeepLimits = KeepLimits { segment: 2_000, most: 9_000, closed: 46_000 };

/// A disk on which `n` intervals were recorded, with the length of its log after each.
fn recorded(n: u64, limits: KeepLimits) -> (MemoryDisk, Vec<usize>) {
    let disk = MemoryDisk::logged();
    let mut acknowledged = Vec::new();
    let (mut writer, _) = RecordWriter::open(&disk, SIZE, "r1").unwrap();
    writer.limits = limits;
    for i in 0..n {
        let appended = writer.append(&run("b1"), &interval(i * 2, 1, 6)).unwrap();
        assert_eq!(appended.trouble, None);
        acknowledged.push(disk.steps());
    }
    (disk, acknowledged)
}

/// Checks that a cut left all of the first `n` intervals, or these and the one that was being
/// written.
fn holds(disk: &MemoryDisk, n: u64, at: &str) -> u64 {
    let of = |n: u64| wanted((0..n).map(|i| interval(i * 2, 1, 6)));
    if n == 0 && RecordReader::open(disk).is_err() {
        return 0;
    }
    let found = sums(disk);
    let found = Sums { named: Vec::new(), remarks: Vec::new(), ..found };
    if found == of(n) {
        return n;
    }
    assert_eq!(found, of(n + 1), "{at}: {n} were written");
    n + 1
}

#[test]
fn cut_anywhere_no_interval_is_lost_and_none_comes_twice() {
    let (disk, acknowledged) = recorded(36, SMALL);
    let losses = RecordReader::open(&disk).unwrap().manifest().unwrap().losses.clone();
    assert!(losses.rows_to_hours > 0 && losses.rows_dropped == 0, "{losses:?}");
    let mut points = 0;
    for steps in 0..=disk.steps() {
        let n = acknowledged.iter().filter(|&&end| end <= steps).count() as u64;
        // Flushed data are not lost before the repair, nor after it.
        for survives in Survives::ALL {
            let at = format!("{steps} steps, {survives:?}");
            let cut = disk.cut(steps, survives);
            let held = holds(&cut, n, &at);
            points += 1;
            if (steps + survives as usize) % 5 > 0 {
                continue; // the rest takes longer
            }
            let (mut writer, _) =
                RecordWriter::open(&cut, SIZE, "r1").unwrap_or_else(|fault| panic!("{at}: {fault:?}"));
            writer.limits = SMALL;
            for i in held..held + 2 {
                assert_eq!(writer.append(&run("b1"), &interval(i * 2, 1, 6)).unwrap().seq, i + 1, "{at}");
            }
            drop(writer);
            assert_eq!(holds(&cut, held + 2, &at), held + 2, "{at}");
        }
    }
    assert!(points >= 1_000, "only {points} points");
}

/// So small that histograms are dropped, and the worst wake-ups added up.
const TINY: KeepLimits = KeepLimits { closed: 40_000, ..SMALL };

/// Like above, with the oldest lines dropped: the histograms are those in the manifest, and every
/// interval has its coverage and marks.
#[test]
fn cut_anywhere_what_is_dropped_is_counted() {
    let (disk, acknowledged) = recorded(80, TINY);
    let losses = RecordReader::open(&disk).unwrap().manifest().unwrap().losses.clone();
    assert!(losses.rows_dropped > 0 && losses.worst_dropped == 0, "{losses:?}");
    let mut points = 0;
    for steps in (0..=disk.steps()).step_by(3) {
        let n = acknowledged.iter().filter(|&&end| end <= steps).count() as u64;
        for survives in Survives::ALL {
            let at = format!("{steps} steps, {survives:?}");
            let cut = disk.cut(steps, survives);
            let manifest = RecordReader::open(&cut).ok().and_then(|reader| reader.manifest().cloned());
            let Some(manifest) = manifest else {
                assert_eq!(n, 0, "{at}");
                continue;
            };
            points += 1;
            let dropped = manifest.losses.rows_dropped;
            let found = sums(&cut);
            let all = |from: u64, to: u64| wanted((from..to).map(|i| interval(i * 2, 1, 6)));
            let held = if found.intervals == n { n } else { n + 1 };
            let whole = all(0, held);
            let of = (found.intervals, found.span, found.recorded, found.marks, found.largest);
            let wanted = (whole.intervals, whole.span, whole.recorded, whole.marks, whole.largest);
            assert_eq!(of, wanted, "{at}");
            assert_eq!(found.rows, all(dropped, held).rows, "{at}: {dropped} dropped");
        }
    }
    assert!(points >= 500, "only {points} points");
}

/// Like above, without space at each append in turn: written lines are present, and the others are
/// counted with the next interval.
#[test]
fn a_full_disk_costs_the_intervals_that_had_no_room() {
    for room in [12_000, 20_000, 30_000, 40_000] {
        let disk = MemoryDisk::default();
        let (mut writer, _) = RecordWriter::open(&disk, SIZE, "r1").unwrap();
        // Nothing is dropped, so that all acknowledged intervals are there.
        writer.limits = KeepLimits { closed: SIZE, ..SMALL };
        disk.room.set(Some(room));
        let mut intervals = Vec::new();
        let (mut lost, mut reports) = (0, 0);
        for i in 0..60 {
            disk.room.set((i < 50).then_some(room));
            match writer.append(&run("b1"), &interval(i * 2, 1, 6)) {
                Ok(appended) => {
                    intervals.push(i);
                    reports += u64::from(appended.trouble.is_some());
                }
                Err(why) => {
                    lost += 1;
                    writer.give_up();
                    assert!(why.contains("free space") || why.contains("space"), "{why}");
                }
            }
        }
        drop(writer);
        assert!(lost + reports > 0, "{room}");
        let found = sums(&disk);
        let all = wanted(intervals.iter().map(|i| interval(i * 2, 1, 6)));
        assert_eq!((found.intervals, found.rows), (all.intervals, all.rows), "{room}");
        let mut unwritten = 0;
        let mut reader = RecordReader::open(&disk).unwrap();
        reader
            .each_item(|item| {
                if let RecordItem::Worst(_, _, line) = item {
                    unwritten += line.coverage.unwritten;
                }
            })
            .unwrap();
        assert_eq!(unwritten, lost, "{room}");
    }
}

/// Years, coarse enough for a test; `cargo xtask experiments` takes intervals of five minutes.
#[test]
fn years_stay_below_the_size() {
    let disk = MemoryDisk::default();
    let size = 2 << 20;
    let (mut writer, _) = RecordWriter::open(&disk, size, "r1").unwrap();
    let hours = 4 * 365 * 4;
    let mut coverage = 0;
    for i in 0..hours {
        let mut of = interval(i, 2, 12);
        (of.span_ns, of.mono_ns) = (Nanos(72 * SPAN.0), Nanos(i as i64 * 72 * SPAN.0));
        let appended = writer.append(&run("b1"), &of).unwrap();
        assert_eq!(appended.trouble, None);
        coverage += of.coverage.recorded;
    }
    assert!(disk.peak.get() <= size, "{} bytes", disk.peak.get());
    let reader = RecordReader::open(&disk).unwrap();
    let losses = &reader.manifest().unwrap().losses;
    assert!(losses.rows_dropped > 0 && losses.worst_to_days > 0, "{losses:?}");
    assert_eq!(losses.worst_dropped, 0, "names stay while there are histograms to drop");
    // The names of 90 days are those of single intervals.
    let span: i64 = reader
        .manifest()
        .unwrap()
        .in_order(SegmentKind::Worst)
        .filter(|(tier, _)| *tier == model::record::RecordTier::Interval)
        .map(|(_, segment)| segment.span_ns.0)
        .sum();
    assert!(span >= 89 * 86_400 * Nanos::SECOND.0, "{span}");
    assert_eq!(sums(&disk).recorded, coverage);
}
