//! Answer of `onbeat prove` as text: each pair, the basis of the verdict, the verdict.

mod numbers;

use std::fmt::Write;

use numbers::length;
pub use numbers::{numbers, settling};

use crate::aligned::write_rows;
use crate::compare::text::differences;
use crate::last_lines::LastLines;
use crate::palette::{BOLD, DIM, GREEN, Palette, RED};
use crate::words::{clean, or_dash, several, span, us_or_dash, wrapped};
use experiment::needs::ProofNeeds;
use experiment::proof::Proof;
use facts::differences::Difference;
use model::experiment::{CountedUnit, ExperimentPlan, ExperimentRun, ExperimentSegment};
use model::units::named_cpus;
use stats::pair::verdict::Verdict;

/// Content of the answer.
pub struct Proven<'a> {
    pub run: &'a ExperimentRun,
    pub proof: &'a Proof,
    pub needs: ProofNeeds,
    /// Differing conditions; none if they are not recorded.
    pub differing: Option<&'a [Difference]>,
    /// Command to type next, if another boot is needed.
    pub next: Option<&'a str>,
}

/// Answer as text of up to this number of columns, with ANSI colours if `color` is set.
pub fn text(proven: &Proven, width: usize, color: bool) -> String {
    let Proven { run, proof, needs, differing, next } = *proven;
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
    if differing.is_some_and(|all| !all.is_empty()) {
        page.push_str(&differences(differing, "; all are in --json", width));
        page.push('\n');
    }
    for line in numbers(run, proof, needs) {
        wrapped(&mut page, &line, width);
    }
    let style = match proof.verdict {
        Verdict::Better => GREEN,
        Verdict::Worse => RED,
        _ => BOLD,
    };
    let mut answer = LastLines::default();
    answer.styled("answer", verdict(proof), style).row("fair", fair(run, differing));
    answer.row("next", next.map_or_else(|| again(run, proof), str::to_owned));
    page + &answer.render(width, palette)
}

/// Comparison of the conditions of both sides, and the number of segments that do not count.
fn fair(run: &ExperimentRun, differing: Option<&[Difference]>) -> String {
    let invalid = run.segments.iter().filter(|segment| !segment.valid).count();
    let spoiled = match invalid {
        0 => String::new(),
        n => format!("{n} of {} segments invalid; ", run.segments.len()),
    };
    let conditions = match differing {
        None => "the conditions are not recorded".to_owned(),
        Some([]) => "of the recorded conditions, only the change differs".to_owned(),
        Some(all) => {
            let differ = several(all.len() as u64, "condition differs", "conditions differ");
            format!("{differ} besides the change")
        }
    };
    let word = match (invalid, differing) {
        (_, None) => "not known",
        (0, Some([])) => "yes",
        _ => "in part",
    };
    format!("{word}: {spoiled}{conditions}")
}

/// Command that makes a helpful change again, which the experiment has undone.
fn again(run: &ExperimentRun, proof: &Proof) -> String {
    let plan = &run.plan;
    if proof.verdict != Verdict::Better || plan.settings.is_empty() {
        return String::new();
    }
    let settings: Vec<String> = plan.settings.iter().map(|setting| clean(setting)).collect();
    format!("sudo onbeat tune apply --cpus {} {} (it is undone now)", clean(&plan.cpus), settings.join(" "))
}

/// Compared change.
pub fn heading(plan: &ExperimentPlan) -> String {
    format!("{}: with it (b) against without it (a)", clean(&plan.change))
}

/// Conditions that were fixed before the first segment.
pub fn conditions(plan: &ExperimentPlan) -> String {
    let load = match plan.load.as_str() {
        "" => "no load".to_owned(),
        load => format!("load {} on {}", clean(load), named_cpus(clean(&plan.load_cpus))),
    };
    let segments = match plan.segment_ns.0 {
        0 => String::new(),
        _ => format!("segments of {}, ", length(plan.segment_ns)),
    };
    // Interrupts that have to move take longer, and so may a change, as the trial shows.
    let least = if plan.settle_trial_ns.0 > 0 { "at least " } else { "" };
    format!(
        "late is {} or more; {}, {load}; {segments}{least}{} skipped before each; seed {}",
        span(plan.limit_ns),
        measured(plan),
        length(plan.settle_ns),
        plan.seed
    )
}

