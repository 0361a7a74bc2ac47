//! Whether the farm is well, and its numbers as OpenMetrics text.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::StatusCode;
use model::units::Nanos;

use super::answer::{Refusal, WebAnswer};
use super::app::App;
use super::pages::WebOutcome;
use crate::board_settings::BoardSettings;
use crate::changes::{ChangeKind, FarmChange};
use crate::records::FarmBoard;

/// Boards with numbers of their own.
const MOST_BOARDS: usize = 1_000;

pub async fn health(State(app): State<Arc<App>>) -> WebOutcome {
    match app.store.answers().await {
        true => Ok(WebAnswer::text("text/plain; charset=utf-8", "the store answers\n".to_owned())),
        false => Err(Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the store does not answer: look at its disk, or whether its database runs",
        )),
    }
}

/// The latest change of each board and kind, as far as they were found already.
fn latest(all: &[FarmChange]) -> Vec<(String, f64)> {
    let mut latest: BTreeMap<(&str, ChangeKind), i64> = BTreeMap::new();
    for one in all.iter().filter(|one| one.kind.is_bad()) {
        let t = latest.entry((&one.board, one.kind)).or_insert(one.t);
        *t = one.t.max(*t);
    }
    let named = latest.into_iter().take(MOST_BOARDS);
    named
        .map(|((board, kind), t)| (format!("{{board=\"{board}\",kind=\"{}\"}}", kind.words()), t as f64))
        .collect()
}

pub async fn metrics(State(app): State<Arc<App>>) -> WebOutcome {
    let (runs, complete) = app.store.totals().await?;
    let boards = app.store.boards().await?;
    let mut text = String::new();
    let mut gauge = |name: &str, help: &str, rows: &[(String, f64)]| {
        let _ = writeln!(text, "# TYPE {name} gauge\n# HELP {name} {help}");
        for (labels, value) in rows {
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    };
    let alone = |value: f64| vec![(String::new(), value)];
    gauge("onbeat_farm_boards", "Boards with runs.", &alone(boards.len() as f64));
    gauge("onbeat_farm_runs", "Runs in the store.", &alone(runs as f64));
    gauge("onbeat_farm_runs_complete", "Of these, runs that came to their end.", &alone(complete as f64));
    gauge("onbeat_farm_refused", "Folders that could not be taken in.", &alone(app.refused().len() as f64));
    let shown = &boards[..boards.len().min(MOST_BOARDS)];
    let labels = |board: &str| format!("{{board=\"{board}\"}}");
    let maxima: Vec<_> =
        shown.iter().filter_map(|board| Some((labels(&board.board), board.max_ns?.0 as f64 / 1e9))).collect();
    gauge("onbeat_max_seconds", "Largest latency of the last 30 days with runs.", &maxima);
    let last: Vec<_> = shown.iter().map(|board| (labels(&board.board), board.last as f64)).collect();
    gauge("onbeat_last_run_timestamp_seconds", "When the last run began.", &last);
    let of = |value: fn(&BoardSettings) -> Option<Nanos>| -> Vec<_> {
        let one = |board: &FarmBoard| Some((labels(&board.board), value(&board.settings)?.0 as f64 / 1e9));
        shown.iter().filter_map(one).collect()
    };
    let (budgets, last24) = (of(|of| of.budget_ns), of(|of| of.max24_ns));
    let over: Vec<_> = shown
        .iter()
        .filter(|board| board.settings.budget_ns.is_some())
        .map(|board| (labels(&board.board), f64::from(u8::from(board.settings.is_over()))))
        .collect();
    gauge("onbeat_budget_seconds", "The budget that holds for a board.", &budgets);
    gauge("onbeat_max24_seconds", "Largest latency of a board with a budget in its last 24 hours.", &last24);
    gauge("onbeat_over_budget", "Whether that is over the budget.", &over);
    let known = app.changes.known(&boards).await;
    gauge("onbeat_change_timestamp_seconds", "When a change for the worse was seen last.", &latest(&known));
    let pending = app.counters.webhook_pending.load(Ordering::Relaxed);
    gauge("onbeat_farm_webhook_pending", "Changes that wait for the webhook.", &alone(pending as f64));
    if let Some(cache) = &app.cache {
        let is_away = cache.bucket.trouble().borrow().is_some();
        let help = "Whether the bucket of bundles does not answer.";
        gauge("onbeat_farm_bucket_away", help, &alone(f64::from(u8::from(is_away))));
    }
    let mut counter = |name: &str, help: &str, value: u64| {
        let _ = writeln!(text, "# TYPE {name} counter\n# HELP {name} {help}\n{name}_total {value}");
    };
    counter("onbeat_farm_requests", "Requests.", app.requests.load(Ordering::Relaxed));
    counter(
        "onbeat_farm_parser_failures",
        "Reports that a parser failed on.",
        app.failures.load(Ordering::Relaxed),
    );
    app.counters.counted().into_iter().for_each(|(name, help, value)| counter(name, help, value));
    if let Some(intake) = &app.intake {
        let stored = intake.rows_stored.load(Ordering::Relaxed);
        counter("onbeat_farm_rows", "Rows of five minutes that were stored.", stored);
    }
    if let Some(cache) = &app.cache {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        counter("onbeat_farm_bundles_fetched", "Bundles fetched from the bucket.", of(&cache.fetched));
        let bytes = of(&cache.fetched_bytes);
        counter("onbeat_farm_bundles_fetched_bytes", "Bytes of these.", bytes);
        let evicted = of(&cache.evicted);
        counter("onbeat_farm_bundles_evicted", "Bundles that made room for others on this machine.", evicted);
    }
    text.push_str("# EOF\n");
    Ok(WebAnswer::text("application/openmetrics-text; version=1.0.0; charset=utf-8", text))
}
