//! Rows for passing on: lines of one boot and plan after a header, as many as a farm takes at once.

use std::collections::BTreeSet;

use model::keyword::Word;
use model::watch::{WatchRun, WatchSeries};

use super::lines::{HeaderLine, ROWS_SCHEMA};
use super::texts::RowText;

/// Maximum size of a cut: half of what a farm takes.
const MOST_BYTES: usize = 512 << 10;
/// Maximum number of lines of a cut: those of a day.
const MOST_LINES: usize = 288;

/// Rows of one boot and plan, their numbers ascending.
#[derive(Clone, Debug, PartialEq)]
pub struct RowCut {
    pub series: WatchSeries,
    pub run: WatchRun,
    /// Digest of the environment at the first row.
    pub env: String,
    /// Digests of the environments of all rows.
    pub envs: BTreeSet<String>,
    /// Lines with their numbers, without newlines.
    pub rows: Vec<(u64, Vec<u8>)>,
    bytes: usize,
}

impl RowCut {
    /// A cut of one row.
    pub fn of(series: WatchSeries, text: RowText) -> RowCut {
        let (run, env) = (text.run.clone(), text.at.env.clone());
        let mut cut = RowCut { series, run, env, envs: BTreeSet::new(), rows: Vec::new(), bytes: 0 };
        cut.push(text);
        cut
    }

    /// Adds a row to the open cut; if it does not fit there, it begins the next one, and the one
    /// before is returned.
    pub fn join(open: &mut Option<RowCut>, series: WatchSeries, text: RowText) -> Option<RowCut> {
        match open.as_mut().filter(|cut| cut.takes(&text)) {
            Some(cut) => {
                cut.push(text);
                None
            }
            None => open.replace(RowCut::of(series, text)),
        }
    }

    fn takes(&self, text: &RowText) -> bool {
        let ascends = self.rows.last().is_none_or(|last| last.0 < text.at.seq);
        self.run == text.run
            && ascends
            && self.rows.len() < MOST_LINES
            && self.bytes + text.line.len() < MOST_BYTES
    }

    fn push(&mut self, text: RowText) {
        self.bytes += text.line.len() + 1;
        if !self.envs.contains(&text.at.env) {
            self.envs.insert(text.at.env);
        }
        self.rows.push((text.at.seq, text.line));
    }

    /// Removes and returns the first half of its rows, if a receiver refused too many.
    pub fn first_half(&mut self) -> RowCut {
        let rest = self.rows.split_off(self.rows.len() / 2);
        let rows = std::mem::replace(&mut self.rows, rest);
        let (run, env, envs) = (self.run.clone(), self.env.clone(), self.envs.clone());
        RowCut { series: self.series, run, env, envs, rows, bytes: 0 }
    }

    /// Text of the cut as `onbeat.rows/1`.
    pub fn text(&self) -> serde_json::Result<Vec<u8>> {
        self.text_of(&self.rows)
    }

    /// Text of some of its rows.
    pub fn text_of(&self, rows: &[(u64, Vec<u8>)]) -> serde_json::Result<Vec<u8>> {
        let header = HeaderLine {
            schema: ROWS_SCHEMA.to_owned(),
            run: self.run.clone(),
            span_ns: self.run.interval_ns,
            series: Word::Known(self.series),
            env: self.env.clone(),
        };
        let mut text = serde_json::to_vec(&header)?;
        for (_, line) in rows {
            text.push(b'\n');
            text.extend_from_slice(line);
        }
        text.push(b'\n');
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::lines::LineSpan;
    use model::record::RecordTier;

    fn row(boot: &str, seq: u64, bytes: usize) -> RowText {
        let run = WatchRun { boot: boot.into(), ..WatchRun::default() };
        let at = LineSpan { seq, ..LineSpan::default() };
        RowText { tier: RecordTier::Interval, run, at, line: vec![b'x'; bytes] }
    }

    #[test]
    fn another_boot_a_number_that_does_not_ascend_and_what_is_too_much_begin_a_cut() {
        let rows = [row("a", 1, 9), row("a", 2, 9), row("b", 3, 9), row("b", 3, 9), row("b", 4, MOST_BYTES)];
        let mut open = None;
        let full = rows.into_iter().filter_map(|text| RowCut::join(&mut open, WatchSeries::Timer, text));
        let full: Vec<RowCut> = full.collect();
        let seqs = |cut: &RowCut| cut.rows.iter().map(|row| row.0).collect::<Vec<_>>();
        assert_eq!(full.iter().map(seqs).collect::<Vec<_>>(), [vec![1, 2], vec![3], vec![3]]);
        assert_eq!(seqs(open.as_ref().unwrap()), [4]);
        let mut open = None;
        let day = (0..MOST_LINES as u64)
            .find_map(|seq| RowCut::join(&mut open, WatchSeries::Timer, row("a", seq, 9)));
        assert!(day.is_none());
        assert!(RowCut::join(&mut open, WatchSeries::Timer, row("a", 999, 9)).is_some());
    }

    #[test]
    fn halves_have_all_rows_once_and_a_text_has_its_header_and_lines() {
        let mut open = None;
        for seq in 0..5 {
            assert!(RowCut::join(&mut open, WatchSeries::Timer, row("a", seq, 2)).is_none());
        }
        let mut rest = open.unwrap();
        let whole = rest.clone();
        let half = rest.first_half();
        assert_eq!([half.rows.clone(), rest.rows].concat(), whole.rows);
        assert_eq!(half.rows.len(), 2);
        let text = String::from_utf8(half.text().unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("{\"schema\":\"onbeat.rows/1\"") && lines[0].contains("\"timer\""));
        assert_eq!((&lines[1..], text.ends_with('\n')), (&["xx", "xx"][..], true));
        assert_eq!(whole.text_of(&whole.rows[..2]).unwrap(), text.into_bytes());
    }
}
