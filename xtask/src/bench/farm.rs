//! The farm's pages over a made-up year of a hundred boards: its store's size, each page's time and
//! its size on the wire. It is a program of its own, because this one shall not take SQLite.

use super::{Folder, Row, Rows};
use crate::tools::{Tool, root, target};

/// Boards and days.
const FULL: [&str; 2] = ["100", "365"];
const QUICK: [&str; 2] = ["8", "60"];

pub fn measure(quick: bool) -> Rows {
    // The store is made anew each time: an old one may have another schema.
    let folder = Folder(target("lab/bench")?.join("farm"));
    std::fs::create_dir_all(&folder.0).map_err(|error| error.to_string())?;
    let store = folder.0.join("year.db").display().to_string();
    let [boards, days] = if quick { QUICK } else { FULL };
    let build = ["run", "--quiet", "--profile", "farm", "--package", "onbeat-farm", "--features", "fixture"];
    let line = ["--example", "farm_year", "--", &store, boards, days];
    let text = Tool::new("cargo").args(build).args(line).dir(&root()).text()?;
    text.lines().map(row).collect()
}

/// A line of what, value and limit.
fn row(line: &str) -> Result<Row, String> {
    let [what, value, limit] = line.split('\t').collect::<Vec<_>>()[..] else {
        return Err(format!("the farm's answer is no line of a table: {line}"));
    };
    let number = |text: &str| text.parse::<f64>().ok();
    let holds = number(limit).map(|limit| number(value).is_some_and(|value| value <= limit));
    Ok(Row {
        what: what.to_owned(),
        ours: value.to_owned(),
        peer: String::new(),
        limit: limit.to_owned(),
        holds,
    })
}
