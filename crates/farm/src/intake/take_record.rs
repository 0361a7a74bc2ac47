//! Intake of a record's rows, as if its board had sent them.

use std::collections::BTreeSet;

use bundle::record::damage::{DamagedSection, LackingFile, words_of, words_of_lacking, words_of_tail};
use model::error::Result;
use model::text::{excerpt, several};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::ingest::board_key::{NO_BOARD, board_of};
use crate::ingest::environment::watch_environment;
use crate::ingest::find::FoundBundle;
use crate::ingest::record_rows::{RecordPart, RowsTaken, environments_of, model_of, read};
use crate::ingest::rows::{ReceivedRow, RowsOf};
use crate::store::{FarmStore, RowBatch};
use crate::wall_clock::now_ns;

/// Parts of a record that are read ahead.
const AHEAD: usize = 2;

/// Progress of a record's intake: a later scan continues with the rows added since.
#[derive(Debug, Default)]
pub struct TakenRecord {
    board: Option<i64>,
    up_to: RowsTaken,
    /// Environments that the store has, by the ids of the rows.
    environments: BTreeSet<String>,
    /// Number of new rows.
    pub stored: u64,
    /// Number of rows that were stored before.
    pub had: u64,
    /// Number of rows that were refused, and the reason for the first of them.
    pub left_out: u64,
    why: String,
    /// Sections that were modified after they were written: none of their rows is stored.
    damaged: Vec<DamagedSection>,
    /// Files that have become shorter, as seen by the last scan.
    lacking: Vec<LackingFile>,
    /// The tail as the last look found it, and its intervals that cannot be read.
    damaged_tail: Option<(String, u64)>,
    /// Ends of boots that were new, which come once more.
    ends: u64,
    /// Rows that were new and lie in 1970: no clock of their boot was ever set.
    undated: u64,
    /// Rows that there are as hours or days alone, and the store has not.
    merged: u64,
    /// Reason that reading it ended early the last time.
    fault: Option<String>,
}

