//! Moves of a cure, from records, and complete cures of synthetic machines.

use super::fixture::{DrawnFault, DrawnMachine, drawn_plan};
use super::*;
use crate::fixture::DrawnExperiment;
use model::cure::{CureCulprit, CurePlan, CureRemaining};
use stats::rng::Rng;

fn record(runs: Vec<CureCleanRun>, hunts: Vec<CureHunt>, steps: Vec<CureStep>) -> CureRun {
    CureRun { plan: drawn_plan(), runs, hunts, steps, ..CureRun::default() }
}

const LONG: Nanos = Nanos(7_200_000_000_000);

fn run(changes: usize, late: u64, long: bool) -> CureCleanRun {
    let verdict = if long && late == 0 { "supported".to_owned() } else { String::new() };
    CureCleanRun { changes, late, long, valid: true, verdict, ..CureCleanRun::default() }
}

fn candidate(rules: &[&str]) -> CureCandidate {
    CureCandidate { rules: rules.iter().map(|rule| (*rule).to_owned()).collect(), ..CureCandidate::default() }
}

fn hunt(changes: usize, culprits: &[(&str, &[&[&str]])]) -> CureHunt {
    let culprit = |(name, tried): &(&str, &[&[&str]])| CureCulprit {
        name: (*name).to_owned(),
        candidates: tried.iter().map(|rules| candidate(rules)).collect(),
        ..CureCulprit::default()
    };
    CureHunt { changes, culprits: culprits.iter().map(culprit).collect(), ..CureHunt::default() }
}

fn step(hunt: usize, culprit: &str, rules: &[&str], verdict: &str, is_kept: bool) -> CureStep {
    let why = if verdict == "better" && !is_kept { "" } else { "so" };
    CureStep {
        hunt,
        culprit: culprit.into(),
        candidate: candidate(rules),
        verdict: verdict.into(),
        kept: is_kept,
        why: why.into(),
        ..CureStep::default()
    }
}

fn tried(found: &CureMove) -> (String, String, u64) {
    let CureMove::Try(tried) = found else { panic!("{found:?}") };
    (tried.culprit.clone(), tried.candidate.name(), tried.number)
}

fn ended(found: &CureMove) -> CureEnd {
    let CureMove::End(end, why) = found else { panic!("{found:?}") };
    assert!(!why.is_empty() || *end == CureEnd::Held);
    *end
}

#[test]
fn nothing_is_tried_where_nothing_is_late() {
    let next = |runs: &[CureCleanRun]| super::next(&record(runs.to_vec(), vec![], vec![]), LONG);
    assert_eq!(next(&[]), CureMove::Look);
    assert_eq!(next(&[run(0, 0, false)]), CureMove::Confirm);
    assert_eq!(ended(&next(&[run(0, 0, false), run(0, 0, true)])), CureEnd::Held);
    let unsteady = CureCleanRun { verdict: "inconclusive".into(), ..run(0, 0, true) };
    let unsteady = |n: usize| [vec![run(0, 0, false)], vec![unsteady.clone(); n]].concat();
    assert_eq!([next(&unsteady(1)), next(&unsteady(2))], [CureMove::Confirm, CureMove::Confirm]);
    assert_eq!(ended(&next(&unsteady(3))), CureEnd::NoCandidate);
    assert_eq!(ended(&next(&[unsteady(2), vec![run(0, 0, true)]].concat())), CureEnd::Held);
    assert!(matches!(next(&[unsteady(2), vec![run(0, 1, true)]].concat()), CureMove::Hunt(_)));
    // Late wake-ups of the long run are hunted as well.
    assert!(matches!(next(&[run(0, 0, false), run(0, 1, true)]), CureMove::Hunt(_)));
}

#[test]
fn the_costliest_culprit_with_a_candidate_is_tried_through_and_then_the_next_round() {
    let late = vec![run(0, 9, false)];
    let found = hunt(0, &[("smi", &[]), ("irq", &[&["a"], &["b"]]), ("work", &[&["c"]])]);
    let mut record = record(late, vec![found.clone()], vec![]);
    assert_eq!(tried(&next(&record, LONG)), ("irq".into(), "a".into(), 1));
    record.steps.push(step(0, "irq", &["a"], "inconclusive", false));
    assert_eq!(tried(&next(&record, LONG)), ("irq".into(), "b".into(), 2));
    record.steps.push(step(0, "irq", &["b"], "worse", false));
    assert!(matches!(next(&record, LONG), CureMove::Hunt(_)), "the other culprit is the next round's");
    record.hunts.push(found.clone());
    assert_eq!(tried(&next(&record, LONG)), ("work".into(), "c".into(), 3));
    record.steps.push(step(1, "work", &["c"], "better", false));
    assert_eq!(next(&record, LONG), CureMove::Keep);
    (record.steps[2].kept, record.steps[2].why) = (true, "proven".into());
    assert_eq!(next(&record, LONG), CureMove::Look, "a run of the changed machine decides");
    record.runs.push(run(1, 3, false));
    assert!(matches!(next(&record, LONG), CureMove::Hunt(_)));
    record.hunts.push(hunt(1, &[("irq", &[&["a"], &["b"], &["b", "a"]])]));
    assert_eq!(ended(&next(&record, LONG)), CureEnd::NoCandidate, "what made it worse is in none again");
}

