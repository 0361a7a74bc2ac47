//! `prove --across-boots`: a verdict from bundles, for a change that needs a reboot.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Args;
use super::answer::{exit, page};
use super::chosen::most_pairs;
use crate::cli::Environment;
use crate::cli::compare::BETWEEN;
use crate::cli::named_run::named_run;
use crate::cli::outputs::Outputs;
use experiment::design::usual;
use experiment::needs::ProofNeeds;
use experiment::order::of_pair;
use experiment::proof::{Proof, prove};
use experiment::tally::PairTally;
use model::error::{Exit, Failure, Result};
use model::experiment::{EXPERIMENT_SCHEMA, ExperimentArm, ExperimentPlan, ExperimentRun, ExperimentSegment};
use model::sort::CompactSort;
use model::text::quoted;
use model::units::{CpuSet, Nanos};
use report::proving::{Proven, text};
use stats::compare::design::of_starts;
use stats::pair::verdict::{Design, Verdict};
use study::compare::{check_comparable, series};
use study::measurement::{Measurement, ReadOptions};
use study::proving::{answer, segment_of};

pub fn run(args: &Args, mut outputs: Outputs, environment: &Environment) -> Result<Exit> {
    let limit_ns = args.conditions.limit()?;
    let [mut a, mut b] = sides(&args.across_boots, environment)?;
    check_comparable(&a, &b)?;
    check_conditions(&a, &b)?;
    [&mut a, &mut b].into_iter().for_each(|side| side.compact_sort_by_key(started));
    let pairs = a.len().min(b.len());
    let record = record(args, limit_ns, [&a[..pairs], &b[..pairs]])?;
    let tally = PairTally::of(&record.segments);
    let (mut proof, needs) = (prove(&record.plan, &tally), ProofNeeds::of(&record.plan, &tally));
    let paired = [&a[..pairs], &b[..pairs]];
    if !alternated(paired) {
        open(
            &mut proof,
            "the runs do not alternate in pairs of one without and one with the change: the difference may \
             be drift over time",
        );
    } else if let Some(first) = one_sided(paired) {
        let side = if first == ExperimentArm::A { "without the change" } else { "with the change" };
        let what = format!(
            "nearly all pairs began with the run {side}: the difference may be steady drift; begin some \
             pairs with the other"
        );
        open(&mut proof, &what);
    } else if let Some((one, other)) = of_one_boot(paired) {
        let what = format!(
            "{} and {} are from the same boot but in different pairs, so that boot counts twice; reboot \
             between them",
            quoted(&one),
            quoted(&other)
        );
        open(&mut proof, &what);
    }
    let counted: Vec<u32> = tally.pairs.iter().map(|pair| pair.a.pair).collect();
    let kept = |side: Vec<Measurement>| -> Vec<Measurement> {
        let numbered = side.into_iter().enumerate();
        numbered.filter(|(at, _)| counted.contains(&(*at as u32))).map(|(_, one)| one).collect()
    };
    let [whole_a, whole_b] = [a.len(), b.len()];
    let began_with_b = pairs - began_with_a([&a[..pairs], &b[..pairs]]);
    let (mut a, mut b) = (kept(a), kept(b));
    let answered = answer(&record, &proof, proof.end.map_or("fixed", |end| end.name()), [&mut a, &mut b]);
    outputs.json_pretty(&args.output.json, &answered);
    let next =
        proof.end.is_none().then(|| next(&record.plan, [whole_a, whole_b], began_with_b, proof.fewest_more));
    outputs.write(&args.page, || {
        let told = next.as_ref().map(|[boot, command, missing]| {
            format!("{}, then `{command}`; {missing}.", boot.replacen('b', "B", 1))
        });
        page(&record, &proof, needs, &answered, [series(&a), series(&b)], told.as_deref())
    });
    let differing = answered.comparison.differing();
    let screen = outputs.screen;
    let next = next.map(|[boot, command, missing]| format!("{boot}, then: {command}; {missing}"));
    let proven = Proven { run: &record, proof: &proof, needs, differing, next: next.as_deref() };
    outputs.print(&text(&proven, screen.columns, screen.color));
    outputs.end(exit(proof.verdict))
}

