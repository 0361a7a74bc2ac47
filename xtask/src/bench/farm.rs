//! The farm: its pages over a synthetic year of a hundred boards, with its store's size, and each
//! page's time and transfer size; then a board that sends a month, and its program's size.

use super::{Row, Rows};
use crate::dist;
use crate::farm_examples::{FarmLine, FarmPrograms, word};

/// Boards and days of the pages.
const YEAR: [&str; 2] = ["100", "365"];
const QUICK_YEAR: [&str; 2] = ["8", "60"];
/// Days that a board sends at once.
const BACKLOG: &str = "30";
const QUICK_BACKLOG: &str = "3";
/// Bytes of the board's program.
const PUSH_LIMIT: f64 = 2.5e6;

/// The pages.
pub fn pages(quick: bool) -> Rows {
    let programs = FarmPrograms::build("farm_year")?;
    let year = programs.measure("lab/bench/farm", |folder| {
        let [boards, days] = if quick { QUICK_YEAR } else { YEAR };
        vec![word(&folder.join("year.db")), boards.to_owned(), days.to_owned()]
    })?;
    Ok(year.into_iter().map(row).collect())
}

/// The program of a board that was away for a month.
pub fn sender(quick: bool) -> Rows {
    let push = dist::build_push()?;
    let bytes =
        std::fs::metadata(&push).map_err(|error| format!("{}: {error}", push.display()))?.len() as f64;
    let size = Row {
        what: "onbeat-push, static: MB".to_owned(),
        ours: format!("{:.2}", bytes / 1e6),
        peer: String::new(),
        limit: format!("{:.1}", PUSH_LIMIT / 1e6),
        holds: Some(bytes <= PUSH_LIMIT),
    };
    let programs = FarmPrograms::build("farm_backlog")?;
    let backlog = programs.measure("lab/bench/backlog", |folder| {
        let days = if quick { QUICK_BACKLOG } else { BACKLOG };
        vec![word(&programs.farm), word(&push), word(folder), days.to_owned()]
    })?;
    Ok(std::iter::once(size).chain(backlog.into_iter().map(row)).collect())
}

fn row(line: FarmLine) -> Row {
    let holds = line.holds();
    Row { what: line.what, ours: line.value, peer: String::new(), limit: line.limit, holds }
}