#[test]
fn a_change_that_two_rules_plan_is_proven_once() {
    let planned = |rule: &str, changes: &[&str]| CureCandidate {
        changes: changes.iter().map(|change| (*change).to_owned()).collect(),
        ..candidate(&[rule])
    };
    let same = "workqueue:cpumask: 3 -> 1";
    let candidates = |changes: &[&str]| {
        let mut found = hunt(0, &[("work", &[])]);
        found.culprits[0].candidates = vec![planned("workqueue-queues", changes)];
        found
    };
    let next_after = |verdict: &str, changes: &[&str]| {
        let mut step = step(0, "work", &["workqueue-cpumask"], verdict, false);
        step.candidate = planned("workqueue-cpumask", &[same]);
        next(&record(vec![run(0, 9, false)], vec![candidates(changes)], vec![step]), LONG)
    };
    assert_eq!(ended(&next_after("inconclusive", &[same])), CureEnd::NoCandidate);
    let more = [same, "sysctl:vm.stat_interval: 1 -> 120"];
    assert_eq!(tried(&next_after("inconclusive", &more)).1, "workqueue-queues");
    assert_eq!(ended(&next_after("worse", &more)), CureEnd::NoCandidate);
    assert_eq!(tried(&next_after("inconclusive", &["workqueue:cpumask: 3 -> 2"])).1, "workqueue-queues");
}

#[test]
fn two_rounds_without_gain_are_the_end() {
    let late = vec![run(0, 9, false)];
    let all: &[(&str, &[&[&str]])] = &[("a", &[&["a"]]), ("b", &[&["b"]]), ("c", &[&["c"]])];
    let steps = vec![step(0, "a", &["a"], "equivalent", false), step(1, "b", &["b"], "equivalent", false)];
    let record = record(late, vec![hunt(0, all), hunt(0, all)], steps);
    assert_eq!(ended(&next(&record, LONG)), CureEnd::NoGain);
}

#[test]
fn what_is_rare_is_hunted_for_longer() {
    let mut record = record(vec![run(0, 1, true)], vec![], vec![]);
    record.hunts.push(CureHunt { length_ns: record.plan.hunt_ns, ..hunt(0, &[]) });
    assert_eq!(next(&record, LONG), CureMove::Hunt(Nanos(4 * record.plan.hunt_ns.0)));
    record.hunts.push(hunt(0, &[]));
    assert_eq!(ended(&next(&record, LONG)), CureEnd::NoGain);
}

#[test]
fn what_was_interrupted_is_gone_on_with() {
    let late = vec![run(0, 9, false)];
    let open = vec![CureStep { experiment: "steps/001".into(), ..step(0, "irq", &["a"], "", false) }];
    let CureMove::Try(tried) = next(&record(late, vec![hunt(0, &[])], open), Nanos(0)) else { panic!() };
    assert!(tried.resumed && !tried.again && tried.number == 1);
}

#[test]
fn no_move_is_begun_that_the_time_does_not_hold() {
    let plan = CurePlan { horizon_ns: Nanos(60 * Nanos::SECOND.0), ..drawn_plan() };
    let next = |runs: &[CureCleanRun], seconds: i64| {
        let record = CureRun { plan: plan.clone(), ..record(runs.to_vec(), vec![], vec![]) };
        super::next(&record, Nanos(seconds * Nanos::SECOND.0))
    };
    assert_eq!((next(&[], 22), ended(&next(&[], 21))), (CureMove::Look, CureEnd::Time));
    let clean = [run(0, 0, false)];
    assert_eq!((next(&clean, 185), ended(&next(&clean, 184))), (CureMove::Confirm, CureEnd::Time));
    // A hunt must leave time for the runs after it.
    assert_eq!(ended(&next(&[run(0, 3, false)], 251)), CureEnd::Time);
    assert!(matches!(next(&[run(0, 3, false)], 252), CureMove::Hunt(_)));
}

