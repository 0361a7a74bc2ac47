//! Result of an experiment: printed, written, and turned into an exit code.

use std::path::Path;

use super::Args;
use super::segments::PairsEnd;
use crate::cli::outputs::Outputs;
use experiment::needs::ProofNeeds;
use experiment::proof::{Proof, prove};
use experiment::tally::PairTally;
use model::error::{Exit, Result, json};
use model::experiment::ExperimentRun;
use model::text::clean;
use report::compare::page::{Versus, VersusTexts, html};
use report::proving::{Proven, conditions, heading, numbers, text, verdict};
use report::words::capitalised;
use stats::pair::verdict::Verdict;
use study::compare::series;
use study::proving::{ProofAnswer, answer, arms};

/// Prints and writes the result of the segments up to now.
pub fn print_answer(
    outputs: &mut Outputs,
    args: &Args,
    folder: &Path,
    record: &ExperimentRun,
    ended: &PairsEnd,
) -> Result<Exit> {
    let tally = PairTally::of(&record.segments);
    let (proof, needs) = (prove(&record.plan, &tally), ProofNeeds::of(&record.plan, &tally));
    let [mut a, mut b] = arms(folder, record)?;
    let answered = answer(record, &proof, ended.name(), [&mut a, &mut b]);
    outputs.json_pretty(&args.output.json, &answered);
    outputs.write(&args.page, || page(record, &proof, needs, &answered, [series(&a), series(&b)], None));
    let differing = answered.comparison.differing().filter(|_| !a.is_empty());
    let screen = outputs.screen;
    let proven = Proven { run: record, proof: &proof, needs, differing, next: None };
    outputs.print(&text(&proven, screen.columns, screen.color));
    Ok(exit(proof.verdict))
}

pub fn page(
    record: &ExperimentRun,
    proof: &Proof,
    needs: ProofNeeds,
    answered: &ProofAnswer,
    [a, b]: [Vec<&stats::series::Series>; 2],
    next: Option<&str>,
) -> Result<String> {
    let (heading, verdict) = (heading(&record.plan), verdict(proof));
    // The page has no separate line of conditions.
    let kernel = match record.kernel.as_str() {
        "" => String::new(),
        kernel => format!("; kernel {}", clean(kernel)),
    };
    let mut numbers = numbers(record, proof, needs);
    numbers.insert(0, format!("{}{kernel}.", capitalised(&conditions(&record.plan))));
    let comparison = &answered.comparison;
    let texts = VersusTexts { heading: &heading, verdict: &verdict, numbers: &numbers, next };
    let versus = Versus {
        compared: &comparison.compared,
        texts: Some(texts),
        differing: comparison.differing(),
        remarks: &comparison.remarks,
        a,
        b,
    };
    Ok(html(&versus, &json(answered)?))
}

pub fn exit(verdict: Verdict) -> Exit {
    match verdict {
        Verdict::Better | Verdict::Equivalent => Exit::Ok,
        Verdict::Worse => Exit::Limit,
        Verdict::Inconclusive => Exit::Inconclusive,
    }
}
