//! The rows of a record, read in place: the same lines that `onbeat-push` sends, so that each
//! counts once by either way.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bundle::record::cuts::RowCut;
use bundle::record::damage::{DamagedSection, LackingFile};
use bundle::record::read::{RecordItem, RecordReader};
use bundle::record::texts::RowText;
use host::RecordFolder;
use model::record::RecordTier;
use model::watch::{WatchEnvironment, WatchRun, WatchSeries};

use super::bundle::is_id;
use super::rows::{self, ReceivedRow, RowsOf};

/// Limit of a record's environments: one a day for years.
const MOST_ENVIRONMENTS: usize = 2_000;

/// Something that a record holds.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordPart {
    /// The last row of a boot without any stored row, before all others of it: it places the boot
    /// in time, even if its first rows were recorded before the clock was set. It is repeated with
    /// the others.
    End(RowsOf, Vec<ReceivedRow>),
    /// Rows, their numbers ascending.
    Rows(RowsOf, Vec<ReceivedRow>),
    /// Numbers of the first and the last row that were merged into one of an hour or a day, and no
    /// longer exist separately.
    Merged(RowsOf, (u64, u64)),
    /// A number of rows up to a sequence number that a farm cannot store, with the reason.
    LeftOut { of: RowsOf, up_to: u64, rows: u64, why: String },
    /// Rows without a valid checksum: the damaged values are unknown.
    Damaged(DamagedSection),
    /// Rows were in it that are not there any more.
    Lacking(LackingFile),
    /// Unreadable intervals in the middle of a tail: its name, and their number.
    DamagedTail(String, u64),
}

/// The last stored number of each boot, recording and series.
pub type RowsTaken = BTreeMap<RowsOf, u64>;

/// Passes on the rows of a record beyond those stored, until `take` returns false; the remarks
/// describe damage.
pub fn read(
    place: &Path,
    taken: &RowsTaken,
    mut take: impl FnMut(RecordPart) -> bool,
) -> Result<Vec<String>, String> {
    let mut remarks: Vec<String> = Vec::new();
    if !read_ends(place, taken, &mut take)? {
        return Ok(remarks);
    }
    for &series in WatchSeries::ALL {
        let mut reader = open(place, series, taken)?;
        let (mut begun, mut goes_on) = (None, true);
        let is_new = |text: &RowText| {
            let known = taken.get(&rows_of(series, &text.run));
            known.is_none_or(|known| text.at.last_seq() > *known)
        };
        let read = reader.each_row_text(series, is_new, |text| match text.tier {
            _ if !goes_on => {}
            RecordTier::Interval => {
                let full = RowCut::join(&mut begun, series, text);
                goes_on = full.is_none_or(|cut| hand_over(&cut, &mut take));
            }
            _ => {
                let of = rows_of(series, &text.run);
                goes_on = take(RecordPart::Merged(of, (text.at.seq, text.at.last_seq())));
            }
        });
        for remark in reader.remarks {
            if !remarks.contains(&remark) {
                remarks.push(remark);
            }
        }
        goes_on = goes_on && begun.is_none_or(|cut| hand_over(&cut, &mut take));
        goes_on = goes_on && reader.damaged.into_iter().map(RecordPart::Damaged).all(&mut take);
        goes_on = goes_on && reader.lacking.into_iter().map(RecordPart::Lacking).all(&mut take);
        let tail = reader.damaged_tail.map(|(name, intervals)| RecordPart::DamagedTail(name, intervals));
        goes_on = goes_on && tail.into_iter().all(&mut take);
        read.map_err(|error| format!("the rest of it cannot be read ({error})"))?;
        if !goes_on {
            break;
        }
    }
    Ok(remarks)
}

