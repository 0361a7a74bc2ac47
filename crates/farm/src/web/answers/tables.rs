//! Lists as CSV, with the values that their JSON has.

use serde::Serialize;
use serde_json::Value;

use crate::web::answers::data::cell;
use crate::web::edge::answer::{WebAnswer, WebOutcome};

/// A line for the names of the columns, which commas separate, and one for each row.
pub fn table(columns: &str, rows: &[impl Serialize]) -> WebOutcome {
    let mut text = columns.to_owned() + "\n";
    for row in rows {
        text += &line(columns, &serde_json::to_value(row).unwrap_or_default());
    }
    Ok(WebAnswer::csv(text))
}

/// The line of one.
pub fn line(columns: &str, row: &Value) -> String {
    let cells: Vec<String> = columns.split(',').map(|column| shown(&row[column])).collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
}
