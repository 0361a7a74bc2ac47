//! Passed, failed and skipped steps with reasons: printed at once, counted at the end.

/// Outcome of one step or check.
#[derive(Clone, Debug, PartialEq)]
pub enum StepOutcome {
    /// As expected.
    Passed,
    /// Not as expected, with the fault in words.
    Failed(String),
    /// Not run, with the reason.
    LeftOut(String),
}

impl From<Result<(), String>> for StepOutcome {
    fn from(result: Result<(), String>) -> StepOutcome {
        match result {
            Ok(()) => StepOutcome::Passed,
            Err(why) => StepOutcome::Failed(why),
        }
    }
}

/// The outcomes of a command.
#[derive(Default)]
pub struct Tally {
    entries: Vec<(String, StepOutcome)>,
}

impl Tally {
    /// Prints and counts one outcome.
    pub fn note(&mut self, name: impl Into<String>, outcome: StepOutcome) {
        let name = name.into();
        println!("{}", line_of(&name, &outcome));
        self.entries.push((name, outcome));
    }

    /// Adds another command's outcomes, which are printed already.
    pub fn take(&mut self, other: Tally) {
        self.entries.extend(other.entries);
    }

    /// Names and outcomes, in the order of their end.
    pub fn entries(&self) -> &[(String, StepOutcome)] {
        &self.entries
    }

    /// Names of the skipped ones.
    pub fn left_out(&self) -> impl Iterator<Item = &str> {
        let left_out = self.entries.iter().filter(|(_, outcome)| matches!(outcome, StepOutcome::LeftOut(_)));
        left_out.map(|(name, _)| name.as_str())
    }

    /// True if anything failed.
    pub fn failed(&self) -> bool {
        self.entries.iter().any(|(_, outcome)| matches!(outcome, StepOutcome::Failed(_)))
    }

    /// Names of all that did not pass; the last line has the numbers.
    pub fn summary(&self) -> String {
        let (mut passed, mut failed, mut skipped) = (0, 0, 0);
        let mut lines = String::new();
        for (name, outcome) in &self.entries {
            match outcome {
                StepOutcome::Passed => passed += 1,
                StepOutcome::Failed(_) => failed += 1,
                StepOutcome::LeftOut(_) => skipped += 1,
            }
            if *outcome != StepOutcome::Passed {
                lines += &line_of(name, outcome);
                lines.push('\n');
            }
        }
        lines + &format!("{passed} passed, {failed} failed, {skipped} skipped")
    }

    /// Prints the summary; an error if anything failed.
    pub fn close(&self) -> Result<(), String> {
        println!("\n{}", self.summary());
        if self.failed() { Err("not everything passed".to_string()) } else { Ok(()) }
    }
}

fn line_of(name: &str, outcome: &StepOutcome) -> String {
    match outcome {
        StepOutcome::Passed => format!("ok        {name}"),
        StepOutcome::Failed(why) => format!("FAIL      {name}: {why}"),
        StepOutcome::LeftOut(why) => format!("left out  {name} ({why})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_counted_and_what_did_not_pass_is_named() {
        let mut tally = Tally::default();
        tally.note("a", StepOutcome::Passed);
        tally.note("b", StepOutcome::LeftOut("no emulator".into()));
        assert!(!tally.failed());
        tally.note("c", StepOutcome::from(Err("too late".to_string())));
        assert!(tally.failed() && tally.close().is_err());
        assert_eq!(
            tally.summary(),
            "left out  b (no emulator)\nFAIL      c: too late\n1 passed, 1 failed, 1 skipped"
        );
    }
}
