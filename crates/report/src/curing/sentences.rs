//! Sentences on a cure's record that all its forms share.

use crate::hunt::sentences::percent;
use crate::words::{capitalised, clean, duration, several, span};
use experiment::cure::negligible::share;
use model::cure::{CureCleanRun, CureCulprit, CureHunt, CurePlan, CureRun, CureStep};
use model::experiment::CountedUnit;
use model::units::{CpuSet, Nanos, named_cpus};

/// Limit of culprits of a hunt that are named.
pub const CULPRITS: usize = 5;

/// Least share of the late time from which unexplained time is mentioned.
const NAMED: f64 = 0.01;

/// Goal of the cure.
pub fn heading(record: &CureRun) -> String {
    let plan = &record.plan;
    format!("{} within {}", capitalised(&whose(plan)), span(plan.limit_ns))
}

/// Counted unit, and its threads or CPUs.
fn whose(plan: &CurePlan) -> String {
    let many = plan.counted().many();
    match (plan.victim.as_str(), plan.program.first()) {
        ("", None) => format!("{many} of {}", named_cpus(clean(&plan.cpus))),
        ("", Some(program)) => format!("{many} of {}", clean(program)),
        (victim, _) => format!("{many} of {}", clean(victim)),
    }
}

/// Followed program with its arguments; empty if wake-ups are counted.
fn followed(plan: &CurePlan) -> String {
    match plan.counted() {
        CountedUnit::WakeUps => String::new(),
        CountedUnit::Cycles if plan.program.is_empty() => format!("{} on ", whose(plan)),
        CountedUnit::Cycles => format!("cycles of {} on ", clean(&plan.program.join(" "))),
    }
}

/// Conditions that were fixed before the first run.
pub fn conditions(plan: &CurePlan) -> String {
    let load = match plan.load.as_str() {
        "" => "no load".to_owned(),
        load => format!("load {} on {}", clean(load), named_cpus(clean(&plan.load_cpus))),
    };
    format!(
        "late is {} or more; {}{}, {load}; the limit is to be supported for {}; at most {} in all; seed \
         {}",
        span(plan.limit_ns),
        followed(plan),
        named_cpus(clean(&plan.cpus)),
        length(plan.horizon_ns),
        length(plan.at_most_ns),
        plan.seed
    )
}

/// Conditions with the kernel and the time taken.
pub fn circumstances(record: &CureRun) -> String {
    let kernel = match record.kernel.as_str() {
        "" => String::new(),
        kernel => format!("; kernel {}", clean(kernel)),
    };
    let took = match record.spent_ns.0 {
        0 => String::new(),
        _ => format!("; took {}", length(record.spent_ns)),
    };
    format!("{}{kernel}{took}", conditions(&record.plan))
}

/// Result, with the reason for the end.
pub fn verdict(record: &CureRun) -> String {
    let changes = match record.kept_changes() {
        0 => "nothing was changed".to_owned(),
        count => format!("{} kept", several(count as u64, "change is", "changes are")),
    };
    let why = match record.why.trim().trim_end_matches('.') {
        "" => String::new(),
        why => format!(" {}.", capitalised(&clean(why))),
    };
    let last = last_run(record);
    let interrupted = record.ended == "signal" || (record.ended.is_empty() && why.is_empty());
    let head = match (record.held, interrupted, last.is_some_and(|run| run.late > 0)) {
        (true, ..) => "Held",
        (_, true, _) => "Interrupted",
        (_, _, true) => "Not held",
        _ => "Not known",
    };
    format!("{head}: {changes}.{why}")
}

/// First run that counts.
pub fn first_run(record: &CureRun) -> Option<&CureCleanRun> {
    record.runs.iter().find(|run| run.counts())
}

pub fn last_run(record: &CureRun) -> Option<&CureCleanRun> {
    let changes = record.kept_changes();
    record.runs.iter().rev().find(|run| run.counts() && run.changes == changes)
}

