//! The changes of all boards: found board by board, and again when a board has another day.
//!
//! Finding them reads months of histograms, so that what was found is kept in memory; a page never
//! waits for a board that was looked at today.

use std::collections::BTreeMap;

use tokio::sync::Mutex;

use model::units::Nanos;

use super::answer::Refusal;
use super::board_changes::{of_board, reaches};
use super::wall_clock::now;
use crate::changes::{ChangeKind, ChangesScope, FarmChange, RateReach, SHOWN_DAYS, hold, silent};
use crate::ingest::plausible::believed;
use crate::records::{DayMaximum, FarmBoard, Tier};
use crate::store::FarmStore;

const DAY: i64 = 86_400;

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

/// What a board has: with another day, run, hardware or budget, or another day over that, it is
/// looked at again.
#[derive(Clone, Debug, PartialEq)]
struct LookedAt {
    last_day: i64,
    runs: u64,
    hardware: Option<i64>,
    budget: Option<(Nanos, String)>,
    over: Vec<DayMaximum>,
}

impl LookedAt {
    fn of(board: &FarmBoard) -> LookedAt {
        let of = &board.settings;
        let is_over = |day: &&DayMaximum| of.budget_ns.is_some_and(|limit| day.max_ns > limit);
        LookedAt {
            last_day: board.last_day,
            runs: board.runs,
            hardware: of.hardware_since(),
            budget: of.budget_ns.map(|limit| (limit, of.budget_of.clone())),
            over: board.days.iter().filter(is_over).copied().collect(),
        }
    }
}

/// What was found on a board.
struct BoardLook {
    of: LookedAt,
    changes: Vec<FarmChange>,
    scope: ChangesScope,
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