/// True if, in order of time, each two runs have one of A and one of B: only then is the winner of
/// a pair as random as a coin, whatever the machine does over the days.
fn alternated([a, b]: [&[Measurement]; 2]) -> bool {
    let starts = |side: &[Measurement]| -> Vec<String> { side.iter().map(started).collect() };
    of_starts(&starts(a), &starts(b)) == Design::Paired
}

/// Side with which more than three quarters of the pairs began, if there is one: a steady drift
/// would win as many.
fn one_sided([a, b]: [&[Measurement]; 2]) -> Option<ExperimentArm> {
    let first = began_with_a([a, b]);
    let rest = a.len().min(b.len()) - first;
    (4 * first.min(rest) < first + rest).then_some(if first > rest {
        ExperimentArm::A
    } else {
        ExperimentArm::B
    })
}

/// Number of pairs whose first run was without the change.
fn began_with_a([a, b]: [&[Measurement]; 2]) -> usize {
    a.iter().zip(b).filter(|(a, b)| started(a) < started(b)).count()
}

/// Refuses runs measured under different conditions, whose effect is not that of the change.
fn check_conditions(a: &[Measurement], b: &[Measurement]) -> Result<()> {
    let measured = |measured: &Measurement| {
        let run = measured.run.as_ref()?;
        // The amount of load may depend on the change, for example if CPUs are isolated.
        let loads: Vec<&str> = run.loads.iter().map(|load| load.name.as_str()).collect();
        let threads = match run.plan.priority {
            Some(priority) => format!("{} {priority}", run.plan.policy),
            None => run.plan.policy.to_string(),
        };
        Some([
            ("the load", if loads.is_empty() { "none".to_owned() } else { loads.join(",") }),
            ("the command", format!("onbeat {}", run.command)),
            ("the interval", run.plan.interval_ns.map_or_else(String::new, Nanos::spaced)),
            ("the threads", threads),
        ])
    };
    let mut all = a.iter().chain(b).filter_map(|one| Some((one, measured(one)?)));
    let Some((first, wanted)) = all.next() else { return Ok(()) };
    for (other, found) in all {
        if let Some((one, two)) = wanted.iter().zip(&found).find(|(one, two)| one.1 != two.1) {
            return Err(Failure::usage(format!(
                "--across-boots: {} of {} is {:?}, and that of {} is {:?}: make all runs with the same \
                 settings except for the change",
                one.0, first.title, one.1, other.title, two.1
            )));
        }
    }
    Ok(())
}

/// Two runs of one boot in different pairs whose partners are of other boots. A pair within one
/// boot differs by the change alone; others count only once per boot. Bundles of older versions do
/// not contain the boot.
fn of_one_boot([a, b]: [&[Measurement]; 2]) -> Option<(PathBuf, PathBuf)> {
    let boot =
        |measured: &Measurement| measured.run.as_ref().map_or_else(String::new, |run| run.boot.clone());
    let mut seen: BTreeMap<String, &Path> = BTreeMap::new();
    for (one, other) in a.iter().zip(b).filter(|(one, other)| boot(one) != boot(other)) {
        for measured in [one, other].into_iter().filter(|measured| !boot(measured).is_empty()) {
            if let Some(before) = seen.insert(boot(measured), &measured.path) {
                return Some((before.to_owned(), measured.path.clone()));
            }
        }
    }
    None
}

/// Turns a verdict into an inconclusive one.
fn open(proof: &mut Proof, why: &str) {
    if proof.verdict != Verdict::Inconclusive {
        (proof.verdict, proof.reason) = (Verdict::Inconclusive, why.to_owned());
    }
}

fn sides(paths: &[PathBuf], environment: &Environment) -> Result<[Vec<Measurement>; 2]> {
    let mut sides = paths.split(|path| path.as_os_str() == BETWEEN);
    let (a, b) = (sides.next().unwrap_or_default(), sides.next().unwrap_or_default());
    if a.is_empty() || b.is_empty() {
        return Err(Failure::usage(
            "--across-boots: put `--` between the runs without and the runs with the change: A... -- B...",
        ));
    }
    let open = |side: &[PathBuf]| -> Result<Vec<Measurement>> {
        side.iter().map(|path| ReadOptions::default().open(&named_run(path, environment)?)).collect()
    };
    Ok([open(a)?, open(b)?])
}

