//! `prove --across-boots`: the same verdict from bundles, where a change takes a reboot.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Args;
use super::answer::{exit, page};
use super::chosen::most_pairs;
use crate::cli::compare::BETWEEN;
use crate::cli::outputs::Outputs;
use experiment::design::usual;
use experiment::order::of_pair;
use experiment::proof::{Proof, ProofNeeds, prove};
use experiment::tally::PairTally;
use model::error::{Exit, Failure, Result};
use model::experiment::{EXPERIMENT_SCHEMA, ExperimentArm, ExperimentPlan, ExperimentRun, ExperimentSegment};
use model::text::{quoted, several};
use report::proving::{Proven, text};
use stats::compare::design::of_starts;
use stats::pair::verdict::{Design, Verdict};
use study::compare::{check_comparable, series};
use study::measurement::{Measurement, ReadOptions};
use study::proving::{answer, segment_of};

pub fn run(args: &Args, mut outputs: Outputs) -> Result<Exit> {
    let limit_ns = args.conditions.limit()?;
    let [mut a, mut b] = sides(&args.across_boots)?;
    check_comparable(&a, &b)?;
    [&mut a, &mut b].into_iter().for_each(|side| side.sort_by_key(started));
    let pairs = a.len().min(b.len());
    let record = record(args, limit_ns, [&a[..pairs], &b[..pairs]])?;
    let tally = PairTally::of(&record.segments);
    let (mut proof, needs) = (prove(&record.plan, &tally), ProofNeeds::of(&record.plan, &tally));
    let paired = [&a[..pairs], &b[..pairs]];
    if !alternated(paired) {
        open(
            &mut proof,
            "the runs were not made in turns, each two of them one without the change and one with it: what \
             changed meanwhile may be the difference",
        );
    } else if let Some((one, other)) = of_one_boot(paired) {
        let what = format!(
            "{} and {} are of one boot, and of different pairs: what that boot happened to be counts twice; \
             boot between them",
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
    let (mut a, mut b) = (kept(a), kept(b));
    let answered = answer(&record, &proof, proof.end.map_or("fixed", |end| end.name()), [&mut a, &mut b]);
    outputs.json_pretty(&args.output.json, &answered);
    let next = proof.end.is_none().then(|| next(&record.plan, [whole_a, whole_b], proof.fewest_more));
    outputs.write(&args.page, || {
        let told = next.as_ref().map(|[boot, command, missing]| {
            format!("{}, then `{command}`; {missing}.", boot.replacen('b', "B", 1))
        });
        page(&record, &proof, needs, &answered, [series(&a), series(&b)], told.as_deref())
    });
    let differing = answered.comparison.differing();
    let screen = outputs.screen;
    outputs.print(&text(
        &Proven { run: &record, proof: &proof, needs, differing },
        screen.columns,
        screen.color,
    ));
    if let Some([boot, command, missing]) = next {
        outputs.print(&format!("next: {boot}, then: {command}; {missing}\n"));
    }
    outputs.end(exit(proof.verdict))
}

/// Whether in the order of time each two runs have one of A and one of B: only then is a pair's
/// winner a coin's, whatever the machine does over the days.
fn alternated([a, b]: [&[Measurement]; 2]) -> bool {
    let starts = |side: &[Measurement]| -> Vec<String> { side.iter().map(started).collect() };
    of_starts(&starts(a), &starts(b)) == Design::Paired
}

/// Two runs of one boot in different pairs whose partners are of other boots: a pair whose runs
/// share their boot differs by the change alone, and others only count as often as was booted.
/// What boot it was is not known of bundles of older versions.
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

/// Takes a verdict back.
fn open(proof: &mut Proof, why: &str) {
    if proof.verdict != Verdict::Inconclusive {
        (proof.verdict, proof.reason) = (Verdict::Inconclusive, why.to_owned());
    }
}

fn sides(paths: &[PathBuf]) -> Result<[Vec<Measurement>; 2]> {
    let mut sides = paths.split(|path| path.as_os_str() == BETWEEN);
    let (a, b) = (sides.next().unwrap_or_default(), sides.next().unwrap_or_default());
    if a.is_empty() || b.is_empty() {
        return Err(Failure::usage(
            "--across-boots: put `--` between the runs without the change and those with it: A... -- B...",
        ));
    }
    let open = |side: &[PathBuf]| -> Result<Vec<Measurement>> {
        side.iter().map(|path| ReadOptions::default().open(path)).collect()
    };
    Ok([open(a)?, open(b)?])
}

fn started(measured: &Measurement) -> String {
    measured.run.as_ref().map_or_else(String::new, |run| run.started.clone())
}

/// The i-th run without the change beside the i-th with it, by their times.
fn record(args: &Args, limit_ns: model::units::Nanos, arms: [&[Measurement]; 2]) -> Result<ExperimentRun> {
    let mut segments = Vec::new();
    for (at, both) in arms[0].iter().zip(arms[1]).enumerate() {
        for (arm, measured) in [(ExperimentArm::A, both.0), (ExperimentArm::B, both.1)] {
            let segment = segment_of(measured, &measured.path.display().to_string(), limit_ns)?;
            segments.push((started(measured), ExperimentSegment { pair: at as u32, arm, ..segment }));
        }
    }
    let first = arms[0].first().and_then(|measured| measured.run.as_ref());
    let cpus = first.map_or_else(String::new, |run| {
        run.plan.cpus.iter().copied().collect::<model::units::CpuSet>().to_string()
    });
    let lengths = segments.iter().map(|(_, segment)| segment.observed_ns).max();
    segments.sort_by(|one, other| (one.1.pair, &one.0).cmp(&(other.1.pair, &other.0)));
    let plan = ExperimentPlan {
        change: "what differs between the boots".into(),
        limit_ns,
        cpus,
        settle_ns: model::units::Nanos(0),
        segment_ns: lengths.unwrap_or_default(),
        most_pairs: most_pairs(args.pairs)?,
        seed: args.conditions.seed.unwrap_or_default(),
        ..usual()
    };
    let segments = segments.into_iter().map(|(_, segment)| segment).collect();
    Ok(ExperimentRun { schema: EXPERIMENT_SCHEMA.into(), plan, segments, ..ExperimentRun::default() })
}

/// What to run next to have enough.
fn next(plan: &ExperimentPlan, [a, b]: [usize; 2], more: u32) -> [String; 3] {
    let arm = match a.cmp(&b) {
        std::cmp::Ordering::Less => ExperimentArm::A,
        std::cmp::Ordering::Greater => ExperimentArm::B,
        std::cmp::Ordering::Equal => of_pair(plan.seed, a as u32)[0],
    };
    let with = match arm {
        ExperimentArm::A => "without the change",
        ExperimentArm::B => "with the change",
    };
    let length = plan.segment_ns.0 / model::units::Nanos::SECOND.0;
    [
        format!("boot {with}"),
        format!("onbeat measure -a {} -D {}s -o NEW", plan.cpus, length.max(1)),
        format!("{} at least are missing", several(u64::from(more), "pair", "pairs")),
    ]
}
