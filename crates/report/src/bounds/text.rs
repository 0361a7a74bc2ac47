//! Result of `onbeat bounds` as text: counting, then the extrapolation or the reason for its
//! refusal, then the answer in a few lines.

use super::last_words::{self, BoundsStyle};
use super::sentences::{beyond, beyond_heading, counting, headline, mark};
use super::shortest_period;
use crate::last_lines::RunPlace;
use crate::palette::{BOLD, DIM, PLAIN, Palette};
use crate::words::{clean, wrapped};
use model::run::Run;
use stats::bounds::Bounds;

/// Numbers and answer; a list of block maxima has no run.
pub fn text(
    bounds: &Bounds,
    title: &str,
    run: Option<&Run>,
    place: RunPlace,
    remarks: &[String],
    style: BoundsStyle,
) -> String {
    let (palette, width) = (Palette(style.color), style.width);
    let mut page = String::new();
    let mut say = |line: &str| wrapped(&mut page, line, width);
    say(&palette.paint(BOLD, &headline(title, bounds)));
    remarks.iter().for_each(|remark| say(&format!("- {}", clean(remark))));
    say("");
    if bounds.shortest_period.is_some() {
        say(&palette.paint(BOLD, "The shortest period"));
        let lines = shortest_period::conditions(bounds, run);
        lines.iter().for_each(|line| say(&format!("  {line}")));
        say("");
    }
    say(&palette.paint(BOLD, "By counting alone"));
    counting(bounds).iter().for_each(|line| say(&format!("  {line}")));
    say("");
    say(&palette.paint(BOLD, &beyond_heading(&bounds.extrapolation)));
    beyond(bounds).iter().for_each(|line| say(&format!("  {line}")));
    let structure = &bounds.structure.sentences;
    if !structure.is_empty() {
        say("");
        say(&palette.paint(BOLD, "When the spikes came"));
        structure.iter().for_each(|line| say(&format!("  {line}")));
    }
    if style.verbose {
        say("");
        gates(bounds, palette).iter().for_each(|line| say(line));
    }
    page + &last_words::render(bounds, run, place, style)
}

/// Data in a line, and the answer.
pub fn brief(bounds: &Bounds, title: &str, run: Option<&Run>, place: RunPlace, style: BoundsStyle) -> String {
    let mut page = String::new();
    wrapped(&mut page, &Palette(style.color).paint(BOLD, &headline(title, bounds)), style.width);
    page + &last_words::render(bounds, run, place, style)
}

