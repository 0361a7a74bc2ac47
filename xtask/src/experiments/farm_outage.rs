//! A farm without its PostgreSQL for an hour while boards send with their own `onbeat-push`
//! (`xtask/farm/farm_outage.rs`).
//!
//! This is not a statistic: it takes an hour, and is run by its name.

use super::line::ResultLine;
use super::{Experiment, Length};
use crate::farm_examples::{FarmLine, FarmPrograms, word};
use crate::tools::Result;

/// Seconds without a database, and those of a quick run.
const AWAY: u32 = 3_600;
const SHORT: u32 = 20;
const BOARDS: u32 = 8;

pub const NAME: &str = "farm-outage";

/// The experiments of this file.
pub fn all() -> Vec<Experiment> {
    vec![(NAME, Box::new(lines))]
}

fn lines(length: Length) -> Vec<ResultLine> {
    measured(length.of(AWAY, SHORT)).unwrap_or_else(|why| {
        let failed = ResultLine::rate("boards send while PostgreSQL is away", 0.0, 0);
        vec![failed.at_least(1.0).note(why)]
    })
}

fn measured(seconds: u32) -> Result<Vec<ResultLine>> {
    let programs = FarmPrograms::build("farm_outage")?;
    let lines = programs.measure("lab/farm-outage", |folder| {
        let (farm, push) = (word(&programs.farm), word(&programs.push));
        vec![farm, push, word(folder), BOARDS.to_string(), seconds.to_string()]
    })?;
    let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
    let line = |of: FarmLine| {
        let line = ResultLine::rate(of.what, number(&of.value), BOARDS);
        if of.limit.is_empty() { line } else { line.at_most(number(&of.limit)) }
    };
    Ok(lines.into_iter().map(line).collect())
}
