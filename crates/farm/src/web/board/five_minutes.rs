//! Five minutes of a board: reads the store and passes values to the view.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use crate::ingest::spikes::{FarmSpike, spikes_within};
use crate::joined_slots::{SlotSums, by_recording};
use crate::pages;
use crate::pages::five_minutes::FiveMinutes;
use crate::pictures::long_term::LongTerm;
use crate::records::{FarmBoard, FarmRun, FarmSlot, SLOT, SeriesKey, SeriesOfBoard, Tier, TierRow};
use crate::store::TimeStretch;
use crate::web::answers::data::HistogramDocument;
use crate::web::answers::known::known_board;
use crate::web::answers::tables::table;
use crate::web::answers::unnamed;
use crate::web::edge::answer::{AnswerForm, Refusal, WebAnswer, WebOutcome};
use crate::web::edge::visitor::Visitor;
use crate::web::state::app::App;

/// Limit of the listed worst five minutes of the day.
const WORST: i64 = 12;
/// Limit of listed rows of the five minutes: three recorders with intervals of a second have 900.
const LISTED: i64 = 1_000;
const RUNS: i64 = 20;
/// Limit of hunts whose spikes are read: a board runs only one at a time.
const HUNTS: usize = 4;

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct MomentQuery {
    series: String,
    plan: String,
    /// `day` or `hour` for the worst five minutes of the one that includes the time.
    worst: String,
}

/// Data of five minutes that the visitor may see.
struct FoundMoment {
    board: FarmBoard,
    series: SeriesOfBoard,
    t: i64,
    /// First rows.
    slots: Vec<FarmSlot>,
    /// Row with the largest latency, and the sums of all.
    largest: Option<FarmSlot>,
    sums: SlotSums,
    histogram: Option<TierRow>,
    over: [Option<i64>; 2],
    worst: Vec<FarmSlot>,
    day: LongTerm,
    runs: Vec<FarmRun>,
    spikes: Vec<FarmSpike>,
    unread: Option<String>,
}

impl FoundMoment {
    /// Number of rows that are not listed.
    fn left_out(&self) -> u64 {
        self.sums.count.saturating_sub(self.slots.len() as u64)
    }
}

pub async fn five_minutes(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Extension(form): Extension<AnswerForm>,
    Path((name, t)): Path<(String, String)>,
    Query(query): Query<MomentQuery>,
) -> WebOutcome {
    let found = found(&app, &visitor, (&name, &t), &query).await?;
    match form {
        AnswerForm::Page => Ok(page(&found)),
        AnswerForm::Csv => table("run,number,at,cpu,latency_ns,culprit,victim,series,plan", &found.spikes),
        _ => json(found),
    }
}

fn page(found: &FoundMoment) -> WebAnswer {
    let view = FiveMinutes {
        board: &found.board,
        key: &found.series.key,
        words: &found.series.words,
        t: found.t,
        slots: &by_recording(&found.slots),
        largest: found.largest.as_ref(),
        sums: found.sums,
        left_out: found.left_out(),
        histogram: found.histogram.as_ref(),
        over: found.over,
        worst: &found.worst,
        day: &found.day,
        runs: &found.runs,
        spikes: &found.spikes,
        unread: found.unread.as_deref(),
    };
    WebAnswer::page(pages::five_minutes::five_minutes(&view))
}

fn json(found: FoundMoment) -> WebOutcome {
    let ([before, after], left_out) = (found.over, found.left_out());
    WebAnswer::json(&json!({
        "schema": "onbeat.farm-five-minutes/1", "board": found.board.board,
        "series": found.series.key.series, "plan": found.series.key.plan, "words": found.series.words,
        "t": found.t, "n": found.sums.n, "missed": found.sums.missed, "largest": found.largest,
        "slots": found.slots, "slots_left_out": left_out,
        "histogram": found.histogram.map(|row| HistogramDocument::of(row, None)),
        "over_before": before, "over_after": after, "worst": found.worst, "runs": found.runs,
        "spikes": found.spikes, "unread": found.unread.unwrap_or_default(),
    }))
}