/// Passes on the end of each boot without any stored row; returns false if no more is wanted. All
/// series of a record have the same boots: the first series with rows is used.
fn read_ends(
    place: &Path,
    taken: &RowsTaken,
    take: &mut impl FnMut(RecordPart) -> bool,
) -> Result<bool, String> {
    let known: BTreeSet<(&str, &str)> =
        taken.keys().map(|of| (of.boot.as_str(), of.recording.as_str())).collect();
    for &series in WatchSeries::ALL {
        let (mut ends, is_there) = (BTreeMap::<RowsOf, RowText>::new(), Cell::new(false));
        let is_of_new_boot = |text: &RowText| {
            is_there.set(true);
            text.tier == RecordTier::Interval
                && !known.contains(&(text.run.boot.as_str(), text.run.recording.as_str()))
        };
        // Unreadable rows are reported with all rows.
        let _ = open(place, series, taken)?.each_row_text(series, is_of_new_boot, |text| {
            let of = rows_of(series, &text.run);
            let is_later = |end: &RowText| text.at.is_dated() || !end.at.is_dated();
            if ends.get(&of).is_none_or(is_later) {
                ends.insert(of, text);
            }
        });
        for (of, text) in ends {
            let cut = RowCut::of(series, text);
            // An invalid one is reported there, too.
            if is_id(&of.boot)
                && is_id(&of.recording)
                && let Ok(rows) = received(&cut, &of, &cut.rows)
                && !take(RecordPart::End(of, rows))
            {
                return Ok(false);
            }
        }
        if is_there.get() {
            break;
        }
    }
    Ok(true)
}

/// Environments of the machine, each of a record once, in their order.
pub fn environments_of(place: &Path) -> Vec<WatchEnvironment> {
    let mut all: Vec<WatchEnvironment> = Vec::new();
    if let Ok(mut reader) = RecordReader::open_folder(place) {
        // Unreadable ones are reported with the rows.
        let _ = reader.each_item(|item| {
            if let RecordItem::Environment(environment) = item
                && all.len() < MOST_ENVIRONMENTS
                && all.iter().all(|known| known.env != environment.env)
            {
                all.push(*environment);
            }
        });
    }
    all
}

/// The machine's model by the last of these that has it; empty if none does.
pub fn model_of(all: &[WatchEnvironment]) -> String {
    all.iter().rev().find_map(|one| one.settings.get("model")).cloned().unwrap_or_default()
}

fn rows_of(series: WatchSeries, run: &WatchRun) -> RowsOf {
    RowsOf { boot: run.boot.clone(), recording: run.recording.clone(), series: series.name().to_owned() }
}

fn open(place: &Path, series: WatchSeries, taken: &RowsTaken) -> Result<RecordReader<RecordFolder>, String> {
    let mut reader = RecordReader::open_folder(place).map_err(|failure| failure.message)?;
    let recording = reader.manifest().map(|manifest| manifest.recording.clone()).unwrap_or_default();
    reader.leave_out(|segment| {
        let run =
            WatchRun { boot: segment.from.boot.clone(), recording: recording.clone(), ..WatchRun::default() };
        segment.from.boot == segment.to.boot
            && taken.get(&rows_of(series, &run)).is_some_and(|taken| segment.to.seq <= *taken)
    });
    Ok(reader)
}

/// Passes on a cut without its invalid rows; returns false if no more is wanted.
fn hand_over(cut: &RowCut, take: &mut impl FnMut(RecordPart) -> bool) -> bool {
    let of = rows_of(cut.series, &cut.run);
    if !is_id(&of.boot) || !is_id(&of.recording) {
        let up_to = cut.rows.last().map_or(0, |row| row.0);
        let why = "the header before them is damaged: it lacks the boot or the recording".to_owned();
        return take(RecordPart::LeftOut { of, up_to, rows: cut.rows.len() as u64, why });
    }
    if let Ok(rows) = received(cut, &of, &cut.rows) {
        return take(RecordPart::Rows(of, rows));
    }
    // One is invalid: parse each separately.
    let (mut rows, mut left_out) = (Vec::new(), Vec::new());
    for one in &cut.rows {
        match received(cut, &of, std::slice::from_ref(one)) {
            Ok(row) => rows.extend(row),
            Err(why) => {
                let why = format!("row {} of {}: {why}", one.0, of.series);
                left_out.push(RecordPart::LeftOut { of: of.clone(), up_to: one.0, rows: 1, why });
            }
        }
    }
    (rows.is_empty() || take(RecordPart::Rows(of, rows))) && left_out.into_iter().all(take)
}

/// Rows as a farm receives them: from the same lines, so that they have the same digests.
fn received(cut: &RowCut, of: &RowsOf, rows: &[(u64, Vec<u8>)]) -> Result<Vec<ReceivedRow>, String> {
    let text = cut.text_of(rows).map_err(|error| error.to_string())?;
    rows::read(of, &text).map_err(|fault| fault.detail)
}
