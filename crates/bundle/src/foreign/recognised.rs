//! Results of a text: the formats that recognise it, and the runs made from it.

use model::run::Run;
use model::sort::CompactSort;
use model::text::several;
use model::units::Nanos;

use super::error::ImportError;
use super::format::{Confidence, ForeignFormat, ImportOptions, Imported, Reader, ResultSpan};
use super::refused::unexpanded;
use super::source::SourceText;
use super::{FORMATS, RESULT_LIMIT, quoted};

/// A result in a file, and the format that recognises it.
pub(super) struct Recognised<'a> {
    source: &'a SourceText,
    pub format: &'static ForeignFormat,
    pub finding: ResultSpan,
}

impl Recognised<'_> {
    fn read(&self, options: &ImportOptions) -> Result<Imported, ImportError> {
        let Recognised { source, format, finding } = self;
        if let Some(line) = source.wrapped_within(&finding.lines) {
            return Err(ImportError(format!(
                "line {line}: a terminal wrapped it within its last number: give the output as it was printed"
            )));
        }
        let mut one = match format.reader {
            Reader::Run(read) => {
                self.refuse_another_heading()?;
                let lines = || source.slice(finding.lines.clone());
                read(source, finding, options).map_err(|error| unexpanded(lines()).unwrap_or(error))?
            }
            Reader::Refused(instead) => {
                return Err(ImportError(format!("this is {}: {instead}", format.tool)));
            }
        };
        if finding.lines.end.checked_sub(1).is_some_and(|last| source.is_cut_at(last)) {
            one.remarks.push("the text ends within a line: its last number may be cut".into());
        }
        if self.is_followed_by_a_part() {
            one.remarks.push("the text ends within a line of the result: that line is not read".into());
        }
        let kernel = source.kernel_lines_within(&finding.lines) as u64;
        if kernel > 0 {
            let lines = several(kernel, "line of the kernel's log was", "lines of the kernel's log were");
            one.remarks.push(format!("{lines} skipped between its own"));
        }
        if let Some(interval) = options.interval {
            set_interval(&mut one.run, interval);
        }
        one.run.check()?;
        Ok(one)
    }

    /// Refuses rows that do not identify their tool, were named with `--as`, and have another
    /// tool's heading.
    fn refuse_another_heading(&self) -> Result<(), ImportError> {
        if self.finding.confidence == Confidence::Strong {
            return Ok(());
        }
        let lines = &self.finding.lines;
        let with_heading = self.source.excerpt(lines.start.saturating_sub(1)..lines.end);
        for format in FORMATS {
            if let Reader::Refused(instead) = format.reader
                && !(format.find)(&with_heading).is_empty()
            {
                return Err(ImportError(format!("this is {}: {instead}", format.tool)));
            }
        }
        Ok(())
    }

    /// True if the text ends after the result within a line that begins like the result's last one,
    /// or has only digits like its rows: too short a part to be read as a line of the tool.
    fn is_followed_by_a_part(&self) -> bool {
        let next = self.finding.lines.end;
        let line = |index: usize| self.source.line(index).map(|line| line.text.trim_start());
        let lines = next.checked_sub(1).and_then(line).zip(line(next));
        let is_row =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_whitespace());
        let alike = |(last, cut): (&str, &str)| {
            if is_row(last) && is_row(cut) {
                return true;
            }
            let short = cut.char_indices().nth(2).map_or(cut, |(end, _)| &cut[..end]);
            !short.is_empty() && last.starts_with(short)
        };
        self.source.is_cut_at(next) && lines.is_some_and(alike)
    }

    /// True for an error that means that the result ends too early, not that it is wrong.
    fn is_cut(&self, error: &ImportError) -> bool {
        let last = self.finding.lines.end.checked_sub(1).and_then(|last| self.source.line(last));
        let is_last = last.is_some_and(|last| {
            ["expected", "invalid"]
                .iter()
                .any(|what| error.0.contains(&format!("line {}: {what}", last.number)))
        });
        is_last || error.0.contains(": give the whole ")
    }

    fn first_line(&self) -> usize {
        self.source.line(self.finding.lines.start).map_or(1, |line| line.number)
    }
}

