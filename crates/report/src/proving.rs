//! The answer of `onbeat prove` as text: each pair, what the verdict rests on, the verdict.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::aligned::write_rows;
use crate::compare::text::differences;
use crate::palette::{BOLD, DIM, GREEN, Palette, RED};
use crate::words::{capitalised, clean, duration, or_dash, several, span, us, us_or_dash, wrapped};
use experiment::needs::ProofNeeds;
use experiment::proof::Proof;
use experiment::settling::discarded;
use experiment::veto::LoadWork;
use facts::differences::Difference;
use model::experiment::{CountedUnit, ExperimentArm, ExperimentPlan, ExperimentRun, ExperimentSegment};
use model::units::Nanos;
use stats::pair::verdict::Verdict;

/// What is shown.
pub struct Proven<'a> {
    pub run: &'a ExperimentRun,
    pub proof: &'a Proof,
    pub needs: ProofNeeds,
    /// What differs in the conditions; none where they are not recorded.
    pub differing: Option<&'a [Difference]>,
}

/// The answer as text of up to this number of columns, with ANSI colours if asked for.
pub fn text(proven: &Proven, width: usize, color: bool) -> String {
    let Proven { run, proof, needs, differing } = *proven;
    let palette = Palette(color);
    let mut page = String::new();
    wrapped(&mut page, &heading(&run.plan), width);
    wrapped(&mut page, &palette.paint(DIM, &conditions(&run.plan)), width);
    page.push('\n');
    if !run.segments.is_empty() {
        pairs(&mut page, run, palette);
        page.push('\n');
    }
    for segment in run.segments.iter().filter(|segment| !segment.valid) {
        let line = format!("! pair {}, {}: {}", segment.pair + 1, segment.arm.name(), clean(&segment.why));
        wrapped(&mut page, &palette.paint(RED, &line), width);
    }
    match differing {
        Some([]) => wrapped(&mut page, "Beside the change, no condition that is recorded differs.", width),
        Some(_) => page.push_str(&differences(differing, width)),
        None => {}
    }
    if differing.is_some() {
        page.push('\n');
    }
    for line in numbers(run, proof, needs) {
        wrapped(&mut page, &line, width);
    }
    page.push('\n');
    let style = match proof.verdict {
        Verdict::Better => GREEN,
        Verdict::Worse => RED,
        _ => BOLD,
    };
    let mut last = String::new();
    wrapped(&mut last, &verdict(proof), width);
    page.push_str(&palette.paint(style, last.trim_end()));
    page.push('\n');
    page
}

/// What is compared.
pub fn heading(plan: &ExperimentPlan) -> String {
    format!("{}: with it (b) against without it (a)", clean(&plan.change))
}

/// Under which conditions, fixed before the first segment.
pub fn conditions(plan: &ExperimentPlan) -> String {
    let load = match plan.load.as_str() {
        "" => "no load".to_owned(),
        load => format!("load {} on CPU {}", clean(load), clean(&plan.load_cpus)),
    };
    let segments = match plan.segment_ns.0 {
        0 => String::new(),
        _ => format!("segments of {}, ", length(plan.segment_ns)),
    };
    // Interrupts that have to move take longer, and so may a change as the trial shows.
    let least = if plan.settle_trial_ns.0 > 0 { "at least " } else { "" };
    format!(
        "late is {} or more; {}, {load}; {segments}{least}{} left out before each; seed {}",
        span(plan.limit_ns),
        measured(plan),
        length(plan.settle_ns),
        plan.seed
    )
}

/// Whose wake-ups or cycles are counted.
fn measured(plan: &ExperimentPlan) -> String {
    match (plan.victim.as_str(), plan.program.first()) {
        ("", None) => format!("CPU {}", clean(&plan.cpus)),
        ("", Some(program)) => format!("cycles of the program {}", clean(program)),
        (victim, _) => format!("cycles of {}", clean(victim)),
    }
}

