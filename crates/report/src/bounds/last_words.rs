//! Answer of `onbeat bounds` as the last lines on the terminal: the verdict or the number, its
//! basis, its limits, the next commands.

use super::sentences::{mark, not_covered, verdict};
use super::shortest_period;
use crate::last_lines::{LastLines, RunPlace};
use crate::palette::{BOLD, GREEN, Palette, RED, Style};
use crate::words::{duration, needed, percent, rounded_up, several, span, uncapitalised};
use model::run::Run;
use model::units::Nanos;
use stats::bounds::{Bounds, BoundsVerdict, ExtrapolationStatus, Gate, VerdictBasis};

/// Layout of the answer: columns, ANSI colours, and the list of the gates.
#[derive(Clone, Copy, Debug)]
pub struct BoundsStyle {
    pub width: usize,
    pub color: bool,
    pub verbose: bool,
}

/// Answer as text.
pub fn render(bounds: &Bounds, run: Option<&Run>, place: RunPlace, style: BoundsStyle) -> String {
    let mut answer = LastLines::default();
    let (words, look) = headline(bounds);
    answer.styled("answer", words, look).row("basis", basis(bounds, run));
    if let Some(sentence) = not_covered(bounds) {
        answer.row("beyond", sentence.trim_start_matches("Not covered: "));
    }
    answer.row("next", next(bounds, place));
    answer.render(style.width, Palette(style.color))
}

/// Verdict on the limit; without a limit the observed maximum and the expected one.
fn headline(bounds: &Bounds) -> (String, Style) {
    let style = match bounds.verdict {
        BoundsVerdict::Supported => GREEN,
        BoundsVerdict::Failed => RED,
        _ => BOLD,
    };
    if let Some(shortest) = &bounds.shortest_period {
        return (shortest_period::answer(bounds, shortest), style);
    }
    if let Some(claim) = &bounds.claim {
        return (verdict(bounds, claim), style);
    }
    let counting = &bounds.counting;
    let Some(max) = counting.observed_max_ns else { return ("Nothing was measured.".into(), BOLD) };
    let observed = match counting.observed_ns {
        Nanos(0) => String::new(),
        length => format!(" in {}", duration(length)),
    };
    let mut words = format!("{} at worst{observed}", span(max));
    // A spoiled run, or one without the samples after late wake-ups, predicts nothing for the next
    // hour.
    if let Some(gate) = spoiled(bounds) {
        let why = gate.refusal.split(':').next().unwrap_or_default();
        return (format!("{words}; no prediction for the next hours: {}.", uncapitalised(why)), BOLD);
    }
    if counting.ended_by_limit {
        return (
            words + "; no prediction for the next hours, because the run was ended by its largest latency.",
            BOLD,
        );
    }
    let condition = match bounds.exchangeable.condition.as_str() {
        "" => String::new(),
        condition => format!(", {condition}"),
    };
    if let Some(hour) = counting.new_record_probability_1h {
        words += &format!("; chance of a larger one within an hour: {}{condition}", percent(hour));
    }
    (words + "." + &extrapolated(bounds), BOLD)
}

fn extrapolated(bounds: &Bounds) -> String {
    let beyond = &bounds.extrapolation;
    let bound = beyond.upper_nonneg_shape_ns.zip(beyond.horizon_ns);
    let Some((upper, horizon)) = bound.filter(|_| beyond.status == ExtrapolationStatus::Ok) else {
        return String::new();
    };
    format!(
        " Extrapolated: {} is exceeded within {} with at most 5 % (95 % confidence).",
        span(rounded_up(upper)),
        duration(horizon)
    )
}

/// Result of the gates in a sentence; for a period also the conditions of the measurement.
fn basis(bounds: &Bounds, run: Option<&Run>) -> String {
    let of = |wanted: &str| {
        let found = bounds.gates.iter().filter(|gate| mark(gate) == wanted).map(|gate| gate.id);
        found.collect::<Vec<_>>().join(", ")
    };
    let (refused, open) = (of("REFUSED"), of("-"));
    let many = several(bounds.counting.blocks, "block", "blocks");
    let mut blocks = format!("{many} of {}", duration(bounds.counting.block_ns));
    if let Some(run) = run.filter(|_| bounds.shortest_period.is_some()) {
        blocks += &format!(", {}", shortest_period::measured(run));
    }
    match (refused.as_str(), open.as_str()) {
        ("", "") => {
            let judging = bounds.gates.iter().filter(|gate| mark(gate) == "passed").count();
            format!("{blocks}; all {judging} checks passed (-v lists them)")
        }
        ("", open) => format!("{blocks}; too few for {open} (details: -v)"),
        (refused, _) => {
            let many = refused.split(", ").count() as u64;
            let checks = several(many, "check failed", "checks failed");
            format!("{blocks}; no extrapolation: {checks} ({refused}; reasons: -v)")
        }
    }
}

