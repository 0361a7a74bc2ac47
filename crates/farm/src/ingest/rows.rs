//! Decoding of `onbeat.rows/1` lines to sums for the store.

use std::collections::BTreeMap;

use bundle::record::lines::{HeaderLine, ROWS_SCHEMA, RowsLine};
use model::labels::Labels;
use model::text::excerpt;
use model::units::{Cpu, Nanos};
use model::watch::WatchRow;
use report::watch::summary::WaitClass;
use sha2::{Digest, Sha256};

use super::fingerprint::{fingerprint_of, name_in_hunts, plain_name};
use super::plausible;
use crate::records::{CpuRows, CulpritOfRun, SeriesKey, SlotPeak, TierRow};

/// Names of culprits that a series of a line may have.
const MOST_CULPRITS: usize = 64;
/// Limit of the lines in one request: a day and some reserve.
const MOST_LINES: usize = 400;
/// No line is longer: sixty-four CPUs, each with the fullest histogram.
const LINE_LIMIT: usize = 512 << 10;

/// A line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReceivedRow {
    /// Number of the line in its request, counted from 1.
    pub line: usize,
    pub seq: u64,
    /// CLOCK_MONOTONIC at its start.
    pub mono_ns: Nanos,
    /// The board's wall clock at that time.
    pub own_wall_ns: Nanos,
    pub span_ns: Nanos,
    /// Labels of the recording.
    pub labels: Labels,
    /// The board's id of its environment then; empty if unknown.
    pub env: String,
    pub digest: Vec<u8>,
    pub parts: Vec<RowPart>,
}

/// Part of a line for one series: wake-ups that waited for a lower priority are not added to
/// others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowPart {
    pub key: SeriesKey,
    pub sums: TierRow,
    /// Times of maxima are CLOCK_MONOTONIC here.
    pub peaks: Vec<SlotPeak>,
    /// CPU of the largest latency, the first of several; the names belong to the same.
    pub max_cpu: Option<Cpu>,
    pub victim: String,
    pub culprit: String,
    /// Culprits of the largest wake-ups: each counts once in a line, whose five minutes are its one
    /// spike. Wake-ups of kernel threads name none.
    pub culprits: Vec<CulpritOfRun>,
}

/// Fault of an invalid line.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LineFault {
    /// Counted from 1.
    pub line: usize,
    pub detail: String,
    /// True if it would be valid among fewer or shorter lines.
    #[serde(skip)]
    pub is_size: bool,
}

/// Identity of sent rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowsOf {
    pub boot: String,
    pub recording: String,
    pub series: String,
}

/// Reads lines; a header before them must belong to the same rows.
///
/// A last line counts even without its newline; one that is cut off does not (see [`cut_off`]).
pub fn read(of: &RowsOf, text: &[u8]) -> Result<Vec<ReceivedRow>, LineFault> {
    let mut header = HeaderLine::default();
    let mut rows: Vec<ReceivedRow> = Vec::new();
    let whole = &text[..text.len() - cut_off(text)];
    let lines = whole.split(|&byte| byte == b'\n');
    for (at, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
        let fault = |detail: String| LineFault { line: at + 1, detail, is_size: false };
        if line.len() > LINE_LIMIT || rows.len() >= MOST_LINES {
            let detail = format!(
                "more than {MOST_LINES} rows, or a line of more than {LINE_LIMIT} bytes: send fewer at once, \
                 and omit such a line"
            );
            return Err(LineFault { is_size: true, ..fault(detail) });
        }
        let malformed =
            |error: serde_json::Error| fault(excerpt(&format!("invalid row ({error}): omit the line")));
        if is_header(line) {
            header = serde_json::from_slice(line).map_err(malformed)?;
            check(&header, of).map_err(fault)?;
            header.run.labels = header.run.labels.fit().0;
            continue;
        }
        let row: RowsLine = serde_json::from_slice(line).map_err(malformed)?;
        plausible::line(&row).map_err(fault)?;
        if rows.last().is_some_and(|last| last.seq >= row.at.seq) {
            return Err(fault(
                "the sequence numbers of rows do not ascend: send the rows in order".to_owned(),
            ));
        }
        rows.push(ReceivedRow { line: at + 1, ..received(&header, of, &row, line).map_err(fault)? });
    }
    Ok(rows)
}