fn pairs(page: &mut String, run: &ExperimentRun, palette: Palette) {
    let head = ["pair", "order", "late a", "late b", "p50 a", "p50 b", "max a", "max b"];
    let mut rows = vec![head.map(str::to_owned)];
    let last = run.segments.iter().map(|segment| segment.pair).max().unwrap_or(0);
    for pair in 0..=last {
        let own: Vec<&ExperimentSegment> =
            run.segments.iter().filter(|segment| segment.pair == pair).collect();
        let order: String = own.iter().map(|segment| segment.arm.name()).collect();
        let of = |arm: &str| own.iter().find(|segment| segment.arm.name() == arm && segment.valid);
        let [a, b] = ["a", "b"].map(of);
        let late = |segment: Option<&&ExperimentSegment>| or_dash(segment.map(|segment| segment.late));
        let p50 = |segment: Option<&&ExperimentSegment>| us_or_dash(segment.and_then(|one| one.p50_ns));
        let max = |segment: Option<&&ExperimentSegment>| us_or_dash(segment.and_then(|one| one.max_ns));
        let number = (pair + 1).to_string();
        rows.push([number, order, late(a), late(b), p50(a), p50(b), max(a), max(b)]);
    }
    write_rows(page, &rows, palette);
    let times = match run.plan.counted() {
        CountedUnit::WakeUps => "latencies",
        CountedUnit::Cycles => "responses",
    };
    let _ = writeln!(page, "late: {}; {times} in us", run.plan.counted().many());
}

/// What the verdict rests on, in sentences.
pub fn numbers(run: &ExperimentRun, proof: &Proof, needs: ProofNeeds) -> Vec<String> {
    let plan = &run.plan;
    let mut lines = vec![of_pairs(proof), taken(run)];
    lines.extend(settling(run).map(|said| format!("{}.", capitalised(&said))));
    let missing = [(proof.dropped, "dropped"), (proof.interrupted, "interrupted")];
    for (pairs, how) in missing.into_iter().filter(|(pairs, _)| *pairs > 0) {
        lines.push(match pairs {
            1 => format!("1 pair was {how} and counts for neither side."),
            _ => format!("{pairs} pairs were {how} and count for neither side."),
        });
    }
    if proof.unequal > 0 {
        lines.push(format!(
            "Of those that were dropped {} runs of different length: measure both sides for the same time.",
            several(u64::from(proof.unequal), "has", "have")
        ));
    }
    lines.extend(astray(run, proof));
    lines.extend(proof.works.iter().map(of_work));
    lines.extend(others(plan, proof));
    lines.extend(found(plan, proof, needs));
    if proof.carry_over.is_seen(plan.stop_at) {
        let why = match plan.settle_ns.0 {
            0 => "begin the runs later after the boot".to_owned(),
            _ => format!(
                "the change may take longer than {} to settle; ask for more with --settle",
                length(plan.settle_ns)
            ),
        };
        lines.push(format!(
            "In {} of {} segments the first half is more like the other side: {why}.",
            proof.carry_over.towards, proof.carry_over.of
        ));
    }
    if let Some(drift) = proof.drift.filter(|drift| drift.is_large()) {
        lines.push(format!(
            "The median moved meanwhile: without the change it was {} us in the first pair and \
             {} us in the last. Pairs begin with either side, which keeps that out of the verdict.",
            us(drift.first),
            us(drift.last)
        ));
    }
    lines
}

fn of_work(work: &LoadWork) -> String {
    let interval = work.interval.map_or_else(String::new, |[lower, upper]| {
        format!(" (in the typical pair from {} to {}, with 95 %)", digits(lower), digits(upper))
    });
    format!(
        "With the change the load {} did {} times the work that it did without{interval}.",
        clean(&work.spec),
        digits(work.ratio)
    )
}

fn of_pairs(proof: &Proof) -> String {
    let [a, b] = proof.late;
    let ratio =
        proof.rate_ratio.map_or_else(String::new, |ratio| format!(", {} times as often", digits(ratio)));
    let interval = proof.typical().map_or_else(String::new, |ends| {
        format!(" (in the typical pair {}, with 95 %)", between(ends, proof.verdict))
    });
    let ties = match proof.ties {
        0 => String::new(),
        ties => format!(", as many in {ties}"),
    };
    let signed = proof.pairs - proof.ties;
    format!(
        "Late {}: {a} without the change, {b} with it{ratio}{interval}; fewer in {} of {signed} \
         pairs{ties}: e-value {}, and {} decides.",
        proof.counted.many(),
        proof.wins,
        digits(proof.e_value),
        digits(proof.level)
    )
}