fn started(measured: &Measurement) -> String {
    measured.run.as_ref().map_or_else(String::new, |run| run.started.clone())
}

/// Experiment of pairs: the i-th run without the change and the i-th with it, by their times.
fn record(args: &Args, limit_ns: Nanos, arms: [&[Measurement]; 2]) -> Result<ExperimentRun> {
    let mut segments = Vec::new();
    for (at, both) in arms[0].iter().zip(arms[1]).enumerate() {
        for (arm, measured) in [(ExperimentArm::A, both.0), (ExperimentArm::B, both.1)] {
            let segment = segment_of(measured, &measured.path.display().to_string(), limit_ns)?;
            segments.push((started(measured), ExperimentSegment { pair: at as u32, arm, ..segment }));
        }
    }
    let first = arms[0].first().and_then(|measured| measured.run.as_ref());
    let cpus =
        first.map_or_else(String::new, |run| run.plan.cpus.iter().copied().collect::<CpuSet>().to_string());
    let load = first.map_or_else(String::new, |run| {
        run.loads.iter().map(|load| load.spec.as_str()).collect::<Vec<_>>().join(",")
    });
    let load_cpus =
        first.and_then(|run| run.loads.first()).map_or_else(String::new, |load| load.cpus.clone());
    let lengths = segments.iter().map(|(_, segment)| segment.observed_ns).max();
    segments.compact_sort_by(|one, other| (one.1.pair, &one.0).cmp(&(other.1.pair, &other.0)));
    let usual = usual();
    let plan = ExperimentPlan {
        change: "the difference between the boots".into(),
        limit_ns,
        cpus,
        load,
        load_cpus,
        interval_ns: first.and_then(|run| run.plan.interval_ns).unwrap_or(usual.interval_ns),
        priority: first.and_then(|run| run.plan.priority),
        settle_ns: Nanos(0),
        segment_ns: lengths.unwrap_or_default(),
        most_pairs: most_pairs(args.pairs)?,
        seed: args.conditions.seed.unwrap_or_default(),
        ..usual
    };
    let segments = segments.into_iter().map(|(_, segment)| segment).collect();
    Ok(ExperimentRun { schema: EXPERIMENT_SCHEMA.into(), plan, segments, ..ExperimentRun::default() })
}

/// Next run to make: a pair begins with the side with which fewer began.
fn next(plan: &ExperimentPlan, [a, b]: [usize; 2], began_with_b: usize, more: u32) -> [String; 3] {
    let pairs = a.min(b);
    let arm = match (a.cmp(&b), (2 * began_with_b).cmp(&pairs)) {
        (Ordering::Less, _) => ExperimentArm::A,
        (Ordering::Greater, _) => ExperimentArm::B,
        (_, Ordering::Less) => ExperimentArm::B,
        (_, Ordering::Greater) => ExperimentArm::A,
        _ => of_pair(plan.seed, pairs as u32)[0],
    };
    let with = match arm {
        ExperimentArm::A => "without the change",
        ExperimentArm::B => "with the change",
    };
    let length = (plan.segment_ns.0 / Nanos::SECOND.0).max(1);
    let mut command = format!("onbeat measure -a {} -i {}ns -D {length}s", plan.cpus, plan.interval_ns.0);
    if let Some(priority) = plan.priority.filter(|priority| *priority > 0) {
        command += &format!(" -p {priority}");
    }
    if !plan.load.is_empty() {
        command += &format!(" --load {} --load-cpus {}", plan.load, plan.load_cpus);
    }
    let missing = match more {
        0 => "pairs are missing to replace the dropped ones".to_owned(),
        1 => "at least 1 pair is missing".to_owned(),
        more => format!("at least {more} pairs are missing"),
    };
    [format!("boot {with}"), command + " -o NEW", missing]
}
