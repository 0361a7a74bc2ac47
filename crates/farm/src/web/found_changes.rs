//! The changes of all boards: found board by board, and again when a board has another day.
//!
//! Finding them reads months of histograms, so that what was found is kept in memory; a page never
//! waits for a board that was looked at today.

use std::collections::BTreeMap;

use tokio::sync::Mutex;

use super::answer::Refusal;
use super::wall_clock::now;
use crate::changes::{
    EnvironmentStep, FarmChange, READ_DAYS, RateHistory, SHOWN_DAYS, effect, hold, new_culprits, over_budget,
    rate_changes, silent,
};
use crate::ingest::plausible::believed;
use crate::pages::environments::{SettingChange, changes};
use crate::records::{BoardEnvironment, FarmBoard, SeriesKey, Tier};
use crate::store::{FarmStore, TimeStretch};

const DAY: i64 = 86_400;
/// Series of a board that are looked at, the latest first: each needs a month of its own.
const MOST_SERIES: usize = 4;
/// Changes of its environment that a board has in the days that are shown.
const MOST_STEPS: usize = 20;

/// Beyond so many boards no page looks at all of them for one: what the last look found stands.
const MOST_AT_ONCE: u64 = 5_000;
/// Boards of such a fleet that are looked at together.
const PART: i64 = 500;

/// What was found, by board, and of which state of it.
#[derive(Default)]
pub struct FoundChanges {
    by_board: Mutex<BTreeMap<String, (LookedAt, Vec<FarmChange>)>>,
    /// Of a fleet that is looked through part by part: its last day, and what was found.
    of_many: Mutex<(i64, Vec<FarmChange>)>,
}

/// What a board has: with another day, run or hardware it is looked at again.
type LookedAt = (i64, u64, Option<i64>);

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
            let fresh =
                self.by_board.lock().await.get(&board.board).is_some_and(|(known, _)| *known == state);
            if !fresh {
                // Not under the lock: others see meanwhile what is known.
                let found = of_board(store, board, newest).await;
                // What is damaged of one board hides no other's: its own page says so.
                if found.is_err() && store.answers().await {
                    continue;
                }
                let found = found?;
                self.by_board.lock().await.insert(board.board.clone(), (state, found));
            }
        }
        Ok(())
    }

    /// What is known of boards that are to be heard of, and how many these are.
    async fn heard(&self, boards: &[FarmBoard], newest: i64) -> (Vec<FarmChange>, usize) {
        let (today, by_board) = (today(), self.by_board.lock().await);
        let mut all = Vec::new();
        // Of the others nobody wants to hear.
        let heard: Vec<&FarmBoard> = boards.iter().filter(|board| !board.settings.state.is_quiet()).collect();
        for board in &heard {
            if let Some((_, found)) = by_board.get(&board.board) {
                all.extend(found.iter().filter(|one| one.t > newest - SHOWN_DAYS * DAY).cloned());
            }
            // What was imported is as old as its last copy; what sends is late by the clock.
            let now = if board.sends { newest.max(today) } else { newest };
            all.extend(silent(board, now));
            all.extend(over_budget(board).filter(|one| one.t > newest - SHOWN_DAYS * DAY));
        }
        (all, heard.len())
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

async fn of_board(store: &FarmStore, board: &FarmBoard, newest: i64) -> Result<Vec<FarmChange>, Refusal> {
    let since = newest - SHOWN_DAYS * DAY;
    let name = &board.board;
    let mut environments = store.environments(name).await?;
    // What other hardware did says nothing of this one.
    let hardware = board.settings.hardware_since().unwrap_or(i64::MIN);
    environments.retain(|one| one.first >= hardware);
    let mut all = Vec::new();
    let series = store.series(name).await?;
    for one in series.iter().take(MOST_SERIES) {
        // The last day is not over.
        let from = (newest - READ_DAYS * DAY).max(hardware);
        let within = TimeStretch { from, to: board.last_day };
        let days = store.tiers(name, &one.key, Tier::Day, within).await?;
        all.extend(rate_changes(&RateHistory { board: name, key: &one.key, days: &days }));
    }
    for one in &mut all {
        one.settings = around(&environments, one.from - 3 * DAY, one.t + DAY);
    }
    let key = series.first().map(|one| one.key.clone()).unwrap_or_default();
    for pair in environments_in_order(&environments).windows(2).rev().take(MOST_STEPS) {
        if pair[1].first >= since {
            all.push(step(store, name, &key, pair[0], pair[1]).await?);
        }
    }
    let since = since.max(hardware);
    all.extend(new_culprits(&store.culprits_since(name, since).await?, since));
    Ok(all)
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
    key: &SeriesKey,
    before: &BoardEnvironment,
    after: &BoardEnvironment,
) -> Result<FarmChange, Refusal> {
    let begin = Tier::Day.begin(after.first);
    let within = TimeStretch { from: begin - 7 * DAY, to: begin + 8 * DAY };
    let slots = store.slots(board, key, within, 20_000).await?;
    Ok(effect(&EnvironmentStep { board, before, after, slots: &slots }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board_settings::BoardSettings;
    use crate::changes::ChangeKind;
    use crate::fixture::recorded_run;
    use crate::records::DayMaximum;
    use crate::store::EnrolOutcome;
    use crate::store::engines::on_each_engine;
    use model::units::Nanos;

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
                let all = FoundChanges::default().all(store, &store.boards().await.unwrap()).await;
                let all = all.unwrap_or_else(|_| panic!("no changes"));
                let of = all.into_iter().filter(|one| one.kind == ChangeKind::Silent);
                of.map(|one| one.board).collect::<Vec<_>>()
            };
            assert_eq!(silent(&store).await, ["sends"]);
            store.revoke("sends", 2).await.unwrap();
            assert!(silent(&store).await.is_empty());
        });
    }
}
