//! Comparison of runs by `study::compare`, as in the command, and of days by
//! [`crate::web::compare::days`].

pub mod chosen_boards;
pub mod days;
pub mod sides;

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use facts::differences::Difference;
use model::units::{Bare, Nanos, parse_span};
use report::compare::page::{Versus, parts};
use report::html::PageParts;
use serde_json::{Value, json};
use stats::compare::{CompareQuestion, Metric};
use stats::pair::verdict::Design;
use study::compare::{ComparisonAnswer, Pairing, check_comparable, series};
use study::measurement::{Measurement, ReadOptions};

use crate::objects::BundleLease;
use crate::pages::compare::{ComparisonChoices, ComparisonForm, answer, form_page};
use crate::pages::parts::escaped;
use crate::records::SeriesOfBoard;
use crate::sides::OtherSeries;
use crate::web::answers::tables::table;
use crate::web::compare::days::{BesideVerdict, DaysAnswer, OTHER_MACHINES};
use crate::web::edge::answer::{AnswerForm, Refusal, WebAnswer, WebOutcome};
use crate::web::state::app::App;

/// Limit of runs of a side.
const MOST_RUNS: usize = 40;
/// Number of runs for which the name of a board stands.
const OF_BOARD: i64 = 10;

/// Conditions that no change of a kernel or a setting affects.
const HARDWARE: &[&str] = &["host.model", "host.machine", "host.virtual"];

/// Query parameters in any order: `a`, `b` once or several times, with one or several lines each.
type Asked = Query<Vec<(String, String)>>;

fn form(asked: Vec<(String, String)>) -> ComparisonForm {
    let mut form = ComparisonForm::default();
    for (name, value) in asked {
        let lines = value.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned);
        match name.as_str() {
            "a" => form.a.extend(lines),
            "b" => form.b.extend(lines),
            "limit" => value.trim().clone_into(&mut form.limit),
            "series" => value.trim().clone_into(&mut form.series),
            "plan" => value.trim().clone_into(&mut form.plan),
            _ => put_field(&mut form, &name, value.trim()),
        }
    }
    form
}

/// A field of a side of days, such as `a_board`.
fn put_field(form: &mut ComparisonForm, name: &str, value: &str) {
    let side = match name.split_once('_') {
        Some(("a", field)) => Some((0, field)),
        Some(("b", field)) => Some((1, field)),
        _ => None,
    };
    let Some((side, field)) = side else { return };
    let Some(text) = form.sides[side].field(field) else { return };
    // Boards may be named one by one; of anything else there is one.
    if field == "board" && !text.is_empty() {
        *text += ",";
        *text += value;
    } else {
        value.clone_into(text);
    }
}

/// True if both sides are given and differ; equal sides are an unfinished form.
fn is_asked(form: &ComparisonForm) -> bool {
    match form.is_of_days() {
        true => form.sides[0] != form.sides[1],
        false => !(form.a.is_empty() || form.b.is_empty()),
    }
}

/// Reason for which nothing can be compared: a side is missing, or both are equal.
fn lacking(form: &ComparisonForm) -> Option<String> {
    if is_asked(form) {
        return None;
    }
    Some(match form.is_of_days() {
        true => format!(
            "both sides are the same days of {}: separate them by a date, a kernel, a setting or an \
             environment",
            model::text::excerpt(&form.sides[0].words())
        ),
        false => "name the runs of both sides, ?a=RUN&a=RUN&b=RUN&b=RUN, or their days, \
                  ?a_board=NAME&a_before=DATE"
            .to_owned(),
    })
}

/// True if the button of a form was pressed: that sends all fields, and links have no empty ones.
fn is_submitted(asked: &[(String, String)]) -> bool {
    asked.iter().any(|(name, _)| name == "limit")
}

pub async fn compare(
    State(app): State<Arc<App>>,
    Extension(form): Extension<AnswerForm>,
    Query(asked): Asked,
) -> WebOutcome {
    match form {
        AnswerForm::Page => page(&app, asked).await,
        AnswerForm::Csv => csv(&document(&app, asked).await?),
        _ => Ok(WebAnswer::text("application/json", document(&app, asked).await? + "\n")),
    }
}

