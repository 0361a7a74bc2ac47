//! Sections of rows that differ from what was written, and files that are shorter than they were:
//! their losses and remedies.

use model::text::several;
use model::units::Nanos;
use model::wall_time::wall_time;
use model::watch::WatchRun;

use super::lines::LineSpan;

/// Rows of a boot whose numbers follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedSpan {
    pub recording: String,
    pub boot: String,
    pub first: u64,
    pub last: u64,
}

/// A section with a wrong checksum. One wrong number is worse than none, and the changed line is
/// unknown: none of its rows is handed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DamagedSection {
    pub file: String,
    /// Offset in the file at which it begins.
    pub from: u64,
    /// Number of its rows that were wanted, and of its lines that cannot be read.
    pub rows: u64,
    /// Start of the first and end of the last of them, by their lines; `None` if no clock was set.
    pub time: Option<(Nanos, Nanos)>,
    /// Numbers of the rows, by their lines.
    pub spans: Vec<DamagedSpan>,
}

impl DamagedSection {
    /// Adds a row that was wanted.
    pub(super) fn note(&mut self, run: &WatchRun, line: &[u8]) {
        self.rows += 1;
        let Ok(at) = serde_json::from_slice::<LineSpan>(line) else { return };
        if at.is_dated() {
            let end = Nanos(at.wall_ns.0.saturating_add(at.span_ns.0.max(0)));
            let (from, to) = self.time.unwrap_or((at.wall_ns, end));
            self.time = Some((from.min(at.wall_ns), to.max(end)));
        }
        let (first, last) = (at.seq, at.last_seq());
        let follows = |span: &&mut DamagedSpan| {
            span.boot == run.boot
                && span.recording == run.recording
                && span.last.checked_add(1) == Some(first)
        };
        match self.spans.last_mut().filter(follows) {
            Some(span) => span.last = last,
            None => {
                let (recording, boot) = (run.recording.clone(), run.boot.clone());
                self.spans.push(DamagedSpan { recording, boot, first, last });
            }
        }
    }
}

/// A file of rows that is missing, or shorter than the record states. Files are flushed before the
/// record states their lengths: this is not an end that is being written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LackingFile {
    pub name: String,
    /// Number of missing bytes, 0 if it is no longer known; `None` if the whole file is missing.
    pub bytes: Option<u64>,
}

/// Text on rows that these files lack, with their number if known.
pub fn words_of_lacking(rows: u64, files: &[LackingFile]) -> String {
    let what = if rows > 0 { several(rows, "row is", "rows are") } else { "rows are".to_owned() };
    let first = files.first().map_or(String::new(), |file| match file.bytes {
        Some(0) => format!("{} is cut short", file.name),
        Some(bytes) => format!("{} is cut short by {}", file.name, several(bytes, "byte", "bytes")),
        None => format!("{} is missing", file.name),
    });
    let others = match files.len().saturating_sub(1) as u64 {
        0 => String::new(),
        more => format!(", and {} too", several(more, "file more is", "files more are")),
    };
    format!("{what} lacking: {first}{others}; import the undamaged record from a copy of its folder")
}

/// Text on intervals of a tail that cannot be read, before others that can.
pub fn words_of_tail(intervals: u64, tail: &str) -> String {
    format!(
        "{} omitted: {tail} was changed after it was written; import the undamaged record from a copy of its \
         folder",
        several(intervals, "interval", "intervals")
    )
}

/// Text on rows that are excluded with these sections.
pub fn words_of(rows: u64, sections: &[DamagedSection]) -> String {
    let begin = sections.iter().filter_map(|section| Some(section.time?.0)).min();
    let end = sections.iter().filter_map(|section| Some(section.time?.1)).max();
    let when = match begin.zip(end) {
        Some((begin, end)) => format!(" of {} to {}", wall_time(begin), wall_time(end)),
        None => String::new(),
    };
    let first = sections.first().map_or("", |section| section.file.as_str());
    let which = match sections.len() {
        0 | 1 => format!("a section of {first}"),
        all => format!("{all} sections, the first of them in {first},"),
    };
    format!(
        "{}{when} omitted: the checksum of {which} has changed since it was written; import the undamaged \
         record from a copy of its folder",
        several(rows, "row", "rows")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_the_file_that_lacks_rows() {
        let cut = LackingFile { name: "x.jsonl".into(), bytes: Some(1) };
        let missing = LackingFile { name: "y.tail".into(), bytes: None };
        let words = words_of_lacking(2, std::slice::from_ref(&cut));
        let helps = "; import the undamaged record from a copy of its folder";
        assert_eq!(words, format!("2 rows are lacking: x.jsonl is cut short by 1 byte{helps}"));
        let words = words_of_lacking(0, &[LackingFile { bytes: Some(0), ..cut.clone() }]);
        assert_eq!(words, format!("rows are lacking: x.jsonl is cut short{helps}"));
        let words = words_of_lacking(0, &[missing, cut]);
        assert_eq!(words, format!("rows are lacking: y.tail is missing, and 1 file more is too{helps}"));
    }

    #[test]
    fn words_name_the_tail_that_was_changed() {
        let helps = "; import the undamaged record from a copy of its folder";
        let words = |intervals| words_of_tail(intervals, "x.tail");
        assert_eq!(words(1), format!("1 interval omitted: x.tail was changed after it was written{helps}"));
        assert!(words(2).starts_with("2 intervals omitted"));
    }

    #[test]
    fn words_name_the_times_and_what_helps() {
        let line = |seq: u64, wall: i64| {
            let at = LineSpan { seq, wall_ns: Nanos(wall), span_ns: Nanos(9), ..LineSpan::default() };
            serde_json::to_vec(&at).unwrap()
        };
        let run = WatchRun { boot: "b".into(), recording: "r".into(), ..WatchRun::default() };
        let mut section = DamagedSection { file: "x.jsonl".into(), ..DamagedSection::default() };
        section.note(&run, &line(3, 7));
        assert_eq!(section.time, None, "its clock was not set");
        let set = 1_700_000_000 * Nanos::SECOND.0;
        section.note(&run, &line(4, set));
        section.note(&run, &line(9, set + 300 * Nanos::SECOND.0));
        let spans: Vec<(u64, u64)> = section.spans.iter().map(|span| (span.first, span.last)).collect();
        assert_eq!((section.rows, spans), (3, vec![(3, 4), (9, 9)]));
        let words = words_of(3, std::slice::from_ref(&section));
        assert!(words.starts_with("3 rows of 2023-11-14T22:13:20"), "{words}");
        assert!(
            words.contains(" to 2023-11-14T22:18:20") && words.contains("a section of x.jsonl"),
            "{words}"
        );
        assert!(words.contains("import the undamaged record"), "{words}");
        let words = words_of(1, &[DamagedSection { time: None, ..section.clone() }, section]);
        assert!(words.starts_with("1 row of ") && words.contains("2 sections"), "{words}");
    }
}