/// Gate that every result of a run depends on, if the run did not pass it.
fn spoiled(bounds: &Bounds) -> Option<&Gate> {
    bounds.gates.iter().find(|gate| gate.id == "G11" && !gate.passed)
}

fn next(bounds: &Bounds, place: RunPlace) -> String {
    let counting = &bounds.counting;
    let again = spoiled(bounds).map(|gate| uncapitalised(gate.remedy.trim_end_matches('.')));
    let integrity = bounds.basis == VerdictBasis::Integrity;
    if counting.observed_ns.0 <= 0 && again.is_none() {
        return "measure with onbeat: the duration of this result is not known".into();
    }
    let Some(claim) = bounds.claim.as_ref().filter(|_| again.is_none() || integrity) else {
        if let Some(again) = again {
            return again;
        }
        let command = place.command("bounds", "--limit 100us");
        return format!("{command} (your limit), with --horizon 8h (time covered)");
    };
    match (bounds.verdict, bounds.basis) {
        (BoundsVerdict::Supported, _) => "repeat it with other loads, temperatures and boots".into(),
        (BoundsVerdict::Failed, _) => "onbeat hunt -D 60s (culprits); onbeat audit (settings)".into(),
        (_, VerdictBasis::Integrity) => {
            again.unwrap_or_else(|| "remove the cause of the invalid run, and measure again".into())
        }
        (_, VerdictBasis::Steadiness) => {
            "find what changed during the run, and measure again when it is steady".into()
        }
        _ if claim.exceedances_at_most == 0 => format!(
            "measure for {} without reaching it; a shorter --horizon claims less",
            needed(counting.clean_seconds_needed.unwrap_or(claim.seconds_needed))
        ),
        _ => "onbeat hunt -D 60s (culprits); a shorter --horizon claims less".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::fixture::answer;
    use crate::fixture;
    use crate::last_lines::MOST_LINES;
    use stats::bounds::{Computing, Question};

    const PLACE: RunPlace = RunPlace { path: "run", newest: false, fresh: false, program: "onbeat" };
    const STYLE: BoundsStyle = BoundsStyle { width: 80, color: false, verbose: false };

    #[test]
    fn the_shortest_period_fits_the_last_lines_with_its_parts_and_conditions() {
        for horizon in [60, 300, 86_400] {
            for sample in [fixture::quiet(), fixture::noisy(), fixture::one()] {
                let horizon = Nanos(horizon * Nanos::SECOND.0);
                let computing = Some(Computing::default());
                let question = Question { computing, horizon, chosen: true, ..Question::default() };
                let bounds = answer(&sample.run, &sample.series, &question).expect("blocks");
                let text = render(&bounds, Some(&sample.run), PLACE, STYLE);
                assert!(text.lines().count() - 1 <= MOST_LINES, "{text}");
                assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
                let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let supported = bounds.verdict == BoundsVerdict::Supported;
                assert_eq!(flat.contains("answer Shortest (base) period: "), supported, "{text}");
                assert_eq!(flat.contains("; a servo period of 1 ms "), supported, "{text}");
                assert_eq!(flat.contains("answer No period is supported: "), !supported, "{text}");
                assert!(flat.contains("priority") && flat.contains("once in"), "{text}");
            }
        }
    }

    #[test]
    fn of_a_result_of_unknown_length_no_horizon_is_a_remedy() {
        let mut sample = fixture::quiet();
        sample.series.observed = Nanos(0);
        for limit in [None, Some(Nanos(1_000_000)), Some(Nanos(10))] {
            sample.ask(limit);
            let bounds = sample.bounds.as_ref().expect("asked");
            let lines = crate::bounds::sentences::counting(bounds).join(" ");
            assert!(lines.contains("The duration is not known"), "{lines}");
            let next = next(bounds, PLACE);
            assert!(next.starts_with("measure with onbeat") && !next.contains("--horizon"), "{next}");
        }
    }

    #[test]
    fn the_answer_fits_the_last_lines_with_its_conditions() {
        for limit in [None, Some(Nanos(1_000_000)), Some(Nanos(10))] {
            for mut sample in [fixture::quiet(), fixture::noisy(), fixture::one()] {
                sample.ask(limit);
                let bounds = sample.bounds.as_ref().expect("asked");
                let text = render(bounds, None, PLACE, STYLE);
                assert!(text.lines().count() - 1 <= MOST_LINES, "{text}");
                assert!(text.contains("basis ") && text.contains("next"), "{text}");
                assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
                assert!(limit.is_some() || text.contains("onbeat bounds run --limit"), "{text}");
            }
        }
    }
}
