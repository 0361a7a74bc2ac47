//! The changes of all boards: found board by board, and again when a board has another day.
//!
//! Finding them reads months of histograms, so that the results are kept in memory; a page never
//! waits for a board that was searched today. A search each minute finds what arrives later on such
//! a day.

use std::collections::BTreeMap;

use tokio::sync::Mutex;

use model::units::Nanos;

use crate::changes::{ChangeKind, ChangesScope, FarmChange, RateReach, SHOWN_DAYS, hold, silent};
use crate::ingest::plausible::believed;
use crate::records::{DayMaximum, FarmBoard, Tier};
use crate::store::{ChangeMarks, FarmStore};
use crate::wall_clock::{DAY, now};
use crate::web::edge::answer::Refusal;
use crate::web::state::board_changes::{judged_until, of_board, reaches};

/// Number of boards above which pages do not search all of them, but use the results of the last
/// search.
const MOST_AT_ONCE: u64 = 5_000;
/// Boards of such a fleet that are searched together.
const PART: i64 = 500;
/// Days whose new data cause another search: twelve five minutes, one on each day, can name a new
/// culprit.
const MARKED_DAYS: i64 = 14;

/// Changes found, by board and its state.
#[derive(Default)]
pub struct FoundChanges {
    by_board: Mutex<BTreeMap<String, BoardLook>>,
    /// For a fleet that is searched in parts: its last day, and the changes found.
    of_many: Mutex<(i64, Vec<FarmChange>)>,
}

/// State of a board at a search. Another day, run, hardware, budget or day above it causes a new
/// search, and so does the end of its last day.
#[derive(Clone, Debug, PartialEq)]
struct LookedAt {
    last_day: i64,
    judged_until: i64,
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
            judged_until: judged_until(board, now()),
            runs: board.runs,
            hardware: of.hardware_since(),
            budget: of.budget_ns.map(|limit| (limit, of.budget_of.clone())),
            over: board.days.iter().filter(is_over).copied().collect(),
        }
    }
}

/// Depth of the test for new data of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LookDepth {
    /// A new day, for a page.
    Day,
    /// Also new data on a searched day.
    Within,
}

/// Results of a search of a board.
struct BoardLook {
    of: LookedAt,
    /// Marks from before the search.
    marks: ChangeMarks,
    changes: Vec<FarmChange>,
    scope: ChangesScope,
}

impl FoundChanges {
    /// All changes of the last days, newest first, without those that chance explains.
    pub async fn all(&self, store: &FarmStore, boards: &[FarmBoard]) -> Result<Vec<FarmChange>, Refusal> {
        self.look_at(store, boards, newest(boards), LookDepth::Day).await?;
        Ok(self.known(boards).await)
    }

    /// Those that are known already.
    pub async fn known(&self, boards: &[FarmBoard]) -> Vec<FarmChange> {
        let (all, heard) = self.heard(boards, newest(boards)).await;
        hold(all, heard)
    }

    /// Number of these boards that were not searched yet, as after a start.
    pub async fn unsearched(&self, boards: &[FarmBoard]) -> usize {
        let by_board = self.by_board.lock().await;
        let is_open = |one: &&FarmBoard| !one.settings.state.is_quiet() && !by_board.contains_key(&one.board);
        boards.iter().filter(is_open).count()
    }

    /// Numbers of searched series and environments, of one board if it is named.
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

    /// Searches all boards, so that pages find the results: all changes, with new data on searched
    /// days.
    pub async fn look_through(&self, store: &FarmStore) -> Result<Vec<FarmChange>, Refusal> {
        if store.count_boards().await? <= MOST_AT_ONCE {
            let boards = store.boards().await?;
            self.look_at(store, &boards, newest(&boards), LookDepth::Within).await?;
            return Ok(self.known(&boards).await);
        }
        let known = self.of_many.lock().await.0;
        let day = if known > 0 { known } else { today() };
        let (mut after, mut last, mut all, mut of) = (String::new(), 0, Vec::new(), 0);
        while let Some((first, end)) = store.next_boards(&after, PART).await? {
            let began = host::clock::monotonic();
            let boards = store.boards_between(&first, &end).await?;
            self.look_at(store, &boards, day, LookDepth::Within).await?;
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

    async fn look_at(
        &self,
        store: &FarmStore,
        boards: &[FarmBoard],
        newest: i64,
        depth: LookDepth,
    ) -> Result<(), Refusal> {
        let mut known: Option<BTreeMap<String, ChangeMarks>> = None;
        for board in boards {
            let state = LookedAt::of(board);
            if depth == LookDepth::Day && self.is_fresh(board, &state, None).await {
                continue;
            }
            // Of all boards at once, and before any is looked at: what comes then is seen next.
            let all = match known.take() {
                Some(all) => all,
                None => marks(store, boards, newest).await?,
            };
            let marks = known.insert(all).get(&board.board).copied().unwrap_or_default();
            if depth == LookDepth::Within && self.is_fresh(board, &state, Some(marks)).await {
                continue;
            }
            // Without the lock, so that others can read the known changes during the search.
            let found = of_board(store, board, newest).await;
            // Damaged data of one board must not hide the changes of others; its own page shows the
            // fault.
            if found.is_err() && store.answers().await {
                continue;
            }
            let (changes, scope) = found?;
            let look = BoardLook { of: state, marks, changes, scope };
            self.by_board.lock().await.insert(board.board.clone(), look);
        }
        Ok(())
    }

    /// True if a board was searched in this state, and with these marks if given.
    async fn is_fresh(&self, board: &FarmBoard, state: &LookedAt, marks: Option<ChangeMarks>) -> bool {
        let by_board = self.by_board.lock().await;
        let look = by_board.get(&board.board);
        look.is_some_and(|look| look.of == *state && marks.is_none_or(|marks| look.marks == marks))
    }

    /// Known changes of boards that report changes, and the number of searched series, at least one
    /// per board.
    async fn heard(&self, boards: &[FarmBoard], newest: i64) -> (Vec<FarmChange>, usize) {
        let (today, by_board) = (today(), self.by_board.lock().await);
        let (mut all, mut series) = (Vec::new(), 0);
        // Changes of the other boards are not reported.
        for board in boards.iter().filter(|board| !board.settings.state.is_quiet()) {
            let look = by_board.get(&board.board);
            if let Some(look) = look {
                // An exceeded budget that is no longer the board's is not reported, even before the
                // next search.
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

/// Marks of boards, in the order of their names, that show new data within a day.
async fn marks(
    store: &FarmStore,
    boards: &[FarmBoard],
    newest: i64,
) -> Result<BTreeMap<String, ChangeMarks>, Refusal> {
    let (Some(first), Some(last)) = (boards.first(), boards.last()) else { return Ok(BTreeMap::new()) };
    Ok(store.change_marks(&first.board, &last.board, newest - MARKED_DAYS * DAY).await?)
}

/// Detectable changes of the rates of one of these boards; none if it is not among them.
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
mod tests;
