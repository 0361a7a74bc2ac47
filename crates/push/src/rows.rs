//! Rows of a record: each line is sent as it was written, under its number.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bundle::record::cuts::RowCut;
use bundle::record::damage::{words_of, words_of_lacking};
use bundle::record::read::RecordReader;
use bundle::record::texts::RowText;
use host::RecordFolder;
use model::record::RecordTier;
use model::text::{quoted, several};
use model::watch::WatchSeries;

use super::environments;
use super::link::LinkFault;
use super::named_folders::may_be_record;
use super::receipt::is_of_rows;
use super::sent::SentLog;
use super::session::{PushAllowance, PushRound, RoundEnd};

type Sent = Result<(), RoundEnd>;

/// Boots with rows, by recording.
type RecordedBoots = BTreeMap<String, BTreeSet<String>>;

/// Series of a record that was read to its end.
struct ReadSeries {
    reader: RecordReader<RecordFolder>,
    boots: RecordedBoots,
}

/// Sends the last row of each series and, of each boot before it, the last row of one series: it
/// dates the boot, even if its first rows were recorded before the clock was set.
pub fn send_newest(round: &mut PushRound<'_>, record: &Path) -> Sent {
    let (mut boots, mut sent) = (BTreeSet::new(), BTreeSet::new());
    for &series in WatchSeries::ALL {
        let mut newest: Option<RowText> = None;
        each_open(round, record, series, |_, text| {
            if !boots.contains(&text.run.boot) {
                boots.insert(text.run.boot.clone());
            }
            newest = Some(text);
            Ok(())
        })?;
        if let Some(text) = newest {
            sent.insert(text.run.boot.clone());
            send(round, record, RowCut::of(series, text))?;
        }
    }
    boots.retain(|boot| !sent.contains(boot));
    for &series in WatchSeries::ALL {
        if !boots.is_empty() {
            send_ends(round, record, series, &mut boots)?;
        }
    }
    Ok(())
}

/// Sends the last row of each of these boots, and removes those boots from the set.
fn send_ends(
    round: &mut PushRound<'_>,
    record: &Path,
    series: WatchSeries,
    boots: &mut BTreeSet<String>,
) -> Sent {
    let mut last: Option<RowText> = None;
    each_open(round, record, series, |round, text| {
        let is_over = last.as_ref().is_some_and(|last| last.run.boot != text.run.boot);
        let over = if is_over { last.take() } else { None };
        if boots.contains(&text.run.boot)
            && last.as_ref().is_none_or(|last| text.at.is_dated() || !last.at.is_dated())
        {
            last = Some(text);
        }
        match over {
            Some(over) => send_end(round, record, series, over, boots),
            None => Ok(()),
        }
    })?;
    match last {
        Some(last) => send_end(round, record, series, last, boots),
        None => Ok(()),
    }
}

fn send_end(
    round: &mut PushRound<'_>,
    record: &Path,
    series: WatchSeries,
    last: RowText,
    boots: &mut BTreeSet<String>,
) -> Sent {
    if boots.remove(&last.run.boot) { send(round, record, RowCut::of(series, last)) } else { Ok(()) }
}

/// Sends all other rows, oldest first; counts those no longer in the record, and forgets the boots
/// that have left it. Returns the recordings in the record, if all of it was read.
pub fn send_backlog(round: &mut PushRound<'_>, record: &Path) -> Result<Option<BTreeSet<String>>, RoundEnd> {
    let (mut recordings, mut is_whole) = (BTreeSet::new(), true);
    for &series in WatchSeries::ALL {
        let mut open: Option<RowCut> = None;
        let read =
            each_open(round, record, series, |round, text| match RowCut::join(&mut open, series, text) {
                Some(full) => send(round, record, full),
                None => Ok(()),
            })?;
        if let Some(rest) = open {
            send(round, record, rest)?;
        }
        let Some(ReadSeries { reader, mut boots }) = read else {
            is_whole = false;
            continue;
        };
        if !reader.damaged.is_empty() {
            leave_damaged(round, record, series, &reader, &mut boots)?;
        }
        if !reader.lacking.is_empty() {
            leave_lacking(round, record, series, &reader, &mut boots)?;
        }
        recordings.extend(boots.keys().cloned());
        let Some(manifest) = reader.manifest() else {
            is_whole = false;
            continue;
        };
        recordings.insert(manifest.recording.clone());
        if round.log.forget_boots_but(&manifest.recording, series.name(), &boots) {
            round.keep()?;
        }
    }
    Ok(is_whole.then_some(recordings))
}