/// Results of a text; none if no format recognises it.
pub(super) fn results_of(
    source: &SourceText,
    options: &ImportOptions,
) -> Result<Option<Vec<Imported>>, ImportError> {
    let recognised = recognise(source, options)?;
    limit_results(recognised.len())?;
    let (mut imported, mut cut) = (Vec::new(), Vec::new());
    for one in &recognised {
        let is_within = !std::ptr::eq(one.source, source);
        let from = one.first_line();
        let named = |error: ImportError| {
            if is_within { ImportError(format!("the JSON from line {from} on: {error}")) } else { error }
        };
        match one.read(options) {
            Ok(read) => imported.push(read),
            Err(error) if one.is_cut(&error) => cut.push(named(error)),
            Err(error) => return Err(named(error)),
        }
    }
    let left_out = several(cut.len() as u64, "result is cut and omitted", "results are cut and omitted");
    match (imported.first_mut(), cut.into_iter().next()) {
        (None, Some(error)) => return Err(error),
        (Some(first), Some(error)) => first.remarks.push(format!("{left_out}: {error}")),
        _ => {}
    }
    Ok(Some(imported).filter(|imported| !imported.is_empty()))
}

pub(super) fn limit_results(n: usize) -> Result<(), ImportError> {
    if n > RESULT_LIMIT {
        return Err(ImportError(format!("{n} results in one file: give at most {RESULT_LIMIT} at a time")));
    }
    Ok(())
}

/// Recognises the results of the text, in its order; an error if two formats claim the same lines.
fn recognise<'a>(
    source: &'a SourceText,
    options: &ImportOptions,
) -> Result<Vec<Recognised<'a>>, ImportError> {
    let wanted = |format: &&&ForeignFormat| options.format.as_ref().is_none_or(|id| *id == format.id);
    let formats: Vec<&'static ForeignFormat> = FORMATS.iter().filter(wanted).copied().collect();
    if let ([], Some(id)) = (&formats[..], &options.format) {
        let readable = FORMATS.iter().filter(|format| matches!(format.reader, Reader::Run(_)));
        let ids: Vec<&str> = readable.map(|format| format.id).collect();
        return Err(ImportError(format!("invalid --as {}: expected one of {}", quoted(id), ids.join(", "))));
    }
    let (readable, refused): (Vec<&ForeignFormat>, Vec<&ForeignFormat>) =
        formats.into_iter().partition(|format| matches!(format.reader, Reader::Run(_)));
    let mut all = findings(source, &readable);
    let is_strong =
        |one: &Recognised| one.finding.confidence == Confidence::Strong || options.format.is_some();
    let any_readable = all.iter().any(is_strong);
    // A load during a measurement printed into the same log.
    if !any_readable {
        all.extend(findings(source, &refused));
        all.compact_sort_by_key(|one| (one.finding.lines.start, one.finding.lines.end));
    }
    all.retain(is_strong);
    if any_readable {
        tie(&all).map_or(Ok(()), Err)?;
    } else {
        all.truncate(1);
    }
    if !source.documents.is_empty() {
        all.compact_sort_by_key(Recognised::first_line);
    }
    Ok(all)
}

/// Findings of these formats in the text and in each document within it.
pub(super) fn findings<'a>(
    source: &'a SourceText,
    formats: &[&'static ForeignFormat],
) -> Vec<Recognised<'a>> {
    let mut all = Vec::new();
    for source in std::iter::once(source).chain(&source.documents) {
        let start = all.len();
        for format in formats {
            let findings = (format.find)(source).into_iter();
            all.extend(findings.map(|finding| Recognised { source, format, finding }));
        }
        all[start..].compact_sort_by_key(|one| (one.finding.lines.start, one.finding.lines.end));
    }
    all
}

/// Refusal of results of which two share a line, with all that do.
fn tie(all: &[Recognised]) -> Option<ImportError> {
    let shares = |one: &Recognised, other: &Recognised| {
        std::ptr::eq(one.source, other.source) && one.finding.lines.end > other.finding.lines.start
    };
    let first = all.windows(2).position(|pair| shares(&pair[0], &pair[1]))?;
    let one = all.get(first)?;
    let mut candidates: Vec<&ForeignFormat> =
        all[first..].iter().take_while(|other| shares(one, other)).map(|other| other.format).collect();
    candidates.dedup_by_key(|format| format.id);
    let line = all.get(first + 1)?.first_line();
    let tools: Vec<&str> = candidates.iter().map(|format| format.tool).collect();
    let flags: Vec<String> = candidates.iter().map(|format| format!("--as {}", format.id)).collect();
    Some(ImportError(format!(
        "line {line}: this may be {}: choose with {}",
        tools.join(" or "),
        flags.join(" or ")
    )))
}

/// Gives an imported run the period that its file lacks; a period in the file stays.
///
/// With it, an overflow's cycle number can be placed in time, as long as no period was skipped.
fn set_interval(run: &mut Run, interval: Nanos) {
    let first = *run.plan.interval_ns.get_or_insert(interval);
    let distance = run.plan.distance_ns.unwrap_or_default();
    let mut next = Some(first);
    for cpu in &mut run.cpus {
        cpu.interval_ns = cpu.interval_ns.or(next);
        next = next.and_then(|n| n.0.checked_add(distance.0)).map(Nanos);
    }
}
