//! The changes of all boards: found board by board, and again when a board has another day.
//!
//! Finding them reads months of histograms, so that what was found is kept in memory; a page never
//! waits for a board that was looked at today.

use std::collections::BTreeMap;

use tokio::sync::Mutex;

use super::answer::Refusal;
use super::wall_clock::now;
use crate::changes::{
    EnvironmentStep, FarmChange, JudgedSeries, MOST_SERIES, READ_DAYS, RateHistory, SHOWN_DAYS, SeriesAround,
    effect, hold, is_judged, new_culprits, over_budget, rate_changes, series_name, silent,
};
use crate::ingest::plausible::believed;
use crate::pages::environments::{SettingChange, changes};
use crate::records::{BoardEnvironment, FarmBoard, SeriesOfBoard, Tier};
use crate::store::{FarmStore, TimeStretch};

const DAY: i64 = 86_400;
/// Changes of its environment that a board has in the days that are shown.
const MOST_STEPS: usize = 20;

/// Beyond so many boards no page looks at all of them for one: what the last look found stands.
const MOST_AT_ONCE: u64 = 5_000;
/// Boards of such a fleet that are looked at together.
const PART: i64 = 500;

/// What was found, by board, and of which state of it.
#[derive(Default)]
pub struct FoundChanges {
    by_board: Mutex<BTreeMap<String, BoardLook>>,
    /// Of a fleet that is looked through part by part: its last day, and what was found.
    of_many: Mutex<(i64, Vec<FarmChange>)>,
}

/// What a board has: with another day, run or hardware it is looked at again.
type LookedAt = (i64, u64, Option<i64>);

/// What was found on a board.
struct BoardLook {
    of: LookedAt,
    changes: Vec<FarmChange>,
    series: JudgedSeries,
}

impl FoundChanges {
    /// All changes of the last days, newest first; those that chance explains are left out.
    pub async fn all(&self, store: &FarmStore, boards: &[FarmBoard]) -> Result<Vec<FarmChange>, Refusal> {
        self.look_at(store, boards, newest(boards)).await?;
        Ok(self.known(boards).await)
    }

    /// Those that are known already.
    pub async fn known(&self, boards: &[FarmBoard]) -> Vec<FarmChange> {
        let (all, heard) = self.heard(boards, newest(boards)).await;
        hold(all, heard)
    }

    /// How many series had their rates judged; of one board where it is named.
    pub async fn judged(&self, boards: &[FarmBoard], board: &str) -> JudgedSeries {
        let by_board = self.by_board.lock().await;
        let mut all = JudgedSeries::default();
        let asked = |one: &&FarmBoard| board.is_empty() || one.board == board;
        for one in boards.iter().filter(asked).filter(|one| !one.settings.state.is_quiet()) {
            all.add(by_board.get(&one.board).map(|look| look.series).unwrap_or_default());
        }
        all
    }

    /// Those of one board, by what is known of the fleet.
    pub async fn of_board(&self, store: &FarmStore, board: &str) -> Result<Vec<FarmChange>, Refusal> {
        let mut all = match store.count_boards().await? > MOST_AT_ONCE {
            true => self.of_many.lock().await.1.clone(),
            false => self.known(&store.boards().await?).await,
        };
        all.retain(|one| one.board == board);
        Ok(all)
    }

    /// Looks at every board, so that pages find what is known.
    pub async fn look_through(&self, store: &FarmStore) -> Result<(), Refusal> {
        if store.count_boards().await? <= MOST_AT_ONCE {
            return self.all(store, &store.boards().await?).await.map(|_| ());
        }
        let known = self.of_many.lock().await.0;
        let day = if known > 0 { known } else { today() };
        let (mut after, mut last, mut all, mut of) = (String::new(), 0, Vec::new(), 0);
        while let Some((first, end)) = store.next_boards(&after, PART).await? {
            let began = host::clock::monotonic();
            let boards = store.boards_between(&first, &end).await?;
            self.look_at(store, &boards, day).await?;
            let (found, heard) = self.heard(&boards, day).await;
            all.extend(found);
            (after, last, of) = (end, newest(&boards).max(last), of + heard);
            // A quarter of the time: boards that send have the rest.
            let took = host::clock::monotonic().0.saturating_sub(began.0).max(0).unsigned_abs();
            tokio::time::sleep(std::time::Duration::from_nanos(3 * took)).await;
        }
        *self.of_many.lock().await = (last, hold(all, of));
        Ok(())
    }

