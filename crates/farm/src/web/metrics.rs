//! Health of the farm, and its metrics as OpenMetrics text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use axum::extract::State;
use axum::http::StatusCode;
use model::units::Nanos;

use crate::board_settings::BoardSettings;
use crate::changes::{ChangeIdentity, ChangeKind, FarmChange, NotedChanges};
use crate::records::FarmBoard;
use crate::store::FoundChange;
use crate::web::changes::acknowledge::mark;
use crate::web::edge::answer::{Refusal, WebAnswer, WebOutcome};
use crate::web::edge::counters::of;
use crate::web::state::app::App;

/// Limit of boards with separate samples.
const MOST_BOARDS: usize = 1_000;

/// Labels and the value of each sample.
type Samples = Vec<(String, f64)>;

pub async fn health(State(app): State<Arc<App>>) -> WebOutcome {
    let away = |detail: &str| Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, detail));
    if !app.store.answers().await {
        return away("the store does not answer: check its disk, and that its database runs");
    }
    let now = host::clock::monotonic();
    match &app.intake {
        Some(intake) if intake.store_write.fails_at(now) => {
            away("the store did not accept the last data of a board: check that its disk has space")
        }
        Some(intake) if intake.bundle_write.fails_at(now) => {
            away("the last data of a board could not be written to the folder of bundles: free space there")
        }
        _ => Ok(WebAnswer::text("text/plain; charset=utf-8", "the store answers\n".to_owned())),
    }
}

/// Times at which the latest open change of each kind was found, by board; the time of the change
/// if that is not stored.
fn latest(all: &[FarmChange], shown: &[FarmBoard], found: &NotedChanges<FoundChange>) -> Samples {
    let shown: BTreeSet<&str> = shown.iter().map(|board| board.board.as_str()).collect();
    let mut latest: BTreeMap<(&str, ChangeKind), i64> = BTreeMap::new();
    for one in all.iter().filter(|one| one.is_open() && shown.contains(one.board.as_str())) {
        let t = found.find(&ChangeIdentity::of(one)).map_or(one.t, |found| found.at);
        let last = latest.entry((&one.board, one.kind)).or_insert(t);
        *last = t.max(*last);
    }
    latest
        .into_iter()
        .map(|((board, kind), t)| (format!("{{board=\"{board}\",kind=\"{}\"}}", kind.keyword()), t as f64))
        .collect()
}

/// OpenMetrics text, family by family.
#[derive(Default)]
struct MetricsText(String);

impl MetricsText {
    /// A gauge with labels; without samples, only its head.
    fn gauge(&mut self, name: &str, help: &str, samples: &[(String, f64)]) {
        let _ = writeln!(self.0, "# TYPE {name} gauge\n# HELP {name} {help}");
        for (labels, value) in samples {
            let _ = writeln!(self.0, "{name}{labels} {value}");
        }
    }

    /// A gauge of the whole farm.
    fn alone(&mut self, name: &str, help: &str, value: f64) {
        self.gauge(name, help, &[(String::new(), value)]);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.counters(name, help, &[(String::new(), value)]);
    }

    /// A counter; its samples end in `_total`, its head does not.
    fn counters(&mut self, name: &str, help: &str, samples: &[(String, u64)]) {
        let _ = writeln!(self.0, "# TYPE {name} counter\n# HELP {name} {help}");
        for (labels, value) in samples {
            let _ = writeln!(self.0, "{name}_total{labels} {value}");
        }
    }
}

