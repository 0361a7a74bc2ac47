//! `onbeat-farm export --parquet`: slots as files for engines made for analysis.
//!
//! Hive's layout, `board=NAME/year=YYYY/month=MM/slots.parquet`, whose folders such engines read as
//! columns and leave out by a condition.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use host::dir::Dir;
use model::error::{Exit, Failure, Result};
use model::text::{quoted, several};
use model::units::Nanos;
use model::wall_time::{nanos_of, wall_time};

use super::say;
use crate::records::{FarmBoard, FarmSlot, SeriesKey};
use crate::results::parquet::{self, ParquetColumn, ParquetValues};
use crate::store::{FarmStore, TimeStretch};

/// Slots of a series in a month; a month has 8,928 of five minutes, more where runs overlap.
const MOST: i64 = 1 << 20;

/// Writes the slots of these boards that lie within a time, a file for each board and month.
pub async fn export(
    store: &FarmStore,
    boards: &[FarmBoard],
    within: TimeStretch,
    dir: &Path,
) -> Result<Exit> {
    let failed = |error: &std::io::Error| {
        let what = format!("--parquet: cannot write to {}", quoted(dir));
        Failure::of_call(what, error, Exit::Usage, "name a folder of your own that is new or empty")
    };
    let (top, _) = Dir::create(dir).map_err(|error| failed(&error))?;
    let (mut files, mut rows) = (0, 0);
    for board in boards {
        for month in months(store, board, within).await? {
            let slots = slots_of(store, board, month.within).await?;
            if slots.is_empty() {
                continue;
            }
            let folders = [
                format!("board={}", board.board),
                format!("year={}", month.year),
                format!("month={}", month.month),
            ];
            let inner = folders.iter().try_fold(None, |folder: Option<Dir>, name| {
                folder.as_ref().unwrap_or(&top).subdir(name).map(Some)
            });
            let inner = inner.map_err(|error| failed(&error))?;
            let file =
                inner.as_ref().unwrap_or(&top).new_file("slots.parquet").map_err(|error| failed(&error))?;
            let mut file = BufWriter::new(file);
            write(&mut file, &slots).and_then(|()| file.flush()).map_err(|error| failed(&error))?;
            files += 1;
            rows += slots.len() as u64;
        }
    }
    let (files, rows) = (several(files, "file", "files"), several(rows, "slot", "slots"));
    say(&format!("onbeat-farm: {rows} in {files} below {}", quoted(dir)));
    Ok(Exit::Ok)
}

/// A month of the calendar, in UTC.
struct CalendarMonth {
    year: String,
    month: String,
    within: TimeStretch,
}

/// The months in which a board has slots, cut to what is asked for.
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

/// In the order of series and time, so that a series is one stretch of a file.
async fn slots_of(
    store: &FarmStore,
    board: &FarmBoard,
    within: TimeStretch,
) -> Result<Vec<(SeriesKey, FarmSlot)>> {
    let mut all = Vec::new();
    for series in store.series(&board.board).await? {
        let slots = store.slots(&board.board, &series.key, within, MOST).await?;
        all.extend(slots.into_iter().map(|slot| (series.key.clone(), slot)));
    }
    Ok(all)
}

fn write(file: &mut impl Write, rows: &[(SeriesKey, FarmSlot)]) -> io::Result<()> {
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
mod tests {
    use super::*;

    #[test]
    fn months_are_those_of_the_calendar() {
        assert_eq!(calendar(0), (1970, 1));
        assert_eq!((calendar(1_709_251_199), calendar(1_709_251_200)), ((2024, 2), (2024, 3)));
    }
}
