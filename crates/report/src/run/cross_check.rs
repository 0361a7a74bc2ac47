//! Lines of a cross-check: where onbeat's threads and the kernel's timerlat disagree.

use crate::words::span;
use model::run::{CheckedSide, CrossCheck, Run};
use model::units::Nanos;
use model::vocabulary::Agreement;

/// A line per CPU, then the meaning of each kind of difference once.
pub fn lines(run: &Run) -> Vec<String> {
    let mut lines: Vec<String> = run.cross_check.iter().map(line).collect();
    let is_met = |kind: &&Agreement| run.cross_check.iter().any(|one| one.agreement == **kind);
    lines.extend(Agreement::ALL.iter().filter(is_met).map(|&kind| meaning(kind).to_owned()));
    lines
}

fn line(one: &CrossCheck) -> String {
    let CrossCheck { cpu, own, timerlat, timerlat_irq, agreement } = one;
    let by = match (own.p99_ns, timerlat.p99_ns, agreement.known()) {
        (Some(a), Some(b), Some(Agreement::LoopLater | Agreement::TimerlatLater)) => {
            format!("they disagree by {} at the 99 % quantile", span(Nanos((a.0 - b.0).abs())))
        }
        (_, _, Some(Agreement::Agree)) => "they agree".to_owned(),
        _ => "too few samples for a verdict".to_owned(),
    };
    format!(
        "cross-check of CPU {cpu}: {by}; onbeat {}; timerlat's thread {}, its interrupt {}",
        side(own),
        side(timerlat),
        side(timerlat_irq)
    )
}

fn side(of: &CheckedSide) -> String {
    let value = |ns: Option<Nanos>| ns.map_or_else(|| "-".to_owned(), span);
    let missed = of.missed.filter(|&n| n > 0).map(|n| format!(" and {n} missed")).unwrap_or_default();
    format!(
        "{}{missed}, median {}, 99 % {}, max {}",
        of.count,
        value(of.p50_ns),
        value(of.p99_ns),
        value(of.max_ns)
    )
}

fn meaning(kind: Agreement) -> &'static str {
    match kind {
        Agreement::Agree => {
            "cross-check: the 99 % quantiles differ by a quarter or 5 us at most; the maxima are of \
             different moments, and may differ"
        }
        Agreement::LoopLater => {
            "cross-check: onbeat's thread is later. It returns to user mode and enters the kernel to \
             sleep, and threads with a priority between its own and timerlat's 95 delay it alone, timerlat \
             among them"
        }
        Agreement::TimerlatLater => {
            "cross-check: timerlat's thread is later. Its timers are due at other times, so that it meets \
             other disturbances, and it writes its records before it sleeps; if its interrupt is as late, \
             the cause is before the wake-up: interrupts off, a hypervisor, or the timer"
        }
        Agreement::Unknown => "cross-check: a verdict takes 1,000 samples of each side",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Cpu;

    #[test]
    fn both_sides_have_their_numbers_and_a_difference_has_a_meaning() {
        let of = |us: i64| CheckedSide {
            count: 5_000,
            missed: Some(us as u64 / 100),
            p50_ns: Some(Nanos(4_000)),
            p99_ns: Some(Nanos(us * 1_000)),
            max_ns: Some(Nanos(us * 2_000)),
            ..CheckedSide::default()
        };
        let one = |agreement: Agreement, a, b| CrossCheck {
            cpu: Cpu(1),
            own: of(a),
            timerlat: of(b),
            timerlat_irq: of(2),
            agreement: agreement.into(),
        };
        let cross_check = vec![one(Agreement::LoopLater, 120, 20), one(Agreement::Agree, 20, 20)];
        let lines = lines(&Run { cross_check, ..Run::default() });
        assert_eq!(
            lines[0],
            "cross-check of CPU 1: they disagree by 100 us at the 99 % quantile; onbeat 5000 and 1 missed, \
             median 4 us, 99 % 120 us, max 240 us; timerlat's thread 5000, median 4 us, 99 % 20 us, max 40 \
             us, its interrupt 5000, median 4 us, 99 % 2 us, max 4 us"
        );
        assert!(lines[1].contains("they agree") && lines.len() == 4, "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("returns to user mode")), "{lines:?}");
        assert!(super::lines(&Run::default()).is_empty());
    }
}
