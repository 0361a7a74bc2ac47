//! A farm's server, its database and its boards under SIGKILL while boards send, over both engines:
//! `crates/farm/tests/it/exactly_once.rs` and `killed_boards`, a thousand times each.
//!
//! This is not a statistic: it needs minutes and a C compiler, and is run by its name.

use super::line::ResultLine;
use super::{Experiment, Length};
use crate::tools::{Tool, root};

/// Kills of each engine, and those of a quick run.
const KILLS: u32 = 500;
const FEW: u32 = 50;
const ENGINES: [&str; 2] = ["SQLite", "PostgreSQL"];
/// Targets of the kills, as printed by the tests, and the guarantees.
const KILLED: [(&str, &str); 2] =
    [("kills", "no row lost, none doubled"), ("kills of boards", "nothing lost, nothing doubled")];

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
    let line = |killed: &str, engine: &str| match &said {
        Ok(text) => {
            let mut lines = text.lines().map(str::trim);
            let is_it = |line: &&str| {
                line.contains(&format!(" {killed}, {engine}:"))
                    || line.contains(&format!("left out: {engine} "))
            };
            let line = lines.find(is_it).map(str::to_owned);
            (line.is_some(), line.unwrap_or_else(|| "the test printed nothing".to_owned()))
        }
        Err(why) => (false, why.clone()),
    };
    let result = |(killed, wanted): (&str, &str), engine: &str| {
        let (fine, note) = line(killed, engine);
        let kills = if note.contains("left out") { 0 } else { kills };
        let what = format!("{killed}, {engine}: {wanted}");
        ResultLine::rate(what, if fine { 1.0 } else { 0.0 }, kills).at_least(1.0).note(note)
    };
    KILLED.into_iter().flat_map(|of| ENGINES.map(|engine| result(of, engine))).collect()
}