    /// In how many series and environments they were looked for; of one board where it is named.
    pub async fn scope(&self, boards: &[FarmBoard], board: &str) -> ChangesScope {
        let by_board = self.by_board.lock().await;
        let mut all = ChangesScope::default();
        let asked = |one: &&FarmBoard| board.is_empty() || one.board == board;
        for one in boards.iter().filter(asked).filter(|one| !one.settings.state.is_quiet()) {
            all.add(by_board.get(&one.board).map(|look| look.scope).unwrap_or_default());
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

    /// Looks at every board, so that pages find what is known: all changes, as above.
    pub async fn look_through(&self, store: &FarmStore) -> Result<Vec<FarmChange>, Refusal> {
        if store.count_boards().await? <= MOST_AT_ONCE {
            return self.all(store, &store.boards().await?).await;
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
        let found = hold(all, of);
        *self.of_many.lock().await = (last, found.clone());
        Ok(found)
    }

    async fn look_at(&self, store: &FarmStore, boards: &[FarmBoard], newest: i64) -> Result<(), Refusal> {
        for board in boards {
            let state = LookedAt::of(board);
            let fresh = self.by_board.lock().await.get(&board.board).is_some_and(|look| look.of == state);
            if !fresh {
                // Not under the lock: others see meanwhile what is known.
                let found = of_board(store, board, newest).await;
                // What is damaged of one board hides no other's: its own page says so.
                if found.is_err() && store.answers().await {
                    continue;
                }
                let (changes, scope) = found?;
                let look = BoardLook { of: state, changes, scope };
                self.by_board.lock().await.insert(board.board.clone(), look);
            }
        }
        Ok(())
    }

    /// What is known of boards that are to be heard of, and in how many series it was looked for:
    /// of each board in one at least.
    async fn heard(&self, boards: &[FarmBoard], newest: i64) -> (Vec<FarmChange>, usize) {
        let (today, by_board) = (today(), self.by_board.lock().await);
        let (mut all, mut series) = (Vec::new(), 0);
        // Of the others nobody wants to hear.
        for board in boards.iter().filter(|board| !board.settings.state.is_quiet()) {
            let look = by_board.get(&board.board);
            if let Some(look) = look {
                // Of a budget that is no longer the board's nothing is told, also before the next
                // look.
                let is_gone = look.of.budget.as_ref().map(|one| one.0) != board.settings.budget_ns;
                let told = look.changes.iter().filter(|one| one.t > newest - SHOWN_DAYS * DAY);
                all.extend(told.filter(|one| one.kind != ChangeKind::OverBudget || !is_gone).cloned());
            }
            series += look.map_or(1, |look| look.scope.series.judged.max(1));
            // What was imported is as old as its last copy; what sends is late by the clock.
            let now = if board.sends { newest.max(today) } else { newest };
            all.extend(silent(board, now));
        }
        (all, series)
    }
}

/// What can be seen of the rates of one of these boards; none where it is not among them.
pub async fn rates_of(
    store: &FarmStore,
    boards: &[FarmBoard],
    board: &str,
) -> Result<Option<Vec<RateReach>>, Refusal> {
    match boards.iter().find(|one| one.board == board) {
        Some(found) => reaches(store, found, newest(boards)).await.map(Some),
        None => Ok(None),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board_settings::{BoardSettings, BoardState};
    use crate::changes::{JudgedEnvironments, JudgedSeries, MOST_STEPS};
    use crate::fixture::recorded_run;
    use crate::records::{CpuRows, SeriesKey, TierRow};
    use crate::store::engines::on_each_engine;
    use crate::store::{BulkRows, EnrolOutcome, TimeStretch};
    use model::rows::RowCounts;
    use model::units::Cpu;
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
            let judged = changes.scope(&boards, "a").await.series;
            let rates = rates_of(&store, &boards, "a").await.unwrap().unwrap();
            let seen = rates.iter().filter(|one| one.factor.is_some_and(|factor| factor < 2.1));
            let mut seen: Vec<&str> = seen.map(|one| one.key.series.as_str()).collect();
            seen.sort_unstable();
            assert_eq!(seen, ["switch", "timer", "timer+wakeup", "timer+wakeup+switch"]);
            let changed = rates.iter().find(|one| one.key.series == "wakeup").unwrap();
            assert!(changed.changed && changed.a_day.is_none(), "{changed:?}");
            assert!(rates_of(&store, &boards, "b").await.unwrap().is_none());
            // The run has a series of its own, of one day.
            assert_eq!(judged, JudgedSeries { judged: 5, too_few: 1, left_out: 0 });
            for at in 0..40 {
                put_series(&store, "a", &format!("more-{at}"), last, &[1]).await;
            }
            let changes = FoundChanges::default();
            assert_eq!(found(&store, &changes).await.len(), 1);
            let judged = changes.scope(&boards, "").await.series;
            assert_eq!(judged, JudgedSeries { judged: 5, too_few: 27, left_out: 14 });
            assert_eq!(changes.scope(&boards, "b").await, ChangesScope::default());
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
    fn the_newest_day_is_no_day_of_the_future() {
        let today = Tier::Day.begin(believed(now()));
        let board = |last: i64| FarmBoard { last_day: last, ..FarmBoard::default() };
        assert_eq!(newest(&[board(today - 3 * DAY)]), today - 3 * DAY);
        assert_eq!((newest(&[board(today - 3 * DAY), board(today + 27_000 * DAY)]), newest(&[])), (today, 0));
    }

    /// A run of each of six days, that counts or does not; the latest began when the recorded one
    /// did.
    async fn put_runs(store: &FarmStore, board: &str, invalid: u64, max: Nanos) -> i64 {
        let recorded = recorded_run("measured", board);
        for at in 0..6 {
            let (mut record, back) = (recorded.clone(), (5 - at) * DAY);
            record.run.id = format!("{board}-{invalid}-{at}");
            (record.run.invalid, record.run.max_ns) = (invalid, Some(max));
            (record.run.started, record.whole.t) = (record.run.started - back, record.whole.t - back);
            record.whole.max_ns = Some(max);
            for slot in &mut record.slots {
                (slot.t, slot.max_ns) = (slot.t - back, Some(max));
                slot.run.clone_from(&record.run.id);
            }
            record.rows.clear();
            store.put(&record).await.unwrap();
        }
        recorded.run.started
    }

    #[test]
    fn runs_that_do_not_count_break_no_budget() {
        on_each_engine(async |store| {
            let limit = Nanos(1_000_000);
            store.set_budget("", Some(limit)).await.unwrap();
            let last = put_runs(&store, "a", 1, Nanos(9_000_000)).await;
            let changes = FoundChanges::default();
            let over = async || {
                let all = found(&store, &changes).await.into_iter();
                all.filter(|one| one.kind == ChangeKind::OverBudget).collect::<Vec<_>>()
            };
            assert!(over().await.is_empty());
            // On the same days others count: with their own maxima.
            put_runs(&store, "a", 0, Nanos(900_000)).await;
            assert!(over().await.is_empty());
            store.set_budget("", Some(Nanos(800_000))).await.unwrap();
            let all = over().await;
            assert_eq!((all.len(), &*all[0].subject), (1, "budget 800000"));
            assert!(all[0].evidence[0].contains("900 us"), "{all:?}");
            assert!(all[0].evidence[1].starts_with("6 days of 6"), "{all:?}");
            let invalid = store.invalid_runs("a", last - 3 * DAY).await.unwrap();
            assert_eq!(invalid.len(), 4, "{invalid:?}");
            let key = recorded_run("measured", "a").run.key;
            let within = TimeStretch { from: last - 10 * DAY, to: last + DAY };
            let maxima = store.slot_maxima("a", &key, within).await.unwrap();
            assert!(!maxima.is_empty() && maxima.iter().all(|slot| slot.1 == Nanos(900_000)), "{maxima:?}");
            assert!(maxima.windows(2).all(|pair| pair[0].0 < pair[1].0));
            store.set_budget("", None).await.unwrap();
            let boards = store.boards().await.unwrap();
            assert!(changes.known(&boards).await.is_empty(), "told before the next look");
        });
    }

    #[test]
    fn a_budget_that_was_broken_on_any_of_the_days_shown_is_told() {
        on_each_engine(async |store| {
            let record = recorded_run("measured", "a");
            store.put(&record).await.unwrap();
            let last = Tier::Day.begin(record.run.started);
            let key = SeriesKey { series: "wakeup".into(), plan: "p".into() };
            let row = |back: i64| {
                let max = if back == 70 || back > 89 { 50_000_000 } else { 90_000 };
                let (t, max_ns) = (last - back * DAY, Some(Nanos(max)));
                (Tier::Day, TierRow { t, n: 9, max_ns, ..TierRow::default() })
            };
            let tiers = (1..130).rev().map(row).collect();
            store.put_bulk("a", &BulkRows { key, tiers, ..BulkRows::default() }).await.unwrap();
            let highest = record.run.max_ns.unwrap();
            assert!(highest < Nanos(50_000_000), "{highest:?}");
            store.set_budget("", Some(highest)).await.unwrap();
            let changes = FoundChanges::default();
            let all = found(&store, &changes).await;
            assert_eq!(all.len(), 1, "{all:?}");
            assert_eq!((all[0].kind, all[0].from), (ChangeKind::OverBudget, last - 70 * DAY));
            assert!(!all[0].says.contains("before"), "{}", all[0].says);
            // Broken every day, it is not known since when.
            store.set_budget("", Some(Nanos(80_000))).await.unwrap();
            let all = found(&store, &changes).await;
            assert_eq!((all.len(), all[0].from), (1, last - 89 * DAY));
            assert!(all[0].says.ends_with(" or before."), "{}", all[0].says);
        });
    }

    #[test]
    fn days_of_a_run_that_does_not_count_say_nothing_of_a_rate() {
        on_each_engine(async |store| {
            let record = recorded_run("measured", "a");
            store.put(&record).await.unwrap();
            let last = record.run.started;
            let mut rng = Rng::new(SEED);
            let mut counts = poisson_counts(15.0, 100, &mut rng);
            counts.extend(poisson_counts(45.0, 12, &mut rng));
            put_series(&store, "a", "wakeup", last, &counts).await;
            assert_eq!(found(&store, &FoundChanges::default()).await.len(), 1);
            // One that was on all the twelve days.
            let mut record = record;
            record.run.id = "spoiled".into();
            record.run.key = SeriesKey { series: "wakeup".into(), plan: "p".into() };
            record.run.invalid = 1;
            record.run.started = Tier::Day.begin(last) - 12 * DAY;
            record.run.length_ns = Some(Nanos((12 * DAY - 1) * Nanos::SECOND.0));
            record.slots.clear();
            record.rows.clear();
            store.put(&record).await.unwrap();
            assert!(found(&store, &FoundChanges::default()).await.is_empty());
        });
    }

    /// A run of each of 24 days, of five hours: eight days of A, which is late, eight of B, eight
    /// of A. The first second of the first day.
    async fn put_back_and_forth(store: &FarmStore) -> i64 {
        let recorded = recorded_run("measured", "a");
        let (begin, mut rng) = (Tier::Day.begin(recorded.run.started) - 23 * DAY, Rng::new(SEED));
        for day in 0..24 {
            let (name, late) = if (8..16).contains(&day) { ("B", 20) } else { ("A", 500) };
            let mut record = recorded.clone();
            record.run.id = format!("r{day:02}");
            (record.run.started, record.whole.t) = (begin + day * DAY, begin + day * DAY);
            record.environment.digest = name.to_owned();
            record.environment.release = name.to_owned();
            record.environment.settings = format!("{{\"host.release\":\"{name}\"}}");
            let slot = |at: i64| {
                let mut slot = recorded.slots[0].clone();
                slot.run.clone_from(&record.run.id);
                let max = if rng.below(1_000) < late { 200_000 } else { 20_000 + rng.below(9_000) as i64 };
                (slot.t, slot.max_ns) = (begin + day * DAY + at * 300, Some(Nanos(max)));
                slot
            };
            record.slots = (0..60).map(slot).collect();
            record.rows.clear();
            store.put(&record).await.unwrap();
        }
        begin
    }

    /// What came with environments: which, the day, what it did.
    async fn effects(store: &FarmStore, begin: i64) -> Vec<(String, i64, ChangeKind)> {
        let all = found(store, &FoundChanges::default()).await;
        let of = all.into_iter().filter(|one| one.subject.starts_with("environment "));
        of.map(|one| (one.subject, (one.t - begin) / DAY, one.kind)).collect()
    }

    #[test]
    fn to_go_back_to_an_environment_is_a_change_with_its_effect() {
        on_each_engine(async |store| {
            let begin = put_back_and_forth(&store).await;
            let wanted = [
                ("environment A".to_owned(), 16, ChangeKind::Worse),
                ("environment B".to_owned(), 8, ChangeKind::Better),
            ];
            assert_eq!(effects(&store, begin).await, wanted);
            // Two days with both, for an hour, are of none.
            for day in [12, 20] {
                let mut record = recorded_run("measured", "a");
                record.run.id = format!("tried{day}");
                (record.run.started, record.whole.t) =
                    (begin + day * DAY + 40_000, begin + day * DAY + 40_000);
                record.environment.digest = "C".to_owned();
                record.environment.settings = "{\"host.governor\":\"powersave\"}".to_owned();
                record.slots.clear();
                record.rows.clear();
                store.put(&record).await.unwrap();
                record.run.id = format!("after{day}");
                (record.run.started, record.whole.t) =
                    (begin + day * DAY + 50_000, begin + day * DAY + 50_000);
                let name = if day == 12 { "B" } else { "A" };
                record.environment.digest = name.to_owned();
                record.environment.release = name.to_owned();
                record.environment.settings = format!("{{\"host.release\":\"{name}\"}}");
                store.put(&record).await.unwrap();
            }
            assert_eq!(effects(&store, begin).await, wanted);
            let all = found(&store, &FoundChanges::default()).await;
            let better = all.iter().find(|one| one.kind == ChangeKind::Better).unwrap();
            assert!(better.evidence[0].starts_with("7 days before against 6 days after"), "{better:?}");
        });
    }

    #[test]
    fn a_change_after_other_hardware_is_found_where_the_environment_stayed_with_it() {
        on_each_engine(async |store| {
            let begin = put_back_and_forth(&store).await;
            let worse = ("environment A".to_owned(), 16, ChangeKind::Worse);
            let better = ("environment B".to_owned(), 8, ChangeKind::Better);
            for (day, wanted) in [
                (3, vec![worse.clone(), better]),
                // Its first day with this hardware is the one on which it changed.
                (8, vec![worse.clone()]),
                (11, vec![worse]),
                (16, Vec::new()),
            ] {
                let settings = BoardSettings {
                    state: BoardState::Replaced,
                    state_since: begin + day * DAY,
                    ..BoardSettings::default()
                };
                assert!(store.set_settings("a", "a", &settings).await.unwrap());
                assert_eq!(effects(&store, begin).await, wanted, "{day}");
            }
        });
    }

    #[test]
    fn environments_beyond_those_that_are_looked_at_are_counted() {
        on_each_engine(async |store| {
            let recorded = recorded_run("measured", "a");
            for at in 0..MOST_STEPS as i64 + 4 {
                let mut record = recorded.clone();
                record.run.id = format!("r{at}");
                record.run.started -= (30 - at) * DAY;
                record.environment.digest = format!("d{at}");
                record.environment.settings = format!("{{\"host.cmdline\":\"{at}\"}}");
                record.slots.clear();
                record.rows.clear();
                store.put(&record).await.unwrap();
            }
            let changes = FoundChanges::default();
            let all = found(&store, &changes).await;
            let of: Vec<&str> = all
                .iter()
                .filter(|one| one.kind == ChangeKind::Environment)
                .map(|one| one.subject.as_str())
                .collect();
            assert_eq!((of.len(), of[0]), (MOST_STEPS, "environment d23"), "the latest are looked at");
            let scope = changes.scope(&store.boards().await.unwrap(), "").await;
            assert_eq!(scope.environments, JudgedEnvironments { looked_at: MOST_STEPS, left_out: 3 });
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
