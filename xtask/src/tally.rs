//! What passed, what failed, what was left out and why: printed as it happens, counted at the end.

/// How one step or check ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// As it should be.
    Passed,
    /// Not as it should be, in words.
    Failed(String),
    /// Not tried, with the reason.
    LeftOut(String),
}

impl From<Result<(), String>> for Outcome {
    fn from(result: Result<(), String>) -> Outcome {
        match result {
            Ok(()) => Outcome::Passed,
            Err(why) => Outcome::Failed(why),
        }
    }
}

/// The outcomes of a command.
#[derive(Default)]
pub struct Tally {
    entries: Vec<(String, Outcome)>,
}

impl Tally {
    /// Prints and counts one outcome.
    pub fn note(&mut self, name: impl Into<String>, outcome: Outcome) {
        let name = name.into();
        println!("{}", line_of(&name, &outcome));
        self.entries.push((name, outcome));
    }

    /// Takes over another command's outcomes, which are printed already.
    pub fn take(&mut self, other: Tally) {
        self.entries.extend(other.entries);
    }

    /// Whether anything failed.
    pub fn failed(&self) -> bool {
        self.entries.iter().any(|(_, outcome)| matches!(outcome, Outcome::Failed(_)))
    }

    /// Names what did not pass; the last line has the numbers.
    pub fn summary(&self) -> String {
        let (mut passed, mut failed, mut skipped) = (0, 0, 0);
        let mut lines = String::new();
        for (name, outcome) in &self.entries {
            match outcome {
                Outcome::Passed => passed += 1,
                Outcome::Failed(_) => failed += 1,
                Outcome::LeftOut(_) => skipped += 1,
            }
            if *outcome != Outcome::Passed {
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

fn line_of(name: &str, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Passed => format!("ok        {name}"),
        Outcome::Failed(why) => format!("FAIL      {name}: {why}"),
        Outcome::LeftOut(why) => format!("left out  {name} ({why})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_counted_and_what_did_not_pass_is_named() {
        let mut tally = Tally::default();
        tally.note("a", Outcome::Passed);
        tally.note("b", Outcome::LeftOut("no emulator".into()));
        assert!(!tally.failed());
        tally.note("c", Outcome::from(Err("too late".to_string())));
        assert!(tally.failed() && tally.close().is_err());
        assert_eq!(
            tally.summary(),
            "left out  b (no emulator)\nFAIL      c: too late\n1 passed, 1 failed, 1 skipped"
        );
    }
}
