//! The changes of one board: reads its days, and hands them to the rules.

use std::collections::{BTreeMap, BTreeSet};

use model::units::Nanos;

use crate::changes::{
    BUDGET_APART, BudgetDay, BudgetPlace, ChangesScope, EFFECT_DAYS, EnvironmentStep, FarmChange, InvalidRun,
    JudgedEnvironments, JudgedSeries, MOST_SERIES, MOST_STEPS, READ_DAYS, RateHistory, RateReach, SHOWN_DAYS,
    SeriesAround, effect, is_judged, is_spoiled, new_culprits, over_budget, rate_changes, rate_reach,
    series_name,
};
use crate::history::BoardEnvironment;
use crate::history::{changes_by_day, environment_on, since as since_time};
use crate::ingest::plausible::believed;
use crate::records::{FarmBoard, SeriesKey, SeriesOfBoard, Tier, TierRow};
use crate::setting_changes::{SettingChange, changed};
use crate::store::{FarmStore, TimeStretch};
use crate::wall_clock::{DAY, now};
use crate::web::edge::answer::Refusal;

/// Changes of a board in the shown days, up to the newest of the fleet, and the numbers of its
/// searched series and environments.
pub async fn of_board(
    store: &FarmStore,
    board: &FarmBoard,
    newest: i64,
) -> Result<(Vec<FarmChange>, ChangesScope), Refusal> {
    let since = newest - SHOWN_DAYS * DAY;
    let name = &board.board;
    let mut history = store.environments(name).await?;
    history.reverse();
    // What other hardware did says nothing of this one, and what came with it on its first day is
    // no change of the board.
    let replaced = board.settings.hardware_since();
    let hardware = replaced.unwrap_or(i64::MIN);
    let history = since_time(history, hardware);
    let mut steps = changes_by_day(&history);
    steps.retain(|(_, after)| replaced.is_none_or(|at| after.first >= Tier::Day.begin(at) + DAY));
    let (series, left_out) = judged_series(store, name, since).await?;
    let from = (board.last_day - READ_DAYS * DAY).min(since);
    let invalid = store.invalid_runs(name, from).await?;
    let (mut all, judged) = rates(store, board, &series, &invalid).await?;
    let since_first = since.max(hardware);
    all.extend(new_culprits(&store.culprits_since(name, since_first, replaced).await?, since_first));
    for one in &mut all {
        one.settings = around(&steps, one.from - 3 * DAY, one.t + DAY);
    }
    steps.retain(|(_, after)| after.first >= since);
    let scope = ChangesScope {
        series: JudgedSeries { left_out, ..judged },
        environments: JudgedEnvironments::of(steps.len()),
    };
    let mut until = i64::MAX;
    for &pair in steps.iter().rev().take(MOST_STEPS) {
        let mut days = days_of_step(&history, pair);
        days.retain(|day| *day >= hardware);
        all.push(step(store, name, &series, pair, until, &days).await?);
        until = pair.1.first - 1;
    }
    if let Some(limit) = board.settings.budget_ns {
        // Those before the days that are shown say whether it is longer so.
        let from = since + DAY;
        let days = maxima(store, name, from - BUDGET_APART * DAY, limit, &invalid).await?;
        all.extend(over_budget(board, &days, from));
    }
    for one in &mut all {
        one.conditions = series.iter().map(|one| one.words.clone()).collect();
    }
    Ok((all, scope))
}

/// Searched series of a board, and the number of others.
async fn judged_series(
    store: &FarmStore,
    board: &str,
    since: i64,
) -> Result<(Vec<SeriesOfBoard>, usize), Refusal> {
    let mut series = store.series(board).await?;
    // What has no sample of the days that are shown has no change in them.
    series.retain(|one| one.last > since);
    let left_out = series.len().saturating_sub(MOST_SERIES);
    series.truncate(MOST_SERIES);
    Ok((series, left_out))
}

/// Detectable change of the rate of each searched series, up to the newest day of the fleet.
pub async fn reaches(store: &FarmStore, board: &FarmBoard, newest: i64) -> Result<Vec<RateReach>, Refusal> {
    let mut all = Vec::new();
    for one in judged_series(store, &board.board, newest - SHOWN_DAYS * DAY).await?.0 {
        all.push(reach(store, board, &one.key).await?);
    }
    Ok(all)
}

/// Detectable change of the rate of one series.
pub async fn reach(store: &FarmStore, board: &FarmBoard, key: &SeriesKey) -> Result<RateReach, Refusal> {
    let invalid = store.invalid_runs(&board.board, board.last_day - READ_DAYS * DAY).await?;
    let (days, left_out) = days(store, board, key, &invalid).await?;
    let reach = rate_reach(&RateHistory { board: &board.board, key, name: "", days: &days });
    Ok(RateReach { left_out, ..reach })
}

/// End of the days by which a board's rates are judged, by the farm's clock. Data of the end of a
/// day may arrive on the next one, so that the last day counts once that is over, too.
pub fn judged_until(board: &FarmBoard, clock: i64) -> i64 {
    match Tier::Day.begin(believed(clock)) > board.last_day + DAY {
        true => board.last_day + DAY,
        false => board.last_day,
    }
}