/// Number of bytes of a last line that is cut off, as a record may be sent while it is written: any
/// valid beginning of a line counts as cut off.
pub fn cut_off(text: &[u8]) -> usize {
    let begin = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let last = &text[begin..];
    let parsed = |line: &[u8]| serde_json::from_slice::<serde::de::IgnoredAny>(line);
    let is_begin = |line: &[u8]| parsed(line).map_or_else(|error| error.is_eof(), |_| true);
    // The parser rejects a number that ends after its sign, its point or its `e`; one more digit
    // makes it valid.
    let is_cut = parsed(last).is_err() && (is_begin(last) || is_begin(&[last, b"0"].concat()));
    if is_cut { last.len() } else { 0 }
}

/// True if a line has a schema, in any order of its fields. As written by recorders, both kinds are
/// recognized by their beginning.
fn is_header(line: &[u8]) -> bool {
    if line.starts_with(b"{\"seq\"") {
        return false;
    }
    let fields = || serde_json::from_slice::<BTreeMap<String, serde::de::IgnoredAny>>(line);
    line.starts_with(b"{\"schema\"") || fields().is_ok_and(|fields| fields.contains_key("schema"))
}

fn check(header: &HeaderLine, of: &RowsOf) -> Result<(), String> {
    if header.schema != ROWS_SCHEMA {
        return Err(format!(
            "schema {:?} instead of {ROWS_SCHEMA:?}: update onbeat-farm",
            excerpt(&header.schema)
        ));
    }
    let same = (&header.run.boot, &header.run.recording, header.series.as_str());
    if same == (&of.boot, &of.recording, of.series.as_str()) {
        Ok(())
    } else {
        Err("the boot, recording or series of the header differs from the address: send each in its own \
                 request"
            .to_owned())
    }
}

fn received(header: &HeaderLine, of: &RowsOf, line: &RowsLine, bytes: &[u8]) -> Result<ReceivedRow, String> {
    let mut parts: Vec<RowPart> = Vec::new();
    for row in &line.cpus {
        if !row.hist.is_empty() && row.hist.total() != row.n {
            return Err(
                "a histogram and its row differ in the number of samples: omit the damaged line".to_owned()
            );
        }
        let key = SeriesKey { series: series_name(&of.series, row), plan: excerpt(&header.run.plan) };
        let at = parts.iter().position(|part| part.key == key).unwrap_or_else(|| {
            parts.push(RowPart { key, ..RowPart::default() });
            parts.len() - 1
        });
        add(&mut parts[at], row);
    }
    if parts.is_empty() {
        // A recorder without wake-ups continues: its five minutes have no samples.
        let key = SeriesKey { series: of.series.clone(), plan: excerpt(&header.run.plan) };
        parts.push(RowPart { key, ..RowPart::default() });
    }
    Ok(ReceivedRow {
        seq: line.at.seq,
        mono_ns: line.at.mono_ns,
        own_wall_ns: line.at.wall_ns,
        span_ns: line.at.span_ns,
        line: 0,
        labels: header.run.labels.clone(),
        env: excerpt(if line.at.env.is_empty() { &header.env } else { &line.at.env }),
        digest: Sha256::digest(bytes)[..8].to_vec(),
        parts,
    })
}

fn series_name(series: &str, row: &WatchRow) -> String {
    match WaitClass::of(&row.holder, &row.victims) {
        WaitClass::System => series.to_owned(),
        WaitClass::Priority => format!("{series}.priority"),
        WaitClass::KernelThreads => format!("{series}.kernel"),
    }
}