#[test]
fn spoiled_runs_are_repeated_and_then_it_says_so() {
    let bad = CureCleanRun { valid: false, why: "the clock stepped".into(), ..CureCleanRun::default() };
    let next = |n: usize| super::next(&record(vec![bad.clone(); n], vec![], vec![]), LONG);
    assert_eq!((next(1), next(2)), (CureMove::Look, CureMove::Look));
    assert_eq!(next(3), CureMove::Spoiled("the clock stepped".into()));
}

#[test]
fn what_was_late_in_a_spoiled_run_that_was_to_support_the_limit_counts() {
    let stalled = CureCleanRun { valid: false, why: "the load stood still".into(), ..run(0, 1, true) };
    let runs = vec![run(0, 0, false), stalled.clone()];
    let mut record = record(runs, vec![], vec![]);
    assert!(matches!(next(&record, LONG), CureMove::Hunt(_)), "it is not asked again until nothing is late");
    assert!(is_late(&record));
    forget_spoiled(&mut record);
    assert_eq!(record.runs.last(), Some(&stalled), "nor where it is gone on with");
    // Without late wake-ups it is inconclusive, and is repeated.
    let silent = CureCleanRun { late: 0, ..stalled };
    record.runs.push(silent.clone());
    assert_eq!(next(&record, LONG), CureMove::Confirm);
    record.runs.extend([silent.clone(), silent]);
    assert!(matches!(next(&record, LONG), CureMove::Spoiled(_)));
    forget_spoiled(&mut record);
    assert_eq!(record.runs.len(), 2);
    // The run before the first change decides nothing, and is repeated in any case.
    record.runs = vec![CureCleanRun { long: false, ..record.runs[1].clone() }];
    assert_eq!(next(&record, LONG), CureMove::Look);
}

fn machine(faults: Vec<DrawnFault>, unrest: DrawnExperiment) -> DrawnMachine {
    DrawnMachine { faults, unrest }
}

#[test]
fn two_faults_with_a_cure_each_are_cured() {
    let faults = vec![
        DrawnFault { name: "irq", rate: 2.0, changes: vec![("no-use", 1.0), ("irq-affinity", 0.0)] },
        DrawnFault { name: "thread", rate: 1.0, changes: vec![("thread-affinity", 0.0)] },
    ];
    let mut rng = Rng::new(11);
    let cures: Vec<CureRun> = (0..20)
        .map(|_| machine(faults.clone(), DrawnExperiment::STEADY).cure(drawn_plan(), &mut rng))
        .collect();
    let held = cures.iter().filter(|cure| cure.held && cure.kept_changes() == 2).count();
    assert!(held >= 18, "{held} of 20: {:?}", cures.iter().map(|cure| &cure.why).collect::<Vec<_>>());
}

#[test]
fn a_change_that_does_harm_is_not_kept_and_every_end_is_within_the_time() {
    let faults = vec![DrawnFault { name: "thread", rate: 1.0, changes: vec![("harm", 2.0), ("none", 1.0)] }];
    let mut rng = Rng::new(5);
    for _ in 0..20 {
        let cure = machine(faults.clone(), DrawnExperiment::RESTLESS).cure(drawn_plan(), &mut rng);
        assert!(!cure.held && cure.spent_ns <= cure.plan.at_most_ns, "{cure:?}");
        assert!(cure.steps.iter().all(|step| !step.kept) && is_late(&cure));
    }
}

