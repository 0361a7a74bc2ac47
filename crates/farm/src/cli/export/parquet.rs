//! `onbeat-farm export --parquet`: slots as files for engines made for analysis.
//!
//! Hive's layout, `board=NAME/year=YYYY/month=MM/slots.parquet`: query engines read the folders as
//! columns and skip them by a condition. A month that is too large for one file has several.

use std::collections::VecDeque;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use host::dir::Dir;
use model::error::{Exit, Failure, Result};
use model::text::{quoted, several};
use model::units::Nanos;
use model::wall_time::{nanos_of, wall_time};

use crate::cli::export::slots::next_slots;
use crate::cli::output::progress::CommandProgress;
use crate::cli::say;
use crate::records::{FarmBoard, FarmSlot, SeriesKey};
use crate::results::parquet::{self, ParquetColumn, ParquetValues};
use crate::store::{FarmStore, TimeStretch};

/// Slots of a file: ten years of one series by five minutes, twelve days of one by seconds.
const MOST: i64 = 1 << 20;

/// Writes the slots of these boards within a time, a file for each board and month, or several if a
/// month does not fit.
pub async fn export(
    store: &FarmStore,
    boards: &[FarmBoard],
    within: TimeStretch,
    dir: &Path,
    progress: &CommandProgress,
) -> Result<Exit> {
    let failed = |error: &std::io::Error| {
        let what = format!("--parquet: cannot write to {}", quoted(dir));
        Failure::of_call(what, error, Exit::Usage, "name a new or empty folder that you may write to")
    };
    let (top, _) = Dir::create(dir).map_err(|error| failed(&error))?;
    let mut all = Vec::new();
    for board in boards {
        let found = months(store, board, within).await?;
        all.extend(found.into_iter().map(|month| (board, month)));
    }
    progress.step("writing boards by month", Some(all.len() as u64));
    let (mut files, mut rows) = (0, 0);
    for (board, month) in &all {
        let mut folder = MonthFolder::of(&top, board, month);
        let mut slots = MonthSlots::of(store, board, month).await?;
        loop {
            let some = slots.next(store, board, MOST).await?;
            if some.is_empty() {
                break;
            }
            folder.add(&some).map_err(|error| failed(&error))?;
            rows += some.len() as u64;
        }
        files += folder.files;
        progress.add();
    }
    let (files, rows) = (several(files, "file", "files"), several(rows, "slot", "slots"));
    say(&format!("onbeat-farm: {rows} in {files} below {}", quoted(dir)));
    Ok(Exit::Ok)
}

/// Folder of the files of a board's month.
struct MonthFolder<'a> {
    top: &'a Dir,
    /// Nested folders below it.
    folders: [String; 3],
    files: u64,
}

impl MonthFolder<'_> {
    fn of<'a>(top: &'a Dir, board: &FarmBoard, month: &CalendarMonth) -> MonthFolder<'a> {
        let folders = [
            format!("board={}", board.board),
            format!("year={}", month.year),
            format!("month={}", month.month),
        ];
        MonthFolder { top, folders, files: 0 }
    }

    /// Writes a file.
    fn add(&mut self, slots: &[(SeriesKey, FarmSlot)]) -> io::Result<()> {
        self.files += 1;
        let name = match self.files {
            1 => "slots.parquet".to_owned(),
            number => format!("slots-{number}.parquet"),
        };
        let inner = self.folders.iter().try_fold(None, |folder: Option<Dir>, name| {
            folder.as_ref().unwrap_or(self.top).subdir(name).map(Some)
        })?;
        let mut file = BufWriter::new(inner.as_ref().unwrap_or(self.top).new_file(&name)?);
        write(&mut file, slots)?;
        file.flush()
    }
}

/// Slots of a board's month that are still to be read, in the order of series and time, so that a
/// series is contiguous in a file.
struct MonthSlots {
    /// Each with the position to continue from.
    series: VecDeque<(SeriesKey, TimeStretch)>,
}

impl MonthSlots {
    async fn of(store: &FarmStore, board: &FarmBoard, month: &CalendarMonth) -> Result<MonthSlots> {
        let series = store.series(&board.board).await?.into_iter();
        Ok(MonthSlots { series: series.map(|one| (one.key, month.within)).collect() })
    }

    /// The next slots, at most those of one query more than `most`; empty at the end.
    async fn next(
        &mut self,
        store: &FarmStore,
        board: &FarmBoard,
        most: i64,
    ) -> Result<Vec<(SeriesKey, FarmSlot)>> {
        let mut found = Vec::new();
        while (found.len() as i64) < most
            && let Some((key, within)) = self.series.pop_front()
        {
            let (slots, from) = next_slots(store, &board.board, &key, within, most).await?;
            // Values per CPU are not exported.
            let slots = slots.into_iter().map(|slot| FarmSlot { cpus: Vec::new(), ..slot });
            found.extend(slots.map(|slot| (key.clone(), slot)));
            if from < within.to {
                self.series.push_front((key, TimeStretch { from, ..within }));
            }
        }
        Ok(found)
    }
}

/// A month of the calendar, in UTC.
struct CalendarMonth {
    year: String,
    month: String,
    within: TimeStretch,
}