fn add(part: &mut RowPart, row: &WatchRow) {
    let Some(cpu) = row.cpu else { return };
    if row.max_ns > part.sums.max_ns {
        part.max_cpu = Some(cpu);
        part.victim = excerpt(&row.victim.comm);
        let rule = row.culprit.rule.as_deref().unwrap_or_default();
        part.culprit = match row.culprit.name.as_str() {
            "" => excerpt(rule),
            name => plain_name(&name_in_hunts(rule, name)),
        };
    }
    count_culprit(&mut part.culprits, row);
    let cpus = vec![CpuRows { cpu, rows: row.hist.clone() }];
    part.sums.add(&TierRow { t: 0, n: row.n, missed: row.missed, max_ns: row.max_ns, cpus });
    let at = part.peaks.iter().position(|peak| peak.cpu == cpu).unwrap_or_else(|| {
        part.peaks.push(SlotPeak { cpu, ..SlotPeak::default() });
        part.peaks.len() - 1
    });
    let peak = &mut part.peaks[at];
    peak.n = peak.n.saturating_add(row.n);
    peak.missed = peak.missed.saturating_add(row.missed);
    if row.max_ns > peak.max_ns {
        (peak.max_ns, peak.max_at) = (row.max_ns, row.max_mono_ns.map(|at| at.0));
    }
}

