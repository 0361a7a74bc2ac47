//! Boards, series and runs that are named in an address.

use crate::records::{FarmBoard, FarmRun, SeriesKey, SeriesOfBoard};
use crate::web::answers::unnamed;
use crate::web::edge::answer::Refusal;
use crate::web::edge::visitor::Visitor;
use crate::web::state::app::App;

/// Board of a name in an address, as the visitor may see it.
pub async fn known_board(app: &App, visitor: &Visitor, name: &str) -> Result<FarmBoard, Refusal> {
    let mut boards = app.store.boards_of(Some(name)).await?;
    unnamed::boards(visitor, &mut boards);
    boards.into_iter().next().ok_or_else(|| Refusal::no_board(name))
}

/// Run of an id in the address of a page.
pub async fn known_run(app: &App, id: &str) -> Result<FarmRun, Refusal> {
    app.store.run(id).await?.ok_or_else(no_run)
}

pub fn no_run() -> Refusal {
    Refusal::not_found("no run has this id: choose one on its board's page")
}

/// Requested series, or the latest.
pub fn chosen(series: &[SeriesOfBoard], name: &str, plan: &str) -> Result<SeriesKey, Refusal> {
    let asked = !(name.is_empty() && plan.is_empty());
    let fits = |one: &&SeriesOfBoard| {
        (name.is_empty() || one.key.series == name) && (plan.is_empty() || one.key.plan == plan)
    };
    match series.iter().find(fits) {
        Some(found) => Ok(found.key.clone()),
        None if asked => Err(Refusal::not_found("the board has no such series: choose one on its page")),
        None => Ok(SeriesKey::default()),
    }
}
