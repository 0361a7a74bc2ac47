//! Bounds that a run supports, in sentences: counting, then extrapolation or reason of its refusal.

use crate::words::{
    at_most_per_hour, capitalised, clean, duration, needed as needed_time, percent, rounded_up, seconds,
    several, span, uncapitalised,
};
use model::units::Nanos;
use stats::bounds::numbers::digits;
use stats::bounds::shape::WIDE;
use stats::bounds::{
    Bounds, BoundsVerdict, Claim, Counting, Extrapolation, ExtrapolationStatus, Gate, Holds, VerdictBasis,
};

/// Data behind the answer.
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

/// An import may know its length, but not its latencies.
fn unknown_worst(counting: &Counting) -> &'static str {
    if counting.observed_ns > Nanos(0) { "worst not known" } else { "nothing measured" }
}

/// Assumptions of counting that the run does not confirm, in sentences.
pub fn assumed(bounds: &Bounds) -> Vec<String> {
    let (counting, alike) = (&bounds.counting, &bounds.exchangeable);
    let mut lines = Vec::new();
    if counting.observed_max_ns.is_none() || counting.observed_ns <= Nanos(0) {
        return lines;
    }
    match alike.holds {
        Holds::No => lines.push(format!(
            "{} Counting assumes that all blocks are alike, so each number below holds only {}.",
            alike.reason, alike.condition
        )),
        Holds::Unknown => lines.push(format!("{} The numbers below assume it.", alike.reason)),
        _ => {}
    }
    if alike.block_ns > counting.block_ns && !alike.refused() {
        let (fine, coarse) = (duration(counting.block_ns), duration(alike.block_ns));
        lines.push(format!(
            "Blocks of {fine} resemble their neighbours, blocks of {coarse} do not: latencies within {coarse} count as one event, and the bounds of quantiles are less certain than stated."
        ));
    }
    lines
}

/// Sentence with the condition under which it holds.
fn under(bounds: &Bounds, sentence: String) -> String {
    match bounds.exchangeable.condition.as_str() {
        "" => sentence,
        condition => format!("{}, {condition}.", sentence.trim_end_matches('.')),
    }
}

/// Results of counting, in sentences; each with its condition if the blocks are not exchangeable.
pub fn counting(bounds: &Bounds) -> Vec<String> {
    let mut lines = assumed(bounds);
    lines.extend(counts(bounds).into_iter().map(|sentence| under(bounds, sentence)));
    let climbing = bounds.counting.records.filter(|records| records.p_value < 0.01);
    lines.extend(climbing.map(|records| {
        format!(
            "The maximum was still climbing: after the first block it grew {} where {:.1} are expected; for equal blocks the probability of this is {}: measure longer.",
            several(records.count.saturating_sub(1), "time", "times"),
            (records.expected - 1.0).max(0.0),
            percent(records.p_value)
        )
    }));
    lines
}

fn counts(bounds: &Bounds) -> Vec<String> {
    let counting = &bounds.counting;
    let mut lines = Vec::new();
    if counting.observed_ns.0 <= 0 {
        lines.push("The duration is not known: nothing follows from the maximum.".to_owned());
    }
    let horizon = duration(counting.horizon_ns);
    if let (Some(hour), Some(far)) = (counting.new_record_probability_1h, counting.new_record_probability) {
        lines.push(format!(
            "Probability of a latency larger than all of these: {} within an hour, within {horizon} {}.",
            percent(hour),
            percent(far)
        ));
    }
    if counting.ended_by_limit {
        lines.push(
            "No prediction for the next hours, because the run was ended by its largest latency.".into(),
        );
    }
    // Below the length of a block nothing follows from blocks.
    let stands = counting.record_stands_ns.filter(|stands| *stands >= counting.block_ns);
    if let (Some(stands), Some(max)) = (stands, counting.observed_max_ns) {
        lines.push(format!(
            "{} remains the maximum for the next {} with 95 %, for a longer time with less.",
            span(max),
            duration(stands)
        ));
    }
    if let Some(claim) = &bounds.claim {
        lines.extend(claim_lines(bounds, claim));
    } else if let (Some(one_per), Some(needed)) = (counting.claims_one_per_s, counting.clean_seconds_needed) {
        lines.push(format!(
            "A latency that this run never reached occurs on average at most once in {} (95 %). To claim at \
             most once in {horizon}, run {} without reaching it.",
            seconds(one_per),
            needed_time(needed)
        ));
    }
    for quantile in counting.quantiles.iter().filter(|quantile| quantile.q >= 0.9) {
        let Some((lower, upper)) = quantile.lower_ns.zip(quantile.upper_ns) else { continue };
        lines.push(format!(
            "The level below which {} % of the blocks stay is between {} and {} (95 %).",
            digits(100.0 * quantile.q),
            span(lower),
            span(upper)
        ));
    }
    lines
}