/// Number of late units in a run, and the worst.
pub fn of_run(run: &CureCleanRun, plan: &CurePlan) -> String {
    let (limit, counted) = (plan.limit_ns, plan.counted());
    let worst = run.max_ns.map_or_else(String::new, |max| format!("; the worst took {}", span(max)));
    let late = match run.late {
        0 => "none".to_owned(),
        late => late.to_string(),
    };
    format!(
        "{late} of {} in {} reached {}{worst}.",
        several(run.samples, counted.one(), counted.many()),
        length(run.observed_ns),
        span(limit)
    )
}

/// Sentence on the last run, which its first late wake-up may have ended.
pub fn of_last(run: &CureCleanRun, plan: &CurePlan) -> String {
    let cut = run.long && run.late > 0 && plan.counted() == CountedUnit::WakeUps;
    let cut = if cut { " This ended the run." } else { "" };
    let spoiled = if run.is_late_and_spoiled() {
        format!(" It is also invalid ({}), but its late ones still count.", clean(&run.why))
    } else {
        String::new()
    };
    format!("{}{cut}{spoiled}", of_run(run, plan))
}

/// Culprits of a hunt, the costliest first.
pub fn of_hunt(hunt: &CureHunt, counted: CountedUnit) -> Vec<String> {
    let named = hunt.culprits.iter().take(CULPRITS).map(|culprit| of_culprit(culprit, hunt, counted));
    let more = hunt.culprits.len().saturating_sub(CULPRITS);
    named.chain((more > 0).then(|| format!("and {more} more"))).chain(unexplained(hunt)).collect()
}

/// Time without a culprit, if its share is large enough to be mentioned.
fn unexplained(hunt: &CureHunt) -> Option<String> {
    let share = hunt.unexplained_ns.0 as f64 / hunt.latency_ns.0.max(1) as f64;
    (share >= NAMED).then(|| {
        let (percent, took) = (percent(share.min(1.0)), span(hunt.unexplained_ns));
        format!("no kernel event accounts for {percent} of the late time, {took}")
    })
}

fn of_culprit(culprit: &CureCulprit, hunt: &CureHunt, counted: CountedUnit) -> String {
    let share = share(culprit, hunt)
        .map_or_else(String::new, |share| format!("{} of the late time, ", percent(share)));
    format!("{}: {share}{} in {}", clean(&culprit.name), span(culprit.lost_ns), late(culprit.spikes, counted))
}

/// Number of late units, in words.
pub fn late(number: u64, counted: CountedUnit) -> String {
    let unit = if number == 1 { counted.one() } else { counted.many() };
    format!("{number} late {unit}")
}

/// Number and change of a step, and its outcome.
pub fn step_head(number: usize, step: &CureStep) -> String {
    let became = match (step.kept, step.verdict.as_str()) {
        (true, _) => "kept",
        (false, "") => "not decided",
        _ => "undone",
    };
    format!("{number}. {}, against {}: {became}", clean(&step.change), clean(&step.culprit))
}

/// Reason of a step's outcome, and the settling time after its switches if it was unusual.
pub fn step_why(step: &CureStep) -> String {
    let settling = match step.settling.trim() {
        "" => String::new(),
        reason => format!("; {}", clean(reason)),
    };
    match (step.verdict.as_str(), step.why.trim()) {
        ("", _) => "it was interrupted".to_owned(),
        (verdict, "") => format!("{}{settling}", clean(verdict)),
        (verdict, why) => format!("{}: {}{settling}", clean(verdict), clean(why)),
    }
}