    async fn look_at(&self, store: &FarmStore, boards: &[FarmBoard], newest: i64) -> Result<(), Refusal> {
        for board in boards {
            let state = (board.last_day, board.runs, board.settings.hardware_since());
            let fresh = self.by_board.lock().await.get(&board.board).is_some_and(|look| look.of == state);
            if !fresh {
                // Not under the lock: others see meanwhile what is known.
                let found = of_board(store, board, newest).await;
                // What is damaged of one board hides no other's: its own page says so.
                if found.is_err() && store.answers().await {
                    continue;
                }
                let (changes, series) = found?;
                let look = BoardLook { of: state, changes, series };
                self.by_board.lock().await.insert(board.board.clone(), look);
            }
        }
        Ok(())
    }

    /// What is known of boards that are to be heard of, and in how many series it was looked for: of
    /// each board in one at least.
    async fn heard(&self, boards: &[FarmBoard], newest: i64) -> (Vec<FarmChange>, usize) {
        let (today, by_board) = (today(), self.by_board.lock().await);
        let (mut all, mut series) = (Vec::new(), 0);
        // Of the others nobody wants to hear.
        for board in boards.iter().filter(|board| !board.settings.state.is_quiet()) {
            let look = by_board.get(&board.board);
            if let Some(look) = look {
                all.extend(look.changes.iter().filter(|one| one.t > newest - SHOWN_DAYS * DAY).cloned());
            }
            series += look.map_or(1, |look| look.series.judged.max(1));
            // What was imported is as old as its last copy; what sends is late by the clock.
            let now = if board.sends { newest.max(today) } else { newest };
            all.extend(silent(board, now));
            all.extend(over_budget(board).filter(|one| one.t > newest - SHOWN_DAYS * DAY));
        }
        (all, series)
    }
}

/// The first second of this day.
fn today() -> i64 {
    Tier::Day.begin(now())
}

/// The first second of the last day that any board has, or of this one: a board whose clock is
/// wrong does not make everything else old.
pub fn newest(boards: &[FarmBoard]) -> i64 {
    let last = boards.iter().map(|board| board.last_day).max().unwrap_or_default();
    last.min(Tier::Day.begin(believed(now())))
}

async fn of_board(
    store: &FarmStore,
    board: &FarmBoard,
    newest: i64,
) -> Result<(Vec<FarmChange>, JudgedSeries), Refusal> {
    let since = newest - SHOWN_DAYS * DAY;
    let name = &board.board;
    let mut environments = store.environments(name).await?;
    // What other hardware did says nothing of this one.
    let hardware = board.settings.hardware_since().unwrap_or(i64::MIN);
    environments.retain(|one| one.first >= hardware);
    let mut series = store.series(name).await?;
    // What has no sample of the days that are shown has no change in them.
    series.retain(|one| one.last > since);
    let left_out = series.len().saturating_sub(MOST_SERIES);
    series.truncate(MOST_SERIES);
    let (mut all, mut judged) = rates(store, board, &series).await?;
    judged.left_out = left_out;
    for one in &mut all {
        one.settings = around(&environments, one.from - 3 * DAY, one.t + DAY);
    }
    for pair in environments_in_order(&environments).windows(2).rev().take(MOST_STEPS) {
        if pair[1].first >= since {
            all.push(step(store, name, &series, pair[0], pair[1]).await?);
        }
    }
    let since = since.max(hardware);
    all.extend(new_culprits(&store.culprits_since(name, since).await?, since));
    Ok((all, judged))
}