/// Limit, in words that set it apart from a smaller maximum that rounds to the same text.
pub fn limit_words(bounds: &Bounds, claim: &Claim) -> String {
    let limit = span(claim.limit_ns);
    let worst = bounds.counting.observed_max_ns.filter(|worst| *worst < claim.limit_ns);
    match worst.map(span) {
        Some(worst) if worst == limit => format!("more than {limit}"),
        _ => limit,
    }
}

fn claim_lines(bounds: &Bounds, claim: &Claim) -> Vec<String> {
    let counting = &bounds.counting;
    let always = claim.in_every_block;
    // Rows without the tool's totals: the latencies beyond them are not known.
    let is_open = counting.observed_max_ns.is_none();
    let times = match (claim.exceedances, claim.exceedances_at_most) {
        _ if always => format!(
            "was reached in every block of {}: counting blocks gives no upper bound on the rate",
            duration(counting.block_ns)
        ),
        (0, 0) if is_open => "was not seen, and the largest latency is not known".into(),
        (0, 0) => "was never reached".into(),
        (least, most) if least == most => {
            format!(
                "was reached in {} (latencies in one block or within ten intervals count once)",
                several(least, "block", "blocks")
            )
        }
        (least, most) => {
            format!("was reached between {least} and {most} times (the exact number is not recorded)")
        }
    };
    let rate =
        counting.rate_upper_per_hour.filter(|_| !always && !is_open).map_or_else(String::new, |rate| {
            format!(": the true rate is at most {} (95 %)", at_most_per_hour(rate))
        });
    let horizon = duration(counting.horizon_ns);
    let anew = || needed_time(counting.clean_seconds_needed.unwrap_or_default());
    let takes = match claim.exceedances_at_most {
        0 => format!("a run of {} without any is needed, from the start", needed_time(claim.seconds_needed)),
        // A machine that is late this often, and then no longer, has changed.
        _ if bounds.verdict == BoundsVerdict::Failed => {
            format!("change something first, then a run of {} without any is needed", anew())
        }
        // A measurement extended because of its result needs more time (Wald), and one repeated
        // until it is clean has a new chance each time.
        _ => format!(
            "{} in total without another one are needed, whenever you look; restarting until a run is clean \
             proves nothing",
            needed_time(claim.sequential_seconds_needed)
        ),
    };
    vec![
        format!("{} {times}{rate}.", capitalised(&limit_words(bounds, claim))),
        format!("To claim at most one in {horizon} on average (95 %), {takes}."),
    ]
}

/// Heading of the extrapolation.
pub fn beyond_heading(beyond: &Extrapolation) -> String {
    match (beyond.status, beyond.blocks, beyond.block_ns) {
        (ExtrapolationStatus::Ok, n, Some(block)) => {
            format!("Extrapolated ({n} maxima of {}, checks passed)", duration(block))
        }
        _ => "No extrapolation".into(),
    }
}

/// Part of the sentence with the bound, so that it is always read with it.
fn wide(times: f64) -> String {
    let times = if times < 10.0 { format!("{times:.1}") } else { format!("{times:.0}") };
    format!(
        " That is {times} times the largest latency seen, because this run hardly determines its tail: measure longer, or use a shorter --horizon."
    )
}