/// Numbers without and with the change, with the interval.
pub fn step_numbers(step: &CureStep, counted: CountedUnit) -> String {
    let [a, b] = step.late;
    let ratio =
        step.rate_ratio.map_or_else(String::new, |ratio| format!(", {} times as often", digits(ratio)));
    let interval = step.ci.map_or_else(String::new, |[from, to]| {
        format!(" [in the typical pair {} to {}, with 95 %]", digits(from), digits(to))
    });
    format!(
        "late {}: {a} without it, {b} with it{ratio}{interval}; fewer in {} of {}: e-value {} of {}",
        counted.many(),
        step.wins,
        several(step.pairs, "pair", "pairs"),
        digits(step.e_value),
        digits(step.level)
    )
}

/// Values of `needs`, and their headings.
pub const NEEDS: [(&str, &str); 4] = [
    ("reboot", "needs a reboot"),
    ("kernel", "needs another kernel"),
    ("hardware", "needs other hardware or firmware"),
    ("decision", "needs a decision"),
];

/// Remaining needs of a kind: the culprits, and the need, once for all culprits that share it.
pub fn left_of<'a>(record: &'a CureRun, needs: &str) -> Vec<(String, &'a str)> {
    let mut all: Vec<(String, &str)> = Vec::new();
    for one in record.remaining.iter().filter(|one| one.needs == needs) {
        let (culprit, what) = (clean(&one.culprit), one.what.as_str());
        match all.iter_mut().find(|(_, text)| *text == what) {
            Some((culprits, _)) => *culprits += &format!("; {culprit}"),
            None => all.push((culprit, what)),
        }
    }
    all
}

/// Largest culprit that was not removed, if the limit is not held.
pub fn in_the_way(record: &CureRun) -> Option<String> {
    let first = record.remaining.first().filter(|_| !record.held)?;
    Some(format!("{}: {}", clean(&first.culprit), clean(first.what.trim().trim_end_matches('.'))))
}

/// Next step for kept changes; none if nothing was kept.
pub fn next_step(record: &CureRun) -> Option<String> {
    let threads = record.steps.iter().any(|step| step.kept && !step.candidate.threads.is_empty());
    let of_threads =
        if threads { " Set the CPUs of program threads where the programs are started." } else { "" };
    (record.kept_changes() > 0).then(|| {
        let lasting = lasting(record).map_or_else(String::new, |how| format!(" `{how}` makes it permanent,"));
        format!(
            "The kept state lasts until the next boot:{lasting} `onbeat tune undo` reverts it.{of_threads}"
        )
    })
}

/// Commands to type next; `""` if nothing was kept.
pub fn next_commands(record: &CureRun) -> String {
    if record.kept_changes() == 0 {
        return String::new();
    }
    let lasts = lasting(record).map(|how| format!("{how} (permanent)"));
    let back = "onbeat tune undo (reverts all)".to_owned();
    let threads = record.steps.iter().any(|step| step.kept && !step.candidate.threads.is_empty());
    let where_set = threads.then(|| "set the CPUs of threads where they are started".to_owned());
    lasts.into_iter().chain([back]).chain(where_set).collect::<Vec<_>>().join("; ")
}

/// Command that writes the kept changes as files. Without its rules it would write all that an
/// audit misses, unproven. Only names are copied from the record into the command.
fn lasting(record: &CureRun) -> Option<String> {
    let is_name = |rule: &&String| rule.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
    let steps = record.steps.iter().filter(|step| step.kept);
    let mut rules: Vec<&str> = Vec::new();
    for rule in steps.flat_map(|step| &step.candidate.rules).filter(is_name) {
        if !rules.contains(&rule.as_str()) {
            rules.push(rule);
        }
    }
    let cpus = CpuSet::parse(&record.plan.cpus).ok()?;
    (!rules.is_empty()).then(|| format!("onbeat tune export tuning --cpus {cpus} {}", rules.join(" ")))
}

/// Length in seconds, or in minutes from two minutes on.
fn length(span_of: Nanos) -> String {
    if span_of.0 < 120 * Nanos::SECOND.0 { span(span_of) } else { duration(span_of) }
}

/// Number with three digits.
pub fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if !(0.001..100_000.0).contains(&size) => format!("{value:.1e}"),
        size if size >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}
