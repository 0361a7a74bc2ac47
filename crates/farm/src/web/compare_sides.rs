//! The sides of a comparison of days: which boards are of them, and which of their days.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::answer::Refusal;
use crate::records::{EnvironmentRecord, EnvironmentRuns, SeriesDays, SeriesKey, SeriesOfBoard};
use crate::sides::{BoardDays, FarmSide, UnitDays, boards_to_read, days_of, environment_on};
use crate::store::{FarmStore, TimeStretch};

/// Series of a board that are looked at, those with most days first.
const MOST_SERIES: usize = 32;

/// What boards were, as far as their runs say.
struct KnownEnvironments {
    by_digest: BTreeMap<String, EnvironmentRecord>,
    of_boards: BTreeMap<String, Vec<EnvironmentRuns>>,
}

impl KnownEnvironments {
    async fn of(store: &FarmStore) -> Result<KnownEnvironments, Refusal> {
        let all = store.environment_records().await?;
        let by_digest = all.into_iter().map(|one| (one.digest.clone(), one)).collect();
        Ok(KnownEnvironments { by_digest, of_boards: store.environment_runs().await? })
    }

    /// The boards that may have been what a side asks for in its time.
    fn boards(&self, side: &FarmSide, within: &Range<i64>) -> BTreeSet<String> {
        let asked: BTreeSet<&String> =
            self.by_digest.values().filter(|one| side.has(one)).map(|one| &one.digest).collect();
        let is_of_side = |of: &&EnvironmentRuns| asked.contains(&of.digest);
        let was = |all: &Vec<EnvironmentRuns>| {
            all.iter().filter(is_of_side).any(|one| one.first < within.end && one.until(all) > within.start)
        };
        self.of_boards.iter().filter(|(_, all)| was(all)).map(|(board, _)| board.clone()).collect()
    }
}

/// What the store has of a board.
struct FoundBoard {
    steps: Vec<(i64, EnvironmentRecord)>,
    series: Vec<SeriesDays>,
}

async fn found_boards(
    store: &FarmStore,
    known: &KnownEnvironments,
    names: &[&str],
    within: TimeStretch,
) -> Result<Vec<(String, FoundBoard)>, Refusal> {
    let mut steps = store.environment_steps(names).await?;
    let mut days = store.days_with_slots(names, within).await?;
    let record = |(from, digest): (i64, String)| Some((from, known.by_digest.get(&digest)?.clone()));
    let board = |name: &&str| {
        let steps = steps.remove(*name).unwrap_or_default().into_iter().filter_map(record).collect();
        let mut series = days.remove(*name).unwrap_or_default();
        series.sort_by_key(|one| Reverse(one.days.len()));
        series.truncate(MOST_SERIES);
        ((*name).to_owned(), FoundBoard { steps, series })
    };
    Ok(names.iter().map(board).collect())
}

/// The parts of a list that are read beside each other, as many as a store on SQLite has
/// connections: most of a short statement's time is the way to the database and back.
pub fn quarters<T>(all: &[T]) -> [&[T]; 4] {
    std::array::from_fn(|at| &all[at * all.len() / 4..(at + 1) * all.len() / 4])
}

/// What was read of the parts, one after the other.
pub async fn beside_each_other<T>(
    parts: [impl Future<Output = Result<Vec<T>, Refusal>>; 4],
) -> Result<Vec<T>, Refusal> {
    let [first, second, third, last] = parts;
    let (first, second, third, last) = tokio::try_join!(first, second, third, last)?;
    Ok([first, second, third, last].into_iter().flatten().collect())
}

/// A board as it is on a side.
struct BoardOfSide {
    steps: Vec<(i64, EnvironmentRecord)>,
    /// Its days that are of the side, by series.
    days: BTreeMap<SeriesKey, Vec<i64>>,
}

/// A side with what the store has of it.
pub struct FoundSide {
    name: &'static str,
    boards: BTreeMap<String, BoardOfSide>,
    words: BTreeMap<SeriesKey, String>,
    /// What of it is left out.
    pub remark: Option<String>,
}

impl FoundSide {
    /// Both sides, A first.
    pub async fn both(store: &FarmStore, asked: &[FarmSide; 2]) -> Result<[FoundSide; 2], Refusal> {
        let known = KnownEnvironments::of(store).await?;
        let within = [asked[0].stretch().map_err(Refusal::bad)?, asked[1].stretch().map_err(Refusal::bad)?];
        let named = [
            boards_of(store, &known, "A", &asked[0], &within[0]).await?,
            boards_of(store, &known, "B", &asked[1], &within[1]).await?,
        ];
        let read = boards_to_read(named.each_ref());
        let all: BTreeSet<&str> = read.iter().flatten().map(String::as_str).collect();
        let all: Vec<&str> = all.into_iter().collect();
        let any =
            TimeStretch { from: within[0].start.min(within[1].start), to: within[0].end.max(within[1].end) };
        let found = quarters(&all).map(|some| found_boards(store, &known, some, any));
        let found = beside_each_other(found).await?.into_iter().collect();
        let side = |at: usize, name| {
            let mut side = FoundSide::of(name, &asked[at], &within[at], &read[at], &found);
            side.remark = left_out(name, named[at].len(), read[at].len());
            side
        };
        Ok([side(0, "A"), side(1, "B")])
    }

