//! The answer of `onbeat bounds` for people: counting first, then what lies beyond or why not.

use super::ink::{BOLD, DIM, GREEN, Ink, RED};
use super::words::{clean, duration, several, span, wrapped};
use model::units::Nanos;
use stats::bounds::shape::WIDE;
use stats::bounds::words::digits;
use stats::bounds::{Bounds, Claim, Counting, Extrapolation, Gate};

/// The answer as text of at most so many columns, with ANSI colours if asked for.
pub fn text(title: &str, bounds: &Bounds, remarks: &[String], width: usize, color: bool) -> String {
    let ink = Ink(color);
    let mut page = String::new();
    let mut say = |line: &str| wrapped(&mut page, line, width);
    say(&ink.dye(BOLD, &headline(title, bounds)));
    remarks.iter().for_each(|remark| say(&format!("- {}", clean(remark))));
    say("");
    say(&ink.dye(BOLD, "By counting alone"));
    counting(bounds).iter().for_each(|line| say(&format!("  {line}")));
    say("");
    say(&ink.dye(BOLD, &beyond_heading(&bounds.extrapolation)));
    beyond(bounds).iter().for_each(|line| say(&format!("  {line}")));
    let structure = &bounds.structure.sentences;
    if !structure.is_empty() {
        say("");
        say(&ink.dye(BOLD, "When the spikes came"));
        structure.iter().for_each(|line| say(&format!("  {line}")));
    }
    say("");
    gates(bounds, ink).iter().for_each(|line| say(line));
    say("");
    if let Some(sentence) = not_covered(bounds) {
        say(&sentence);
    }
    if let Some(claim) = &bounds.claim {
        let code = match bounds.verdict {
            "supported" => GREEN,
            "failed" => RED,
            _ => BOLD,
        };
        say(&ink.dye(code, &verdict(bounds, claim)));
    }
    page
}

/// The answer alone: what there was to answer with, the verdict or what counting says, and what lies beyond.
pub fn brief(title: &str, bounds: &Bounds, width: usize, color: bool) -> String {
    let ink = Ink(color);
    let mut page = String::new();
    wrapped(&mut page, &ink.dye(BOLD, &headline(title, bounds)), width);
    let lines = match &bounds.claim {
        Some(claim) => vec![verdict(bounds, claim)],
        None => {
            let heads = 1 + assumed(bounds).len();
            counting(bounds).into_iter().take(heads).chain(beyond(bounds).into_iter().take(2)).collect()
        }
    };
    lines.iter().for_each(|line| wrapped(&mut page, line, width));
    page
}

/// What there was to answer with.
pub fn headline(title: &str, bounds: &Bounds) -> String {
    let counting = &bounds.counting;
    let worst = counting
        .observed_max_ns
        .map_or_else(|| unknown_worst(counting).into(), |max| format!("worst {}", span(max)));
    let blocks = match counting.blocks {
        0 => "no block maxima".into(),
        n => format!("{} of {}", several(n, "block", "blocks"), duration(counting.block_ns)),
    };
    let observed = match counting.observed_ns {
        Nanos(0) => "for an unknown time".to_owned(),
        length => duration(length),
    };
    format!("{}: observed {observed}, {blocks}, {worst}", clean(title))
}

/// An import may know how long it was and not how late its wake-ups were.
fn unknown_worst(counting: &Counting) -> &'static str {
    if counting.observed_ns > Nanos(0) { "worst not known" } else { "nothing measured" }
}

/// Probabilities as people say them, never rounded to certainty.
pub fn percent(p: f64) -> String {
    match p * 100.0 {
        x if x > 99.9 && p < 1.0 => "over 99.9 %".into(),
        x if x >= 99.0 => format!("{x:.1} %"),
        x if x >= 10.0 => format!("{x:.0} %"),
        x if x >= 0.1 => format!("{x:.1} %"),
        x if x > 0.0 => "under 0.1 %".into(),
        _ => "0 %".into(),
    }
}

/// A rate as people say it: so many an hour or a day, or one in a longer time.
pub fn per_hour(rate: f64) -> String {
    match rate {
        r if r <= 0.0 => "none".into(),
        r if r >= 100.0 => format!("{r:.0} an hour"),
        r if r >= 1.0 => format!("{r:.1} an hour"),
        r if r >= 1.0 / 24.0 => format!("{:.1} a day", r * 24.0),
        r => format!("one in {}", seconds(3600.0 / r)),
    }
}

