//! Written records are read, merged without a loss, and stay below the size.

use super::super::fake::MemoryDisk;
use super::super::lines::{HeaderLine, RowsLine};
use super::super::manifest::SegmentKind;
use super::super::read::{RecordItem, RecordReader};
use super::super::write::{DEFAULT_SIZE, RecordWriter};
use super::*;
use host::RecordDisk;
use model::record::RecordTier;

fn written(disk: &MemoryDisk, size: u64, n: u64, cpus: u32) -> Sums {
    let (mut writer, remarks) = RecordWriter::open(disk, size, "r1").unwrap();
    assert_eq!(remarks, Vec::<String>::new());
    for i in 0..n {
        let appended = writer.append(&run("b1"), &interval(i, cpus, 40)).unwrap();
        assert_eq!((appended.seq, appended.trouble), (i + 1, None));
    }
    wanted((0..n).map(|i| interval(i, cpus, 40)))
}

#[test]
fn an_interval_takes_one_flush() {
    let disk = MemoryDisk::logged();
    let (mut writer, _) = RecordWriter::open(&disk, DEFAULT_SIZE, "r1").unwrap();
    let (syncs, names) = (disk.syncs.get(), disk.name_syncs.get());
    for i in 0..5 {
        writer.append(&run("b1"), &interval(i, 2, 40)).unwrap();
        assert_eq!((disk.syncs.get() - syncs, disk.name_syncs.get() - names), (i + 1, 0));
    }
}

#[test]
fn what_is_written_is_read_before_and_after_it_is_closed() {
    for n in [1, 7, 300, 700] {
        let disk = MemoryDisk::default();
        let wanted = written(&disk, DEFAULT_SIZE, n, 2);
        let found = sums(&disk);
        assert_eq!(found.named, (1..=n).collect::<Vec<_>>());
        assert_eq!(Sums { named: Vec::new(), ..found }, wanted);
    }
}

#[test]
fn an_interval_is_read_as_it_was_written() {
    let disk = MemoryDisk::default();
    let (mut writer, _) = RecordWriter::open(&disk, DEFAULT_SIZE, "r1").unwrap();
    let one = interval(3, 2, 40);
    writer.append(&run("b1"), &one).unwrap();
    let mut reader = RecordReader::open(&disk).unwrap();
    let mut items = Vec::new();
    reader.each_item(|item| items.push(item)).unwrap();
    assert_eq!(items[0], RecordItem::Environment(Box::new(one.environment.clone().unwrap())));
    let RecordItem::Worst(tier, of, line) = &items[1] else { panic!("{items:?}") };
    assert_eq!((*tier, of.recording.as_str(), of.boot.as_str()), (RecordTier::Interval, "r1", "b1"));
    // The largest T and the largest T + W are one wake-up.
    assert_eq!((line.worst.len(), line.worst[0].worst_of.len()), (2, 2));
    assert_eq!((line.coverage, line.at.wall_ns), (one.coverage, one.wall_ns));
    let mut rows = Vec::new();
    reader.each_row(WatchSeries::Wakeup, |_, _, line| rows.push(line.cpus)).unwrap();
    assert_eq!(rows, [one.series[1].cpus.clone()]);
}

#[test]
fn closed_files_are_rows_of_one_series() {
    let disk = MemoryDisk::default();
    written(&disk, DEFAULT_SIZE, 300, 2);
    let names = RecordDisk::names(&disk).unwrap();
    let name = names.iter().find(|name| name.ends_with("interval.wakeup.rows.jsonl")).expect("a closed file");
    let text = String::from_utf8(disk.bytes(name).unwrap()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let header: HeaderLine = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(
        (header.schema.as_str(), header.run.boot.as_str(), header.span_ns),
        ("onbeat.rows/1", "b1", SPAN)
    );
    assert_eq!((header.series.known(), header.env.as_str()), (Some(WatchSeries::Wakeup), "e1"));
    let rows: Vec<RowsLine> =
        lines[1..lines.len() - 1].iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows[0].at.seq, 1);
    assert!(lines.last().unwrap().starts_with("{\"end\":{\"lines\":"), "{:?}", lines.last());
}

#[test]
fn old_intervals_become_hours_and_days_and_no_count_is_lost() {
    let disk = MemoryDisk::default();
    // 1 MiB is a few hours of two CPUs: all lines are merged, and finally dropped.
    let wanted = written(&disk, 1 << 20, 3_000, 2);
    let reader = RecordReader::open(&disk).unwrap();
    let manifest = reader.manifest().unwrap();
    let losses = &manifest.losses;
    assert!(losses.rows_to_hours > 0 && losses.rows_to_days > 0, "{losses:?}");
    let found = sums(&disk);
    assert_eq!(found.remarks, Vec::<String>::new());
    assert_eq!(
        (found.intervals, found.span, found.recorded),
        (wanted.intervals, wanted.span, wanted.recorded)
    );
    assert_eq!((found.marks, found.largest), (wanted.marks, wanted.largest));
    let held: u64 = manifest.in_order(SegmentKind::Rows).map(|(_, segment)| segment.intervals).sum();
    let dropped = losses.rows_dropped;
    let remainder = wanted_from(dropped, 3_000);
    assert_eq!(found.rows, remainder.rows, "{dropped} dropped, {held} held");
    assert!(disk.peak.get() <= 1 << 20, "{} bytes", disk.peak.get());
}

