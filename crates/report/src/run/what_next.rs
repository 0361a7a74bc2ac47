//! What to type after a run, as the page says it next to the answer.

use crate::input::Input;
use model::run::Run;
use model::vocabulary::Command;

/// Sentences with commands in back-ticks; none where nothing follows from the run.
pub fn what_next(input: &Input) -> Vec<String> {
    let run = input.run;
    if run.integrity.iter().any(|entry| entry.invalidates) {
        return vec!["Mend what spoiled this run, then measure again.".into()];
    }
    match run.command.known() {
        Some(Command::Hunt) if !run.spikes.is_empty() => after_culprits(run),
        Some(Command::Hunt) => vec![
            "Nothing was late enough to be explained: hunt for longer, with a lower `--over`, or under the \
             load that the machine will have (`--load`)."
                .into(),
        ],
        Some(Command::Measure) => after_measuring(input),
        Some(Command::Import) => {
            let words = "`onbeat bounds` says what it supports; `onbeat hunt` on the machine itself \
                         names who took the time.";
            vec![words.into()]
        }
        _ => Vec::new(),
    }
}

fn after_culprits(run: &Run) -> Vec<String> {
    let mut steps = Vec::new();
    if run.culprits.iter().any(|culprit| !culprit.knobs.is_empty()) {
        steps.push(
            "`onbeat audit --hunt RUN` lists the settings that matter, by the time that this hunt lost to \
             them; `onbeat prove --change RULE=VALUE` shows whether one helps."
                .into(),
        );
    }
    if run.culprits.is_empty() {
        steps.push("No culprit was named: open a spike below and look at its evidence.".into());
    }
    steps
}

fn after_measuring(input: &Input) -> Vec<String> {
    let who = "`onbeat hunt`, with the same flags, names who took the time of the late ones; `onbeat \
               audit` says which settings stand in the way.";
    let claim =
        "Name the limit that matters: `onbeat bounds RUN --limit 100us` says whether this run supports it.";
    let mut steps = vec![who.to_owned()];
    if input.limit().is_none() {
        steps.push(claim.to_owned());
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fixture, hunt};
    use model::run::Integrity;

    #[test]
    fn each_end_of_a_run_has_a_next_step() {
        let sample = fixture::quiet();
        let of = |run: &Run| what_next(&Input { run, ..sample.input() }).join(" ");
        let mut run = sample.run.clone();
        assert!(of(&run).contains("onbeat hunt"));
        run.integrity = vec![Integrity { invalidates: true, ..Integrity::default() }];
        assert!(of(&run).starts_with("Mend"));
        let mut hunt = hunt::fixture::run();
        hunt.integrity.clear();
        assert!(of(&hunt).contains("onbeat audit --hunt"), "{}", of(&hunt));
        hunt.spikes.clear();
        assert!(of(&hunt).contains("--over"));
        run.integrity.clear();
        run.command = "import".into();
        assert!(of(&run).contains("onbeat bounds"));
        run.command = "probe".into();
        assert_eq!(of(&run), "");
    }
}