/// A length in seconds as people say it.
pub fn seconds(s: f64) -> String {
    duration(Nanos((s * 1e9).min(9e18) as i64))
}

/// What counting takes for granted and the run does not show, in sentences.
fn assumed(bounds: &Bounds) -> Vec<String> {
    let (counting, alike) = (&bounds.counting, &bounds.exchangeable);
    let mut lines = Vec::new();
    if counting.new_record_probability.is_none() {
        return lines;
    }
    match alike.holds {
        "no" => lines.push(format!(
            "{} Counting takes all blocks to be alike, so each number below holds only {}.",
            alike.reason, alike.condition
        )),
        "unknown" => lines.push(format!("{} Counting takes it for granted.", alike.reason)),
        _ => {}
    }
    if alike.block_ns > counting.block_ns && !alike.refused() {
        let (fine, coarse) = (duration(counting.block_ns), duration(alike.block_ns));
        lines.push(format!(
            "Blocks of {fine} resemble their neighbours, blocks of {coarse} do not: an event is here what comes within {coarse}, and the bounds of quantiles are less sure than said."
        ));
    }
    lines
}

/// A sentence with the condition under which alone it holds.
fn under(bounds: &Bounds, sentence: String) -> String {
    match bounds.exchangeable.condition.as_str() {
        "" => sentence,
        condition => format!("{}, {condition}.", sentence.trim_end_matches('.')),
    }
}

/// What counting alone says, in sentences; where its blocks are not alike, each with the condition that it takes.
pub fn counting(bounds: &Bounds) -> Vec<String> {
    let mut lines = assumed(bounds);
    lines.extend(counts(bounds).into_iter().map(|sentence| under(bounds, sentence)));
    let climbing = bounds.counting.records.filter(|records| records.p_value < 0.01);
    lines.extend(climbing.map(|records| {
        format!(
            "The maximum was still climbing: it grew {} where {:.1} are expected ({}).",
            several(records.count, "time", "times"),
            records.expected,
            percent(records.p_value)
        )
    }));
    lines
}

fn counts(bounds: &Bounds) -> Vec<String> {
    let counting = &bounds.counting;
    let mut lines = Vec::new();
    let horizon = duration(counting.horizon_ns);
    if let (Some(hour), Some(far)) = (counting.new_record_probability_1h, counting.new_record_probability) {
        lines.push(format!(
            "A wake-up later than all of these: {} in the next hour, {} in the next {horizon}.",
            percent(hour),
            percent(far)
        ));
    }
    if let (Some(stands), Some(max)) = (counting.record_stands_ns, counting.observed_max_ns) {
        lines.push(format!("{} stands for the next {} (95 %).", span(max), duration(stands)));
    }
    if let Some(claim) = &bounds.claim {
        lines.extend(claim_lines(bounds, claim));
    } else if let (Some(one_per), Some(needed)) = (counting.claims_one_per_s, counting.clean_seconds_needed) {
        lines.push(format!(
            "For a limit that this run did not reach it claims at most one exceedance per {} (95 %); one per {horizon} takes {} without one.",
            seconds(one_per),
            seconds(needed)
        ));
    }
    for quantile in counting.quantiles.iter().filter(|quantile| quantile.q >= 0.9) {
        let Some((lower, upper)) = quantile.lower_ns.zip(quantile.upper_ns) else { continue };
        lines.push(format!(
            "{} % of the blocks stay below a value between {} and {} (95 %).",
            digits(100.0 * quantile.q),
            span(lower),
            span(upper)
        ));
    }
    lines
}

fn claim_lines(bounds: &Bounds, claim: &Claim) -> Vec<String> {
    let counting = &bounds.counting;
    let times = match (claim.exceedances, claim.exceedances_at_most) {
        (0, 0) => "not reached".into(),
        (least, most) if least == most => {
            format!(
                "reached {} (a block, and what is within ten intervals, counts once)",
                several(least, "time", "times")
            )
        }
        (least, most) => format!("reached between {least} and {most} times (more is not recorded)"),
    };
    let rate = counting
        .rate_upper_per_hour
        .map_or_else(String::new, |rate| format!(", so at most {} (95 %)", per_hour(rate)));
    let horizon = duration(counting.horizon_ns);
    let takes = match claim.exceedances_at_most {
        0 => format!("takes {} without one", seconds(claim.seconds_needed)),
        _ => format!(
            "takes {} with no further one, or {} without any",
            seconds(claim.seconds_needed),
            seconds(counting.clean_seconds_needed.unwrap_or_default())
        ),
    };
    vec![
        format!("Limit {}: {times}{rate}.", span(claim.limit_ns)),
        format!(
            "At most one per {horizon} (95 %) {takes}; {} if you watch and stop early.",
            seconds(claim.sequential_clean_seconds)
        ),
    ]
}