/// The months in which a board has slots, cut to the requested time.
async fn months(store: &FarmStore, board: &FarmBoard, asked: TimeStretch) -> Result<Vec<CalendarMonth>> {
    let mut extent: Option<(i64, i64)> = None;
    for series in store.series(&board.board).await? {
        if let Some((first, last)) = store.extent(&board.board, &series.key).await? {
            let known = extent.unwrap_or((first, last));
            extent = Some((known.0.min(first), known.1.max(last)));
        }
    }
    let Some((first, last)) = extent else { return Ok(Vec::new()) };
    let (mut from, to) = (asked.from.max(first).max(0), asked.to.min(last.saturating_add(1)));
    let mut all = Vec::new();
    while from < to {
        let (year, month) = calendar(from);
        let next = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
        let end = nanos_of(&format!("{:04}-{:02}-01T00:00:00Z", next.0, next.1));
        let end = end.map_or(to, |end| end.0 / Nanos::SECOND.0).min(to);
        let within = TimeStretch { from, to: end };
        all.push(CalendarMonth { year: format!("{year:04}"), month: format!("{month:02}"), within });
        from = end;
    }
    Ok(all)
}

fn calendar(t: i64) -> (u32, u32) {
    let text = wall_time(Nanos(t.saturating_mul(Nanos::SECOND.0)));
    let number = |at: std::ops::Range<usize>| text.get(at).and_then(|part| part.parse().ok()).unwrap_or(1);
    (number(0..4), number(5..7))
}

fn write(file: &mut (impl Write + Send), rows: &[(SeriesKey, FarmSlot)]) -> io::Result<()> {
    fn texts<'a>(
        rows: &'a [(SeriesKey, FarmSlot)],
        of: impl Fn(&'a (SeriesKey, FarmSlot)) -> &'a str,
    ) -> ParquetValues<'a> {
        ParquetValues::Text(rows.iter().map(of).collect())
    }
    let number = |of: fn(&FarmSlot) -> u64| {
        let all = rows.iter().map(|(_, slot)| i64::try_from(of(slot)).unwrap_or(i64::MAX));
        ParquetValues::Number(all.collect())
    };
    let known = |of: fn(&FarmSlot) -> Option<i64>| rows.iter().map(|(_, slot)| of(slot)).collect();
    let times = rows.iter().map(|(_, slot)| slot.t.saturating_mul(1_000)).collect();
    let columns = [
        ("series", texts(rows, |(key, _)| &key.series)),
        ("plan", texts(rows, |(key, _)| &key.plan)),
        ("t", ParquetValues::Millis(times)),
        ("n", number(|slot| slot.n)),
        ("missed", number(|slot| slot.missed)),
        ("max_ns", ParquetValues::Known(known(|slot| slot.max_ns.map(|max| max.0)))),
        ("max_cpu", ParquetValues::Known(known(|slot| slot.max_cpu.map(|cpu| i64::from(cpu.0))))),
        ("max_at", ParquetValues::Micros(known(|slot| slot.max_at.map(|at| at.div_euclid(1_000))))),
        ("culprit", texts(rows, |(_, slot)| &slot.culprit)),
        ("victim", texts(rows, |(_, slot)| &slot.victim)),
        ("run", texts(rows, |(_, slot)| &slot.run)),
    ];
    let columns = columns.map(|(name, values)| ParquetColumn { name, values });
    parquet::write(file, &columns)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests look at what was written.
mod tests {
    use super::*;
    use crate::fixture::{block_on, named_rows};

    #[test]
    fn months_are_those_of_the_calendar() {
        assert_eq!(calendar(0), (1970, 1));
        assert_eq!((calendar(1_709_251_199), calendar(1_709_251_200)), ((2024, 2), (2024, 3)));
    }
    #[test]
    fn a_month_that_is_too_large_for_a_file_has_several_with_all_of_its_slots() {
        block_on(async {
            let (store, folder) = (FarmStore::in_memory().await.unwrap(), tempfile::tempdir().unwrap());
            store.board_for("a", "a").await.unwrap();
            store.put_rows(&[named_rows::batch(0, 30, "x", "")]).await.unwrap();
            let board = store.boards().await.unwrap().remove(0);
            let (top, _) = Dir::create(&folder.path().join("maxima")).unwrap();
            let all = TimeStretch { from: 0, to: i64::MAX };
            let month = months(&store, &board, all).await.unwrap().remove(0);
            let mut files = MonthFolder::of(&top, &board, &month);
            let mut slots = MonthSlots::of(&store, &board, &month).await.unwrap();
            let mut times = Vec::new();
            loop {
                let some = slots.next(&store, &board, 7).await.unwrap();
                if some.is_empty() {
                    break;
                }
                files.add(&some).unwrap();
                times.extend(some.iter().map(|(_, slot)| slot.t));
            }
            assert_eq!(times, (0..30).map(|n| n * 300).collect::<Vec<i64>>());
            let place = folder.path().join("maxima/board=a/year=1970/month=01");
            let names = std::fs::read_dir(place).unwrap().map(|file| file.unwrap().file_name());
            let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
            names.sort();
            assert_eq!(names, ["slots-2.parquet", "slots-3.parquet", "slots.parquet"]);
        });
    }
}
