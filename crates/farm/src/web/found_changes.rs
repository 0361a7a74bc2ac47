//! The changes of all boards: found board by board, and again when a board has another day.
//!
//! Finding them reads months of histograms, so that what was found is kept in memory; a page never
//! waits for a board that was looked at today. What comes later on such a day is found by the look
//! that is made each minute.

use std::collections::BTreeMap;

use tokio::sync::Mutex;

use model::units::Nanos;

use super::answer::Refusal;
use super::board_changes::{judged_until, of_board, reaches};
use crate::changes::{ChangeKind, ChangesScope, FarmChange, RateReach, SHOWN_DAYS, hold, silent};
use crate::ingest::plausible::believed;
use crate::records::{DayMaximum, FarmBoard, Tier};
use crate::store::{ChangeMarks, FarmStore};
use crate::wall_clock::{DAY, now};

/// Beyond so many boards no page looks at all of them for one: what the last look found stands.
const MOST_AT_ONCE: u64 = 5_000;
/// Boards of such a fleet that are looked at together.
const PART: i64 = 500;
/// What came in so many days is asked for where a day was looked at already: twelve five minutes,
/// one of each day, name a culprit that is new.
const MARKED_DAYS: i64 = 14;

/// What was found, by board, and of which state of it.
#[derive(Default)]
pub struct FoundChanges {
    by_board: Mutex<BTreeMap<String, BoardLook>>,
    /// Of a fleet that is looked through part by part: its last day, and what was found.
    of_many: Mutex<(i64, Vec<FarmChange>)>,
}

/// What a board has: with another day, run, hardware or budget, or another day over that, it is
/// looked at again; also once its last day is over, which no other follows.
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

/// How closely it is looked whether a board has something new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LookDepth {
    /// Another day, as a page asks for it.
    Day,
    /// Also what came on a day that was looked at.
    Within,
}

/// What was found on a board.
struct BoardLook {
    of: LookedAt,
    /// As they were before it was looked at.
    marks: ChangeMarks,
    changes: Vec<FarmChange>,
    scope: ChangesScope,
}

impl FoundChanges {
    /// All changes of the last days, newest first; those that chance explains are left out.
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

    /// Looks at every board, so that pages find what is known: all changes, as above, with what
    /// came on a day that was looked at.
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
            // Not under the lock: others see meanwhile what is known.
            let found = of_board(store, board, newest).await;
            // What is damaged of one board hides no other's: its own page says so.
            if found.is_err() && store.answers().await {
                continue;
            }
            let (changes, scope) = found?;
            let look = BoardLook { of: state, marks, changes, scope };
            self.by_board.lock().await.insert(board.board.clone(), look);
        }
        Ok(())
    }

    /// Whether a board was looked at as it is, by its marks where these are asked for.
    async fn is_fresh(&self, board: &FarmBoard, state: &LookedAt, marks: Option<ChangeMarks>) -> bool {
        let by_board = self.by_board.lock().await;
        let look = by_board.get(&board.board);
        look.is_some_and(|look| look.of == *state && marks.is_none_or(|marks| look.marks == marks))
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

/// What says of boards, in the order of their names, that one has something new within a day.
async fn marks(
    store: &FarmStore,
    boards: &[FarmBoard],
    newest: i64,
) -> Result<BTreeMap<String, ChangeMarks>, Refusal> {
    let (Some(first), Some(last)) = (boards.first(), boards.last()) else { return Ok(BTreeMap::new()) };
    Ok(store.change_marks(&first.board, &last.board, newest - MARKED_DAYS * DAY).await?)
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
mod tests;