/// What lies beyond, as a heading.
pub fn beyond_heading(beyond: &Extrapolation) -> String {
    match (beyond.status, beyond.blocks, beyond.block_ns) {
        ("ok", n, Some(block)) => format!("Extrapolated ({n} maxima of {}, checks passed)", duration(block)),
        _ => "No extrapolation".into(),
    }
}

/// Part of the sentence with the bound, so that none is read without it.
fn wide(times: f64) -> String {
    let times = if times < 10.0 { format!("{times:.1}") } else { format!("{times:.0}") };
    format!(
        " That is {times} times the largest latency seen, because this run hardly determines its tail: measure for longer, or ask for a shorter --horizon."
    )
}

/// A bound at the digits in which it is shown: rounded to the nearest it would be too low every other time.
pub fn rounded_up(ns: f64) -> Nanos {
    let ns = ns.min(9e18).ceil() as i64;
    let mut unit = 1;
    while ns / unit >= 1_000 {
        unit *= 10;
    }
    Nanos(ns.saturating_add(unit - 1) / unit * unit)
}

/// What lies beyond, or why that is not said, in sentences.
pub fn beyond(bounds: &Bounds) -> Vec<String> {
    let beyond = &bounds.extrapolation;
    let us = |ns: Option<f64>| ns.map_or_else(|| "unknown".into(), |ns| span(Nanos(ns.min(9e18) as i64)));
    if beyond.status == "ok" {
        let horizon = beyond.horizon_ns.map_or_else(String::new, duration);
        let bound = |ns: Option<f64>| ns.map_or_else(|| "unknown".into(), |ns| span(rounded_up(ns)));
        let mut lines = vec![
            format!("The worst in {horizon} is typically {}.", us(beyond.typical_ns)),
            format!(
                "With 95 % confidence there is at most a 5 % chance of exceeding {} ({} if the tail is not allowed an upper limit).{}",
                bound(beyond.upper_ns),
                bound(beyond.guarded_upper_ns),
                beyond.times_seen.filter(|times| *times > WIDE).map_or_else(String::new, wide)
            ),
        ];
        let seen = bounds.counting.observed_max_ns;
        if let Some(seen) =
            seen.filter(|seen| beyond.guarded_upper_ns.is_some_and(|upper| upper < seen.0 as f64))
        {
            lines.push(format!(
                "{} was seen already, which is later than that: plan with what was seen.",
                span(seen)
            ));
        }
        return lines;
    }
    let mut lines = vec![beyond.reason.clone()];
    if !beyond.remedy.is_empty() {
        lines.push(beyond.remedy.clone());
    }
    lines
}

/// What a gate said, in a word.
pub fn mark(gate: &Gate) -> &'static str {
    match gate.passed {
        _ if !gate.judged => "-",
        true => "passed",
        false => "REFUSED",
    }
}

fn gates(bounds: &Bounds, ink: Ink) -> Vec<String> {
    bounds
        .gates
        .iter()
        .map(|gate| {
            let line = format!("{:<4}{:<7} {}: {}", gate.id, mark(gate), gate.name, gate.detail);
            ink.dye(if gate.passed { DIM } else { "" }, &line)
        })
        .collect()
}

/// The one limit that no statistic removes.
pub fn not_covered(bounds: &Bounds) -> Option<String> {
    let rate = bounds.counting.hidden_rate_per_hour?;
    let condition = match bounds.exchangeable.condition.as_str() {
        "" => String::new(),
        condition => format!(" ({condition})"),
    };
    Some(format!(
        "Not covered: anything rarer than about {}{condition} that did not happen during this test; other loads, temperatures, boots.",
        per_hour(rate)
    ))
}

