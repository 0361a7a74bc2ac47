//! Output of sending: lines on standard error and, with `--json`, a document.

use std::io::Write;
use std::path::{Path, PathBuf};

use model::error::{Exit, Failure, Result, json_pretty};
use model::text::{clean, harmless, quoted, several};
use serde::Serialize;

use super::session::RoundOutcome;

/// Output flags.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct PushWords {
    /// With --once, write a JSON summary of sent and unsent items to this file; `-` is standard
    /// output
    #[arg(long, value_name = "FILE", requires = "once")]
    json: Option<PathBuf>,
    /// Print no remarks on standard error
    #[arg(short, long)]
    quiet: bool,
}

/// Sum of all rounds of `--once`.
#[derive(Debug, Serialize)]
pub struct PushDocument {
    schema: &'static str,
    /// Rows that were new to the farm; `runs` counts such runs.
    rows: u64,
    runs: u64,
    /// Items that the farm refused or has with other content; `remarks` give the reasons.
    refused: u64,
    /// Rows merged or dropped before they were sent; `dropped` counts runs removed before that.
    lost: u64,
    dropped: u64,
    /// True if something remains to be sent.
    left: bool,
    remarks: Vec<String>,
}

impl Default for PushDocument {
    fn default() -> PushDocument {
        PushDocument {
            schema: "onbeat.push/1",
            rows: 0,
            runs: 0,
            refused: 0,
            lost: 0,
            dropped: 0,
            left: false,
            remarks: Vec::new(),
        }
    }
}

impl PushDocument {
    /// Adds a round. `left` is that of the last round, which may have sent what earlier ones left.
    pub fn add(&mut self, round: &RoundOutcome) {
        self.rows = self.rows.saturating_add(round.rows);
        self.runs = self.runs.saturating_add(round.runs);
        self.refused = self.refused.saturating_add(round.refused);
        self.lost = self.lost.saturating_add(round.lost);
        self.dropped = self.dropped.saturating_add(round.dropped);
        self.left = round.left;
        for remark in round.remarks.iter().map(|remark| clean(remark)) {
            if !self.remarks.contains(&remark) {
                self.remarks.push(remark);
            }
        }
    }

    /// Marks something as left to be sent: the last round did not finish.
    pub fn leave(&mut self) {
        self.left = true;
    }

    /// True if something is unsent, for now or for good.
    pub fn is_short(&self) -> bool {
        self.left || self.refused > 0 || self.lost > 0 || self.dropped > 0
    }
}

impl PushWords {
    /// Checks that the `--json` file can be written, before anything is sent.
    pub fn check(&self) -> Result<()> {
        match &self.json {
            Some(path) if path != Path::new("-") => {
                host::check_writable(path).map_err(|error| unwritable(path, &error))
            }
            _ => Ok(()),
        }
    }

    /// Prints a line on standard error, unless `--quiet` is set.
    pub fn remark(&self, line: &str) {
        if !self.quiet {
            say(line);
        }
    }

    /// Prints the remarks and counts of a round; skips the remarks in `told`.
    pub fn tell(&self, outcome: &RoundOutcome, told: &[String]) {
        for remark in outcome.remarks.iter().filter(|remark| !told.contains(remark)) {
            self.remark(&clean(remark));
        }
        if outcome.lost > 0 {
            let rows = several(outcome.lost, "row", "rows");
            self.remark(&format!("{rows} were merged to hours or dropped before they could be sent"));
        }
        if outcome.rows + outcome.runs > 0 {
            let (rows, runs) = (several(outcome.rows, "row", "rows"), several(outcome.runs, "run", "runs"));
            self.remark(&format!("{rows} and {runs} sent"));
        }
    }

    /// Writes the document to the `--json` file, if any.
    pub fn write(&self, document: &PushDocument) -> Result<()> {
        let Some(path) = &self.json else { return Ok(()) };
        let text = json_pretty(document)?;
        host::write_document(path, &harmless(&text)).map_err(|error| unwritable(path, &error))
    }
}

/// Prints a line on standard error; a write error does not end the program.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "onbeat-push: {line}");
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    let what = format!("--json: cannot write {}", quoted(path));
    Failure::of_call(what, error, Exit::Usage, "name a file in a folder that you may write to")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_add_up_and_what_the_last_one_left_is_left() {
        let mut document = PushDocument::default();
        let remarks = vec!["row 3 is skipped: in the future".to_owned()];
        let first = RoundOutcome { rows: 5, refused: 1, left: true, remarks, ..RoundOutcome::default() };
        assert!(!document.is_short());
        document.add(&first);
        document.add(&RoundOutcome { rows: 2, runs: 1, left: true, refused: 0, ..first });
        assert_eq!((document.rows, document.runs, document.refused), (7, 1, 1));
        assert!(document.left && document.is_short() && document.remarks.len() == 1, "{document:?}");
        for one in [RoundOutcome { lost: 1, ..RoundOutcome::default() }, RoundOutcome::default()] {
            let mut document = PushDocument::default();
            document.add(&one);
            assert_eq!(document.is_short(), one.lost > 0);
            document.leave();
            assert!(document.is_short());
            // A run that waited for a measurement was sent after it.
            document.add(&RoundOutcome { runs: 1, ..RoundOutcome::default() });
            assert_eq!((document.left, document.is_short()), (false, one.lost > 0));
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("push.json");
        let words = PushWords { json: Some(file.clone()), quiet: true };
        words.check().unwrap();
        words.write(&document).unwrap();
        let written = host::read_user_file(&file, 1 << 10).unwrap();
        let written: serde_json::Value = serde_json::from_slice(&written).unwrap();
        assert_eq!((&written["schema"], &written["rows"]), (&"onbeat.push/1".into(), &7.into()));
        let gone = PushWords { json: Some(folder.path().join("gone/push.json")), quiet: true };
        assert_eq!(gone.check().unwrap_err().exit, Exit::Usage);
    }
}