/// What changed of the rate of each series, and how many could be judged.
async fn rates(
    store: &FarmStore,
    board: &FarmBoard,
    series: &[SeriesOfBoard],
) -> Result<(Vec<FarmChange>, JudgedSeries), Refusal> {
    let (mut all, mut judged) = (Vec::new(), JudgedSeries::default());
    let hardware = board.settings.hardware_since().unwrap_or(i64::MIN);
    // The last day is not over.
    let within = TimeStretch { from: (board.last_day - READ_DAYS * DAY).max(hardware), to: board.last_day };
    for one in series {
        let days = store.tiers(&board.board, &one.key, Tier::Day, within).await?;
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

fn environments_in_order(all: &[BoardEnvironment]) -> Vec<&BoardEnvironment> {
    let mut all: Vec<&BoardEnvironment> = all.iter().collect();
    all.sort_by_key(|one| one.first);
    all
}

/// What changed of the environment within a time.
fn around(all: &[BoardEnvironment], from: i64, to: i64) -> Vec<SettingChange> {
    let all = environments_in_order(all);
    let here = all.windows(2).rev().find(|pair| (from..to).contains(&pair[1].first));
    here.map(|pair| changes(&pair[0].record.settings, &pair[1].record.settings)).unwrap_or_default()
}

async fn step(
    store: &FarmStore,
    board: &str,
    all: &[SeriesOfBoard],
    before: &BoardEnvironment,
    after: &BoardEnvironment,
) -> Result<FarmChange, Refusal> {
    let begin = Tier::Day.begin(after.first);
    let within = TimeStretch { from: begin - 7 * DAY, to: begin + 8 * DAY };
    let mut series = Vec::new();
    for one in all {
        let maxima = store.slot_maxima(board, &one.key, within).await?;
        series.push(SeriesAround { name: series_name(one), maxima });
    }
    Ok(effect(&EnvironmentStep { board, before, after, series: &series }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board_settings::BoardSettings;
    use crate::changes::ChangeKind;
    use crate::fixture::recorded_run;
    use crate::records::{CpuRows, DayMaximum, SeriesKey, TierRow};
    use crate::store::engines::on_each_engine;
    use crate::store::{BulkRows, EnrolOutcome};
    use model::rows::RowCounts;
    use model::units::{Cpu, Nanos};
    use stats::rng::{Rng, SEED};
    use stats::time::fixture::poisson_counts;

    async fn found(store: &FarmStore, of: &FoundChanges) -> Vec<FarmChange> {
        let all = of.all(store, &store.boards().await.unwrap()).await;
        all.unwrap_or_else(|refusal| panic!("{}", refusal.detail))
    }

    fn day(t: i64, late: u64) -> (Tier, TierRow) {
        let rows = RowCounts::of_rows([(300, 86_000_000), (450, late)]);
        let (n, max_ns) = (86_000_000 + late, Some(Nanos(100_000)));
        let cpus = vec![CpuRows { cpu: Cpu(0), rows }];
        (Tier::Day, TierRow { t, n, max_ns, cpus, ..TierRow::default() })
    }

    /// The days of a series up to one, each with so many late wake-ups.
    async fn put_series(store: &FarmStore, board: &str, name: &str, last: i64, counts: &[u64]) {
        let key = SeriesKey { series: name.into(), plan: "p".into() };
        let begin = Tier::Day.begin(last) - counts.len() as i64 * DAY;
        let tiers = (0..).zip(counts).map(|(at, late)| day(begin + at * DAY, *late)).collect();
        store.put_bulk(board, &BulkRows { key, tiers, ..BulkRows::default() }).await.unwrap();
    }

    #[test]
    fn a_change_of_the_last_of_many_series_is_found() {
        on_each_engine(async |store| {
            let record = recorded_run("measured", "a");
            store.put(&record).await.unwrap();
            let last = record.run.started;
            let mut rng = Rng::new(SEED);
            for name in ["switch", "timer", "timer+wakeup", "timer+wakeup+switch"] {
                put_series(&store, "a", name, last, &poisson_counts(15.0, 112, &mut rng)).await;
            }
            let mut counts = poisson_counts(15.0, 100, &mut rng);
            counts.extend(poisson_counts(45.0, 12, &mut rng));
            put_series(&store, "a", "wakeup", last, &counts).await;
            let changes = FoundChanges::default();
            let all = found(&store, &changes).await;
            assert_eq!(all.len(), 1, "{all:?}");
            assert!(all[0].says.starts_with("Latencies of wakeup from "), "{}", all[0].says);
            let boards = store.boards().await.unwrap();
            let judged = changes.judged(&boards, "a").await;
            // The run has a series of its own, of one day.
            assert_eq!(judged, JudgedSeries { judged: 5, too_few: 1, left_out: 0 });
            for at in 0..40 {
                put_series(&store, "a", &format!("more-{at}"), last, &[1]).await;
            }
            let changes = FoundChanges::default();
            assert_eq!(found(&store, &changes).await.len(), 1);
            let judged = changes.judged(&boards, "").await;
            assert_eq!(judged, JudgedSeries { judged: 5, too_few: 27, left_out: 14 });
            assert_eq!(changes.judged(&boards, "b").await, JudgedSeries::default());
        });
    }

    /// Five days of a board, long ago.
    async fn put_days(store: &FarmStore, board: &str) {
        let mut record = recorded_run("measured", board);
        let begin = record.run.started - 400 * DAY;
        for day in 0..5 {
            record.run.id = format!("{board}-{day}");
            (record.run.started, record.whole.t) = (begin + day * DAY, begin + day * DAY);
            record.slots.clear();
            store.put(&record).await.unwrap();
        }
    }

    /// As a store may have it from a version that took runs of the future.
    #[test]
    fn a_board_whose_clock_is_wrong_hides_nothing_of_others() {
        let today = Tier::Day.begin(believed(now()));
        let board = |name: &str, last: i64| FarmBoard {
            board: name.to_owned(),
            last_day: last,
            days: (0..5).map(|day| DayMaximum { t: last - day * DAY, max_ns: Nanos(900) }).collect(),
            settings: BoardSettings { budget_ns: Some(Nanos(100)), ..BoardSettings::default() },
            ..FarmBoard::default()
        };
        let (near, far) = (board("near", today - 3 * DAY), board("far", today + 27_000 * DAY));
        assert_eq!(newest(std::slice::from_ref(&near)), today - 3 * DAY);
        assert_eq!((newest(&[near.clone(), far.clone()]), newest(&[])), (today, 0));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let open = async |boards: &[FarmBoard]| {
                let mut all = FoundChanges::default().known(boards).await;
                all.retain(|one| one.board == "near" && one.kind == ChangeKind::OverBudget);
                all.len()
            };
            assert_eq!((open(&[near.clone()]).await, open(&[near, far]).await), (1, 1));
        });
    }

    #[test]
    fn a_farm_of_which_no_board_sends_any_more_says_so() {
        on_each_engine(async |store| {
            store.add_code(b"code", i64::MAX, &[]).await.unwrap();
            let enrolled = store.enrol(b"code", 1, "sends", "sends", b"token").await.unwrap();
            assert_eq!(enrolled, EnrolOutcome::Enrolled);
            put_days(&store, "sends").await;
            put_days(&store, "imported").await;
            let silent = async |store: &FarmStore| {
                let of = found(store, &FoundChanges::default())
                    .await
                    .into_iter()
                    .filter(|one| one.kind == ChangeKind::Silent);
                of.map(|one| one.board).collect::<Vec<_>>()
            };
            assert_eq!(silent(&store).await, ["sends"]);
            store.add_code(b"more", i64::MAX, &[]).await.unwrap();
            store.enrol(b"more", 86_400, "never", "never", b"other").await.unwrap();
            let boards = store.boards().await.unwrap();
            let enrolled = boards.iter().map(|board| (board.board.as_str(), board.enrolled));
            assert_eq!(enrolled.collect::<Vec<_>>(), [("imported", 0), ("never", 86_400), ("sends", 1)]);
            let mut both = silent(&store).await;
            both.sort_unstable();
            assert_eq!(both, ["never", "sends"]);
            store.revoke("never", 2).await.unwrap();
            store.revoke("sends", 2).await.unwrap();
            assert!(silent(&store).await.is_empty());
        });
    }
}
