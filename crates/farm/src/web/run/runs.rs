//! Lists of runs, by board and labels: a page, JSON and CSV.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use model::labels::parse_label;
use serde_json::{Value, json};

use crate::pages;
use crate::pages::runs::RunsView;
use crate::records::{FarmRun, RunFilter};
use crate::web::answers::known::known_board;
use crate::web::answers::tables::table;
use crate::web::edge::answer::{AnswerForm, Refusal, WebAnswer, WebOutcome};
use crate::web::edge::visitor::Visitor;
use crate::web::state::app::App;

/// Number of runs in an answer, by default and at most.
const SHOWN: i64 = 100;
const MOST: i64 = 1_000;
/// Limit of labels in one query.
const MOST_LABELS: usize = 8;

/// Query parameters in any order; `label` may occur several times.
pub type RunsAsked = Query<Vec<(String, String)>>;

/// Labels of a query.
pub fn labels_of(asked: &[(String, String)]) -> Result<Vec<(String, String)>, Refusal> {
    let of = asked.iter().filter(|(name, value)| name == "label" && !value.trim().is_empty());
    let labels =
        of.map(|(_, value)| parse_label(value).map_err(Refusal::bad)).collect::<Result<Vec<_>, _>>()?;
    match labels.len() > MOST_LABELS {
        true => Err(Refusal::bad("more than 8 labels: ask for fewer")),
        false => Ok(labels),
    }
}

/// Filter and limit of a query.
fn filter_of(asked: &[(String, String)]) -> Result<(RunFilter, i64), Refusal> {
    let mut filter = RunFilter { labels: labels_of(asked)?, ..RunFilter::default() };
    let mut most = SHOWN;
    for (name, value) in asked.iter().filter(|(_, value)| !value.is_empty()) {
        let number = || {
            let why = format!("invalid `{name}`: expected a number");
            value.parse::<i64>().map_err(|_| Refusal::bad(why))
        };
        match name.as_str() {
            "board" => filter.board = Some(value.clone()),
            "before" => filter.before = Some(number()?),
            "before_run" => filter.before_run = Some(value.clone()),
            "limit" => most = number()?,
            _ => {}
        }
    }
    match (1..=MOST).contains(&most) {
        true => Ok((filter, most)),
        false => Err(Refusal::bad(
            "invalid `limit`: expected 1 to 1000; ask for the rest with before= and before_run=",
        )),
    }
}

const COLUMNS: &str = "id,board,command,series,plan,started,length_ns,complete,cpus,cycles,missed,max_ns,\
                       p9999_ns,invalid,spikes,release,labels,environment,pinned,thinned,labels_json";

pub async fn runs(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Extension(form): Extension<AnswerForm>,
    Query(asked): RunsAsked,
) -> WebOutcome {
    let (filter, most) = filter_of(&asked)?;
    if let Some(board) = &filter.board {
        known_board(&app, &visitor, board).await?;
    }
    // One more shows that there are older ones.
    let mut found = app.store.find_runs(&filter, most + 1).await?;
    let more = found.len() as i64 > most;
    found.truncate(most as usize);
    match form {
        AnswerForm::Page => {
            let boards = found.iter().map(|run| run.board.as_str()).collect();
            let names = app.store.names_of(boards).await?;
            let view = RunsView { filter: &filter, runs: &found, names: &names, more };
            Ok(WebAnswer::page(pages::runs::runs(&view)))
        }
        AnswerForm::Csv => table(COLUMNS, &found.iter().map(row).collect::<Vec<_>>()),
        _ => WebAnswer::json(&json!({ "schema": "onbeat.farm-runs/1", "runs": found, "more": more })),
    }
}

/// A run with separable labels: values may contain blanks.
fn row(run: &FarmRun) -> Value {
    let mut row = serde_json::to_value(run).unwrap_or_default();
    row["labels_json"] = json!(row["labels"].to_string());
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_read_in_any_order_and_refused_in_a_line() {
        let of = |texts: &[(&str, &str)]| {
            let asked: Vec<_> = texts.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            filter_of(&asked)
        };
        let (filter, most) =
            of(&[("label", "a=1"), ("limit", "7"), ("board", "x"), ("label", "b=2"), ("before", "9")])
                .unwrap();
        assert_eq!((filter.labels.len(), most, filter.before), (2, 7, Some(9)));
        assert_eq!(of(&[("board", ""), ("label", ""), ("q", "x")]).unwrap(), (RunFilter::default(), SHOWN));
        for wrong in [("label", "a"), ("limit", "0"), ("limit", "1001"), ("limit", "x"), ("before", "now")] {
            assert!(!of(&[wrong]).unwrap_err().detail.contains('\n'), "{wrong:?}");
        }
        assert!(of(&[("label", "a=1"); 9]).is_err());
    }
}
