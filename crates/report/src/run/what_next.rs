//! Next steps after a run, for the page, below the answer.

use super::answer::hunt;
use crate::hunt::program::void;
use crate::hunt::sentences::percent;
use crate::input::Input;
use crate::totals::largest;
use crate::words::{capitalised, span};
use model::units::Nanos;
use model::vocabulary::Command;

/// Sentences with commands in back-ticks; none if no step follows from the run.
pub fn what_next(input: &Input) -> Vec<String> {
    let run = input.run;
    if run.integrity.iter().any(|entry| entry.invalidates) {
        return vec!["Fix what made this run invalid, then measure again.".into()];
    }
    match run.command.known() {
        Some(Command::Hunt) if !run.spikes.is_empty() => after_culprits(input),
        Some(Command::Hunt) if void(run).is_some() => {
            void(run).map(|nothing| format!("{}.", capitalised(&nothing.remedy))).into_iter().collect()
        }
        Some(Command::Hunt) => vec![
            "No latency was large enough to be explained: hunt longer, with a lower `--over`, or under a \
             realistic load (`--load`)."
                .into(),
        ],
        Some(Command::Measure) => after_measuring(input),
        Some(Command::Import) => {
            let bounds = format!("onbeat bounds {}", input.place);
            vec![format!(
                "{} computes what it supports; `onbeat hunt` on the machine itself names the culprits.",
                command(&bounds)
            )]
        }
        _ => Vec::new(),
    }
}

/// Command as code; a path may hold a back-tick, which would end it.
fn command(line: &str) -> String {
    if line.contains('`') { line.to_owned() } else { format!("`{line}`") }
}

fn after_culprits(input: &Input) -> Vec<String> {
    let run = input.run;
    let mut steps = Vec::new();
    // A thread with a higher priority, or a lock, belongs to the programs: no setting cures those.
    let first = run.culprits.first().filter(|culprit| culprit.knobs.is_empty());
    if let Some(first) = first {
        steps.push(format!(
            "No setting of the machine removes the first culprit, {}: see the remedy below it.",
            percent(first.share)
        ));
    }
    if run.culprits.iter().any(|culprit| !culprit.knobs.is_empty()) {
        let audit = format!("onbeat audit --hunt {}", input.place);
        steps.push(format!(
            "{} lists the relevant settings{}, by the time lost to each in this hunt; `onbeat prove --change \
             RULE=VALUE` shows whether one helps.",
            command(&audit),
            if first.is_some() { " for the others" } else { "" },
        ));
    }
    if run.culprits.is_empty() {
        steps.push("No culprit was found: open a spike below and look at its evidence.".into());
    }
    steps
}

/// Suggested limit: round, and above the maximum, because a limit that was reached is not held.
fn not_reached(worst: Nanos) -> Nanos {
    let decades = (0..10).map(|power| 10_000 * 10i64.pow(power));
    let round = decades.flat_map(|decade| [decade, 2 * decade, 5 * decade]).map(Nanos);
    round.skip(3).find(|limit| *limit > worst).unwrap_or(Nanos(100_000))
}

fn after_measuring(input: &Input) -> Vec<String> {
    let who = format!(
        "{} names the culprits of late wake-ups; `onbeat audit` lists wrong settings.",
        command(&hunt(input.run))
    );
    let mut steps = vec![who];
    if input.limit().is_none() {
        let limit = not_reached(largest(input.run).unwrap_or_default());
        let flag = limit.to_string().replace(' ', "");
        let bounds = format!("onbeat bounds {} --limit {flag}", input.place);
        let limit = span(limit);
        steps.push(format!("{} tells whether this run supports a limit, here {limit}.", command(&bounds)));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fixture, hunt};
    use model::run::{Integrity, Run};

    #[test]
    fn the_limit_to_ask_about_is_above_what_was_seen() {
        for (worst, limit) in [(0, 100_000), (99_999, 100_000), (100_000, 200_000), (4_560_000, 5_000_000)] {
            assert_eq!(not_reached(Nanos(worst)), Nanos(limit));
        }
        assert_eq!(not_reached(Nanos(i64::MAX)), Nanos(100_000));
    }

    #[test]
    fn each_end_of_a_run_has_a_next_step() {
        let sample = fixture::quiet();
        let of = |run: &Run| what_next(&Input { run, ..sample.input() }).join(" ");
        let mut run = sample.run.clone();
        assert!(of(&run).contains("`onbeat hunt -D 60s"), "{}", of(&run));
        assert!(of(&run).contains("`onbeat bounds /runs/x --limit 100us`"), "{}", of(&run));
        run.integrity = vec![Integrity { invalidates: true, ..Integrity::default() }];
        assert!(of(&run).starts_with("Fix"));
        let mut hunt = hunt::fixture::run();
        hunt.integrity.clear();
        assert!(of(&hunt).contains("`onbeat audit --hunt /runs/x`"), "{}", of(&hunt));
        hunt.spikes.clear();
        assert!(of(&hunt).contains("--over"));
        (hunt.plan.interval_ns, hunt.complete, hunt.ended) = (None, true, "victim".into());
        hunt.cpus.clear();
        assert!(of(&hunt).starts_with("Follow threads that sleep and wake"), "{}", of(&hunt));
        run.integrity.clear();
        run.command = "import".into();
        assert!(of(&run).contains("`onbeat bounds /runs/x`"));
        let ticks = what_next(&Input { run: &run, place: "'a`b'", ..sample.input() }).join(" ");
        assert!(ticks.starts_with("onbeat bounds 'a`b' computes"), "{ticks}");
        run.command = "probe".into();
        assert_eq!(of(&run), "");
    }
}