/// A sentence as a part of one.
fn uncapitalised(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// Whether the claim is supported.
pub fn verdict(bounds: &Bounds, claim: &Claim) -> String {
    let what = format!(
        "at most one exceedance of {} (a block counts once) per {}",
        span(claim.limit_ns),
        duration(bounds.counting.horizon_ns)
    );
    match (bounds.verdict, bounds.basis) {
        ("supported", "extrapolation") => {
            let why = if claim.long_enough(bounds.counting.observed_ns) {
                "The horizon is of too few blocks to be supported by counting."
            } else {
                "By counting alone the run is too short for it."
            };
            format!("Supported by extrapolation: {what}. {why}")
        }
        ("supported", _) if bounds.exchangeable.holds == "unknown" => {
            format!("Supported by counting: {what}, if the run was steady, which could not be judged.")
        }
        ("supported", _) => format!("Supported by counting: {what}."),
        (_, "steadiness") => {
            let reason = bounds.exchangeable.reason.trim_end_matches('.');
            format!(
                "Inconclusive: {}. Such a run neither supports nor refutes {what}.",
                uncapitalised(reason)
            )
        }
        (_, "integrity") => {
            "Inconclusive: something spoiled the run (gate G11), so that it does not measure what it says."
                .into()
        }
        ("failed", _) => under(bounds, format!("Failed: it is reached more often than that, {what} (95 %).")),
        _ => format!("Inconclusive: the run neither supports nor refutes {what}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use stats::bounds::{Evidence, Question, REACH, bounds};
    use stats::dice::Dice;
    use stats::series::{BLOCK, Series};

    fn asked(slope: f64, limit: Option<Nanos>) -> Bounds {
        let mut dice = Dice::new(3);
        let us = |i: i64| 20.0 - 2.0 * dice.exponential().ln() + slope * i as f64;
        let list: Vec<Option<Nanos>> =
            (0..600).map(us).map(|us| Some(Nanos((us * 1_000.0) as i64))).collect();
        let series = Series::of_list(&list, BLOCK, Nanos(1));
        let question = Question { limit, horizon: Nanos(150 * Nanos::SECOND.0), chosen: true, reach: REACH };
        bounds(&Evidence::of(&series), &question)
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
            let page = text("run", &found, &[], 10_000, false);
            assert!(!page.contains("bunched") && page.contains("per hour"), "{page}");
            assert_eq!(page.contains("Inconclusive: the maxima rise by "), limit.is_some(), "{page}");
        }
        let steady = counting(&asked(0.0, None));
        assert!(steady[0].starts_with("A wake-up later") && !steady.join(" ").contains(" if "), "{steady:?}");
    }

    #[test]
    fn a_verdict_says_what_it_takes_and_why_counting_does_not_do() {
        let found = asked(0.02, Some(Nanos(20_000)));
        let claim = found.claim.as_ref().expect("a limit was asked for");
        let said = verdict(&found, claim);
        assert!(said.starts_with("Failed: ") && said.contains("if the maxima did not rise (G1"), "{said}");
        let mut found = asked(0.0, Some(Nanos(900_000)));
        (found.verdict, found.basis) = ("supported", "extrapolation");
        let mut claim = found.claim.expect("a limit was asked for");
        assert!(verdict(&found, &claim).contains("The horizon is of too few blocks"));
        claim.seconds_needed = 6_000.0;
        assert!(verdict(&found, &claim).contains("the run is too short for it"));
    }

    #[test]
    fn a_shown_bound_is_never_below_the_bound() {
        for (ns, shown) in [
            (26_340.2, "26.4 us"),
            (26_300.0, "26.3 us"),
            (108_000.1, "109 us"),
            (9_996.0, "10 us"),
            (999_999.5, "1 ms"),
            (12.1, "13 ns"),
            (-5.0, "-5 ns"),
        ] {
            assert_eq!(span(rounded_up(ns)), shown);
        }
        assert!(rounded_up(f64::INFINITY).0 > 8_999_999_999_999_999_999);
    }

    #[test]
    fn a_wide_bound_is_said_to_be_wide() {
        let mut sample = fixture::quiet();
        sample.ask(None);
        let mut bounds = sample.bounds.unwrap();
        bounds.extrapolation = Extrapolation {
            status: "ok",
            upper_ns: Some(260_000.0),
            guarded_upper_ns: Some(262_100.0),
            times_seen: Some(13.1),
            ..Extrapolation::default()
        };
        let said = beyond(&bounds);
        assert!(said[1].contains("exceeding 260 us (263 us if") && said[1].contains("13 times"), "{said:?}");
        assert!(brief("t", &bounds, 400, false).contains("13 times"));
        bounds.extrapolation.times_seen = Some(1.2);
        assert!(!beyond(&bounds)[1].contains("times"));
    }
}
