//! The lists of the pages as CSV, with the values that their JSON has, and the history of a board's
//! environments as JSON.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use serde::Serialize;
use serde_json::{Value, json};

use super::answer::WebAnswer;
use super::app::App;
use super::board_list::{FleetQuery, listed};
use super::changes::{ChangesQuery, asked_for};
use super::data::cell;
use super::kernels::documents;
use super::pages::WebOutcome;
use super::visitor::Visitor;
use crate::changes::FarmChange;

pub async fn boards(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Query(query): Query<FleetQuery>,
) -> WebOutcome {
    const COLUMNS: [&str; 22] = [
        "board",
        "name",
        "state",
        "tags",
        "model",
        "release",
        "preempt",
        "runs",
        "last",
        "max_ns",
        "max24_ns",
        "budget_ns",
        "lab",
        "last_slot",
        "max_day",
        "state_since",
        "budget_of",
        "changes",
        "last_day",
        "sends",
        "enrolled",
        "environment",
    ];
    table(&COLUMNS, &listed(&app, &visitor, &query, None).await?.boards)
}

pub async fn changes_found(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Query(query): Query<ChangesQuery>,
) -> WebOutcome {
    const COLUMNS: [&str; 14] = [
        "board",
        "kind",
        "t",
        "from",
        "p",
        "says",
        "evidence",
        "acknowledged_by",
        "acknowledged_at",
        "note",
        "settings",
        "address",
        "subject",
        "claim",
    ];
    let all = asked_for(&app, &visitor, &query).await?;
    table(&COLUMNS, &all.iter().map(change_row).collect::<Vec<_>>())
}

pub async fn kernels(State(app): State<Arc<App>>) -> WebOutcome {
    const COLUMNS: [&str; 14] = [
        "machine",
        "kernel",
        "preempt",
        "series",
        "boards",
        "runs",
        "length_ns",
        "median_p9999_ns",
        "max_ns",
        "worst_run",
        "worst_board",
        "days",
        "worst_day",
        "latest",
    ];
    table(&COLUMNS, &documents(&app).await?)
}

/// A line for the names, and one for each.
pub fn table(columns: &[&str], rows: &[impl Serialize]) -> WebOutcome {
    let mut text = columns.join(",") + "\n";
    for row in rows {
        text += &line(columns, &serde_json::to_value(row).unwrap_or_default());
    }
    Ok(WebAnswer::csv(text))
}

/// The line of one.
pub fn line(columns: &[&str], row: &Value) -> String {
    let cells: Vec<String> = columns.iter().map(|column| shown(&row[*column])).collect();
    cells.join(",") + "\n"
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        // Labels.
        Value::Object(all) => {
            let texts = all.iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?)));
            cell(&texts.collect::<Vec<_>>().join(" "))
        }
        Value::String(text) => cell(text),
        Value::Array(all) => cell(&all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")),
        other => other.to_string(),
    }
}

/// A change with what a cell cannot hold as it is: who looked at it, and what else changed.
fn change_row(one: &FarmChange) -> Value {
    let mut row = serde_json::to_value(one).unwrap_or_default();
    if let Some(by) = &one.acknowledged {
        row["acknowledged_by"] = json!(by.who);
        row["acknowledged_at"] = json!(by.at);
        row["note"] = json!(by.note);
    }
    let settings = one.settings.iter().map(|of| format!("{}: {} -> {}", of.what, of.before, of.after));
    row["settings"] = json!(settings.collect::<Vec<_>>().join("; "));
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::made::made_change;
    use crate::changes::{Acknowledgement, ChangeKind};
    use crate::setting_changes::SettingChange;

    #[test]
    fn values_are_cells_and_no_text_is_a_formula() {
        for (value, wanted) in [
            (json!(null), ""),
            (json!(-5), "-5"),
            (json!("=x()"), "'=x()"),
            (json!("a,\"b\nc"), "\"a,\"\"b\u{fffd}c\""),
            (json!(["arm", "lab=west"]), "arm lab=west"),
            (json!({ "build": "1", "n": 2 }), "build=1"),
        ] {
            assert_eq!(shown(&value), wanted);
        }
    }

    #[test]
    fn a_change_has_who_looked_at_it_and_what_else_changed_in_cells() {
        let setting = |what: &str| SettingChange { what: what.into(), before: "a".into(), after: "b".into() };
        let mut one = FarmChange {
            settings: vec![setting("kernel"), setting("cmdline")],
            ..made_change("west", ChangeKind::Worse, 9)
        };
        let row = change_row(&one);
        assert_eq!(row["settings"], "kernel: a -> b; cmdline: a -> b");
        assert!(row["note"].is_null() && row["board"] == "west");
        one.acknowledged = Some(Acknowledgement { who: "ann".into(), note: "known".into(), at: 10 });
        let row = change_row(&one);
        assert_eq!((&row["acknowledged_by"], &row["note"]), (&"ann".into(), &"known".into()));
        assert_eq!(row["acknowledged_at"], 10);
    }
}
