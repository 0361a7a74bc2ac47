//! Outlook of a run by counting, and the length of a test that a claim would need: two sentences,
//! which hold if the machine and its load stay the same.

use super::probes::{longer, sample};
use crate::words::{duration, needed, percent, seconds, several, span};
use model::run::Run;
use model::units::Nanos;
use model::vocabulary::Ended;
use stats::bounds::CONFIDENCE;
use stats::count::{rate, record};

const HOUR: f64 = 3.6e12;
const DAY: Nanos = Nanos(86_400_000_000_000);

/// Both sentences; none for a run without a length or without wake-ups.
pub fn outlook(run: &Run) -> Vec<String> {
    expected(run).into_iter().chain(claim(run)).collect()
}

/// Length of the run; none if it has none, or no known latency.
fn observed(run: &Run) -> Option<Nanos> {
    run.elapsed_ns.filter(|length| length.0 > 0 && run.cpus.iter().any(|cpu| cpu.max_ns.is_some()))
}

fn says_nothing(run: &Run) -> bool {
    run.ended == Ended::Limit || run.integrity.iter().any(|entry| entry.invalidates)
}

/// Sentence on the chance of a latency larger than the worst.
pub fn expected(run: &Run) -> Option<String> {
    let length = observed(run)?;
    if says_nothing(run) {
        let why =
            if run.ended == Ended::Limit { "it ended at its own largest latency" } else { "it is invalid" };
        return Some(format!("This run predicts nothing for the next hours: {why}."));
    }
    let chance = |ahead: f64| record::new_record(length.0 as f64, ahead);
    let (hour, day) = (chance(HOUR), chance(DAY.0 as f64));
    let (worse, length) = (longer(run), duration(length));
    Some(match hour {
        0.9.. => {
            format!("{length} is too short: expect a {worse} within an hour ({}, if steady).", percent(hour))
        }
        _ => format!(
            "Chance of a {worse}: {} within an hour, {} within a day, if steady.",
            percent(hour),
            percent(day)
        ),
    })
}

/// Sentence on the claim that the run supports, or on the time that a claim needs.
pub fn claim(run: &Run) -> Option<String> {
    let length = observed(run).filter(|_| !says_nothing(run))?;
    let clean = needed(rate::time_needed(0, DAY.as_secs(), CONFIDENCE));
    let carries = seconds(rate::time_between(0, length.as_secs(), CONFIDENCE));
    let Some(limit) = run.plan.limit_ns else {
        return Some(format!("At most one a day on average (95 %) needs {clean} below your limit."));
    };
    let rows = run.cpus.iter().flat_map(|cpu| &cpu.histogram);
    let reached = rows.filter(|row| row.lower >= limit).fold(0u64, |sum, row| sum.saturating_add(row.count));
    // The row that contains the limit is judged by its largest wake-up.
    let reached = reached.max(u64::from(run.cpus.iter().any(|cpu| cpu.max_ns >= Some(limit))));
    let limit = span(limit);
    Some(match reached {
        0 => format!(
            "{limit} was never reached: at most one in {carries} on average (95 %). To claim at most one a \
             day, run {clean} without any."
        ),
        n => format!(
            "{limit} was reached by at least {}. To claim at most one a day on average (95 %), change \
             something first, then run {clean} without any.",
            several(n, sample(run).0, sample(run).1)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_sentences_state_what_counting_supports() {
        let mut run = fixture::quiet().run.clone();
        run.elapsed_ns = Some(Nanos(3_600_000_000_000));
        run.plan.limit_ns = None;
        let lines = outlook(&run);
        assert!(
            lines[0].contains("Chance of a larger one: 50 % within an hour, 96 % within a day"),
            "{lines:?}"
        );
        assert!(
            lines[1].contains("At most one a day on average (95 %) needs 3 d below your limit"),
            "{lines:?}"
        );
        run.elapsed_ns = Some(Nanos(100_000_000_000));
        assert!(
            outlook(&run)[0].contains("is too short: expect a larger one within an hour (97 %, if steady)"),
            "{run:?}"
        );
        run.plan.limit_ns = Some(Nanos(1));
        assert!(outlook(&run)[1].contains("reached by at least"), "{:?}", outlook(&run));
        run.plan.limit_ns = Some(Nanos(i64::MAX));
        assert!(outlook(&run)[1].contains("never reached"));
        run.ended = "limit".into();
        assert!(outlook(&run)[0].contains("predicts nothing for the next hours") && outlook(&run).len() == 1);
    }

    #[test]
    fn a_run_of_nothing_expects_nothing() {
        assert_eq!(outlook(&Run::default()), Vec::<String>::new());
    }
}
