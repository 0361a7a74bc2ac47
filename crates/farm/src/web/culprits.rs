//! Culprits of all boards or of one, as a page, JSON and CSV; and the page of a culprit.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use serde_json::json;

use crate::pages;
use crate::pages::culprits::CulpritView;
use crate::store::CulpritDaysFrom;
use crate::web::answers::known::known_board;
use crate::web::answers::tables::table;
use crate::web::edge::answer::{AnswerForm, Refusal, WebAnswer, WebOutcome};
use crate::web::edge::visitor::Visitor;
use crate::web::state::app::App;

/// Culprits on a page, and culprits, runs and days in a list.
const SHOWN: i64 = 200;
const MOST: i64 = 1_000;
/// Runs that show a culprit on its page.
const RUNS_SHOWN: i64 = 100;

/// Query parameters, in any order.
type Asked = Query<Vec<(String, String)>>;

/// Name of the requested board, if any.
fn board_named(asked: &[(String, String)]) -> Result<Option<&str>, Refusal> {
    let mut board = None;
    for (_, value) in asked.iter().filter(|(name, _)| name == "board") {
        if board.is_some() {
            return Err(Refusal::bad("more than one board: ask for each in its own request"));
        }
        board = Some(value.trim()).filter(|value| !value.is_empty());
    }
    Ok(board)
}

const COLUMNS: &str = "fingerprint,rule,name,kind,boards,runs,spikes,total_ns,first,last,example,\
                       five_minutes,remedy";

pub async fn culprits(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Extension(form): Extension<AnswerForm>,
    Query(asked): Asked,
) -> WebOutcome {
    let board = match board_named(&asked)? {
        Some(name) => Some(known_board(&app, &visitor, name).await?),
        None => None,
    };
    let most = if form == AnswerForm::Page { SHOWN } else { MOST };
    let all = app.store.culprits(board.as_ref().map(|board| board.board.as_str()), most).await?;
    match form {
        AnswerForm::Page => Ok(WebAnswer::page(pages::culprits::culprits(&all, board.as_ref()))),
        AnswerForm::Csv => table(COLUMNS, &all),
        _ => WebAnswer::json(&json!({ "schema": "onbeat.farm-culprits/1", "culprits": all })),
    }
}

pub async fn culprit(
    State(app): State<Arc<App>>,
    Extension(form): Extension<AnswerForm>,
    Path(fingerprint): Path<String>,
    Query(from): Query<CulpritDaysFrom>,
) -> WebOutcome {
    let Some(found) = app.store.culprit(&fingerprint).await? else {
        return Err(Refusal::not_found("no culprit has this address: choose one of the list of culprits"));
    };
    let most = if form == AnswerForm::Page { RUNS_SHOWN } else { MOST };
    let runs = app.store.runs_with(&fingerprint, most).await?;
    let days = app.store.culprit_days(&fingerprint, &from, most).await?;
    let of_days = app.store.count_culprit_days(&fingerprint, &from).await?;
    let days_left_out = of_days.saturating_sub(days.len() as u64);
    if form == AnswerForm::Json {
        let runs_left_out = found.runs.saturating_sub(runs.len() as u64);
        return WebAnswer::json(&json!({
            "schema": "onbeat.farm-culprit/1", "culprit": found, "runs": runs, "days": days,
            "runs_left_out": runs_left_out, "days_left_out": days_left_out,
        }));
    }
    let of_runs = runs.iter().map(|run| run.board.as_str());
    let boards = of_runs.chain(days.iter().map(|day| day.board.as_str())).collect();
    let names = app.store.names_of(boards).await?;
    let view = CulpritView { of: &found, runs: &runs, days: &days, days_left_out, names: &names };
    Ok(WebAnswer::page(pages::culprits::culprit(&view)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_board_may_be_asked_for() {
        let asked = |all: &[(&str, &str)]| -> Vec<(String, String)> {
            all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        assert_eq!(board_named(&asked(&[])).unwrap(), None);
        assert_eq!(board_named(&asked(&[("board", " ")])).unwrap(), None);
        assert_eq!(board_named(&asked(&[("board", "a")])).unwrap(), Some("a"));
        assert!(board_named(&asked(&[("board", "a"), ("board", "b")])).is_err());
    }
}