async fn found(
    app: &App,
    visitor: &Visitor,
    (name, t): (&str, &str),
    query: &MomentQuery,
) -> Result<FoundMoment, Refusal> {
    let time = || t.parse::<i64>().ok().filter(|t| (0..1 << 40).contains(t));
    let asked = time().ok_or_else(|| Refusal::bad("invalid time: expected seconds since 1970"))?;
    let board = known_board(app, visitor, name).await?;
    let mut all = app.store.series(&board.board).await?;
    unnamed::series(visitor, &mut all);
    let fits = |one: &&SeriesOfBoard| {
        (query.series.is_empty() || one.key.series == query.series)
            && (query.plan.is_empty() || one.key.plan == query.plan)
    };
    let begin = Tier::Day.begin(asked);
    let within_day = TimeStretch { from: begin, to: begin + Tier::Day.seconds() };
    let (series, mut worst) = worst_of_day(app, &board.board, all.iter().filter(fits), within_day).await?;
    let t = match query.worst.as_str() {
        "" => None,
        "day" => worst.first().map(|first| first.t),
        "hour" => worst_of_hour(app, &board.board, &series.key, asked).await?,
        _ => return Err(Refusal::bad("invalid `worst`: expected hour or day")),
    };
    let t = t.unwrap_or(Tier::Slot.begin(asked));
    let within = TimeStretch { from: t, to: t + SLOT };
    let sums = app.store.slot_sums(&board.board, &series.key, within).await?;
    let mut largest = app.store.worst_slots(&board.board, &series.key, within, 1).await?;
    let mut slots = app.store.slots(&board.board, &series.key, within, LISTED).await?;
    let histogram = app.store.tiers(&board.board, &series.key, Tier::Slot, within).await?;
    let over = match board.settings.budget_ns {
        Some(limit) => app.store.beside_over(&board.board, &series.key, t, limit).await?,
        None => [None, None],
    };
    let mut runs = app.store.runs_within(&board.board, within, RUNS).await?;
    let (mut spikes, mut unread) = spikes(app, &runs, &series.key, within).await;
    if visitor.is_unnamed() {
        spikes.clear();
        unread = None;
    }
    unnamed::slots(visitor, &mut largest);
    unnamed::slots(visitor, &mut slots);
    unnamed::slots(visitor, &mut worst);
    unnamed::runs(visitor, &mut runs);
    let day = day_around(app, &board.board, &series.key, within_day).await?;
    let (histogram, largest) = (histogram.into_iter().next(), largest.pop());
    Ok(FoundMoment {
        board,
        series,
        t,
        slots,
        largest,
        sums,
        histogram,
        over,
        worst,
        day,
        runs,
        spikes,
        unread,
    })
}

/// The first second of the worst five minutes of the hour that a time is in.
async fn worst_of_hour(app: &App, board: &str, key: &SeriesKey, t: i64) -> Result<Option<i64>, Refusal> {
    let from = Tier::Hour.begin(t);
    let hour = TimeStretch { from, to: from + Tier::Hour.seconds() };
    Ok(app.store.worst_slots(board, key, hour, 1).await?.first().map(|first| first.t))
}

/// The hours of a day.
async fn day_around(
    app: &App,
    board: &str,
    key: &SeriesKey,
    within: TimeStretch,
) -> Result<LongTerm, Refusal> {
    let TimeStretch { from, to } = within;
    let rows = app.store.tiers(board, key, Tier::Hour, within).await?;
    let mut day = LongTerm { tier: Tier::Hour, from, to, rows, ..LongTerm::default() };
    day.mark(key, &app.store.invalid_runs(board, from).await?);
    Ok(day)
}

/// Spikes of hunts within a time, the latest first, and the reason if a bundle could not be
/// fetched. Unreadable bundles are skipped, because the page is complete without them.
///
/// A hunt is a separate series, so that its spikes name their series; hunts of the page's series
/// come first.
async fn spikes(
    app: &App,
    runs: &[FarmRun],
    own: &SeriesKey,
    within: TimeStretch,
) -> (Vec<FarmSpike>, Option<String>) {
    let (mut all, mut unread) = (Vec::new(), None);
    let mut hunts: Vec<&FarmRun> = runs.iter().filter(|run| run.spikes > 0).collect();
    hunts.sort_by_key(|run| run.key != *own);
    for run in hunts.into_iter().take(HUNTS) {
        let place = match app.bundle(run).await {
            Ok(place) => place,
            Err(refusal) => {
                unread = Some(refusal.detail);
                // An unreachable bucket is asked once, because each request may take long to fail.
                match refusal.status {
                    StatusCode::SERVICE_UNAVAILABLE => break,
                    _ => continue,
                }
            }
        };
        let found = app.heavy(move || Ok(spikes_within(&place, within.from..within.to)?)).await;
        // In its address a run is called as the store calls it.
        let named = |one: FarmSpike| FarmSpike { run: run.id.clone(), key: run.key.clone(), ..one };
        all.extend(found.unwrap_or_default().into_iter().map(named));
    }
    all.sort_by_key(|one| (Reverse(one.latency_ns), one.at));
    (all, unread)
}

/// The series with the largest latency of the day, or the first, and its worst five minutes.
async fn worst_of_day(
    app: &App,
    board: &str,
    all: impl Iterator<Item = &SeriesOfBoard>,
    day: TimeStretch,
) -> Result<(SeriesOfBoard, Vec<FarmSlot>), Refusal> {
    let all: Vec<&SeriesOfBoard> = all.collect();
    let maxima = match all.len() {
        0 | 1 => BTreeMap::new(),
        _ => app.store.largest_of_series(board, day).await?,
    };
    // Of equal ones it is the first.
    let largest = all.into_iter().min_by_key(|one| Reverse(maxima.get(&one.key).copied()));
    let largest =
        largest.ok_or_else(|| Refusal::not_found("the board has no such series: choose one on its page"))?;
    let worst = app.store.worst_slots(board, &largest.key, day, WORST).await?;
    Ok((largest.clone(), worst))
}