/// Days by which a rate is judged: finished ones with valid samples of this hardware; and the
/// unfinished one, if any. A partly measured day, as the last of a silent board, is weighted by its
/// wake-ups.
async fn days(
    store: &FarmStore,
    board: &FarmBoard,
    key: &SeriesKey,
    invalid: &[InvalidRun],
) -> Result<(Vec<TierRow>, Option<i64>), Refusal> {
    let hardware = board.settings.hardware_since().unwrap_or(i64::MIN);
    let from = (board.last_day - READ_DAYS * DAY).max(hardware);
    let within = TimeStretch { from, to: board.last_day + DAY };
    let mut days = store.tiers(&board.board, key, Tier::Day, within).await?;
    days.retain(|day| day.n > 0 && !is_spoiled(invalid, key, day.t));
    let until = judged_until(board, now());
    let left_out = days.last().map(|day| day.t).filter(|t| *t >= until);
    days.retain(|day| day.t < until);
    Ok((days, left_out))
}

/// Changes of the rate of each series, and the number of judged ones.
async fn rates(
    store: &FarmStore,
    board: &FarmBoard,
    series: &[SeriesOfBoard],
    invalid: &[InvalidRun],
) -> Result<(Vec<FarmChange>, JudgedSeries), Refusal> {
    let (mut all, mut judged) = (Vec::new(), JudgedSeries::default());
    for one in series {
        let (days, _) = days(store, board, &one.key, invalid).await?;
        match is_judged(&days) {
            true => judged.judged += 1,
            false => judged.too_few += 1,
        }
        let name = if series.len() > 1 { series_name(one) } else { String::new() };
        let history = RateHistory { board: &board.board, key: &one.key, name: &name, days: &days };
        all.extend(rate_changes(&history));
    }
    Ok((all, judged))
}

/// Largest valid latency of each day from one on. A day with an invalid run is read from its five
/// minutes and from runs without these, only if it is above the limit.
async fn maxima(
    store: &FarmStore,
    board: &str,
    from: i64,
    limit: Nanos,
    invalid: &[InvalidRun],
) -> Result<Vec<BudgetDay>, Refusal> {
    let found = store.day_maxima(board, from).await?;
    let mut runs = match found.iter().any(|(_, day)| day.max_ns > limit) {
        true => store.whole_runs(board, from).await?,
        false => BTreeMap::new(),
    };
    let mut all: BTreeMap<i64, BudgetDay> = BTreeMap::new();
    for (key, day) in found {
        let counted = match day.max_ns > limit && is_spoiled(invalid, &key, day.t) {
            true => {
                let within = TimeStretch { from: day.t, to: day.t + DAY };
                let slots = store.slot_maxima(board, &key, within).await?.into_iter();
                slots.max_by_key(|slot| slot.1).map(|(t, max_ns)| (max_ns, BudgetPlace::Slot(t)))
            }
            false => Some((day.max_ns, BudgetPlace::Day)),
        };
        let of = (key, day.t);
        let run = runs.remove(&of).map(|(max_ns, id)| (max_ns, BudgetPlace::Run(id)));
        // Of two that are equal the last: where the day has what a run has, it has it from there.
        let largest = counted.into_iter().chain(run).max_by_key(|(max_ns, _)| *max_ns);
        let known = all.get(&day.t).map(|known| known.max_ns);
        let largest = largest.filter(|(max_ns, _)| known.is_none_or(|known| *max_ns > known));
        if let Some((max_ns, shown)) = largest {
            all.insert(day.t, BudgetDay { t: day.t, max_ns, key: of.0, shown });
        }
    }
    Ok(all.into_values().collect())
}

/// Environments of a board before and after a change.
type ChangePair<'a> = (&'a BoardEnvironment, &'a BoardEnvironment);

/// Changed settings within a time.
fn around(all: &[ChangePair<'_>], from: i64, to: i64) -> Vec<SettingChange> {
    let here = all.iter().rev().find(|(_, after)| (from..to).contains(&after.first));
    here.map(|(before, after)| changed(before, after)).unwrap_or_default()
}

/// Days around a change on which the board had only the environment before it, or only that after
/// it: up to the next change, and back to the previous one.
fn days_of_step(history: &[BoardEnvironment], (before, after): ChangePair<'_>) -> BTreeSet<i64> {
    let day = Tier::Day.begin(after.first);
    let was = |of: &BoardEnvironment, day: &i64| {
        environment_on(history, *day).is_some_and(|one| one.record.digest == of.record.digest)
    };
    let days = move |from: i64, to: i64| (from..=to).map(move |at| day + at * DAY);
    let begin = Tier::Day.begin(before.first);
    let earlier = days(-EFFECT_DAYS, -1).filter(|day| *day >= begin && was(before, day));
    let later = days(1, EFFECT_DAYS).take_while(|day| {
        // A day of which nothing is known by itself does not end it, another environment does.
        environment_on(history, *day).is_none_or(|one| one.record.digest == after.record.digest)
    });
    earlier.chain(later.filter(|day| was(after, day))).collect()
}

async fn step(
    store: &FarmStore,
    board: &str,
    all: &[SeriesOfBoard],
    (before, after): ChangePair<'_>,
    until: i64,
    days: &BTreeSet<i64>,
) -> Result<FarmChange, Refusal> {
    let begin = Tier::Day.begin(after.first);
    let within = TimeStretch { from: begin - EFFECT_DAYS * DAY, to: begin + (EFFECT_DAYS + 1) * DAY };
    let mut series = Vec::new();
    for one in all {
        let mut maxima = store.slot_maxima(board, &one.key, within).await?;
        maxima.retain(|(t, _)| days.contains(&Tier::Day.begin(*t)));
        series.push(SeriesAround { name: series_name(one), maxima });
    }
    Ok(effect(&EnvironmentStep { board, before, after, until, series: &series }))
}