impl TakenRecord {
    /// Reasons for which a part of it is not in the store, a sentence each.
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons: Vec<String> = self.fault.clone().into_iter().collect();
        if self.left_out > 0 {
            let rows = several(self.left_out, "row is", "rows are");
            reasons.push(format!("{rows} skipped: {}", self.why));
        }
        if !self.damaged.is_empty() {
            let rows = self.damaged.iter().fold(0u64, |sum, section| sum.saturating_add(section.rows));
            reasons.push(words_of(rows, &self.damaged));
        }
        if !self.lacking.is_empty() {
            reasons.push(words_of_lacking(0, &self.lacking));
        }
        if let Some((tail, intervals)) = &self.damaged_tail {
            reasons.push(words_of_tail(*intervals, tail));
        }
        if self.merged > 0 {
            let rows = several(self.merged, "row is", "rows are");
            reasons.push(format!(
                "{rows} merged to hours or days and not stored: import or send a record before it merges its \
                 rows"
            ));
        }
        reasons
    }

    fn leave_out(&mut self, rows: u64, why: String) {
        if self.left_out == 0 {
            self.why = why;
        }
        self.left_out = self.left_out.saturating_add(rows);
    }

    /// The board that it is of; it is made as soon as there is a row of it. `None`, with a fault,
    /// if nothing names it.
    async fn board(&mut self, store: &FarmStore, one: &FoundBundle) -> Result<Option<i64>> {
        if self.board.is_some() || self.fault.is_some() {
            return Ok(self.board);
        }
        let named = match &one.board {
            Some(board) => board.clone(),
            None => {
                let place = one.place.clone();
                spawn_blocking(move || model_of(&environments_of(&place))).await.unwrap_or_default()
            }
        };
        if named.trim().is_empty() {
            self.fault = Some(NO_BOARD.to_owned());
            return Ok(None);
        }
        let (key, name) = board_of(&named);
        self.board = Some(store.board_for(&key, &name).await?);
        Ok(self.board)
    }

    /// Stores the environments that rows name; returns remarks on those beyond the limits.
    async fn put_environments(&mut self, store: &FarmStore, one: &FoundBundle) -> Result<Vec<String>> {
        let mut remarks = Vec::new();
        let Some(board) = self.board else { return Ok(remarks) };
        let place = one.place.clone();
        for environment in spawn_blocking(move || environments_of(&place)).await.unwrap_or_default() {
            let env = excerpt(&environment.env);
            if self.environments.insert(env.clone()) {
                let read = watch_environment(&environment);
                store.put_environment(board, &env, &read.record).await?;
                remarks.extend(read.left_out.map(|why| format!("settings of {env} dropped: {why}")));
            }
        }
        Ok(remarks)
    }

    async fn put(&mut self, store: &FarmStore, mut batch: RowBatch) -> Result<()> {
        let last = batch.rows.last().map(|row| row.seq);
        while !batch.rows.is_empty() {
            let answer = store.put_rows(std::slice::from_ref(&batch)).await?.pop().unwrap_or_default();
            if let Some(at) = answer.future {
                let row = batch.rows.remove(at);
                self.leave_out(1, format!("row {} of {} is of the future", row.seq, batch.of.series));
                continue;
            }
            self.stored += answer.stored;
            self.undated += answer.undated;
            let again = answer.had.min(self.ends);
            self.ends -= again;
            self.had += answer.had - again;
            if let Some(first) = answer.seq.first() {
                let why = format!("row {first} of {} is there with other content", batch.of.series);
                self.leave_out(answer.seq.len() as u64, why);
            }
            break;
        }
        if let Some(last) = last {
            self.mark(batch.of, last);
        }
        Ok(())
    }

    /// Stores the last row of a boot before all others of it.
    async fn put_end(&mut self, store: &FarmStore, batch: RowBatch) -> Result<()> {
        let answer = store.put_rows(&[batch]).await?.pop().unwrap_or_default();
        self.stored += answer.stored;
        self.undated += answer.undated;
        self.ends += answer.stored;
        Ok(())
    }

    fn mark(&mut self, of: RowsOf, last: u64) {
        let up_to = self.up_to.entry(of).or_default();
        *up_to = last.max(*up_to);
    }

    async fn add(&mut self, store: &FarmStore, one: &FoundBundle, part: RecordPart) -> Result<()> {
        match part {
            RecordPart::LeftOut { of, up_to, rows, why } => {
                self.leave_out(rows, why);
                self.mark(of, up_to);
            }
            RecordPart::Damaged(section) => {
                // A later look finds it again.
                let is_it = |known: &DamagedSection| known.file == section.file && known.from == section.from;
                if !self.damaged.iter().any(is_it) {
                    self.damaged.push(section);
                }
            }
            RecordPart::Lacking(file) => {
                // The tail is of each series.
                if !self.lacking.contains(&file) {
                    self.lacking.push(file);
                }
            }
            RecordPart::DamagedTail(tail, intervals) => self.damaged_tail = Some((tail, intervals)),
            RecordPart::End(of, rows) => {
                let Some(board) = self.board(store, one).await? else { return Ok(()) };
                self.put_end(store, batch_of_record(board, of, rows)).await?;
            }
            RecordPart::Rows(of, rows) => {
                let Some(board) = self.board(store, one).await? else { return Ok(()) };
                self.put(store, batch_of_record(board, of, rows)).await?;
            }
            RecordPart::Merged(of, (first, last)) => {
                let Some(board) = self.board(store, one).await? else { return Ok(()) };
                let had = store.count_rows(board, &of, first, last).await?;
                let all = last.saturating_sub(first).saturating_add(1);
                self.merged = self.merged.saturating_add(all.saturating_sub(had));
            }
        }
        Ok(())
    }
}

/// Batch of a record's rows, as if their board sent them now. It has no clock of the board: its
/// boots may all be over, and the rows themselves contain their times.
fn batch_of_record(board_id: i64, of: RowsOf, rows: Vec<ReceivedRow>) -> RowBatch {
    RowBatch { board_id, of, clock: None, received_ns: now_ns().0, rows }
}

