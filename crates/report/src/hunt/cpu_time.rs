//! Time that a culprit took, and lateness that it caused: two numbers if several spikes share the
//! same moments, in words that keep them apart.

use crate::words::span;
use model::run::Culprit;
use model::units::Nanos;

/// Time taken, if it is known and less than the lateness.
fn less(culprit: &Culprit) -> Option<Nanos> {
    let differs = |time: &Nanos| time.0.saturating_mul(100) < culprit.total_ns.0.saturating_mul(99);
    culprit.cpu_time_ns.filter(differs)
}

/// Both numbers, short; one if they are equal.
pub fn numbers(culprit: &Culprit) -> String {
    let late = span(culprit.total_ns);
    less(culprit)
        .map_or_else(|| late.clone(), |time| format!("{late} of lateness from {} of CPU time", span(time)))
}

/// Both in a sentence; empty if there is only the lateness.
pub fn sentence(culprit: &Culprit) -> String {
    let late = span(culprit.total_ns);
    let cpu_time = less(culprit).map(|cpu_time| {
        let time = span(cpu_time);
        format!("{time}, counted once; {late} is the total lateness of the affected spikes")
    });
    let inherited = (culprit.inherited_ns.0 > 0).then(|| {
        let inherited = span(culprit.inherited_ns);
        format!(
            "{inherited} of the lateness is from overruns: cycles that were due while an earlier one was \
             running"
        )
    });
    cpu_time.into_iter().chain(inherited).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_and_time_are_kept_apart_where_they_differ() {
        let hog = Culprit {
            total_ns: Nanos(963_000_000),
            cpu_time_ns: Some(Nanos(120_000_000)),
            inherited_ns: Nanos(843_000_000),
            ..Culprit::default()
        };
        assert_eq!(numbers(&hog), "963 ms of lateness from 120 ms of CPU time");
        assert_eq!(
            sentence(&hog),
            "120 ms, counted once; 963 ms is the total lateness of the affected spikes; 843 ms of the \
             lateness is from overruns: cycles that were due while an earlier one was running"
        );
        let alone = Culprit { cpu_time_ns: Some(hog.total_ns), inherited_ns: Nanos(0), ..hog.clone() };
        assert_eq!((numbers(&alone).as_str(), sentence(&alone).as_str()), ("963 ms", ""));
        let unknown = Culprit { cpu_time_ns: None, ..alone };
        assert_eq!(sentence(&unknown), "");
    }
}