fn taken(run: &ExperimentRun) -> String {
    let count = i64::try_from(run.segments.len()).unwrap_or(i64::MAX);
    format!(
        "That took {}: {} measured, {} left out behind switches.",
        several(run.segments.len() as u64, "segment", "segments"),
        length(Nanos(run.plan.segment_ns.0.saturating_mul(count))),
        length(discarded(run))
    )
}

/// How the settling time came about, as a part of a sentence; none where it was asked for.
pub fn settling(run: &ExperimentRun) -> Option<String> {
    let left_out = length(run.plan.settle_ns);
    let side = |arm| if arm == ExperimentArm::B { "with the change" } else { "without it" };
    if let Some(run) = run.trial.iter().find(|one| one.unsettled) {
        let altered = length(run.altered_ns.unwrap_or_default());
        return Some(format!(
            "behind a switch what was measured {} still altered after {altered}: {left_out} are left out \
             behind each, which may be too little; ask for more with --settle",
            side(run.arm)
        ));
    }
    if let Some(run) = run.trial.iter().find(|one| one.altered_ns.is_none()) {
        return Some(format!(
            "how long it takes to settle {} could not be seen ({}): {left_out} are left out behind each",
            side(run.arm),
            clean(&run.why)
        ));
    }
    let longest = run.trial.iter().max_by_key(|one| one.altered_ns)?;
    Some(match longest.altered_ns.unwrap_or_default() {
        Nanos(0) => {
            format!("behind neither switch was anything seen to alter: {left_out} are left out behind each")
        }
        altered => format!(
            "behind a switch what was measured {} altered for {}: {left_out} are left out behind each",
            side(longest.arm),
            length(altered)
        ),
    })
}

/// Interrupts that are named.
const NAMED: usize = 8;

/// Interrupts that were where neither side has them.
fn astray(run: &ExperimentRun, proof: &Proof) -> Option<String> {
    let valid = run.segments.iter().filter(|segment| segment.valid);
    let all: BTreeSet<u32> = valid.flat_map(|segment| segment.astray.iter().copied()).collect();
    let mut named: Vec<String> = all.iter().take(NAMED).map(u32::to_string).collect();
    if all.len() > NAMED {
        named.push(format!("and {} more", all.len() - NAMED));
    }
    (proof.astray > 0).then(|| {
        format!(
            "In {} of {} interrupts came that were not yet where the side has them ({}): they come too \
             rarely to be waited for, and make both sides more alike.",
            proof.astray,
            several(proof.pairs, "pair", "pairs"),
            named.join(", ")
        )
    })
}

/// What is known of the CPUs that are not measured.
fn others(plan: &ExperimentPlan, proof: &Proof) -> Option<String> {
    let of_threads = plan.counted() == CountedUnit::Cycles;
    let known = match proof.works.is_empty() {
        true => "what the change does there is not known",
        false => "of what the change does there only the load's work is known",
    };
    (!of_threads && proof.pairs > 0)
        .then(|| format!("The wake-ups of CPUs beside {} were not measured: {known}.", clean(&plan.cpus)))
}

/// What so many pairs could have found, where they found nothing.
fn found(plan: &ExperimentPlan, proof: &Proof, needs: ProofNeeds) -> Option<String> {
    if proof.verdict != Verdict::Inconclusive || proof.late == [0, 0] {
        return None;
    }
    let more = match proof.fewest_more {
        0 => String::new(),
        more => format!(
            " The fewest that could still decide: {} more.",
            several(u64::from(more), "pair", "pairs")
        ),
    };
    let seen = needs.smallest_detectable.map_or_else(
        || format!("So few pairs, or so few late {}, find nothing.", proof.counted.many()),
        |factor| format!("Four times in five so many pairs find a change to 1/{} or less.", digits(factor)),
    );
    let needed = needs.pairs.map_or_else(String::new, |pairs| {
        format!(" One to 1/{} takes {pairs} pairs.", digits(plan.rate_margin))
    });
    Some(format!("{seen}{needed}{more}"))
}

