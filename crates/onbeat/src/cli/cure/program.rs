//! Findings of `onbeat check` in the program whose cycles are counted: no setting repairs them.

use super::course::CureCourse;
use crate::cli::child_run::{ChildEnd, run_child};
use host::read_user_file;
use model::cure::{CurePlan, CureRemaining, CureRun};
use model::error::Result;
use model::experiment::CountedUnit;
use study::curing_program::program_findings;

/// Duration of the check.
const LOOK: &str = "3s";

/// Maximum size of the document.
const LIMIT: u64 = 16 << 20;

impl CureCourse<'_> {
    /// Checks the program, and records the findings; false if a stop signal came.
    pub fn look_at_program(&self, record: &mut CureRun) -> Result<bool> {
        if record.plan.counted() == CountedUnit::WakeUps {
            return Ok(true);
        }
        let file = self.folder.join("check.json");
        let mut line: Vec<String> = ["check", "-q", "-D", LOOK, "--json"].map(str::to_owned).into();
        line.push(file.display().to_string());
        match record.plan.victim.as_str() {
            "" => {
                line.push("--".to_owned());
                line.extend(record.plan.program.iter().cloned());
            }
            victim => line.push(victim.to_owned()),
        }
        let end = run_child(&line, None, &mut || self.pause("checking the program"))?;
        self.progress.clear();
        let ChildEnd::Ended { words, .. } = end else { return Ok(false) };
        let read = read_user_file(&file, LIMIT).map_err(|error| {
            if words.is_empty() { error.to_string() } else { words.trim_start_matches("onbeat: ").to_owned() }
        });
        record.program_findings = match read.and_then(|bytes| program_findings(&bytes)) {
            Ok(found) => found,
            // A failed check is not a finding against the program, but is reported.
            Err(why) => vec![CureRemaining {
                culprit: name(&record.plan),
                needs: "decision".into(),
                what: format!("`onbeat check` could not check it: {why}"),
            }],
        };
        Ok(true)
    }
}

/// Name of the program whose cycles are counted.
fn name(plan: &CurePlan) -> String {
    match plan.program.first() {
        Some(program) => program.clone(),
        None => plan.victim.clone(),
    }
}