pub async fn metrics(State(app): State<Arc<App>>) -> WebOutcome {
    let (runs, complete) = app.store.totals().await?;
    let boards = app.store.boards().await?;
    let mut text = MetricsText::default();
    let version = format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    text.gauge("onbeat_farm_build_info", "The running program; always 1.", &[(version, 1.0)]);
    text.alone("onbeat_farm_boards", "Boards that the farm knows.", boards.len() as f64);
    text.alone("onbeat_farm_runs", "Runs in the store.", runs as f64);
    text.alone("onbeat_farm_runs_complete", "Of these, runs that ended regularly.", complete as f64);
    let refused = app.refused().all;
    text.alone("onbeat_farm_refused", "Folders that could not be read completely.", refused as f64);
    let shown = &boards[..boards.len().min(MOST_BOARDS)];
    let rows = match (shown.first(), shown.last()) {
        (Some(first), Some(last)) => app.store.last_rows(&first.board, &last.board).await?,
        _ => BTreeMap::new(),
    };
    of_boards(&mut text, shown, &rows);
    let mut known = app.changes.known(&boards).await;
    mark(&app, &mut known).await?;
    let found = app.found_changes().await?;
    let help = "Time of the latest change for the worse that is not acknowledged.";
    text.gauge("onbeat_change_timestamp_seconds", help, &latest(&known, shown, &found));
    of_farm(&mut text, &app);
    counted(&mut text, &app);
    text.0.push_str("# EOF\n");
    Ok(WebAnswer::text("application/openmetrics-text; version=1.0.0; charset=utf-8", text.0))
}

/// Metrics of each board. A missing value has no sample, so that no alert fires for it.
fn of_boards(text: &mut MetricsText, shown: &[FarmBoard], rows: &BTreeMap<String, i64>) {
    let each = |value: &dyn Fn(&FarmBoard) -> Option<f64>| -> Samples {
        let one = |board: &FarmBoard| Some((format!("{{board=\"{}\"}}", board.board), value(board)?));
        shown.iter().filter_map(one).collect()
    };
    let seconds = |value: Option<Nanos>| value.map(|value| value.0 as f64 / 1e9);
    let state = |board: &FarmBoard| {
        let state = board.settings.state.word();
        (format!("{{board=\"{}\",state=\"{state}\"}}", board.board), 1.0)
    };
    let states: Samples = shown.iter().map(state).collect();
    text.gauge("onbeat_board_state", "State of the board, as set by users.", &states);
    let sends = each(&|board| Some(f64::from(u8::from(board.sends))));
    text.gauge("onbeat_board_sends", "1 if the board has a token and is expected to send.", &sends);
    let maxima = each(&|board| seconds(board.max_ns));
    text.gauge("onbeat_max_seconds", "Largest valid latency of the last 30 days.", &maxima);
    let last = each(&|board| (board.runs > 0).then_some(board.last as f64));
    text.gauge("onbeat_last_run_timestamp_seconds", "Start of the last run.", &last);
    let last = each(&|board| rows.get(&board.board).map(|t| *t as f64));
    let help = "Start of the last five minutes of a watch.";
    text.gauge("onbeat_last_rows_timestamp_seconds", help, &last);
    let budgets = each(&|board| seconds(board.settings.budget_ns));
    text.gauge("onbeat_budget_seconds", "Latency budget of a board.", &budgets);
    let last24 = each(&|board| seconds(board.settings.max24_ns));
    let help = "Largest latency in the last 24 hours of a board with a budget.";
    text.gauge("onbeat_max_24h_seconds", help, &last24);
    let over = |of: &BoardSettings| {
        let is_judged = of.budget_ns.is_some() && !of.state.is_quiet();
        is_judged.then(|| f64::from(u8::from(of.is_over())))
    };
    let over = each(&|board| over(&board.settings));
    let help = "1 if that exceeds the budget, for boards whose changes are reported.";
    text.gauge("onbeat_over_budget", help, &over);
}

fn of_farm(text: &mut MetricsText, app: &App) {
    let yes = |is_so: bool| f64::from(u8::from(is_so));
    let pending = of(&app.counters.webhook_pending);
    text.alone("onbeat_farm_webhook_pending", "Changes waiting for the webhook.", pending as f64);
    let ends = app.certificate_ends().map(|t| (String::new(), t as f64));
    let help = "Expiry of the farm's certificate, if it has one.";
    text.gauge("onbeat_certificate_not_after_timestamp_seconds", help, ends.as_slice());
    if app.cache.is_some() {
        let is_away = app.bucket_trouble().is_some();
        text.alone("onbeat_farm_bucket_away", "1 if the bucket of bundles does not answer.", yes(is_away));
    }
    if let Some(intake) = &app.intake {
        let sample = |of: &str, has_failed: bool| (format!("{{of=\"{of}\"}}"), yes(has_failed));
        let (store, bundles) = (intake.store_write.has_failed(), intake.bundle_write.has_failed());
        let last = [sample("store", store), sample("bundles", bundles)];
        let help = "1 if the last data of a board could not be written.";
        text.gauge("onbeat_farm_write_failed", help, &last);
    }
}

