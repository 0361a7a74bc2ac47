//! The two lines after every run: what to expect by counting alone, and how long a test a claim
//! would need.

use super::probes::{longer, sample};
use crate::words::{percent, seconds, several, span};
use model::run::Run;
use model::units::Nanos;
use model::vocabulary::Ended;
use stats::bounds::CONFIDENCE;
use stats::count::{rate, record};

const HOUR: f64 = 3.6e12;
const DAY: Nanos = Nanos(86_400_000_000_000);

/// The lines; none for a run without a length or without wake-ups.
pub fn outlook(run: &Run) -> Vec<String> {
    let length = run.elapsed_ns.filter(|length| length.0 > 0);
    let max = run.cpus.iter().filter_map(|cpu| cpu.max_ns).max();
    let (Some(length), Some(max)) = (length, max) else { return Vec::new() };
    if run.ended == Ended::Limit || run.integrity.iter().any(|entry| entry.invalidates) {
        let why = if run.ended == Ended::Limit {
            "it ended at its own largest latency"
        } else {
            "something spoiled it"
        };
        return vec![format!("this run says nothing of the next hours: {why}")];
    }
    let observed = length.0 as f64;
    let chance = |ahead: f64| percent(record::new_record(observed, ahead));
    let expect = format!(
        "by counting alone, if the run was steady (onbeat bounds judges that): {} {} comes in the next hour with {}, in the next 24 h with {}",
        longer(run),
        span(max),
        chance(HOUR),
        chance(DAY.0 as f64)
    );
    vec![expect, claim(run, length)]
}

fn claim(run: &Run, length: Nanos) -> String {
    let clean = seconds(rate::time_needed(0, DAY.as_secs(), CONFIDENCE));
    let carries = seconds(rate::time_between(0, length.as_secs(), CONFIDENCE));
    let Some(limit) = run.plan.limit_ns else {
        return format!(
            "a limit that it never reached: this run carries at most once in {carries} (95 %), once in 24 h takes {clean}; onbeat bounds says more"
        );
    };
    let rows = run.cpus.iter().flat_map(|cpu| &cpu.histogram);
    let reached = rows.filter(|row| row.lower >= limit).fold(0u64, |sum, row| sum.saturating_add(row.count));
    // The row that the limit lies in is known by its largest wake-up alone.
    let reached = reached.max(u64::from(run.cpus.iter().any(|cpu| cpu.max_ns >= Some(limit))));
    let limit = span(limit);
    match reached {
        0 => format!(
            "limit {limit}: not reached, which carries at most once in {carries} (95 %); once in 24 h takes {clean} without it"
        ),
        n => format!(
            "limit {limit}: reached by at least {}; to claim at most once in 24 h (95 %) takes {clean} without it",
            several(n, sample(run).0, sample(run).1)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_lines_state_what_counting_supports() {
        let mut run = fixture::quiet().run.clone();
        run.elapsed_ns = Some(Nanos(3_600_000_000_000));
        run.plan.limit_ns = None;
        let lines = outlook(&run);
        assert!(lines[0].contains("next hour with 50 %") && lines[0].contains("24 h with 96 %"), "{lines:?}");
        assert!(lines[1].contains("once in 20 min") && lines[1].contains("2 d 23 h"), "{lines:?}");
        run.plan.limit_ns = Some(Nanos(1));
        assert!(outlook(&run)[1].contains("reached by at least"), "{:?}", outlook(&run));
        run.plan.limit_ns = Some(Nanos(i64::MAX));
        assert!(outlook(&run)[1].contains("not reached"));
        run.ended = "limit".into();
        assert!(outlook(&run)[0].contains("nothing of the next hours") && outlook(&run).len() == 1);
    }

    #[test]
    fn a_run_of_nothing_expects_nothing() {
        assert_eq!(outlook(&Run::default()), Vec::<String>::new());
    }
}