#[cfg(test)]
mod tests {
    use model::units::Nanos;
    use serde_json::Value;

    use super::*;
    use crate::fixture::recorded_run;
    use crate::store::engines::on_page_engines;
    use crate::web::FarmExposure;
    use crate::web::made_app::get;

    /// The page of a measurement, while a hunt was on.
    #[test]
    fn a_spike_of_another_series_than_the_five_minutes_says_so() {
        on_page_engines(async |store| {
            let hunt = recorded_run("hunt", "a");
            let spike = spikes_within(std::path::Path::new(&hunt.run.place), 0..i64::MAX).unwrap().remove(0);
            let t = Tier::Slot.begin(spike.at / Nanos::SECOND.0);
            let mut beside = recorded_run("measured", "a");
            (beside.run.started, beside.whole.t) = (hunt.run.started, hunt.run.started);
            beside.rows.clear();
            let (max_ns, run) = (Some(Nanos(9_000)), beside.run.id.clone());
            beside.slots = vec![FarmSlot { t, n: 1, max_ns, run, ..FarmSlot::default() }];
            for record in [&hunt, &beside] {
                store.put(record).await.unwrap();
            }
            let app = Arc::new(App::new(store, FarmExposure::Loopback, None));
            let (own, other) = (&beside.run.key, &hunt.run.key);
            let query = format!("series={}&plan={}", own.series, own.plan);
            let (_, text) = get(&app, &format!("/v1/boards/a/at/{t}?{query}")).await;
            let at: Value = serde_json::from_str(&text).unwrap();
            assert_eq!((&at["series"], own == other), (&own.series.as_str().into(), false), "{text}");
            let first = &at["spikes"][0];
            assert_eq!(first["run"], hunt.run.id.as_str(), "{text}");
            assert_eq!(first["series"], other.series.as_str(), "{text}");
            assert_eq!(first["plan"], other.plan.as_str(), "{text}");
            let (_, table) = get(&app, &format!("/v1/boards/a/at/{t}/spikes.csv?{query}")).await;
            let end = format!(",{},{}", other.series, other.plan);
            assert!(
                table.lines().count() > 1 && table.lines().skip(1).all(|line| line.ends_with(&end)),
                "{table}"
            );
            let (_, page) = get(&app, &format!("/b/a/at/{t}?{query}")).await;
            assert!(page.contains("not the series of this page"), "{page}");
            let query = format!("series={}&plan={}", other.series, other.plan);
            let (_, page) = get(&app, &format!("/b/a/at/{t}?{query}")).await;
            assert!(page.contains("Spikes in these five minutes"), "{page}");
            assert!(!page.contains("not the series of this page"), "{page}");
        });
    }

    /// The last of thirty series in the order in which they are named.
    #[test]
    fn the_largest_latency_of_a_day_is_found_among_many_series() {
        on_page_engines(async |store| {
            let recorded = recorded_run("measured", "a");
            let day = Tier::Day.begin(recorded.run.started);
            for at in 0..30 {
                let (mut record, id) = (recorded.clone(), format!("run-{at}"));
                let max_ns = Some(Nanos(if at == 29 { 8_000_000 } else { 60_000 }));
                record.run.key.plan = format!("p{at:02}");
                record.run.id.clone_from(&id);
                (record.run.started, record.whole.t) = (day, day);
                (record.run.max_ns, record.whole.max_ns) = (max_ns, max_ns);
                record.digest = id.clone().into_bytes();
                record.rows.clear();
                let t = day + SLOT * (at + 1);
                record.slots = vec![FarmSlot { t, n: 1, max_ns, run: id, ..FarmSlot::default() }];
                store.put(&record).await.unwrap();
            }
            store.set_budget("", Some(Nanos(1_000_000))).await.unwrap();
            let app = Arc::new(App::new(store, FarmExposure::Loopback, None));
            let json = async |address: &str| {
                let (status, text) = get(&app, address).await;
                assert_eq!(status, StatusCode::OK, "{address}: {text}");
                serde_json::from_str::<Value>(&text).unwrap()
            };
            let changes = json("/v1/changes").await["changes"].clone();
            let over = changes.as_array().unwrap().iter().find(|one| one["kind"] == "over-budget");
            let address = over.unwrap()["address"].as_str().unwrap().to_owned();
            assert!(address.contains("plan=p29"), "{address}");
            for address in [format!("/b/a/at/{day}?worst=day"), address] {
                let at = json(&address.replacen("/b/", "/v1/boards/", 1)).await;
                assert_eq!((&at["plan"], &at["t"]), (&"p29".into(), &(day + SLOT * 30).into()), "{address}");
                assert_eq!(at["slots"][0]["max_ns"], 8_000_000, "{address}");
            }
            let at = json(&format!("/v1/boards/a/at/{day}?plan=p03&worst=day")).await;
            assert_eq!((&at["plan"], &at["slots"][0]["max_ns"]), (&"p03".into(), &60_000.into()));
        });
    }
}