/// Calls `f` for each intact row of a series that the farm has not acknowledged; returns the
/// series, if all of it could be read.
fn each_open(
    round: &mut PushRound<'_>,
    record: &Path,
    series: WatchSeries,
    mut f: impl FnMut(&mut PushRound<'_>, RowText) -> Sent,
) -> Result<Option<ReadSeries>, RoundEnd> {
    if !may_be_record(record) {
        return Ok(None);
    }
    let (mut reader, boots) = match open(record, series, &round.log) {
        Ok(ReadSeries { reader, boots }) => (reader, RefCell::new(boots)),
        Err(failure) => {
            round.remark(format!("rows are not sent: {}", failure.message));
            round.outcome.left = true;
            return Ok(None);
        }
    };
    let mut end: Sent = Ok(());
    // Rows that were sent since are skipped.
    let shared = RefCell::new(&mut *round);
    let is_wanted = |text: &RowText| {
        add_boot(&mut boots.borrow_mut(), &text.run.recording, &text.run.boot);
        is_open(&shared.borrow().log, series, text)
    };
    let read = reader.each_row_text(series, is_wanted, |text| {
        let round = &mut **shared.borrow_mut();
        match text.tier {
            _ if end.is_err() => {}
            RecordTier::Interval => end = f(round, text),
            _ => note_merged(round, series, &text),
        }
    });
    for remark in std::mem::take(&mut reader.remarks) {
        round.remark(remark);
    }
    if let Err(error) = &read {
        round.remark(format!("{} cannot be read ({error}): its rows are not sent", quoted(record)));
        round.outcome.left = true;
    }
    end.map(|()| read.is_ok().then(|| ReadSeries { reader, boots: boots.into_inner() }))
}

fn add_boot(boots: &mut RecordedBoots, recording: &str, boot: &str) {
    if !boots.get(recording).is_some_and(|known| known.contains(boot)) {
        boots.entry(recording.to_owned()).or_default().insert(boot.to_owned());
    }
}

/// True if a row is to be sent or, for merged rows, if some were not sent. Rows from before the
/// first one that was sent are not counted as lost.
fn is_open(log: &SentLog, series: WatchSeries, text: &RowText) -> bool {
    let done = log.done(&text.run.recording, &text.run.boot, series.name());
    match text.tier {
        RecordTier::Interval => !done.is_some_and(|done| done.contains(text.at.seq)),
        _ => done.is_some_and(|done| done.missing(text.at.seq, text.at.last_seq()) > 0),
    }
}

/// Leaves out damaged rows: they are reported once, and not read again.
fn leave_damaged(
    round: &mut PushRound<'_>,
    record: &Path,
    series: WatchSeries,
    reader: &RecordReader<RecordFolder>,
    boots: &mut RecordedBoots,
) -> Sent {
    let mut rows = 0;
    for lost in reader.damaged.iter().flat_map(|section| reader.lost_with(section)) {
        add_boot(boots, &lost.recording, &lost.boot);
        let log = &mut round.log;
        rows += log.leave_out_rest(&lost.recording, &lost.boot, series.name(), lost.first, lost.last);
    }
    if rows > 0 {
        round.outcome.refused += rows;
        round.remark(format!("{}: {}", quoted(record), words_of(rows, &reader.damaged)));
        round.keep()?;
    }
    Ok(())
}

/// Leaves out the rows that truncated files lack. In files of one boot these rows are known and
/// reported once; for others the report is repeated in each round.
fn leave_lacking(
    round: &mut PushRound<'_>,
    record: &Path,
    series: WatchSeries,
    reader: &RecordReader<RecordFolder>,
    boots: &mut RecordedBoots,
) -> Sent {
    let (mut rows, mut is_known) = (0, true);
    for file in &reader.lacking {
        let Some(all) = reader.span_of(&file.name) else {
            is_known = false;
            continue;
        };
        add_boot(boots, &all.recording, &all.boot);
        let log = &mut round.log;
        rows += log.leave_out_rest(&all.recording, &all.boot, series.name(), all.first, all.last);
    }
    if rows > 0 || !is_known {
        round.outcome.refused += rows;
        round.outcome.left |= !is_known;
        round.remark(format!("{}: {}", quoted(record), words_of_lacking(rows, &reader.lacking)));
    }
    if rows > 0 { round.keep() } else { Ok(()) }
}

/// Opens a series without the segments that are done; their boots are included.
fn open(record: &Path, series: WatchSeries, log: &SentLog) -> model::error::Result<ReadSeries> {
    let mut reader = RecordReader::open_folder(record)?;
    let recording = reader.manifest().map(|manifest| manifest.recording.clone()).unwrap_or_default();
    let boots = RefCell::new(RecordedBoots::new());
    reader.leave_out(|segment| {
        let done = log.done(&recording, &segment.from.boot, series.name());
        add_boot(&mut boots.borrow_mut(), &recording, &segment.from.boot);
        segment.from.boot == segment.to.boot
            && done.is_some_and(|done| done.missing(segment.from.seq, segment.to.seq) == 0)
    });
    Ok(ReadSeries { reader, boots: boots.into_inner() })
}

/// Counts merged rows that were not sent as lost: they cannot be sent one by one.
fn note_merged(round: &mut PushRound<'_>, series: WatchSeries, text: &RowText) {
    let (run, from, to) = (&text.run, text.at.seq, text.at.last_seq());
    let lost = round.log.leave_out_rest(&run.recording, &run.boot, series.name(), from, to);
    round.outcome.lost = round.outcome.lost.saturating_add(lost);
    round.log.dropped_rows = round.log.dropped_rows.saturating_add(lost);
}

/// Sends the environments that a cut names, then its rows until each is acknowledged or set aside.
fn send(round: &mut PushRound<'_>, record: &Path, mut cut: RowCut) -> Sent {
    environments::send_named(round, record, &cut.envs)?;
    while let Some((first, _)) = cut.rows.first() {
        round.may(PushAllowance::Rows)?;
        let run = &cut.run;
        let path = format!("/v1/rows/{}/{}/{}/{first}", run.boot, run.recording, cut.series.name());
        let text = cut.text().map_err(|error| LinkFault::Source(error.to_string()))?;
        let answer = round.link.put(&path, &text)?;
        let detail = answer.detail();
        let numbers: Vec<u64> = cut.rows.iter().map(|row| row.0).collect();
        match answer.status {
            200 | 201 | 409 if is_of_rows(&answer, &numbers) => {
                round.outcome.rows += answer.body["stored"].as_u64().unwrap_or(0);
                note_other(round, &answer.body);
                note_undated(round, &answer.body);
                note_done(round, &cut, &numbers);
                return round.keep();
            }
            200..=299 => return Err(LinkFault::no_farm().into()),
            // Line 1 is the header.
            422 => match answer.body["line"].as_u64().and_then(|line| line.checked_sub(2)) {
                Some(at) if (at as usize) < cut.rows.len() => {
                    set_aside(round, &mut cut, at as usize, &detail)
                }
                _ => return Err(refused(answer.status, &detail)),
            },
            413 if cut.rows.len() > 1 => {
                let half = cut.first_half();
                send(round, record, half)?;
            }
            413 if answer.is_own_refusal() => set_aside(round, &mut cut, 0, &detail),
            status => return Err(refused(status, &detail)),
        }
    }
    round.keep()
}

fn refused(status: u16, detail: &str) -> RoundEnd {
    let detail = format!("the farm refuses the rows ({status}: {detail})");
    RoundEnd::Fault(LinkFault::Later { detail, after_s: None })
}

fn note_other(round: &mut PushRound<'_>, body: &serde_json::Value) {
    let other = body["seq"].as_array().map_or(0, Vec::len) as u64;
    if other > 0 {
        round.outcome.refused += other;
        let rows = several(other, "row", "rows");
        round.remark(format!(
            "the farm has {rows} with different content: does another machine use this board's token?"
        ));
    }
}

fn note_undated(round: &mut PushRound<'_>, body: &serde_json::Value) {
    if body["undated"].as_u64().is_some_and(|undated| undated > 0) {
        round.remark(
            "rows of a boot whose clock was never set are stored in 1970 at the farm: set this board's \
             clock, by NTP or from its clock chip"
                .to_owned(),
        );
    }
}

fn set_aside(round: &mut PushRound<'_>, cut: &mut RowCut, at: usize, detail: &str) {
    let (seq, _) = cut.rows.remove(at);
    round.outcome.refused += 1;
    round.remark(format!("row {seq} of {} is skipped: {detail}", cut.series.name()));
    round.log.leave_out(&cut.run.recording, &cut.run.boot, cut.series.name(), seq, seq);
}

fn note_done(round: &mut PushRound<'_>, cut: &RowCut, rows: &[u64]) {
    for &seq in rows {
        round.log.insert(&cut.run.recording, &cut.run.boot, cut.series.name(), seq, seq);
    }
}