/// Some intervals have S, as if the kernel or a flag had changed.
fn with_switch(n: u64) -> WatchInterval {
    let mut of = interval(n, 2, 9);
    if n / 5 % 3 != 0 {
        return of;
    }
    let holder = [Holder::Lower.into(), Holder::Equal.into(), model::keyword::Word::default()];
    for series in [WatchSeries::Switch, WatchSeries::TimerWakeupSwitch] {
        let own = |row: WatchRow| match series {
            WatchSeries::Switch => WatchRow { holder: Default::default(), ..row },
            _ => row,
        };
        let cpus = (0..2).map(|cpu| own(row(cpu, n * 64 + 32 + u64::from(cpu), 9))).collect();
        of.series.push(SeriesRows { series, cpus, threads: Vec::new() });
    }
    of.worst.push(WorstWakeup {
        worst_of: vec![WatchSeries::Switch.into()],
        holder: holder[(n % 3) as usize].clone(),
        switch_ns: Some(Nanos(100 + n as i64)),
        timer_ns: None,
        mono_ns: Nanos(of.mono_ns.0 + 1),
        ..of.worst[0].clone()
    });
    of
}

#[test]
fn intervals_with_the_switch_and_without_are_merged() {
    const COUNT: u64 = 3_000;
    let disk = MemoryDisk::default();
    let (mut writer, _) = RecordWriter::open(&disk, 1 << 20, "r1").unwrap();
    (0..COUNT).for_each(|n| _ = writer.append(&run("b1"), &with_switch(n)).unwrap());
    let mut reader = RecordReader::open(&disk).unwrap();
    let losses = reader.manifest().unwrap().losses.clone();
    assert!(losses.rows_to_hours > 0 && losses.rows_to_days > 0, "{losses:?}");
    let mut worst = Vec::new();
    reader
        .each_item(|item| {
            let RecordItem::Worst(_, _, line) = item else { return };
            let of_switch: Vec<_> = line
                .worst
                .iter()
                .filter(|one| one.worst_of.contains(&WatchSeries::Switch.into()))
                .filter_map(|one| one.switch_ns)
                .collect();
            assert!(of_switch.len() <= 1, "{of_switch:?}");
            worst.extend(of_switch);
        })
        .unwrap();
    let last = (0..COUNT).rev().find(|n| n / 5 % 3 == 0).unwrap();
    assert_eq!(worst.into_iter().max(), Some(Nanos(100 + last as i64)));
    for series in WatchSeries::ALL {
        let mut found = 0;
        reader
            .each_row(*series, |_, _, line| {
                assert!(line.cpus.iter().all(|row| row.hist.total() == row.n));
                found += line.cpus.iter().map(|row| row.n).sum::<u64>();
            })
            .unwrap();
        let remainder = (losses.rows_dropped..COUNT).flat_map(|n| with_switch(n).series);
        let remainder = remainder.filter(|rows| rows.series == *series).flat_map(|rows| rows.cpus);
        assert_eq!(found, remainder.map(|row| row.n).sum::<u64>(), "{series:?}");
    }
    assert_eq!(reader.remarks, Vec::<String>::new());
}

fn wanted_from(from: u64, to: u64) -> Sums {
    wanted((from..to).map(|i| interval(i, 2, 40)))
}

#[test]
fn several_boots_are_in_one_folder_and_numbers_go_on() {
    let disk = MemoryDisk::default();
    for (boot, first, wanted) in [("b1", 0, 1), ("b1", 5, 6), ("b2", 0, 1), ("b2", 5, 6)] {
        let (mut writer, _) = RecordWriter::open(
            &disk,
            DEFAULT_SIZE,
            if wanted == 1 && boot == "b1" { "first" } else { "other" },
        )
        .unwrap();
        assert_eq!(writer.recording(), "first");
        for i in 0..5 {
            // A board without a battery: each boot begins at 1970.
            let of = WatchInterval { wall_ns: Nanos(i as i64 * SPAN.0), ..interval(first + i, 1, 9) };
            assert_eq!(writer.append(&run(boot), &of).unwrap().seq, wanted + i);
        }
    }
    let found = sums(&disk);
    assert_eq!((found.intervals, found.remarks.len()), (20, 0));
    assert_eq!(found.named, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
}
