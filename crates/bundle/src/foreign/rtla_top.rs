//! `top` displays of rtla: `timerlat top`, `osnoise top`, `hwnoise`; for a screen the last update.

use model::run::Run;
use model::units::Nanos;
use model::vocabulary::Quantity;

use super::error::ImportError;
use super::format::{ImportOptions, Imported, ResultSpan};
use super::imported::{ImportedThread, empty_run, fill};
use super::rtla_hist_find::RtlaTable;
use super::rtla_shared::refuse;
pub(super) use super::rtla_top_lines::TopKind;
use super::rtla_top_lines::{TopRow, TopTable, scan};
use super::source::{DocumentShape, SourceText};
use super::{rtla_command, rtla_shared};

/// Groups of a row, from the left.
const GROUPS: [Quantity; 3] = [Quantity::Irq, Quantity::Wakeup, Quantity::User];

/// Places of osnoise's numbers in a row.
const RUNTIME: usize = 0;
const NOISE: usize = 1;
const AVAILABLE: usize = 2;
const MAX_NOISE: usize = 3;
const MAX_SINGLE: usize = 4;
const SOURCES: [(usize, &str); 5] =
    [(5, "hardware"), (6, "NMI"), (7, "interrupt"), (8, "softirq"), (9, "thread")];

/// Finds the results in a text; updates of a screen are one.
pub(super) fn find(source: &SourceText, kind: TopKind) -> Vec<ResultSpan> {
    if source.shape != DocumentShape::Text {
        return Vec::new();
    }
    let mut findings: Vec<ResultSpan> = Vec::new();
    // Last table with rows, and the begin of one without any after it.
    let mut last: Option<TopTable> = None;
    let mut empty: Option<usize> = None;
    scan(source, 0..source.lines().len(), kind, |table| {
        let continues = last.as_ref().is_none_or(|last| table.rows.is_empty() || follows(last, &table, kind));
        let start = empty.filter(|_| !continues).unwrap_or(table.start);
        match findings.last_mut() {
            Some(finding) if continues => finding.lines.end = table.end,
            before => {
                if let Some(finding) = before {
                    finding.lines.end = finding.lines.end.min(start);
                }
                findings.push(ResultSpan::strong(start..table.end));
            }
        }
        if table.rows.is_empty() {
            empty.get_or_insert(table.start);
        } else {
            (last, empty) = (Some(table), None);
        }
    });
    findings
}

/// True for a table that may be a later update of the same run: no count and no maximum is smaller,
/// no minimum larger.
fn follows(before: &TopTable, table: &TopTable, kind: TopKind) -> bool {
    let later = |row: &TopRow| {
        let Some(next) = table.rows.iter().find(|next| next.cpu == row.cpu) else {
            // A cut table lacks the last CPUs.
            return table.damage.is_some() || table.rows.last().is_some_and(|last| last.cpu < row.cpu);
        };
        let cells = row.cells.iter().zip(&next.cells).enumerate();
        let mut pairs = cells.filter_map(|(at, (a, b))| Some((at, (*a)?, (*b)?)));
        let holds = pairs.all(|(at, a, b)| match (kind, at % 4) {
            (TopKind::Osnoise, _) => at == AVAILABLE || a <= b,
            (TopKind::Timerlat, 1) => a >= b,
            (TopKind::Timerlat, 3) => a <= b,
            (TopKind::Timerlat, _) => true,
        });
        row.count <= next.count && holds
    };
    let same = before.width == table.width && before.unit == table.unit && before.elapsed <= table.elapsed;
    same && before.rows.iter().all(later)
}