fn gates(bounds: &Bounds, palette: Palette) -> Vec<String> {
    bounds
        .gates
        .iter()
        .map(|gate| {
            let line = format!("{:<4}{:<7} {}: {}", gate.id, mark(gate), gate.name, gate.detail);
            palette.paint(if gate.passed { DIM } else { PLAIN }, &line)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::sentences::{limit_words, not_covered, verdict};
    use super::*;
    use crate::fixture;
    use crate::words::{rounded_up, span};
    use model::units::Nanos;
    use stats::bounds::BoundsVerdict;
    use stats::bounds::Extrapolation;
    use stats::bounds::{BoundsInput, ExtrapolationStatus, Question, VerdictBasis, bounds};
    use stats::rng::Rng;
    use stats::series::{BLOCK, Series};

    fn asked(slope: f64, limit: Option<Nanos>) -> Bounds {
        let mut rng = Rng::new(3);
        let us = |i: i64| 20.0 - 2.0 * rng.exponential().ln() + slope * i as f64;
        let list: Vec<Option<Nanos>> =
            (0..600).map(us).map(|us| Some(Nanos((us * 1_000.0) as i64))).collect();
        let series = Series::of_list(&list, BLOCK, Nanos(1));
        let question =
            Question { limit, horizon: Nanos(150 * Nanos::SECOND.0), chosen: true, ..Question::default() };
        bounds(&BoundsInput::of(&series), &question)
    }

    #[test]
    fn each_number_of_a_climb_carries_that_it_climbs() {
        for limit in [None, Some(Nanos(900_000))] {
            let found = asked(0.02, limit);
            let lines = counting(&found);
            assert!(lines[0].starts_with("The maxima rise by "), "{lines:?}");
            let numbers = lines.iter().skip(1).filter(|line| !line.contains("still climbing"));
            let all: Vec<String> = numbers.cloned().chain(not_covered(&found)).collect();
            assert!(all.len() >= 5, "{all:?}");
            assert!(all.iter().all(|line| line.contains("if the maxima did not rise (G1")), "{all:?}");
            let style = BoundsStyle { width: 10_000, color: false, verbose: true };
            let place = RunPlace { path: "run", newest: true, fresh: false, program: "onbeat" };
            let page = text(&found, "run", None, place, &[], style);
            assert!(!page.contains("bunched") && page.contains("per hour"), "{page}");
            assert_eq!(page.contains("Inconclusive: the maxima rise by "), limit.is_some(), "{page}");
        }
        let steady = counting(&asked(0.0, None));
        assert!(
            steady[0].starts_with("Probability of a latency larger") && !steady.join(" ").contains(" if "),
            "{steady:?}"
        );
    }

    #[test]
    fn a_verdict_states_its_conditions_and_why_counting_does_not_suffice() {
        let found = asked(0.02, Some(Nanos(20_000)));
        let claim = found.claim.as_ref().expect("a limit was asked for");
        let sentence = verdict(&found, claim);
        assert!(
            sentence.starts_with("Failed: ") && sentence.contains("if the maxima did not rise (G1"),
            "{sentence}"
        );
        let mut found = asked(0.0, Some(Nanos(900_000)));
        (found.verdict, found.basis) = (BoundsVerdict::Supported, VerdictBasis::Extrapolation);
        let mut claim = found.claim.expect("a limit was asked for");
        assert!(verdict(&found, &claim).contains("The horizon has too few blocks"));
        claim.seconds_needed = 6_000.0;
        assert!(verdict(&found, &claim).contains("the run is too short for it"));
    }

    #[test]
    fn a_limit_above_the_worst_reads_larger_and_one_block_is_no_blocks() {
        let mut found = asked(0.0, Some(Nanos(1_224_900)));
        found.counting.observed_max_ns = Some(Nanos(1_224_100));
        let claim = found.claim.expect("a limit was asked for");
        assert_eq!(limit_words(&found, &claim), "more than 1.22 ms");
        assert!(counting(&found).iter().any(|line| line.starts_with("More than 1.22 ms was never reached")));
        found.counting.observed_max_ns = Some(Nanos(900_000));
        assert_eq!(limit_words(&found, &claim), "1.22 ms");
        found.counting.blocks = 1;
        let style = BoundsStyle { width: 200, color: false, verbose: false };
        let place = RunPlace { path: "run", newest: true, fresh: false, program: "onbeat" };
        let page = text(&found, "run", None, place, &[], style);
        assert!(page.contains("basis   1 block of 1.0 s"), "{page}");
    }

    #[test]
    fn a_shown_bound_is_never_below_the_bound() {
        for (ns, text) in [
            (26_340.2, "26.4 us"),
            (26_300.0, "26.3 us"),
            (108_000.1, "109 us"),
            (9_996.0, "10 us"),
            (999_999.5, "1 ms"),
            (12.1, "13 ns"),
            (-5.0, "-5 ns"),
        ] {
            assert_eq!(span(rounded_up(ns)), text);
        }
        assert!(rounded_up(f64::INFINITY).0 > 8_999_999_999_999_999_999);
    }

    #[test]
    fn a_wide_bound_is_marked_as_wide() {
        let mut sample = fixture::quiet();
        sample.ask(None);
        let mut bounds = sample.bounds.unwrap();
        bounds.extrapolation = Extrapolation {
            status: ExtrapolationStatus::Ok,
            upper_ns: Some(260_000.0),
            upper_nonneg_shape_ns: Some(262_100.0),
            times_seen: Some(13.1),
            ..Extrapolation::default()
        };
        let text = beyond(&bounds);
        assert!(
            text[1].contains("exceeding 260 us (263 us without") && text[1].contains("13 times"),
            "{text:?}"
        );
        bounds.extrapolation.times_seen = Some(1.2);
        assert!(!beyond(&bounds)[1].contains("times"));
    }
}