/// The verdict in a sentence.
pub fn verdict(proof: &Proof) -> String {
    let counted = proof.counted.many();
    let said = match proof.verdict {
        Verdict::Better => format!("Better: with the change late {counted} are rarer"),
        Verdict::Worse if proof.reason.is_empty() => {
            format!("Worse: with the change late {counted} are more frequent")
        }
        Verdict::Worse => "Worse with the change".to_owned(),
        Verdict::Equivalent => {
            format!("Equivalent: with the change as many {counted} are late, within the margin")
        }
        Verdict::Inconclusive => "Inconclusive".to_owned(),
    };
    match proof.reason.as_str() {
        "" => format!("{said}."),
        reason => format!("{said}: {}.", clean(reason)),
    }
}

/// In seconds, or in minutes where they are many.
fn length(span_of: Nanos) -> String {
    match span_of.0 {
        0 => "nothing".to_owned(),
        1..120_000_000_000 => span(span_of),
        _ => duration(span_of),
    }
}

/// Pairs that are alike pull an end to 1 itself: the test that decided leaves that out.
fn between([lower, upper]: [f64; 2], verdict: Verdict) -> String {
    match verdict {
        Verdict::Better if upper >= 1.0 => format!("from {} to below 1", digits(lower)),
        Verdict::Worse if lower <= 1.0 && upper > 1.0 => format!("from above 1 to {}", digits(upper)),
        _ => format!("from {} to {}", digits(lower), digits(upper)),
    }
}