fn count_culprit(culprits: &mut Vec<CulpritOfRun>, row: &WatchRow) {
    let (named, waited) = (&row.culprit, WaitClass::of(&row.holder, &row.victims));
    if named.name.is_empty() || waited == WaitClass::KernelThreads {
        return;
    }
    let rule = excerpt(named.rule.as_deref().unwrap_or_default());
    let (name, kind) = (name_in_hunts(&rule, &named.name), excerpt(named.kind.as_str()));
    let fingerprint = fingerprint_of(&rule, &kind, &name);
    let share = named.share.unwrap_or_default();
    let took = (row.max_ns.unwrap_or_default().0.max(0) as f64 * share) as i64;
    if let Some(known) = culprits.iter_mut().find(|known| known.fingerprint == fingerprint) {
        known.total_ns = Nanos(known.total_ns.0.saturating_add(took));
    } else if culprits.len() < MOST_CULPRITS {
        let remedy = rules::culprits::find(&rule).map_or_else(String::new, |rule| rule.remedy.to_owned());
        let (name, total_ns) = (plain_name(&name), Nanos(took));
        culprits.push(CulpritOfRun { fingerprint, rule, name, kind, spikes: 1, total_ns, remedy });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bundle::record::lines::LineSpan;
    use model::rows::RowCounts;
    use model::watch::{Holder, Victims, WatchCulprit};
    use proptest::prelude::*;

    fn of() -> RowsOf {
        RowsOf { boot: "b".into(), recording: "r".into(), series: "measure".into() }
    }

    fn line(seq: u64, cpu: u32, counts: &[(usize, u64)]) -> String {
        let hist = RowCounts::of_rows(counts.iter().copied());
        let max_ns = counts.iter().map(|count| Nanos(count.0 as i64)).max();
        let row = WatchRow { cpu: Some(Cpu(cpu)), n: hist.total(), max_ns, hist, ..WatchRow::default() };
        let mut line = RowsLine { cpus: vec![row], ..RowsLine::default() };
        (line.at.seq, line.at.span_ns) = (seq, Nanos(300 * Nanos::SECOND.0));
        serde_json::to_string(&line).unwrap() + "\n"
    }

    const HEADER: &str = concat!(
        r#"{"schema":"onbeat.rows/1","boot":"b","recording":"r","plan":"p","series":"measure"}"#,
        "\n"
    );

    #[test]
    fn lines_are_rows_and_the_last_counts_without_its_newline() {
        let text = format!("{HEADER}{}{}", line(1, 0, &[(200, 3)]), line(2, 1, &[(9, 1)]));
        let rows = read(&of(), text.as_bytes()).unwrap();
        assert_eq!(rows.iter().map(|row| row.seq).collect::<Vec<_>>(), [1, 2]);
        let part = &rows[0].parts[0];
        assert_eq!((part.key.plan.as_str(), part.sums.n, part.peaks[0].max_ns), ("p", 3, Some(Nanos(200))));
        // The same row, so that it counts once by either way.
        assert_eq!(read(&of(), text.trim_end().as_bytes()).unwrap(), rows);
        assert!(read(&of(), b"").unwrap().is_empty() && read(&of(), b"\n\n").unwrap().is_empty());
    }

    #[test]
    fn a_header_is_one_in_whatever_order_its_fields_are() {
        let row = line(0, 0, &[(200, 3)]);
        let of_header = |header: &str| read(&of(), format!("{header}{row}").as_bytes());
        let wanted = of_header(HEADER).unwrap();
        for header in [
            concat!(
                r#"{"boot":"b","plan":"p","recording":"r","schema":"onbeat.rows/1","series":"measure"}"#,
                "\n"
            ),
            &HEADER.replacen("{", "{ ", 1),
            &format!(" \t{HEADER}"),
            &HEADER.replace("\":", "\" : "),
        ] {
            assert_eq!(of_header(header).unwrap(), wanted, "{header}");
            assert_eq!(of_header(&header.replace("rows/1", "rows/2")).unwrap_err().line, 1, "{header}");
        }
        assert_eq!((wanted[0].line, wanted[0].parts[0].key.plan.as_str()), (2, "p"));
        // A row is valid in any order, too, and a text in it does not make it a header.
        let sorted: serde_json::Value =
            serde_json::from_str(&row.replace("\"env\":\"\"", "\"env\":\"schema\"")).unwrap();
        let (sorted, plain) = (read(&of(), sorted.to_string().as_bytes()).unwrap(), wanted);
        assert_eq!((sorted.len(), sorted[0].env.as_str(), sorted[0].seq), (1, "schema", plain[0].seq));
    }

    #[test]
    fn a_last_line_that_is_cut_off_does_not_count_and_is_told() {
        let text = format!("{HEADER}{}{}", line(1, 0, &[(200, 3)]), line(2, 1, &[(9, 1)]));
        let last = text.trim_end().rfind('\n').unwrap() + 1;
        for end in last + 1..text.len() - 1 {
            let cut = &text.as_bytes()[..end];
            assert_eq!((read(&of(), cut).unwrap().len(), cut_off(cut)), (1, end - last));
        }
        let begun = &HEADER.as_bytes()[..20];
        assert_eq!((read(&of(), begun).unwrap().len(), cut_off(begun)), (0, 20));
        assert_eq!((cut_off(text.as_bytes()), cut_off(text.trim_end().as_bytes()), cut_off(b"")), (0, 0, 0));
        // A line that is cut off before others is damaged.
        let torn = [begun, b"\n", line(1, 0, &[(200, 3)]).as_bytes()].concat();
        assert_eq!(read(&of(), &torn).unwrap_err().line, 1);
    }

    #[test]
    fn a_line_is_cut_off_wherever_it_ends() {
        let first = line(1, 0, &[(200, 3)]);
        let real = line(2, 1, &[(9, 1), (4_000, 70)]);
        let real = real.trim_end();
        let with = |field: &str| real.replacen('{', &format!("{{{field},"), 1);
        for last in [
            real.to_owned(),
            with(r#""env":"größe \"\\\u00e9\ud83d\ude00 ✓ 𝄞""#),
            with(r#""a":-12.5,"b":1e9,"c":[-0.25E+12,3e-7,-1],"d":{"e":0.5,"f":-0}"#),
            with(r#""g": [ true , false , null , [] , {} ] , "h" : -1 "#),
        ] {
            let last = last.as_bytes();
            for end in 1..last.len() {
                let text = [first.as_bytes(), &last[..end]].concat();
                let shown = String::from_utf8_lossy(&last[..end]);
                assert_eq!(cut_off(&text), end, "{shown}");
                assert_eq!(read(&of(), &text).map(|rows| rows.len()), Ok(1), "{shown}");
            }
            assert_eq!(cut_off(&[first.as_bytes(), last].concat()), 0);
        }
        // A text that does not begin like a row is damaged.
        for last in ["{-", r#"{"a":--"#, r#"{"a":1.e"#, r#"{"a":00."#, r#"{"seq":2}-"#, "{\"a\":1}{", "e"] {
            let text = format!("{first}{last}");
            assert_eq!(
                (cut_off(text.as_bytes()), read(&of(), text.as_bytes()).is_err()),
                (0, true),
                "{last}"
            );
        }
    }

    #[test]
    fn what_is_no_row_is_refused_with_its_line() {
        let good = line(5, 0, &[(1, 1)]);
        for (text, at) in [
            (format!("{good}not JSON\n"), 2),
            (format!("{good}{good}"), 2),
            (HEADER.replace("\"b\"", "\"other\""), 1),
            (HEADER.replace("rows/1", "rows/2"), 1),
            (good.replace("\"n\":1", "\"n\":2"), 1),
            (format!("{good}{}", line(6, 0, &[(1, 1 << 50)])), 2),
            (good.replace("\"span_ns\":300000000000", "\"span_ns\":0"), 1),
            (format!("{good}{}", line(6, 0, &[(1, 1)]).replace("\"early\":0", "\"early\":2")), 2),
            (good.replace("\"sum_ns\":0", "\"sum_ns\":2"), 1),
            (good.replace("\"share\":null", "\"share\":-0.5"), 1),
            (good.replace("\"layout\":\"log32\"", "\"layout\":\"hdr2\""), 1),
            ((0..=MOST_LINES as u64).map(|seq| line(seq, 0, &[])).collect(), MOST_LINES + 1),
        ] {
            let fault = read(&of(), text.as_bytes()).unwrap_err();
            assert_eq!((fault.line, fault.is_size), (at, at > MOST_LINES), "{}", fault.detail);
            assert!(!fault.detail.contains('\n') && fault.detail.len() < 400);
        }
    }

    #[test]
    fn a_line_without_a_wakeup_has_five_minutes_without_samples() {
        let mut empty = RowsLine::default();
        (empty.at.seq, empty.at.span_ns) = (4, Nanos(300 * Nanos::SECOND.0));
        let text = HEADER.to_owned() + &serde_json::to_string(&empty).unwrap();
        let parts = read(&of(), text.as_bytes()).unwrap().remove(0).parts;
        let key = SeriesKey { series: "measure".into(), plan: "p".into() };
        assert_eq!(parts, [RowPart { key, ..RowPart::default() }]);
    }

    #[test]
    fn a_culprit_counts_once_in_a_line_by_its_part_of_each_largest_wakeup() {
        let row = |cpu: u32, name: &str, share: Option<f64>| WatchRow {
            cpu: Some(Cpu(cpu)),
            max_ns: Some(Nanos(1_000)),
            culprit: WatchCulprit {
                rule: Some("realtime-thread".into()),
                name: name.into(),
                kind: "thread".into(),
                share,
                ..WatchCulprit::default()
            },
            ..WatchRow::default()
        };
        let by_kernel = WatchRow { victims: Victims::Kernel.into(), ..row(3, "hog", Some(1.0)) };
        let higher = WatchRow { holder: Holder::Higher.into(), ..row(4, "hog", Some(0.5)) };
        let cpus = vec![
            row(0, "hog", Some(0.5)),
            row(1, "hog", Some(1.0)),
            row(2, "other", None),
            row(5, "", Some(1.0)),
            by_kernel,
            higher,
        ];
        let line = serde_json::to_string(&RowsLine {
            at: LineSpan { span_ns: Nanos(1), ..LineSpan::default() },
            cpus,
            ..RowsLine::default()
        })
        .unwrap();
        let parts = read(&of(), line.as_bytes()).unwrap().remove(0).parts;
        let told = |series: &str| -> Vec<(String, u64, i64)> {
            let part = parts.iter().find(|part| part.key.series == series).unwrap();
            let one = |one: &CulpritOfRun| (one.name.clone(), one.spikes, one.total_ns.0);
            part.culprits.iter().map(one).collect()
        };
        let title = rules::culprits::find("realtime-thread").unwrap().title;
        let (hog, other) = (format!("{title}: hog"), format!("{title}: other"));
        assert_eq!(told("measure"), [(hog.clone(), 1, 1_500), (other, 1, 0)]);
        assert_eq!(told("measure.priority"), [(hog.clone(), 1, 500)]);
        assert!(told("measure.kernel").is_empty());
        // It is the one that hunts name.
        let known = &parts[0].culprits[0];
        assert_eq!(known.fingerprint, fingerprint_of("realtime-thread", "thread", &hog));
        assert!(!known.remedy.is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_are_rows_or_a_refusal(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = read(&of(), &bytes);
        }
    }
}
