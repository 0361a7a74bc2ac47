//! Gaps of one core that oslat printed, and the run made from them.

use super::error::ImportError;
use super::imported::{ImportedThread, RowEdges, TOO_LARGE, fill};
use model::run::Run;
use model::units::{Cpu, Nanos};
use model::vocabulary::{Policy, Quantity};

/// Result of one CPU in nanoseconds.
#[derive(Default)]
pub(super) struct OslatCore {
    pub cpu: Option<Cpu>,
    /// Rows that are not empty: label and count.
    pub rows: Vec<(u64, u64)>,
    pub min: u64,
    pub max: u64,
    pub mean: Option<Nanos>,
    pub duration: Option<Nanos>,
}

impl OslatCore {
    /// Contradiction of more gaps than the measurement had nanoseconds. Labels do not measure them:
    /// a row begins up to two of its widths below its label.
    fn duration_fault(&self) -> Option<String> {
        let duration = self.duration?;
        let gaps: u128 = self.rows.iter().map(|row| u128::from(row.1)).sum();
        let is_wrong = duration == TOO_LARGE || gaps > u128::from(duration.0.unsigned_abs());
        is_wrong.then(|| format!("its rows hold {gaps} gaps, which do not fit its duration, {duration}"))
    }
}

/// Adds the CPUs to the run; the width is that of a row in nanoseconds.
///
/// The last row counts as beyond the histogram if the largest gap is not in it.
pub(super) fn fill_cores(run: &mut Run, cores: Vec<OslatCore>, width: u64) -> Result<(), ImportError> {
    let first = |core: &OslatCore| core.rows.first().map(|row| row.0);
    // Labels are values up to 2.4, and upper edges of values since.
    let below = if cores.iter().any(|core| first(core) == Some(core.min)) { 0 } else { width };
    run.elapsed_ns = cores.iter().filter_map(|core| core.duration).max();
    let (mut threads, mut contradiction) = (Vec::with_capacity(cores.len()), None);
    for (index, core) in cores.into_iter().enumerate() {
        let name = core.cpu.map_or_else(|| format!("thread {index}"), |cpu| format!("core {cpu}"));
        let mut buckets: Vec<(u64, u64)> =
            core.rows.iter().map(|&(label, count)| (label.saturating_sub(below), count)).collect();
        let beyond = match buckets.last() {
            Some(&(lower, count)) if core.max >= lower.saturating_add(width) => Some((lower, count)),
            Some(_) => None,
            None if core.rows.is_empty() && core.max == 0 => None,
            None => return Err(ImportError(format!("{name}: no row holds a gap: give the whole output"))),
        };
        if beyond.is_some() {
            buckets.pop();
        }
        if let Some(fault) = core.duration_fault() {
            return Err(ImportError(format!("{name}: {fault}: give the output as it was")));
        }
        threads.push(ImportedThread {
            cpu: core.cpu,
            measures: Quantity::Gap.into(),
            buckets,
            width,
            overflows: beyond.map_or(0, |beyond| beyond.1),
            end: beyond.map(|beyond| beyond.0),
            min: Some(core.min.into()),
            max: Some(core.max.into()),
            mean_ns: core.mean,
            ..ImportedThread::default()
        });
        let fault = threads.last().and_then(|thread| thread.mean_fault(Nanos(1), RowEdges::Exact));
        contradiction = contradiction.or_else(|| Some(ImportError(format!("{name}: {}", fault?))));
    }
    // Contradictions within a row are reported before those between rows.
    fill(run, threads, Nanos(1))?;
    contradiction.map_or(Ok(()), Err)
}

/// Parses microseconds with up to three decimals into nanoseconds.
pub(super) fn micros(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) || fraction.len() > 3 {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<3}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(fraction)
}

/// Fills the policy: oslat runs at SCHED_OTHER unless it is given a priority.
pub(super) fn fill_priority(run: &mut Run, priority: Option<u32>) {
    let policy = if priority.is_some() { Policy::Fifo } else { Policy::Other };
    (run.plan.policy, run.plan.priority) = (policy.into(), Some(priority.unwrap_or(0)));
}