/// Three digits.
fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if !(0.01..10_000.0).contains(&size) => format!("{value:.1e}"),
        size if size >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::design::usual;
    use experiment::proof::prove;
    use experiment::tally::PairTally;
    use model::experiment::{SegmentLoad, SettleRun};

    fn run(late: &[(u64, u64)]) -> ExperimentRun {
        let plan = ExperimentPlan {
            change: "vmstat-interval=120".into(),
            limit_ns: Nanos(100_000),
            segment_ns: Nanos(10_000_000_000),
            cpus: "2-3".into(),
            seed: 5,
            ..usual()
        };
        let segment = |pair: usize, arm, late| ExperimentSegment {
            pair: pair as u32,
            arm,
            late,
            valid: true,
            observed_ns: plan.segment_ns,
            p50_ns: Some(Nanos(8_000)),
            max_ns: Some(Nanos(250_000)),
            ..ExperimentSegment::default()
        };
        let both = late.iter().enumerate();
        let segments = both
            .flat_map(|(at, &(a, b))| [segment(at, ExperimentArm::A, a), segment(at, ExperimentArm::B, b)])
            .collect();
        ExperimentRun { plan, segments, ..ExperimentRun::default() }
    }

    fn said(run: &ExperimentRun) -> String {
        let tally = PairTally::of(&run.segments);
        let (proof, needs) = (prove(&run.plan, &tally), ProofNeeds::of(&run.plan, &tally));
        text(&Proven { run, proof: &proof, needs, differing: None }, 10_000, false)
    }

    #[test]
    fn a_proof_is_told_with_what_it_rests_on() {
        let told = said(&run(&[(10, 2); 7]));
        for part in [
            "vmstat-interval=120: with it (b) against without it (a)\n",
            "late is 100 us or more; CPU 2-3, no load; segments of 10 s, 2 s left out before each; seed 5\n",
            "70 without the change, 14 with it, 0.20 times as often (in the typical pair from 0.",
            "fewer in 7 of 7 pairs: e-value 26.8, and 20 decides.",
            "That took 14 segments: 2 min 20 s measured, 28 s left out",
            "\nBetter: with the change late wake-ups are rarer.\n",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert!(!told.contains("So few") && !told.contains("dropped"), "{told}");
    }

    #[test]
    fn what_the_load_did_is_told() {
        let mut run = run(&[(10, 2); 7]);
        for segment in &mut run.segments {
            let rate = if segment.arm == ExperimentArm::B { 90.0 } else { 100.0 };
            segment.loads = vec![SegmentLoad { spec: "mem:1".into(), rate_per_s: Some(rate) }];
        }
        let line = "With the change the load mem:1 did 0.90 times the work that it did without (in the \
                    typical pair from 0.90 to 0.90, with 95 %).\n";
        assert!(said(&run).contains(line), "{}", said(&run));
    }

    #[test]
    fn how_the_settling_time_came_about_is_told() {
        let mut run = run(&[(10, 2); 7]);
        let seconds = |seconds: i64| Some(Nanos(seconds * 1_000_000_000));
        let seen = |arm, altered| SettleRun { arm, altered_ns: seconds(altered), ..SettleRun::default() };
        let (b, a) = (ExperimentArm::B, ExperimentArm::A);
        assert_eq!(settling(&run), None);
        run.plan.settle_trial_ns = Nanos(20_000_000_000);
        run.trial = vec![seen(b, 0), seen(a, 0)];
        assert!(said(&run).contains("Behind neither switch was anything seen to alter: 2 s are left out"));
        assert!(said(&run).contains("at least 2 s left out before each"), "{}", said(&run));
        (run.trial, run.plan.settle_ns) = (vec![seen(b, 7), seen(a, 4)], Nanos(7_000_000_000));
        assert!(said(&run).contains("measured with the change altered for 7 s: 7 s are left out"));
        run.trial[1] = SettleRun { unsettled: true, ..seen(a, 10) };
        let told = said(&run);
        assert!(told.contains("without it still altered after 10 s") && told.contains("--settle"), "{told}");
        run.trial[1] = SettleRun { arm: a, why: "the clock\u{1b} stepped".into(), ..SettleRun::default() };
        let told = said(&run);
        assert!(told.contains("without it could not be seen (the clock"), "{told}");
    }

    #[test]
    fn an_interrupt_that_was_nowhere_is_named_and_other_cpus_are_spoken_of() {
        let mut run = run(&[(10, 2); 7]);
        assert!(
            said(&run).contains("CPUs beside 2-3 were not measured") && !said(&run).contains("interrupt")
        );
        (run.segments[1].astray, run.segments[2].astray) = (vec![24], vec![9, 24]);
        run.segments[0].settled_ns = Nanos(9_000_000_000);
        let told = said(&run);
        assert!(
            told.contains("In 2 of 7 pairs interrupts came") && told.contains("has them (9, 24)"),
            "{told}"
        );
        assert!(told.contains("35 s left out behind switches"), "{told}");
    }

    #[test]
    fn an_end_at_one_is_open_where_the_test_has_decided() {
        assert_eq!(between([0.2, 1.0], Verdict::Better), "from 0.20 to below 1");
        assert_eq!(between([1.0, 4.0], Verdict::Worse), "from above 1 to 4");
        assert_eq!(between([0.5, 1.0], Verdict::Inconclusive), "from 0.50 to 1");
    }

    #[test]
    fn what_was_not_proven_says_what_would_be_needed() {
        let told = said(&run(&[(3, 2), (2, 3), (4, 4)]));
        assert!(
            told.contains("as many in 1")
                && told.contains("So few pairs, or so few late wake-ups, find nothing."),
            "{told}"
        );
        assert!(told.contains("Inconclusive: it was ended after 3 pairs"), "{told}");
        let nothing = said(&run(&[(0, 0); 16]));
        assert!(nothing.contains("Inconclusive: nothing was late"), "{nothing}");
    }

    #[test]
    fn a_dropped_segment_is_named_and_its_words_are_harmless() {
        let mut run = run(&[(10, 2); 5]);
        run.segments[3].valid = false;
        run.segments[3].why = "the load\u{1b}[2J stopped".into();
        let told = said(&run);
        assert!(told.contains("! pair 2, b: the load") && !told.contains('\u{1b}'), "{told}");
        assert!(told.contains("1 pair was dropped"), "{told}");
    }
}