    fn of(
        name: &'static str,
        side: &FarmSide,
        within: &Range<i64>,
        boards: &[String],
        found: &BTreeMap<String, FoundBoard>,
    ) -> FoundSide {
        let mut words = BTreeMap::new();
        let mut of_side = |board: &FoundBoard| {
            let mut days = BTreeMap::new();
            for series in &board.series {
                let there: Vec<i64> =
                    series.days.iter().copied().filter(|day| within.contains(day)).collect();
                days.insert(series.key.clone(), days_of(side, &there, &board.steps));
                words.insert(series.key.clone(), series.words.clone());
            }
            BoardOfSide { steps: board.steps.clone(), days }
        };
        let of_name = |name: &String| Some((name.clone(), of_side(found.get(name)?)));
        FoundSide { name, boards: boards.iter().filter_map(of_name).collect(), words, remark: None }
    }

    /// Days by board, of a series.
    pub fn days_of(&self, key: &SeriesKey) -> BoardDays {
        let days = |(name, board): (&String, &BoardOfSide)| {
            let days = board.days.get(key).filter(|days| !days.is_empty())?;
            Some((name.clone(), days.clone()))
        };
        self.boards.iter().filter_map(days).collect()
    }

    fn count(&self, key: &SeriesKey) -> u64 {
        self.days_of(key).values().map(|days| days.len() as u64).sum()
    }

    /// The series that both sides have, those first of which both have most days.
    pub fn shared_with(&self, other: &FoundSide) -> Vec<SeriesOfBoard> {
        let one = |(key, words): (&SeriesKey, &String)| {
            let days = self.count(key).min(other.count(key));
            (days > 0).then(|| SeriesOfBoard { key: key.clone(), words: words.clone(), days, last: 0 })
        };
        let mut all: Vec<SeriesOfBoard> = self.words.iter().filter_map(one).collect();
        all.sort_by_key(|one| Reverse(one.days));
        all
    }

    /// Why there is no series that both have.
    pub fn nothing_shared(&self, other: &FoundSide) -> String {
        let empty = [self, other].into_iter().find(|side| side.words.keys().all(|key| side.count(key) == 0));
        match empty {
            Some(side) => format!(
                "no day with maxima of five minutes is of {}: give other dates, or a kernel or setting that \
                 a board had then",
                side.name
            ),
            None => "the sides were not measured alike: they share no series, interval, policy and load"
                .to_owned(),
        }
    }

    /// What the boards were on the days of some units, each once.
    pub fn environments_of(&self, units: &[UnitDays]) -> Vec<EnvironmentRecord> {
        let days = units.iter().flat_map(|unit| unit.days.iter().map(|day| (&unit.board, *day)));
        let on = |(board, day): (&String, i64)| environment_on(&self.boards.get(board)?.steps, day);
        let all: BTreeMap<&String, &EnvironmentRecord> =
            days.filter_map(on).map(|one| (&one.digest, one)).collect();
        all.into_values().cloned().collect()
    }
}

fn left_out(name: &str, named: usize, read: usize) -> Option<String> {
    let spread = "those of both sides first, evenly spread by name";
    (read < named).then(|| format!("Of {named} boards of {name} {read} are taken, {spread}."))
}

/// The boards of a side, by name.
async fn boards_of(
    store: &FarmStore,
    known: &KnownEnvironments,
    name: &str,
    side: &FarmSide,
    within: &Range<i64>,
) -> Result<BTreeSet<String>, Refusal> {
    let named = side.boards();
    for board in &named {
        if store.boards_between(board, board).await?.is_empty() {
            let board = model::text::excerpt(board);
            return Err(Refusal::not_found(format!(
                "no board is called {board}: the list of boards has all"
            )));
        }
    }
    if !named.is_empty() {
        return Ok(named);
    }
    if !side.asks_what_it_was() {
        return Err(Refusal::bad(format!(
            "{name} may be any board: name some, or a machine, kernel, setting or environment"
        )));
    }
    let found = known.boards(side, within);
    match found.is_empty() {
        true => Err(Refusal::not_found(format!(
            "no board was what {name} asks for at that time: a setting is NAME=VALUE, as a board's \
             environments have it"
        ))),
        false => Ok(found),
    }
}
