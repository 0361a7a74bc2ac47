//! Five minutes of a board: asks the store, hands values to the view.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Deserialize;

use super::answer::{Refusal, WebAnswer};
use super::app::App;
use super::pages::{WebOutcome, known_board};
use super::unnamed;
use super::visitor::Visitor;
use crate::ingest::spikes::{FarmSpike, spikes_within};
use crate::pages::five_minutes::{FiveMinutes, five_minutes};
use crate::pictures::long_term::LongTerm;
use crate::records::{FarmRun, FarmSlot, SLOT, SeriesOfBoard, Tier};
use crate::store::TimeStretch;

/// The worst of the day that are listed.
const WORST: usize = 12;
const RUNS: i64 = 20;
/// Hunts whose spikes are looked up: no board makes two at once.
const HUNTS: usize = 4;

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct MomentQuery {
    series: String,
    plan: String,
    /// `day` or `hour` for the worst of the one that the time is in.
    worst: String,
}

pub async fn page(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path((name, t)): Path<(String, String)>,
    Query(query): Query<MomentQuery>,
) -> WebOutcome {
    let time = || t.parse::<i64>().ok().filter(|t| (0..1 << 40).contains(t));
    let asked = time().ok_or_else(|| Refusal::bad("this is no time: give seconds since 1970"))?;
    let board = known_board(&app, &visitor, &name).await?;
    let mut all = app.store.series(&board.board).await?;
    unnamed::series(&visitor, &mut all);
    let fits = |one: &&SeriesOfBoard| {
        (query.series.is_empty() || one.key.series == query.series)
            && (query.plan.is_empty() || one.key.plan == query.plan)
    };
    let begin = Tier::Day.begin(asked);
    let day = TimeStretch { from: begin, to: begin + Tier::Day.seconds() };
    let (one, mut worst) = worst_of_day(&app, &board.board, all.iter().filter(fits), day).await?;
    let of_hour = Tier::Hour.begin(asked);
    let hour = TimeStretch { from: of_hour, to: of_hour + Tier::Hour.seconds() };
    let t = match query.worst.as_str() {
        "" => None,
        "day" => worst.first().map(|first| first.t),
        "hour" => app.store.worst_slots(&board.board, &one.key, hour, 1).await?.first().map(|first| first.t),
        _ => return Err(Refusal::bad("worst is none of hour and day: choose one of these")),
    };
    let t = t.unwrap_or(Tier::Slot.begin(asked));
    let within = TimeStretch { from: t, to: t + SLOT };
    let mut slots = app.store.slots(&board.board, &one.key, within, 100).await?;
    let hours = app.store.tiers(&board.board, &one.key, Tier::Hour, day).await?;
    let histogram = app.store.tiers(&board.board, &one.key, Tier::Slot, within).await?;
    let over = match board.settings.budget_ns {
        Some(limit) => app.store.beside_over(&board.board, &one.key, t, limit).await?,
        None => [None, None],
    };
    let mut runs = app.store.runs_within(&board.board, within, RUNS).await?;
    let (mut spikes, mut unread) = spikes(&app, &runs, within).await;
    if visitor.is_unnamed() {
        spikes.clear();
        unread = None;
    }
    unnamed::slots(&visitor, &mut slots);
    unnamed::slots(&visitor, &mut worst);
    unnamed::runs(&visitor, &mut runs);
    let invalid = app.store.invalid_runs(&board.board, day.from).await?;
    let mut day =
        LongTerm { tier: Tier::Hour, from: day.from, to: day.to, rows: hours, ..LongTerm::default() };
    day.mark(&one.key, &invalid);
    let view = FiveMinutes {
        board: &board,
        key: &one.key,
        words: &one.words,
        t,
        slots: &slots,
        histogram: histogram.first(),
        over,
        worst: &worst,
        day: &day,
        runs: &runs,
        spikes: &spikes,
        unread: unread.as_deref(),
    };
    Ok(WebAnswer::page(five_minutes(&view)))
}

/// The spikes that hunts recorded within a time, the latest first, and why a bundle could not be
/// fetched. What one does not give is left out: the page has its numbers without it.
async fn spikes(app: &App, runs: &[FarmRun], within: TimeStretch) -> (Vec<FarmSpike>, Option<String>) {
    let (mut all, mut unread) = (Vec::new(), None);
    for run in runs.iter().filter(|run| run.spikes > 0).take(HUNTS) {
        let place = match app.bundle(run).await {
            Ok(place) => place,
            Err(refusal) => {
                unread = Some(refusal.detail);
                // A bucket that is away is asked once, for each may take its time to say so.
                match refusal.status {
                    StatusCode::SERVICE_UNAVAILABLE => break,
                    _ => continue,
                }
            }
        };
        let id = run.id.clone();
        let found = app.heavy(move || Ok(spikes_within(&place, within.from..within.to)?)).await;
        // In its address a run is called as the store calls it.
        all.extend(found.unwrap_or_default().into_iter().map(|one| FarmSpike { run: id.clone(), ..one }));
    }
    all.sort_by_key(|one| (std::cmp::Reverse(one.latency_ns), one.at));
    (all, unread)
}

/// The series with the largest latency of the day, or the first, and its worst five minutes.
async fn worst_of_day(
    app: &App,
    board: &str,
    all: impl Iterator<Item = &SeriesOfBoard>,
    day: TimeStretch,
) -> Result<(SeriesOfBoard, Vec<FarmSlot>), Refusal> {
    let mut best: Option<(SeriesOfBoard, Vec<FarmSlot>)> = None;
    for one in all.take(24) {
        let worst = app.store.worst_slots(board, &one.key, day, WORST).await?;
        let max = |slots: &[FarmSlot]| slots.first().and_then(|slot| slot.max_ns);
        if best.as_ref().is_none_or(|(_, known)| max(&worst) > max(known)) {
            best = Some((one.clone(), worst));
        }
    }
    best.ok_or_else(|| Refusal::not_found("the board has no such series: choose one on its page"))
}
