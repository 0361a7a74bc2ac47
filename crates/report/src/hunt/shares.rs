//! Sum of the latency of all spikes: the culprits, the parts too small to be listed, and the time
//! without a culprit.

use super::parts::{share, total, unexplained};
use super::sentences::percent;
use crate::words::span;
use model::run::{Culprit, Run};
use model::slice::SliceKind;
use model::units::Nanos;

/// Sentence with parts that sum to the whole; empty if nothing was late.
pub fn sentence(run: &Run) -> String {
    let whole = total(run);
    if whole.0 <= 0 {
        return String::new();
    }
    let sum = |of: fn(&Culprit) -> bool| {
        run.culprits
            .iter()
            .filter(|culprit| of(culprit))
            .fold(0i64, |sum, one| sum.saturating_add(one.total_ns.0))
    };
    let (named, stopped) = (sum(|_| true), sum(|culprit| culprit.kind == SliceKind::Stopped));
    let estimated = run.culprits.iter().fold(0i64, |sum, one| sum.saturating_add(one.estimated_ns.0));
    let unnamed = unexplained(run).0.max(0);
    let small = whole.0.saturating_sub(named).saturating_sub(unnamed).max(0);
    let part = |ns: i64| format!("{} ({})", span(Nanos(ns)), percent(share(Nanos(ns), whole)));
    let mut words = vec![format!("the culprits caused {}", part(named))];
    if small > 0 {
        words.push(format!("those too small to be listed {}", part(small)));
    }
    if unnamed > 0 {
        words.push(format!("no kernel event accounts for {}", part(unnamed)));
    }
    let (last, first) = words.split_last().expect("the culprits");
    let all = if first.is_empty() { last.clone() } else { format!("{}, and {last}", first.join(", ")) };
    let outside = match (stopped, estimated) {
        (0, _) => String::new(),
        (ns, 0) => format!(" Of the culprits' part, {} was stopped from outside.", span(Nanos(ns))),
        (ns, part) => format!(
            " Of the culprits' part, {} was stopped from outside; of that, {} is estimated, not measured.",
            span(Nanos(ns)),
            span(Nanos(part))
        ),
    };
    format!("Of {} of lateness {all}.{outside}", span(whole))
}

/// Unexplained time with its share, if that is most of the total: the first culprit must not look
/// like the answer then.
pub fn mostly_unexplained(run: &Run) -> Option<(Nanos, f64)> {
    let ns = Nanos(unexplained(run).0.max(0));
    let part = share(ns, total(run));
    (part > 0.5).then_some((ns, part))
}

/// Number of culprits from that place on, with their total share; empty if there are none.
pub fn more(run: &Run, from: usize) -> String {
    let rest = run.culprits.get(from..).unwrap_or_default();
    let share: f64 = rest.iter().map(|culprit| culprit.share).sum();
    match rest.len() {
        0 => String::new(),
        many => format!("and {many} more with {}{}", percent(share), if many > 1 { " together" } else { "" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::Recorder;

    #[test]
    fn the_parts_sum_to_the_whole() {
        let culprit = |kind: &str, us: i64| Culprit {
            kind: kind.into(),
            total_ns: Nanos(us * 1_000),
            share: us as f64 / 1_000.0,
            ..Culprit::default()
        };
        let recorder =
            Recorder { latency_ns: Nanos(1_000_000), unexplained_ns: Nanos(60_000), ..Recorder::default() };
        let culprits = vec![culprit("thread", 720), culprit("stopped", 90), culprit("irq", 110)];
        let mut run = Run { recorder: Some(recorder), culprits, ..Run::default() };
        assert_eq!(
            sentence(&run),
            "Of 1 ms of lateness the culprits caused 920 us (92 %), those too small to be listed 20 us (2 \
             %), and no kernel event accounts for 60 us (6 %). Of the culprits' part, 90 us was stopped from \
             outside."
        );
        run.culprits[1].estimated_ns = Nanos(30_000);
        let words = "90 us was stopped from outside; of that, 30 us is estimated, not measured.";
        assert!(sentence(&run).ends_with(words), "{}", sentence(&run));
        assert_eq!((more(&run, 1).as_str(), more(&run, 3).as_str()), ("and 2 more with 20 % together", ""));
        run.recorder = None;
        assert_eq!(sentence(&run), "");
    }
}
