//! Lines and remarks that rtla's tables have in common.

use super::error::ImportError;
use super::source::SourceText;
use model::run::{Integrity, Run};
use model::units::Nanos;
use model::vocabulary::{Ended, IntegrityKind};

/// Maximum number of lines after a table in which the reason for its end is searched.
const STOP_REACH: usize = 3;

/// Maximum number of lines between two lines of a table.
pub(super) const TABLE_GAP: usize = 200;

/// Time of `0 00:00:06`: days, hours, minutes, seconds.
pub(super) fn elapsed(text: &str) -> Option<Nanos> {
    let mut words = text.split_ascii_whitespace();
    let days: i64 = words.next()?.parse().ok()?;
    let mut clock =
        words.next()?.split(':').map(|part| part.parse::<i64>().ok().filter(|n| (0..60).contains(n)));
    let (hours, minutes, seconds) = (clock.next()??, clock.next()??, clock.next()??);
    let total = days.checked_mul(24)?.checked_add(hours)?.checked_mul(60)?.checked_add(minutes)?;
    total
        .checked_mul(60)?
        .checked_add(seconds)?
        .checked_mul(Nanos::SECOND.0)
        .map(Nanos)
        .filter(|&n| n > Nanos(0))
}

/// Refuses the text for this reason.
pub(super) fn refuse<T>(reason: String) -> Result<T, ImportError> {
    Err(ImportError(reason))
}

/// Error of a block that its format recognised.
pub(super) fn of_tool(tool: &str, error: ImportError) -> ImportError {
    ImportError(format!("this is {tool}: {error}"))
}

/// True for a line on events that were lost before rtla counted them.
pub(super) fn is_loss(text: &str) -> bool {
    text.ends_with("events missed, results might not be accurate")
}

/// True for a line on a threshold that ended the run.
pub(super) fn is_stop(text: &str) -> bool {
    text.trim().ends_with("hit stop tracing")
}

/// Adds the facts around a table: its duration, the lost events, the reason for the end.
pub(super) fn describe(
    run: &mut Run,
    source: &SourceText,
    end: usize,
    elapsed: Option<Nanos>,
    loss: Option<&str>,
) {
    run.plan.duration_ns = run.plan.duration_ns.or(elapsed);
    run.elapsed_ns = elapsed;
    if source.lines().skip(end).take(STOP_REACH).any(|line| is_stop(line.text)) {
        run.ended = Ended::Limit.into();
    }
    if let Some(loss) = loss {
        let number = loss.split_ascii_whitespace().next().and_then(|word| word.parse::<u64>().ok());
        let events = number.map_or("an unknown number of events".to_owned(), |n| format!("{n} events"));
        run.integrity.push(Integrity {
            kind: IntegrityKind::Lost.into(),
            cpu: None,
            detail: format!("rtla missed {events}: latencies are missing, maybe the largest"),
            invalidates: true,
        });
    }
}
