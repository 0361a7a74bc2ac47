//! A farm's server under SIGKILL while boards send: `crates/farm/tests/it/exactly_once.rs`, a thousand
//! times.
//!
//! Nothing here is a statistic: it takes minutes and a C compiler, and is run by its name.

use super::line::ResultLine;
use super::{Experiment, Length};
use crate::tools::{Tool, root};

/// Kills, and those of a quick run.
const KILLS: u32 = 1_000;
const FEW: u32 = 50;

pub const NAME: &str = "farm-kills";

/// The experiments of this file.
pub fn all() -> Vec<Experiment> {
    vec![(NAME, Box::new(lines))]
}

fn lines(length: Length) -> Vec<ResultLine> {
    let kills = length.of(KILLS, FEW);
    let test = ["test", "--quiet", "--package", "onbeat-farm", "--test", "it", "kills", "--", "--nocapture"];
    let tool = Tool::new("cargo").args(test).env("ONBEAT_FARM_KILLS", kills.to_string()).dir(&root());
    let (fine, note) = match tool.text() {
        Ok(text) => {
            let said = text.lines().find_map(|line| line.find(" kills, ").map(|_| line.trim().to_owned()));
            (said.is_some(), said.unwrap_or_else(|| "the test said nothing".to_owned()))
        }
        Err(why) => (false, why),
    };
    vec![
        ResultLine::rate("no row lost, none doubled, sums the same", if fine { 1.0 } else { 0.0 }, kills)
            .at_least(1.0)
            .note(note),
    ]
}