/// Stores the new rows of a record; returns remarks on rows that are damaged or have no place in
/// time; fails if the store does. Rows that are read again after that are stored already.
pub async fn take_record(
    store: &FarmStore,
    one: &FoundBundle,
    taken: &mut TakenRecord,
) -> Result<Vec<String>> {
    let (to, mut parts) = mpsc::channel(AHEAD);
    let (place, up_to) = (one.place.clone(), taken.up_to.clone());
    // Untrusted data must not end the server: a parser that panics ends its task only.
    let reading = spawn_blocking(move || read(&place, &up_to, |part| to.blocking_send(part).is_ok()));
    (taken.merged, taken.undated, taken.fault) = (0, 0, None);
    taken.lacking.clear();
    taken.damaged_tail = None;
    while let Some(part) = parts.recv().await {
        taken.add(store, one, part).await?;
    }
    let left_out = taken.put_environments(store, one).await?;
    let read =
        reading.await.unwrap_or_else(|_| Err("its parser failed: report this, with the record".to_owned()));
    let mut remarks = read.unwrap_or_else(|why| {
        taken.fault = Some(why);
        Vec::new()
    });
    remarks.extend(left_out);
    if taken.undated > 0 {
        let rows = several(taken.undated, "row is", "rows are");
        remarks.push(format!(
            "{rows} stored in 1970: the clock of that boot was never set while it was recorded"
        ));
    }
    Ok(remarks)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make folders of their own.
mod tests {
    use super::*;
    use crate::fixture::block_on;
    use std::fs;
    use std::path::Path;

    use bundle::record::cuts::RowCut;
    use bundle::record::made::MadeRecord;
    use bundle::record::read::RecordReader;
    use bundle::record::write::{DEFAULT_SIZE, LEAST_SIZE, RecordWriter};
    use model::units::Nanos;
    use model::watch::WatchSeries;

    use crate::ingest::rows;
    use crate::records::{SeriesKey, Tier};
    use crate::store::engines::on_each_engine;
    use crate::store::{BoardClock, TimeStretch};

    const MADE: MadeRecord =
        MadeRecord { cpus: 2, span: Nanos(300 * Nanos::SECOND.0), reboot: 25, wakeups: 3_000 };
    /// The synthetic record has three series.
    const SERIES: u64 = 3;

    /// Writes the intervals from one number to before another.
    fn record(place: &Path, from: u64, to: u64, size: u64) {
        let (mut writer, _) = RecordWriter::open_folder(place, size).unwrap();
        for n in from..to {
            writer.append(&MADE.run(n), &MADE.interval(n)).unwrap();
        }
    }

    fn of(place: &Path) -> FoundBundle {
        FoundBundle { place: place.to_owned(), board: Some("press-3".into()) }
    }

    /// A first scan: number of new rows and of known ones, and the reasons for missing ones.
    async fn afresh(store: &FarmStore, place: &Path) -> (u64, u64, Vec<String>) {
        let mut taken = TakenRecord::default();
        take_record(store, &of(place), &mut taken).await.unwrap();
        (taken.stored, taken.had, taken.reasons())
    }

    async fn samples(store: &FarmStore, tier: Tier) -> u64 {
        let all = TimeStretch { from: i64::MIN, to: i64::MAX };
        let key = SeriesKey { series: "wakeup".into(), plan: "all".into() };
        let rows = store.tiers("press-3", &key, tier, all).await.unwrap();
        rows.iter().map(|row| row.n).sum()
    }

    #[test]
    fn each_row_counts_once_and_what_grew_is_taken_further() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            let place = folder.path().join("watch");
            record(&place, 0, 40, DEFAULT_SIZE);
            let mut taken = TakenRecord::default();
            assert_eq!(take_record(&store, &of(&place), &mut taken).await.unwrap(), [""; 0]);
            assert_eq!((taken.stored, taken.had, taken.reasons().len()), (40 * SERIES, 0, 0));
            assert_eq!(afresh(&store, &place).await, (0, 40 * SERIES, vec![]));
            record(&place, 40, 47, DEFAULT_SIZE);
            take_record(&store, &of(&place), &mut taken).await.unwrap();
            // The others were not even read again.
            assert_eq!((taken.stored, taken.had), (47 * SERIES, 0));
            assert_eq!(afresh(&store, &place).await, (0, 47 * SERIES, vec![]));
            for tier in Tier::ALL {
                assert_eq!(samples(&store, tier).await, 47 * 2 * MADE.wakeups, "{tier:?}");
            }
        });
    }

    #[test]
    fn what_the_board_sent_before_is_there() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            let place = folder.path().join("watch");
            record(&place, 0, 30, DEFAULT_SIZE);
            let board_id = store.board_for("press-3", "press-3").await.unwrap();
            // The requests that `onbeat-push` makes.
            let mut cuts = Vec::new();
            let mut reader = RecordReader::open_folder(&place).unwrap();
            let mut begun = None;
            reader
                .each_row_text(
                    WatchSeries::Wakeup,
                    |_| true,
                    |text| {
                        cuts.extend(RowCut::join(&mut begun, WatchSeries::Wakeup, text));
                    },
                )
                .unwrap();
            cuts.extend(begun);
            assert_eq!(cuts.len(), 2, "one of each boot");
            for cut in cuts {
                let (boot, recording) = (cut.run.boot.clone(), cut.run.recording.clone());
                let of = RowsOf { boot: boot.clone(), recording, series: "wakeup".into() };
                let rows = rows::read(&of, &cut.text().unwrap()).unwrap();
                // Its clock is wrong, and the time of receipt counts.
                let days = if boot.ends_with('1') { 3 } else { 1 };
                let mono_ns = days * 86_400 * Nanos::SECOND.0;
                let clock = Some(BoardClock { boot, mono_ns, wall_ns: 0, asleep_ns: 0 });
                let batch = RowBatch { board_id, of, clock, received_ns: now_ns().0, rows };
                store.put_rows(&[batch]).await.unwrap();
            }
            assert_eq!(afresh(&store, &place).await, (60, 30, vec![]));
            assert_eq!(samples(&store, Tier::Day).await, 30 * 2 * MADE.wakeups);
            // Another board's is another's.
            let other = FoundBundle { board: Some("other".into()), ..of(&place) };
            let mut taken = TakenRecord::default();
            take_record(&store, &other, &mut taken).await.unwrap();
            assert_eq!((taken.stored, taken.had), (30 * SERIES, 0));
        });
    }

    #[test]
    fn what_is_left_out_is_told_with_its_count() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            let place = folder.path().join("watch");
            let (mut writer, _) = RecordWriter::open_folder(&place, DEFAULT_SIZE).unwrap();
            for n in 0..5 {
                let mut interval = MADE.interval(n);
                // A histogram that does not add up.
                interval.series[0].cpus[1].n += u64::from(n == 3);
                writer.append(&MADE.run(n), &interval).unwrap();
            }
            let later = MADE.interval(5);
            let wall_ns = Nanos(4_300_000_000 * Nanos::SECOND.0);
            let run = model::watch::WatchRun { boot: "of-2106".into(), ..MADE.run(5) };
            writer.append(&run, &model::watch::WatchInterval { wall_ns, ..later }).unwrap();
            drop(writer);
            let (stored, had, reasons) = afresh(&store, &place).await;
            assert_eq!((stored, had, reasons.len()), (5 * SERIES - 1, 0, 1));
            assert!(reasons[0].starts_with("4 rows are skipped: row 4 of timer"), "{reasons:?}");
            // A damaged line is reported, and the others are stored.
            let tail = fs::read_dir(&place).unwrap().map(|file| file.unwrap().path());
            let tail = tail.filter(|path| path.extension().is_some_and(|end| end == "tail")).max().unwrap();
            let bytes = fs::read(&tail).unwrap();
            fs::write(&tail, &bytes[..bytes.len() - 9]).unwrap();
            let mut taken = TakenRecord::default();
            let remarks = take_record(&store, &of(&place), &mut taken).await.unwrap();
            assert!(remarks.len() == 1 && remarks[0].contains("an incomplete interval"), "{remarks:?}");
            assert_eq!((taken.had, taken.left_out), (5 * SERIES - 1, 1));
            // The next look does not count it again.
            take_record(&store, &of(&place), &mut taken).await.unwrap();
            assert_eq!((taken.had, taken.left_out), (5 * SERIES - 1, 1));
            // An unreadable one creates no board.
            fs::write(place.join("record.json"), "{\"schema\":\"onbeat.watch/99\"}\n").unwrap();
            let newer = FoundBundle { board: Some("newer".into()), ..of(&place) };
            let mut taken = TakenRecord::default();
            assert_eq!(take_record(&store, &newer, &mut taken).await.unwrap(), [""; 0]);
            assert!(taken.reasons()[0].contains("newer onbeat"), "{:?}", taken.reasons());
            assert!(store.boards_of(Some("newer")).await.unwrap().is_empty());
        });
    }

    /// The first file of five minutes of a series, and the lines of its first section.
    fn first_section(place: &Path, series: &str) -> (std::path::PathBuf, String) {
        let end = format!(".interval.{series}.rows.jsonl");
        let files = fs::read_dir(place).unwrap().map(|file| file.unwrap().path());
        let files = files.filter(|path| path.to_string_lossy().ends_with(&end));
        let file = files.min().expect("a file of five minutes");
        let text = fs::read_to_string(&file).unwrap();
        let lines = text.split_inclusive('\n').take_while(|line| !line.starts_with("{\"end\""));
        (file, lines.collect())
    }

    #[test]
    fn rows_that_no_checksum_proves_are_left_out_until_the_undamaged_record_comes() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            let place = folder.path().join("watch");
            record(&place, 25, 85, LEAST_SIZE);
            let (file, section) = first_section(&place, "wakeup");
            let rows = section.lines().filter(|line| line.starts_with("{\"seq\"")).count() as u64;
            let whole = fs::read_to_string(&file).unwrap();
            assert!(rows > 2 && whole.starts_with(&section), "{rows}");
            let all = 60 * SERIES;
            // One digit of a count that no other value contradicts.
            let at = section.find("\"max_ns\":").unwrap() + 9;
            let digit = if section.as_bytes()[at] == b'9' { "8" } else { "9" };
            let mut changed = whole.clone();
            changed.replace_range(at..=at, digit);
            fs::write(&file, changed).unwrap();
            let mut taken = TakenRecord::default();
            assert_eq!(take_record(&store, &of(&place), &mut taken).await.unwrap(), [""; 0]);
            let reasons = taken.reasons();
            let damaged: Vec<&String> = reasons.iter().filter(|why| why.contains("checksum")).collect();
            assert!(
                damaged.len() == 1 && damaged[0].starts_with(&format!("{rows} rows of 2026-03-")),
                "{reasons:?}"
            );
            assert!(damaged[0].contains("import the undamaged record"), "{reasons:?}");
            assert_eq!((taken.stored, taken.had), (all - rows, 0));
            // The next scan, of new rows, does not count it again.
            record(&place, 85, 86, LEAST_SIZE);
            take_record(&store, &of(&place), &mut taken).await.unwrap();
            assert_eq!((taken.reasons(), taken.stored), (reasons, all - rows + SERIES));
            fs::write(&file, whole).unwrap();
            let (stored, had, reasons) = afresh(&store, &place).await;
            assert_eq!((stored, had), (rows, all - rows + SERIES));
            assert!(reasons.iter().all(|why| !why.contains("checksum")), "{reasons:?}");
        });
    }

    #[test]
    fn rows_that_a_file_lacks_are_a_reason_until_it_is_whole_and_a_live_end_is_none() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            let place = folder.path().join("watch");
            record(&place, 25, 85, LEAST_SIZE);
            let (file, _) = first_section(&place, "wakeup");
            let whole = fs::read(&file).unwrap();
            fs::write(&file, &whole[..whole.len() / 2]).unwrap();
            let lacking = |reasons: Vec<String>| -> Vec<String> {
                reasons.into_iter().filter(|why| why.starts_with("rows are lacking: ")).collect()
            };
            let mut taken = TakenRecord::default();
            for _ in 0..2 {
                take_record(&store, &of(&place), &mut taken).await.unwrap();
                let why = lacking(taken.reasons());
                assert!(why.len() == 1 && why[0].contains(" is cut short by "), "{why:?}");
            }
            let stored = taken.stored;
            assert!(stored > 0 && stored < 60 * SERIES, "{stored}");
            fs::remove_file(&file).unwrap();
            let why = lacking(afresh(&store, &place).await.2);
            assert!(why.len() == 1 && why[0].contains(" is missing; "), "{why:?}");
            fs::write(&file, whole).unwrap();
            take_record(&store, &of(&place), &mut taken).await.unwrap();
            assert_eq!(lacking(taken.reasons()), [""; 0]);
            let (new, _, reasons) = afresh(&store, &place).await;
            assert_eq!((new + taken.stored, lacking(reasons).len()), (60 * SERIES, 0));
            let tail = fs::read_dir(&place).unwrap().map(|file| file.unwrap().path());
            let tail = tail.filter(|path| path.extension().is_some_and(|end| end == "tail")).max().unwrap();
            let bytes = fs::read(&tail).unwrap();
            fs::write(&tail, &bytes[..bytes.len().saturating_sub(9)]).unwrap();
            assert_eq!(lacking(afresh(&store, &place).await.2), [""; 0]);
        });
    }

    #[test]
    fn an_interval_of_the_tail_that_was_changed_is_a_reason_and_all_others_are_taken() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            let place = folder.path().join("watch");
            record(&place, 0, 9, DEFAULT_SIZE);
            let tail = fs::read_dir(&place).unwrap().map(|file| file.unwrap().path());
            let tail = tail.filter(|path| path.extension().is_some_and(|end| end == "tail")).max().unwrap();
            let whole = fs::read(&tail).unwrap();
            let ends = |bytes: &[u8]| bytes.windows(5).filter(|five| five == b"\nend ").count();
            assert_eq!(ends(&whole), 9, "all of it is in its tail");
            let mut changed = whole.clone();
            let middle = whole.len() / 2;
            changed[middle] ^= 1;
            fs::write(&tail, &changed).unwrap();
            let mut taken = TakenRecord::default();
            for _ in 0..2 {
                take_record(&store, &of(&place), &mut taken).await.unwrap();
                let reasons = taken.reasons();
                assert!(reasons.len() == 1 && reasons[0].starts_with("1 interval omitted: "), "{reasons:?}");
                assert!(reasons[0].contains(".tail was changed"), "{reasons:?}");
                assert_eq!((taken.stored, taken.had, taken.left_out), (8 * SERIES, 0, 0));
            }
            fs::write(&tail, whole).unwrap();
            assert_eq!(afresh(&store, &place).await, (SERIES, 8 * SERIES, vec![]));
        });
    }

    /// Writes a record of one boot, whose clock is set after some intervals, and which is suspended
    /// for some hours before the last one; returns the starts of its five minutes.
    fn record_of_a_boot(place: &Path, unset: u64, all: u64, hours: i64) -> Vec<i64> {
        let (mut writer, _) = RecordWriter::open_folder(place, DEFAULT_SIZE).unwrap();
        let mut right = Vec::new();
        for n in 0..all {
            let mut interval = MADE.interval(0);
            interval.mono_ns = Nanos(interval.mono_ns.0 + n as i64 * MADE.span.0);
            let asleep = if n + 1 == all { hours * 3_600 * Nanos::SECOND.0 } else { 0 };
            let wall = Nanos(interval.wall_ns.0 + n as i64 * MADE.span.0 + asleep);
            interval.wall_ns = if n < unset { interval.mono_ns } else { wall };
            right.push(Tier::Slot.begin(wall.0 / Nanos::SECOND.0));
            writer.append(&MADE.run(0), &interval).unwrap();
        }
        right
    }

    #[test]
    fn rows_lie_where_they_were_although_the_clock_was_not_set_and_after_a_suspend() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            let all = TimeStretch { from: i64::MIN, to: i64::MAX };
            // More than are read at once.
            for (name, unset, hours) in [("unset", 300, 0), ("slept", 0, 8), ("both", 9, 8)] {
                let place = folder.path().join(name);
                let right = record_of_a_boot(&place, unset, 310, hours);
                let one = FoundBundle { place, board: Some(name.into()) };
                let mut taken = TakenRecord::default();
                assert_eq!(take_record(&store, &one, &mut taken).await.unwrap(), [""; 0]);
                assert_eq!((taken.stored, taken.had, taken.reasons().len()), (310 * SERIES, 0, 0));
                for series in ["timer", "wakeup"] {
                    let key = SeriesKey { series: series.into(), plan: "all".into() };
                    let slots = store.slots(name, &key, all, 999).await.unwrap();
                    assert_eq!(slots.iter().map(|slot| slot.t).collect::<Vec<_>>(), right, "{name} {series}");
                }
            }
            // A boot whose clock was never set has no place in time.
            record_of_a_boot(&folder.path().join("b"), 9, 9, 0);
            let one = FoundBundle { place: folder.path().join("b"), board: Some("b".into()) };
            let mut taken = TakenRecord::default();
            let remarks = take_record(&store, &one, &mut taken).await.unwrap();
            assert!(
                remarks.len() == 1 && remarks[0].starts_with("27 rows are stored in 1970"),
                "{remarks:?}"
            );
            assert_eq!((taken.stored, taken.reasons().len()), (9 * SERIES, 0));
            assert_eq!(take_record(&store, &one, &mut taken).await.unwrap(), [""; 0]);
        });
    }

    #[test]
    fn what_the_machine_was_comes_with_the_rows() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            let place = folder.path().join("watch");
            record(&place, 0, 9, DEFAULT_SIZE);
            let known = environments_of(&place);
            assert!(!known.is_empty());
            afresh(&store, &place).await;
            let found = store.environments("press-3").await.unwrap();
            assert_eq!(found.len(), known.len(), "{found:?}");
            assert_eq!(found[0].record.release, known[0].release);
            // Again adds none.
            afresh(&store, &place).await;
            assert_eq!(store.environments("press-3").await.unwrap().len(), known.len());
        });
    }

    #[test]
    fn rows_that_were_merged_are_missing_only_where_they_were_not_taken_before() {
        block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let place = folder.path().join("watch");
            let (store, late) =
                (FarmStore::in_memory().await.unwrap(), FarmStore::in_memory().await.unwrap());
            let mut taken = TakenRecord::default();
            for n in (0..1_000).step_by(50) {
                record(&place, n, n + 50, LEAST_SIZE);
                take_record(&store, &of(&place), &mut taken).await.unwrap();
            }
            assert_eq!((taken.stored, taken.reasons().len()), (1_000 * SERIES, 0));
            assert_eq!(samples(&store, Tier::Day).await, 1_000 * 2 * MADE.wakeups);
            assert_eq!(afresh(&store, &place).await.2, [""; 0]);
            let (stored, _, reasons) = afresh(&late, &place).await;
            assert!(stored > 0 && stored < 1_000 * SERIES, "{stored}");
            assert!(reasons.len() == 1 && reasons[0].contains("merged to hours or days"), "{reasons:?}");
        });
    }

    #[test]
    fn a_record_that_no_folder_names_is_of_its_machines_model() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            let (mut writer, _) = RecordWriter::open_folder(folder.path(), DEFAULT_SIZE).unwrap();
            let mut interval = MADE.interval(0);
            let environment = interval.environment.as_mut().unwrap();
            environment.settings.insert("model".into(), "Press Board (2)".into());
            writer.append(&MADE.run(0), &interval).unwrap();
            let one = FoundBundle { board: None, ..of(folder.path()) };
            take_record(&store, &one, &mut TakenRecord::default()).await.unwrap();
            let boards = store.boards().await.unwrap();
            assert_eq!((boards[0].board.clone(), boards[0].name.clone()), board_of("Press Board (2)"));
            // One whose environment lacks it.
            let other = tempfile::tempdir().unwrap();
            record(other.path(), 0, 1, DEFAULT_SIZE);
            let one = FoundBundle { board: None, ..of(other.path()) };
            let mut taken = TakenRecord::default();
            take_record(&store, &one, &mut taken).await.unwrap();
            assert_eq!((taken.reasons(), taken.stored), (vec![NO_BOARD.to_owned()], 0));
            assert_eq!(store.boards().await.unwrap().len(), 1, "several machines would share a board");
            // Nothing counts as stored: once it is named, all of it comes.
            let named = FoundBundle { board: Some("press-4".into()), ..one };
            take_record(&store, &named, &mut taken).await.unwrap();
            assert!(taken.reasons().is_empty() && taken.stored > 0, "{:?}", taken.reasons());
        });
    }
}