/// Extrapolation, or the reason for its refusal, in sentences.
pub fn beyond(bounds: &Bounds) -> Vec<String> {
    let beyond = &bounds.extrapolation;
    let us = |ns: Option<f64>| ns.map_or_else(|| "unknown".into(), |ns| span(Nanos(ns.min(9e18) as i64)));
    if beyond.status == ExtrapolationStatus::Ok {
        let horizon = beyond.horizon_ns.map_or_else(String::new, duration);
        let bound = |ns: Option<f64>| ns.map_or_else(|| "unknown".into(), |ns| span(rounded_up(ns)));
        let mut lines = vec![
            format!(
                "The estimated maximum in {horizon} is {}, equally likely above or below.",
                us(beyond.typical_ns)
            ),
            format!(
                "The probability of exceeding {} ({} without assuming an upper end of latencies) within \
                 {horizon} is at most 5 %, with 95 % confidence.{}",
                bound(beyond.upper_ns),
                bound(beyond.upper_nonneg_shape_ns),
                beyond.times_seen.filter(|times| *times > WIDE).map_or_else(String::new, wide)
            ),
        ];
        let seen = bounds.counting.observed_max_ns;
        if let Some(seen) =
            seen.filter(|seen| beyond.upper_nonneg_shape_ns.is_some_and(|upper| upper < seen.0 as f64))
        {
            lines.push(format!(
                "{} was already seen, which is above that: plan with the observed value.",
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

/// Result of a gate, in a word.
pub fn mark(gate: &Gate) -> &'static str {
    if !gate.judged {
        "-"
    } else if !gate.passed {
        "REFUSED"
    } else if gate.id == "G10" {
        // The fit of a half is itself uncertain: it is shown and refuses nothing.
        "shown"
    } else {
        "passed"
    }
}

/// Limitation that no statistic removes.
pub fn not_covered(bounds: &Bounds) -> Option<String> {
    let rate = bounds.counting.hidden_rate_per_hour?;
    let condition = match bounds.exchangeable.condition.as_str() {
        "" => String::new(),
        condition => format!(" ({condition})"),
    };
    Some(format!(
        "Not covered: events rarer than about once in {}{condition}, which may not have occurred; other loads, temperatures, boots.",
        seconds(3600.0 / rate)
    ))
}

/// Verdict on the claim, in a sentence.
pub fn verdict(bounds: &Bounds, claim: &Claim) -> String {
    let (limit, horizon) = (limit_words(bounds, claim), duration(bounds.counting.horizon_ns));
    let what = format!("{limit} is reached on average at most once in {horizon} (a block counts once)");
    match (bounds.verdict, bounds.basis) {
        (BoundsVerdict::Supported, VerdictBasis::Extrapolation) => {
            let why = if claim.long_enough(bounds.counting.observed_ns) {
                "The horizon has too few blocks to be supported by counting."
            } else {
                "By counting alone the run is too short for it."
            };
            format!("Supported by extrapolation, with 95 % if the tail continues as observed: {what}. {why}")
        }
        (BoundsVerdict::Supported, _) if bounds.exchangeable.holds == Holds::Unknown => {
            format!(
                "Supported by counting: {what}, with 95 % if the run was steady, which could not be checked."
            )
        }
        (BoundsVerdict::Supported, _) if claim.exceedances_at_most > 0 => {
            format!("Supported by counting: {what}, with 95 % if the run's length was fixed beforehand.")
        }
        (BoundsVerdict::Supported, _) => format!("Supported by counting: {what}, with 95 %."),
        (_, VerdictBasis::Steadiness) => {
            let reason = bounds.exchangeable.reason.trim_end_matches('.');
            format!("Inconclusive: {}. Such a run cannot tell whether {what}.", uncapitalised(reason))
        }
        (_, VerdictBasis::Integrity) => "Inconclusive: the run is invalid (gate G11).".into(),
        (BoundsVerdict::Failed, _) => {
            let often = format!("{limit} is reached on average more often than once in {horizon}");
            under(bounds, format!("Failed: {often} (95 %; a block counts once)."))
        }
        _ => format!("Inconclusive: the run cannot tell whether {what}."),
    }
}