fn counted(text: &mut MetricsText, app: &App) {
    text.counter("onbeat_farm_requests", "Requests.", of(&app.requests));
    text.counter("onbeat_farm_parser_failures", "Reports on which a parser failed.", of(&app.failures));
    for (name, help, value) in app.counters.counted() {
        text.counter(name, help, value);
    }
    let refused = app.counters.refused_requests.counted();
    let refused = refused.map(|(reason, count)| (format!("{{reason=\"{reason}\"}}"), count));
    let help = "Refused requests of boards, by reason.";
    text.counters("onbeat_farm_refused_requests", help, &refused);
    if let Some(intake) = &app.intake {
        let stored = of(&intake.rows_stored);
        text.counter("onbeat_farm_rows", "Stored rows of five minutes.", stored);
    }
    if let Some(cache) = &app.cache {
        let all: [(&str, &str, &AtomicU64); 3] = [
            ("onbeat_farm_bundles_fetched", "Bundles fetched from the bucket.", &cache.fetched),
            (
                "onbeat_farm_bundles_fetched_bytes",
                "Bytes of bundles fetched from the bucket.",
                &cache.fetched_bytes,
            ),
            (
                "onbeat_farm_bundles_evicted",
                "Bundles evicted from the cache on this machine.",
                &cache.evicted,
            ),
        ];
        all.into_iter().for_each(|(name, help, count)| text.counter(name, help, of(count)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Acknowledgement;
    use crate::changes::made::made_change;

    #[test]
    fn each_of_the_boards_that_are_shown_has_all_its_changes() {
        let name = |at: usize| format!("m{at:04}");
        let boards: Vec<FarmBoard> =
            (0..1_001).map(|at| FarmBoard { board: name(at), ..FarmBoard::default() }).collect();
        let all: Vec<FarmChange> = (0..1_001)
            .flat_map(|at| {
                [(ChangeKind::Silent, 5), (ChangeKind::OverBudget, 6), (ChangeKind::OverBudget, 7)]
                    .map(|(kind, t)| made_change(&name(at), kind, t))
            })
            .collect();
        let samples = latest(&all, &boards[..MOST_BOARDS], &NotedChanges::from_iter([]));
        assert_eq!(samples.len(), 2 * MOST_BOARDS);
        let last = &samples[2 * MOST_BOARDS - 2..];
        let labels = |kind: &str| format!("{{board=\"m0999\",kind=\"{kind}\"}}");
        assert_eq!(last, [(labels("silent"), 5.0), (labels("over-budget"), 7.0)]);
    }

    #[test]
    fn a_change_has_the_time_at_which_it_was_found_until_it_is_acknowledged() {
        let boards = [FarmBoard { board: "a".into(), ..FarmBoard::default() }];
        let mut one = made_change("a", ChangeKind::Worse, 5);
        let noted = FoundChange { id: String::new(), at: 9_000 };
        let found: NotedChanges<FoundChange> = [(ChangeIdentity::of(&one), noted)].into_iter().collect();
        let of = |one: &FarmChange| latest(std::slice::from_ref(one), &boards, &found);
        let labels = "{board=\"a\",kind=\"worse\"}".to_owned();
        assert_eq!(of(&one), [(labels.clone(), 9_000.0)]);
        // Another one is not noted yet.
        assert_eq!(of(&made_change("a", ChangeKind::Worse, 864_000)), [(labels, 864_000.0)]);
        one.acknowledged = Some(Acknowledgement::default());
        assert!(of(&one).is_empty() && of(&made_change("a", ChangeKind::Better, 5)).is_empty());
    }
}
