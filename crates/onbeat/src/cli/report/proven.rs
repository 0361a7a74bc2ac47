//! Report of an experiment's folder: its answer, as of its last segment.

use super::Args;
use crate::cli::outputs::{Outputs, Screen};
use crate::cli::prove::answer::page;
use crate::cli::prove::folder::read_record;
use experiment::needs::ProofNeeds;
use experiment::proof::prove;
use experiment::tally::PairTally;
use model::error::{Exit, Failure, Result};
use report::ReportFormat;
use report::proving::{Proven, text};
use study::compare::series;
use study::proving::{answer, arms};

impl Args {
    /// Report of the pairs and their result, whether the experiment has ended or not.
    pub fn of_experiment(&self, format: Option<ReportFormat>, mut outputs: Outputs) -> Result<Exit> {
        let of_runs = self.rt_tests_json.is_some() || self.hist.is_some() || self.asked.is_given();
        let refusal = "expected the folder of an experiment alone: `report DIR`, with -o \
                       FILE.html or .json";
        let ([one], false) = (self.bundles.as_slice(), of_runs) else {
            return Err(Failure::usage(refusal));
        };
        let record = read_record(one)?;
        let tally = PairTally::of(&record.segments);
        let (proof, needs) = (prove(&record.plan, &tally), ProofNeeds::of(&record.plan, &tally));
        let [mut a, mut b] = arms(one, &record)?;
        // The record does not contain the reason for an end before its pairs decided.
        let stopped = proof.end.map_or("signal", |end| end.name());
        let answered = answer(&record, &proof, stopped, [&mut a, &mut b]);
        outputs.json_pretty(&self.output.json, &answered);
        let differing = answered.comparison.differing().filter(|_| !a.is_empty());
        let proven = Proven { run: &record, proof: &proof, needs, differing, next: None };
        let Screen { columns, color } = outputs.screen;
        match format {
            Some(ReportFormat::Html) => outputs.write(&self.file_or_stdout(), || {
                page(&record, &proof, needs, &answered, [series(&a), series(&b)], None)
            }),
            Some(ReportFormat::Json) => outputs.json_pretty(&self.file_or_stdout(), &answered),
            Some(_) => return Err(Failure::usage(refusal)),
            None if self.file.is_some() => outputs.write(&self.file, || Ok(text(&proven, columns, false))),
            None if self.prints_table() => outputs.print(&text(&proven, columns, color)),
            None => {}
        }
        outputs.end(Exit::Ok)
    }
}