/// Returns the update that counts, and remarks on others.
fn last_update(
    source: &SourceText,
    finding: &ResultSpan,
    kind: TopKind,
) -> Result<(TopTable, Vec<String>), ImportError> {
    // Last whole table with rows, and the cut one after it.
    let (mut whole, mut cut): (Option<TopTable>, Option<TopTable>) = (None, None);
    scan(source, finding.lines.clone(), kind, |table| {
        let lacks_all =
            table.all.is_none() && (table.ruled || whole.as_ref().is_some_and(|w| w.all.is_some()));
        let fewer = whole.as_ref().is_some_and(|whole| table.rows.len() < whole.rows.len());
        if table.damage.is_some() || table.rows.is_empty() || lacks_all || fewer {
            cut = Some(table);
        } else {
            (whole, cut) = (Some(table), None);
        }
    });
    match (whole, cut) {
        (Some(table), None) => Ok((table, Vec::new())),
        (Some(table), Some(_)) => {
            Ok((table, vec!["the last update is cut off: the one before it was read".into()]))
        }
        (None, Some(table)) => Err(ImportError(table.damage.unwrap_or_else(|| {
            let line = table.rows.last().map_or(table.head, |row| row.line);
            if table.rows.is_empty() {
                format!("line {line}: no CPU in the table: repeat the run, it ended before the first result")
            } else {
                format!("line {line}: the table ends without 'ALL #': give the whole output")
            }
        }))),
        (None, None) => Err(ImportError::new("no table in it: give the whole output")),
    }
}

/// Reads `rtla timerlat top`.
pub(super) fn read_timerlat(
    source: &SourceText,
    finding: &ResultSpan,
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    let name = "rtla timerlat top";
    let update = last_update(source, finding, TopKind::Timerlat).and_then(|update| {
        check_timerlat(&update.0)?;
        Ok(update)
    });
    let (table, remarks) = update.map_err(|error| rtla_shared::of_tool(name, error))?;
    let command = rtla_command::before(source, finding.lines.start, RtlaTable::Timerlat, "top");
    let mut run = empty_run(name);
    if let Some(command) = &command {
        command.fill(&mut run.plan);
    }
    let unit = table.unit.unwrap_or(if options.nanoseconds { Nanos(1) } else { Nanos::MICRO });
    if table.unit.is_none() && !options.nanoseconds {
        run.plan
            .notes
            .push("latencies were taken as microseconds: the line with the unit is not in the text".into());
    }
    if table.all.is_none() {
        run.plan.notes.push("no row of all CPUs (rtla before 6.10): a CPU may be missing".into());
    }
    let interval = run.plan.interval_ns;
    let threads = table
        .rows
        .iter()
        .flat_map(|row| GROUPS.iter().zip(row.cells.chunks(4)).map(move |group| (row, group)));
    let threads = threads.map(|(row, (&quantity, cells))| {
        let cell = |at: usize| cells.get(at).copied().flatten();
        let cycles = match (cell(3), quantity) {
            (None, _) => Some(0),
            (Some(_), Quantity::Irq) => Some(row.count),
            // Without a counted interrupt, events were lost, and the number of wake-ups is unknown.
            (Some(_), _) => Some(row.count).filter(|&count| count > 0),
        };
        ImportedThread {
            cpu: Some(row.cpu),
            measures: quantity.into(),
            summary_only: true,
            cycles,
            min: cell(1).map(i128::from),
            mean_ns: cell(2).and_then(|avg| i64::try_from(avg).ok()?.checked_mul(unit.0)).map(Nanos),
            max: cell(3).map(i128::from),
            interval,
            ..ImportedThread::default()
        }
    });
    fill(&mut run, threads.collect(), unit)?;
    rtla_shared::describe(&mut run, source, finding.lines.end, table.elapsed, table.loss.as_deref());
    Ok(Imported { run, remarks, ..Imported::default() })
}