async fn page(app: &App, asked: Vec<(String, String)>) -> WebOutcome {
    let submitted = is_submitted(&asked);
    let form = form(asked);
    let names = app.store.board_names(ComparisonChoices::OFFERED as i64).await?;
    let known = app.store.environment_names().await?.into_values();
    let choices = ComparisonChoices::of(names, known.map(|(machine, kernel, _)| (machine, kernel)));
    if let Some(lacking) = lacking(&form) {
        let said = Some(lacking.as_str()).filter(|_| submitted && form.is_of_days());
        return Ok(WebAnswer::page(form_page(&form, &choices, said)));
    }
    let text = match answered(app, &form).await {
        Ok((parts, _, beside)) => answer(&form, &choices, parts, &beside.others),
        Err(refusal) if refusal.status.is_client_error() => form_page(&form, &choices, Some(&refusal.detail)),
        Err(refusal) => return Err(refusal),
    };
    Ok(WebAnswer::page(text))
}

/// Runs, days or boards of both sides as lines, each with the number of excluded days of its side.
fn csv(document: &str) -> WebOutcome {
    const COLUMNS: &str = "side,unit,title,observed_ns,blocks,limit_ns,exceedances,p50_ns,p99_ns,p999_ns,\
                           p9999_ns,max_ns,invalid_days,unknown_days";
    let found: Value = serde_json::from_str(document).unwrap_or_default();
    let row = |side: &'static str, left_out: &Value, unit: &Value| {
        let quantiles = &unit["quantiles_ns"];
        json!({
            "side": side, "unit": found["unit"], "title": unit["title"], "observed_ns": unit["observed_ns"],
            "blocks": unit["blocks"], "limit_ns": found["limit_ns"], "exceedances": unit["exceedances"],
            "p50_ns": quantiles[0], "p99_ns": quantiles[1], "p999_ns": quantiles[2],
            "p9999_ns": quantiles[3], "max_ns": unit["max_ns"],
            "invalid_days": left_out["invalid"], "unknown_days": left_out["unknown"],
        })
    };
    let of = |side: &'static str, name: &str| -> Vec<Value> {
        let left_out = &found["left_out"][name];
        found[name].as_array().into_iter().flatten().map(|unit| row(side, left_out, unit)).collect()
    };
    table(COLUMNS, &[of("A", "a"), of("B", "b")].concat())
}

async fn document(app: &App, asked: Vec<(String, String)>) -> Result<String, Refusal> {
    let form = form(asked);
    if let Some(lacking) = lacking(&form) {
        return Err(Refusal::bad(lacking));
    }
    let (_, json, beside) = answered(app, &form).await?;
    if !form.is_of_days() {
        return Ok(json);
    }
    let other = |OtherSeries { of, boards: [a, b] }: &OtherSeries| {
        let SeriesOfBoard { key, words, days, .. } = of;
        json!({
            "series": key.series, "plan": key.plan, "words": words, "days": days,
            "boards": { "a": a, "b": b },
        })
    };
    let BesideVerdict { others, left_out: [a, b], boards: [boards_a, boards_b] } = beside;
    let others: Value = others.iter().map(other).collect();
    let left_out = json!({ "a": a, "b": b });
    let boards = json!({ "a": boards_a, "b": boards_b });
    // Its numbers stay as they are written.
    Ok(match json.trim_end().strip_suffix('}') {
        Some(open) => {
            format!("{open},\"other_series\":{others},\"left_out\":{left_out},\"boards\":{boards}}}")
        }
        None => json,
    })
}

async fn answered(app: &App, form: &ComparisonForm) -> Result<DaysAnswer, Refusal> {
    let limit = match form.limit.as_str() {
        "" => None,
        text => Some(parse_limit(text)?),
    };
    if form.is_of_days() {
        if !(form.a.is_empty() && form.b.is_empty()) {
            return Err(Refusal::bad("runs cannot be compared with days: give either"));
        }
        return days::answered(app, form, limit).await;
    }
    let (a, b) = (bundles(app, &form.a).await?, bundles(app, &form.b).await?);
    let (parts, json) = app.heavy(move || compared(&a, &b, limit)).await?;
    Ok((parts, json, BesideVerdict::default()))
}

fn parse_limit(text: &str) -> Result<Nanos, Refusal> {
    let span = parse_span(text, Bare::Micros).ok().filter(|span| span.0 > 0);
    span.ok_or_else(|| Refusal::bad("invalid limit: expected a latency, like 100us"))
}