/// CPUs, program or thread whose wake-ups or cycles are counted.
fn measured(plan: &ExperimentPlan) -> String {
    match (plan.victim.as_str(), plan.program.first()) {
        ("", None) => named_cpus(clean(&plan.cpus)),
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

/// Verdict in a sentence.
pub fn verdict(proof: &Proof) -> String {
    let counted = proof.counted.many();
    let sentence = match proof.verdict {
        Verdict::Better => format!("Better: fewer late {counted} with the change"),
        Verdict::Worse if proof.reason.is_empty() => {
            format!("Worse: more late {counted} with the change")
        }
        Verdict::Worse => "Worse with the change".to_owned(),
        Verdict::Equivalent => {
            format!("Equivalent: the number of late {counted} is the same within the margin")
        }
        Verdict::Inconclusive => "Inconclusive".to_owned(),
    };
    match proof.reason.as_str() {
        "" => format!("{sentence}."),
        reason => format!("{sentence}: {}.", clean(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::numbers::between;
    use super::*;
    use experiment::design::usual;
    use experiment::proof::prove;
    use experiment::tally::PairTally;
    use model::experiment::{ExperimentArm, SegmentLoad, SettleRun};
    use model::units::Nanos;

    fn run(late: &[(u64, u64)]) -> ExperimentRun {
        let plan = ExperimentPlan {
            change: "vmstat-interval=120".into(),
            limit_ns: Nanos(100_000),
            segment_ns: Nanos(10_000_000_000),
            cpus: "2-3".into(),
            settings: vec!["vmstat-interval=120".into()],
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

    fn page_of(run: &ExperimentRun) -> String {
        let tally = PairTally::of(&run.segments);
        let (proof, needs) = (prove(&run.plan, &tally), ProofNeeds::of(&run.plan, &tally));
        text(&Proven { run, proof: &proof, needs, differing: None, next: None }, 10_000, false)
    }

    #[test]
    fn a_proof_is_told_with_what_it_rests_on() {
        let page = page_of(&run(&[(10, 2); 7]));
        for part in [
            "vmstat-interval=120: with it (b) against without it (a)\n",
            "late is 100 us or more; CPUs 2-3, no load; segments of 10 s, 2 s skipped before each; seed 5\n",
            "70 without the change, 14 with it, 0.20 times as often (in the typical pair from 0.",
            "fewer in 7 of 7 pairs: e-value 26.8, and 20 decides.",
            "It took 14 segments: 2 min 20 s measured, 28 s skipped",
            "\nanswer  Better: fewer late wake-ups with the change.\n",
            "\nfair    not known: the conditions are not recorded\n",
            "\nnext    sudo onbeat tune apply --cpus 2-3 vmstat-interval=120 (it is undone now)\n",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("so few") && !page.contains("dropped"), "{page}");
    }

    #[test]
    fn what_the_load_did_is_told() {
        let mut run = run(&[(10, 2); 7]);
        for segment in &mut run.segments {
            let rate = if segment.arm == ExperimentArm::B { 90.0 } else { 100.0 };
            segment.loads = vec![SegmentLoad { spec: "mem:1".into(), rate_per_s: Some(rate) }];
        }
        let line = "With the change the load mem:1 did 0.90 times the work that it did without it (in the \
                    typical pair from 0.90 to 0.90, with 95 %).\n";
        assert!(page_of(&run).contains(line), "{}", page_of(&run));
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
        assert!(
            page_of(&run).contains("No change of the results was seen after either switch: 2 s are skipped")
        );
        assert!(page_of(&run).contains("at least 2 s skipped before each"), "{}", page_of(&run));
        (run.trial, run.plan.settle_ns) = (vec![seen(b, 7), seen(a, 4)], Nanos(7_000_000_000));
        assert!(page_of(&run).contains("the results with the change changed for 7 s: 7 s are skipped"));
        run.trial[1] = SettleRun { unsettled: true, ..seen(a, 10) };
        let page = page_of(&run);
        assert!(page.contains("without it still changed after 10 s") && page.contains("--settle"), "{page}");
        run.trial[1] = SettleRun { arm: a, why: "the clock\u{1b} stepped".into(), ..SettleRun::default() };
        let page = page_of(&run);
        assert!(page.contains("without it could not be determined (the clock"), "{page}");
    }

    #[test]
    fn an_interrupt_that_was_nowhere_is_named_and_other_cpus_are_spoken_of() {
        let mut run = run(&[(10, 2); 7]);
        assert!(
            page_of(&run).contains("CPUs other than 2-3 were not measured")
                && !page_of(&run).contains("interrupt")
        );
        (run.segments[1].astray, run.segments[2].astray) = (vec![24], vec![9, 24]);
        run.segments[0].settled_ns = Nanos(9_000_000_000);
        let page = page_of(&run);
        assert!(
            page.contains("In 2 of 7 pairs, interrupts arrived") && page.contains("place them (9, 24)"),
            "{page}"
        );
        assert!(page.contains("35 s skipped after switches"), "{page}");
    }

    #[test]
    fn an_end_at_one_is_open_where_the_test_has_decided() {
        assert_eq!(between([0.2, 1.0], Verdict::Better), "from 0.20 to below 1");
        assert_eq!(between([1.0, 4.0], Verdict::Worse), "from above 1 to 4");
        assert_eq!(between([0.5, 1.0], Verdict::Inconclusive), "from 0.50 to 1");
    }

    #[test]
    fn what_was_not_proven_says_what_would_be_needed() {
        let page = page_of(&run(&[(3, 2), (2, 3), (4, 4)]));
        assert!(
            page.contains("as many in 1")
                && page.contains("With so few pairs or late wake-ups, no change can be detected."),
            "{page}"
        );
        assert!(page.contains("Inconclusive: it was ended after 3 pairs"), "{page}");
        let nothing = page_of(&run(&[(0, 0); 16]));
        assert!(nothing.contains("Inconclusive: nothing was late"), "{nothing}");
    }

    #[test]
    fn a_dropped_segment_is_named_and_its_words_are_harmless() {
        let mut run = run(&[(10, 2); 5]);
        run.segments[3].valid = false;
        run.segments[3].why = "the load\u{1b}[2J stopped".into();
        let page = page_of(&run);
        assert!(page.contains("! pair 2, b: the load") && !page.contains('\u{1b}'), "{page}");
        assert!(page.contains("1 pair was dropped"), "{page}");
    }
}