/// Refuses rows that contradict themselves or the row of all CPUs.
fn check_timerlat(table: &TopTable) -> Result<(), ImportError> {
    for row in &table.rows {
        let ordered = row.cells.chunks(4).all(|cells| match cells {
            // An early wake-up, printed as a number near 2^64, spoils the average.
            [_, _, _, Some(max)] if i64::try_from(*max).is_err() => true,
            [Some(_), Some(min), Some(avg), Some(max)] => min <= avg && avg <= max,
            _ => true,
        });
        let counted = row.count > 0 || row.cells.first() == Some(&None);
        if !ordered || !counted {
            return refuse(format!(
                "line {}: the row contradicts itself: give the output as it was",
                row.line
            ));
        }
    }
    let Some((all, digits)) = &table.all else { return Ok(()) };
    let contradicts = |what: &str| {
        refuse(format!("line {}: {what} of ALL is not that of the CPUs: give the output as it was", all.line))
    };
    let total = table.rows.iter().map(|row| u128::from(row.count)).sum::<u128>();
    if 10u128.checked_pow(*digits).map(|scale| total / scale) != Some(all.count.into()) {
        return contradicts("the count");
    }
    for (group, cells) in all.cells.chunks(3).enumerate() {
        let values =
            |at: usize| table.rows.iter().filter_map(move |row| row.cells.get(4 * group + at).copied()?);
        if values(3).any(|max| i64::try_from(max).is_err()) {
            continue;
        }
        let is_empty = table.rows.iter().any(|row| row.cells.get(4 * group + 3) == Some(&None));
        let [min, avg, max] = cells else { continue };
        // The minimum of a CPU without a sample is undefined, and may be that of ALL.
        if *min != values(1).min() && !is_empty {
            return contradicts("the minimum");
        }
        if *max != values(3).max() {
            return contradicts("the maximum");
        }
        let within = |avg: u64| values(2).min() <= Some(avg) && Some(avg) <= values(2).max();
        if !avg.is_none_or(within) {
            return contradicts("the average");
        }
    }
    Ok(())
}

/// Reads `rtla osnoise top` and `rtla hwnoise`.
pub(super) fn read_osnoise(
    source: &SourceText,
    finding: &ResultSpan,
    _options: &ImportOptions,
) -> Result<Imported, ImportError> {
    let update = last_update(source, finding, TopKind::Osnoise).and_then(|update| {
        check_osnoise(&update.0)?;
        Ok(update)
    });
    let (table, remarks) = update.map_err(|error| rtla_shared::of_tool("rtla osnoise top", error))?;
    let is_hardware = table.width < 10;
    let command = rtla_command::before(source, finding.lines.start, RtlaTable::Osnoise, "top");
    let mut run = empty_run(if is_hardware { "rtla hwnoise" } else { "rtla osnoise top" });
    if let Some(command) = &command {
        command.fill(&mut run.plan);
    }
    let threads = table.rows.iter().map(|row| ImportedThread {
        cpu: Some(row.cpu),
        measures: Quantity::Gap.into(),
        summary_only: true,
        max: row.cells[MAX_SINGLE].map(i128::from),
        ..ImportedThread::default()
    });
    fill(&mut run, threads.collect(), table.unit.unwrap_or(Nanos::MICRO))?;
    fill_shares(&mut run, &table);
    rtla_shared::describe(&mut run, source, finding.lines.end, table.elapsed, table.loss.as_deref());
    let sources = SOURCES.iter().filter(|source| source.0 < table.width).map(|(at, name)| {
        let sum = table.rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.cells[*at].unwrap_or(0)));
        format!("{sum} {name}")
    });
    run.plan.notes.push(format!("noise by its source: {}", sources.collect::<Vec<_>>().join(", ")));
    Ok(Imported { run, remarks, ..Imported::default() })
}

/// Fills the share of the time that was noise.
fn fill_shares(run: &mut Run, table: &TopTable) {
    for cpu in &mut run.cpus {
        let row = table.rows.iter().find(|row| Some(row.cpu) == cpu.cpu);
        if let Some((Some(runtime), Some(noise))) = row.map(|row| (row.cells[RUNTIME], row.cells[NOISE])) {
            cpu.lost_ppm = Some((noise as f64 / runtime as f64 * 1e9).round() / 1e3).filter(|_| runtime > 0);
        }
    }
}

/// Refuses rows whose numbers contradict each other.
fn check_osnoise(table: &TopTable) -> Result<(), ImportError> {
    for row in &table.rows {
        let cell = |at: usize| u128::from(row.cells[at].unwrap_or(0));
        let (runtime, noise) = (cell(RUNTIME), cell(NOISE));
        let rest = runtime.checked_sub(noise).filter(|_| runtime > 0);
        let available = rest.map(|rest| rest * 10_000_000 / runtime);
        let ordered = cell(MAX_SINGLE) <= cell(MAX_NOISE) && cell(MAX_NOISE) <= noise;
        if available != Some(cell(AVAILABLE)) || !ordered {
            return refuse(format!(
                "line {}: the row contradicts itself: give the output as it was",
                row.line
            ));
        }
    }
    Ok(())
}