/// Folders of the runs of a side, each with its id.
async fn bundles(app: &App, names: &[String]) -> Result<Vec<(String, BundleLease)>, Refusal> {
    let too_many = || Refusal::bad(format!("a side has at most {MOST_RUNS} runs: name fewer"));
    if names.len() > MOST_RUNS {
        return Err(too_many());
    }
    let mut chosen = Vec::new();
    for name in names {
        if let Some(run) = app.store.run(name).await? {
            chosen.push(run);
            continue;
        }
        let runs = app.store.runs(name, OF_BOARD).await?;
        if runs.is_empty() {
            return Err(nothing_of(app, name).await?);
        }
        chosen.extend(runs);
    }
    if chosen.len() > MOST_RUNS {
        return Err(too_many());
    }
    let mut bundles = Vec::new();
    for run in chosen {
        let bundle = app.bundle(&run).await?;
        bundles.push((run.id, bundle));
    }
    Ok(bundles)
}

/// Refusal of a name that selects no run.
async fn nothing_of(app: &App, name: &str) -> Result<Refusal, Refusal> {
    let shown = model::text::excerpt(name);
    let is_unknown = app.store.boards_between(name, name).await?.is_empty();
    Ok(Refusal::not_found(if is_unknown {
        format!("no run or board is named {shown}: copy names from the board's page")
    } else {
        format!(
            "board {shown} has no runs: compare days, each side with its board and dates, \
             ?a_board=NAME&a_before=DATE&b_board=NAME&b_from=DATE"
        )
    }))
}

fn compared(
    a: &[(String, BundleLease)],
    b: &[(String, BundleLease)],
    limit: Option<Nanos>,
) -> Result<(PageParts, String), Refusal> {
    let read = |side: &[(String, BundleLease)]| -> Result<Vec<Measurement>, Refusal> {
        let one = |(id, place): &(String, BundleLease)| -> Result<Measurement, Refusal> {
            let mut measurement = ReadOptions::default().open(place)?;
            // Folders may have equal names; ids are unique.
            measurement.title.clone_from(id);
            Ok(measurement)
        };
        side.iter().map(one).collect()
    };
    let (mut in_a, mut in_b) = (read(a)?, read(b)?);
    check_comparable(&in_a, &in_b)?;
    let question = CompareQuestion { metric: Metric::Rate, limit, design: Design::Unpaired, margin: None };
    let mut found: ComparisonAnswer =
        study::compare::compare(&mut in_a, &mut in_b, &question, Pairing::ByTime);
    for unit in found.compared.a.iter_mut().chain(&mut found.compared.b) {
        unit.address = format!("/runs/{}", escaped(&unit.title));
    }
    let is_hardware = |one: &Difference| !one.is_mixed() && HARDWARE.contains(&one.what.as_str());
    if found.environment_diff.iter().any(is_hardware) {
        found.remarks.insert(0, OTHER_MACHINES.to_owned());
    }
    let json = model::error::json(&found)?;
    let (a, b) = (series(&in_a), series(&in_b));
    let page = Versus {
        compared: &found.compared,
        texts: None,
        differing: found.differing(),
        remarks: &found.remarks,
        a,
        b,
    };
    Ok((parts(&page, &json), json))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_read_from_lines_and_repeated_names() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let read = super::form(vec![
            pair("a", "r1\r\n r2 \n\n"),
            pair("b", "x"),
            pair("a", "r3"),
            pair("limit", " 50us "),
            pair("z", ""),
        ]);
        assert_eq!(
            (read.a.join(" "), read.b.join(" "), read.limit.clone()),
            ("r1 r2 r3".into(), "x".into(), "50us".into())
        );
        let days = super::form(vec![
            pair("a_board", " west "),
            pair("a_board", "east"),
            pair("b_before", "2026-01-02"),
            pair("c_board", "x"),
        ]);
        assert_eq!(
            (days.sides[0].board.as_str(), days.sides[1].before.as_str()),
            ("west,east", "2026-01-02")
        );
        assert!(days.is_of_days() && is_asked(&days) && !read.is_of_days());
        assert!(!is_asked(&super::form(vec![pair("a", "x"), pair("b_nothing", "y"), pair("a_board", " ")])));
        assert!(!is_asked(&super::form(vec![pair("a_board", "x"), pair("b_board", "x")])));
        assert_eq!(parse_limit("50us").unwrap(), Nanos(50_000));
        assert!(parse_limit("0").is_err() && parse_limit("much").is_err());
    }
}

#[cfg(test)]
pub mod compare_tests;