#[test]
fn of_200_machines_where_nothing_helps_at_most_two_keep_something() {
    let none = |names: &[&'static str]| names.iter().map(|name| (*name, 1.0)).collect();
    let faults = vec![
        DrawnFault { name: "interrupt", rate: 1.0, changes: none(&["a", "b", "c", "d"]) },
        DrawnFault { name: "thread", rate: 0.5, changes: none(&["e", "f", "g"]) },
    ];
    let spoiled = DrawnExperiment { spoiled: 0.05, ..DrawnExperiment::RESTLESS };
    for unrest in [DrawnExperiment::STEADY, DrawnExperiment::RESTLESS, spoiled] {
        let mut rng = Rng::new(29);
        let machine = machine(faults.clone(), unrest);
        let cures: Vec<CureRun> = (0..200).map(|_| machine.cure(drawn_plan(), &mut rng)).collect();
        let false_cures = cures.iter().filter(|cure| cure.kept_changes() > 0).count();
        assert!(false_cures <= 2, "{false_cures} of 200 with {unrest:?}");
        assert!(cures.iter().all(|cure| cure.spent_ns <= cure.plan.at_most_ns && !cure.held));
        assert!(cures.iter().any(|cure| cure.steps.len() >= 3));
    }
}

#[test]
fn what_there_was_no_time_for_is_among_what_remains() {
    let hunts = vec![hunt(0, &[("a", &[&["one"], &["two"]]), ("b", &[&["three"]])])];
    let steps = vec![step(0, "a", &["one"], "worse", false)];
    let mut record = record(vec![run(0, 5, false)], hunts, steps);
    let texts = |record: &CureRun| remaining(record).into_iter().map(|one| one.what).collect::<Vec<_>>();
    let open = ["not tried yet: two", "tried, but not proven to help: ", "not tried yet: three"];
    assert_eq!(texts(&record), open);
    record.held = true;
    assert_eq!(texts(&record), ["tried, but not proven to help: "]);
}

#[test]
fn what_took_next_to_nothing_is_not_tried_and_that_is_said() {
    let mut found = hunt(0, &[("irq", &[&["a"]]), ("tick", &[&["b"], &["c"]])]);
    found.latency_ns = Nanos(1_000_000);
    (found.culprits[0].lost_ns, found.culprits[0].decisive) = (Nanos(900_000), Some(9));
    (found.culprits[1].lost_ns, found.culprits[1].decisive) = (Nanos(3_000), Some(0));
    let late = || vec![run(0, 9, false)];
    let begun = record(late(), vec![found.clone()], vec![]);
    assert_eq!(tried(&next(&begun, LONG)).0, "irq");
    let over = record(late(), vec![found.clone()], vec![step(0, "irq", &["a"], "equivalent", false)]);
    let CureMove::End(CureEnd::NoCandidate, why) = next(&over, LONG) else { panic!("b is tried") };
    assert!(why.contains("a negligible part"), "{why}");
    let texts: Vec<String> = remaining(&over).into_iter().map(|one| one.what).collect();
    assert!(
        texts.contains(&"not tried, because it took 0.3 % of the time lost: b, c".to_owned()),
        "{texts:?}"
    );
    // A culprit that decides a late wake-up is tried like any other.
    found.culprits[1].decisive = Some(1);
    let decides = record(late(), vec![found], vec![step(0, "irq", &["a"], "equivalent", false)]);
    let CureMove::Hunt(_) = next(&decides, LONG) else { panic!("the next round looks again") };
}

#[test]
fn what_is_kept_is_not_said_to_have_been_in_vain() {
    let hunts = vec![hunt(0, &[("irq", &[])]), hunt(1, &[("irq", &[])])];
    let tried = |change: &str, is_kept| CureStep {
        change: change.into(),
        ..step(0, "irq", &[change], if is_kept { "better" } else { "equivalent" }, is_kept)
    };
    let steps = vec![tried("none", false), tried("half", true)];
    let remainder = remaining(&record(vec![run(1, 5, false)], hunts, steps));
    let texts: Vec<&str> = remainder.iter().map(|one| one.what.as_str()).collect();
    let wanted = ["it still takes time with the kept changes: half", "tried, but not proven to help: none"];
    assert_eq!(texts, wanted);
}

#[test]
fn what_is_wrong_in_the_program_remains_whether_the_limit_is_held_or_not() {
    let hunts = vec![hunt(0, &[("a", &[&["one"]])])];
    let mut record = record(vec![run(0, 5, false)], hunts, Vec::new());
    let found = CureRemaining { culprit: "robot, memory-lock".into(), ..CureRemaining::default() };
    record.program_findings = vec![found.clone()];
    for held in [false, true] {
        record.held = held;
        assert_eq!(remaining(&record).last(), Some(&found));
    }
}

#[test]
fn runs_of_a_program_are_hunts_and_take_as_long() {
    let mut record = record(Vec::new(), Vec::new(), Vec::new());
    let left = Nanos(record.plan.look_ns.0 + AROUND.0);
    assert_eq!(next(&record, left), CureMove::Look);
    record.plan.program = vec!["./robot".into()];
    assert!(matches!(next(&record, left), CureMove::End(CureEnd::Time, _)));
}

#[test]
fn time_that_is_nobodys_is_told_where_no_culprit_took_more() {
    let needs = |unexplained: i64| {
        let mut one = hunt(0, &[("a", &[])]);
        (one.culprits[0].lost_ns, one.unexplained_ns) = (Nanos(50), Nanos(unexplained));
        let all = remaining(&record(vec![run(0, 5, false)], vec![one], Vec::new()));
        all.first().map(|one| one.needs.clone())
    };
    assert_eq!((needs(51).as_deref(), needs(50)), (Some("hardware"), None));
}
