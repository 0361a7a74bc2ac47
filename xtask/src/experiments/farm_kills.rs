//! A farm's server and its database under SIGKILL while boards send, over both engines:
//! `crates/farm/tests/it/exactly_once.rs`, a thousand times.
//!
//! Nothing here is a statistic: it takes minutes and a C compiler, and is run by its name.

use super::line::ResultLine;
use super::{Experiment, Length};
use crate::tools::{Tool, root};

/// Kills of each engine, and those of a quick run.
const KILLS: u32 = 500;
const FEW: u32 = 50;
const ENGINES: [&str; 2] = ["SQLite", "PostgreSQL"];

pub const NAME: &str = "farm-kills";

/// The experiments of this file.
pub fn all() -> Vec<Experiment> {
    vec![(NAME, Box::new(lines))]
}

fn lines(length: Length) -> Vec<ResultLine> {
    let kills = length.of(KILLS, FEW);
    let test = ["test", "--quiet", "--package", "onbeat-farm", "--test", "it", "kills", "--", "--nocapture"];
    let tool = Tool::new("cargo").args(test).env("ONBEAT_FARM_KILLS", kills.to_string()).dir(&root());
    let said = tool.text();
    let line = |engine: &str| match &said {
        Ok(text) => {
            let mut lines = text.lines().map(str::trim);
            let of_engine = |line: &&str| {
                line.contains(&format!(" kills, {engine}:")) || line.contains(&format!("left out: {engine} "))
            };
            let line = lines.find(of_engine).map(str::to_owned);
            (line.is_some(), line.unwrap_or_else(|| "the test said nothing".to_owned()))
        }
        Err(why) => (false, why.clone()),
    };
    let result = |engine: &&str| {
        let (fine, note) = line(engine);
        let kills = if note.contains("left out") { 0 } else { kills };
        ResultLine::rate(format!("{engine}: no row lost, none doubled"), if fine { 1.0 } else { 0.0 }, kills)
            .at_least(1.0)
            .note(note)
    };
    ENGINES.iter().map(result).collect()
}
