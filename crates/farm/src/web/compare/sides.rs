//! Sides of a comparison of days: their boards and days.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use model::text::several;

use crate::changes::{InvalidRun, is_spoiled};
use crate::environments::{KnownRecords, ToldSettings};
use crate::history::BoardEnvironment;
use crate::history::{environment_on, history};
use crate::records::{EnvironmentRecord, EnvironmentRuns, SeriesDays, SeriesKey, SeriesOfBoard, Tier};
use crate::sides::{BoardDays, ComparedBoards, FarmSide, LeftOutDays, UnitDays, days_of, unknown_days_of};
use crate::store::{FarmStore, TimeStretch};
use crate::web::compare::chosen_boards::{BoardTimes, ChosenBoards, beside_each_other, quarters};
use crate::web::edge::answer::Refusal;

/// Limit of examined series of a board, those with most days first.
const MOST_SERIES: usize = 32;

/// Environments of boards that runs and recorders reported.
struct KnownEnvironments {
    by_digest: KnownRecords,
    of_boards: BTreeMap<String, Vec<EnvironmentRuns>>,
}

impl KnownEnvironments {
    async fn of(store: &FarmStore) -> Result<KnownEnvironments, Refusal> {
        let by_digest = store.environment_records().await?;
        let mut of_boards = store.environment_runs().await?;
        for (board, of_rows) in store.recorded_environments().await? {
            of_boards.entry(board).or_default().extend(of_rows);
        }
        Ok(KnownEnvironments { by_digest, of_boards })
    }

    /// A side with all digests that stand for the environment it names.
    fn with_same(&self, side: &FarmSide) -> FarmSide {
        let mut told = ToldSettings::of(&self.by_digest);
        let asked = &side.environment;
        let is_same = |digest: &&String| !asked.is_empty() && told.is_same(asked, digest);
        FarmSide { same: self.by_digest.keys().filter(is_same).cloned().collect(), ..side.clone() }
    }

    /// Boards that may have matched a side within its time, with these times. An environment
    /// reported by runs and by a recorder is here once for each.
    fn times(&self, side: &FarmSide, within: &Range<i64>) -> BoardTimes {
        let mut told = ToldSettings::of(&self.by_digest);
        let mut is_asked = |one: &EnvironmentRecord| {
            let is_named = side.environment.is_empty()
                || (told.count(&side.environment) > 0 && told.agree(&side.environment, &one.digest));
            is_named && side.says_of_record(one) == Some(true) && told.count(&one.digest) > 0
        };
        let asked: BTreeSet<&str> =
            self.by_digest.values().filter(|one| is_asked(one)).map(|one| one.digest.as_str()).collect();
        let mut time = |all: &[EnvironmentRuns]| {
            let named: Vec<&str> =
                all.iter().map(|one| one.digest.as_str()).filter(|one| asked.contains(one)).collect();
            let of_side = all.iter().filter(|one| named.iter().any(|asked| told.agree(asked, &one.digest)));
            let of_side: Vec<&EnvironmentRuns> =
                of_side.filter(|one| one.first < within.end && one.until(all) > within.start).collect();
            // The day of its first run is one of its days.
            let from = Tier::Day.begin(of_side.iter().map(|one| one.first).min()?);
            let to = of_side.iter().map(|one| one.until(all)).max()?;
            Some(TimeStretch { from: from.max(within.start), to: to.min(within.end) })
        };
        self.of_boards.iter().filter_map(|(board, all)| Some((board.clone(), time(all)?))).collect()
    }

    /// Number of other boards that may have matched, because the requested setting is unknown and
    /// no other environment reports it.
    fn unknown(&self, side: &FarmSide, within: &Range<i64>, found: &BoardTimes) -> u64 {
        if side.setting.is_empty() || !side.environment.is_empty() {
            return 0;
        }
        let mut told = ToldSettings::of(&self.by_digest);
        let says: BTreeMap<&str, Option<bool>> =
            self.by_digest.values().map(|one| (one.digest.as_str(), side.says_of_record(one))).collect();
        let mut is_unknown = |all: &[EnvironmentRuns]| {
            let then = |one: &&EnvironmentRuns| one.first < within.end && one.until(all) > within.start;
            let known =
                |one: &EnvironmentRuns| says.get_key_value(one.digest.as_str()).map(|(of, is)| (*of, *is));
            let (tell, silent): (Vec<_>, Vec<_>) =
                all.iter().filter(then).filter_map(known).partition(|(_, is)| is.is_some());
            silent.iter().any(|(one, _)| !tell.iter().any(|(other, _)| told.agree(one, other)))
        };
        let others = self.of_boards.iter().filter(|(board, _)| !found.contains_key(*board));
        others.filter(|(_, all)| is_unknown(all.as_slice())).count() as u64
    }
}

/// Days of a board's series in the store.
struct FoundSeries {
    /// Days without an invalid run.
    of: SeriesDays,
    /// Days with one.
    invalid: Vec<i64>,
}

impl FoundSeries {
    /// Separates the days: histograms of days include samples of invalid runs.
    fn of(mut of: SeriesDays, runs: &[InvalidRun]) -> FoundSeries {
        let all = std::mem::take(&mut of.days).into_iter();
        let (invalid, days): (Vec<i64>, Vec<i64>) = all.partition(|day| is_spoiled(runs, &of.key, *day));
        of.days = days;
        FoundSeries { of, invalid }
    }
}

/// Environments and series of a board in the store.
struct FoundBoard {
    history: Vec<BoardEnvironment>,
    series: Vec<FoundSeries>,
}

async fn found_boards(
    store: &FarmStore,
    known: &KnownEnvironments,
    names: &[&str],
    within: TimeStretch,
) -> Result<Vec<(String, FoundBoard)>, Refusal> {
    let mut said = store.said_of(names).await?;
    let mut days = store.days_with_slots(names, within).await?;
    let mut invalid = store.invalid_runs_within(names, within).await?;
    let mut all = Vec::new();
    for name in names {
        let history = history(&said.remove(*name).unwrap_or_default(), &known.by_digest);
        let runs = invalid.remove(*name).unwrap_or_default();
        let days = days.remove(*name).unwrap_or_default().into_iter();
        let mut series: Vec<FoundSeries> = days.map(|one| FoundSeries::of(one, &runs)).collect();
        series.sort_by_key(|one| Reverse(one.of.days.len()));
        series.truncate(MOST_SERIES);
        all.push(((*name).to_owned(), FoundBoard { history, series }));
    }
    Ok(all)
}

/// A board with its days on a side.
struct BoardOfSide {
    history: Vec<BoardEnvironment>,
    /// Days on the side, by series.
    days: BTreeMap<SeriesKey, Vec<i64>>,
    /// Numbers of excluded days, by series.
    left_out: BTreeMap<SeriesKey, LeftOutDays>,
}

/// A side with its data from the store.
pub struct FoundSide {
    name: &'static str,
    boards: BTreeMap<String, BoardOfSide>,
    words: BTreeMap<SeriesKey, String>,
    /// Remarks on its excluded boards.
    boards_left_out: Vec<String>,
}

impl FoundSide {
    /// Both sides, A first.
    pub async fn both(store: &FarmStore, asked: &[FarmSide; 2]) -> Result<[FoundSide; 2], Refusal> {
        let known = KnownEnvironments::of(store).await?;
        let asked = asked.each_ref().map(|side| known.with_same(side));
        let within = [asked[0].stretch().map_err(Refusal::bad)?, asked[1].stretch().map_err(Refusal::bad)?];
        let (of_a, unknown_a) = boards_of(store, &known, "A", &asked[0], &within[0]).await?;
        let (of_b, unknown_b) = boards_of(store, &known, "B", &asked[1], &within[1]).await?;
        let (named, unknown) = ([of_a, of_b], [unknown_a, unknown_b]);
        let chosen = ChosenBoards::of(store, &named).await?;
        let read = &chosen.read;
        let all: BTreeSet<&str> = read.iter().flatten().map(String::as_str).collect();
        let all: Vec<&str> = all.into_iter().collect();
        let any =
            TimeStretch { from: within[0].start.min(within[1].start), to: within[0].end.max(within[1].end) };
        let found = quarters(&all).map(|some| found_boards(store, &known, some, any));
        let found = beside_each_other(found).await?.into_iter().collect();
        let side = |at: usize, name| {
            let mut side = FoundSide::of(name, &asked[at], &within[at], &read[at], &found);
            side.boards_left_out =
                chosen.left_out(name, at).into_iter().chain(unknown_boards(name, unknown[at])).collect();
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
            let (mut days, mut left_out) = (BTreeMap::new(), BTreeMap::new());
            let then = |all: &[i64]| -> Vec<i64> {
                all.iter().copied().filter(|day| within.contains(day)).collect()
            };
            for FoundSeries { of: SeriesDays { key, words: conditions, days: all }, invalid } in &board.series
            {
                days.insert(key.clone(), days_of(side, &then(all), &board.history));
                let invalid = days_of(side, &then(invalid), &board.history).len() as u64;
                let unknown = unknown_days_of(side, &then(all), &board.history).len() as u64;
                left_out.insert(key.clone(), LeftOutDays { invalid, unknown });
                words.insert(key.clone(), conditions.clone());
            }
            BoardOfSide { history: board.history.clone(), days, left_out }
        };
        let of_name = |name: &String| Some((name.clone(), of_side(found.get(name)?)));
        let boards = boards.iter().filter_map(of_name).collect();
        FoundSide { name, boards, words, boards_left_out: Vec::new() }
    }

    /// Number of excluded days of a series.
    pub fn left_out(&self, key: &SeriesKey) -> LeftOutDays {
        let all = self.boards.values().filter_map(|board| board.left_out.get(key).copied());
        all.fold(LeftOutDays::default(), std::ops::Add::add)
    }

    /// Remarks on excluded data for a compared series.
    pub fn remarks(&self, key: &SeriesKey) -> Vec<String> {
        self.boards_left_out.iter().cloned().chain(self.left_out(key).remark(self.name)).collect()
    }

    /// Days by board, of a series.
    pub fn days_of(&self, key: &SeriesKey) -> BoardDays {
        let days = |(name, board): (&String, &BoardOfSide)| {
            let days = board.days.get(key).filter(|days| !days.is_empty())?;
            Some((name.clone(), days.clone()))
        };
        self.boards.iter().filter_map(days).collect()
    }

    /// Compared boards for a series.
    pub fn compared_boards(&self, key: &SeriesKey, units: &[UnitDays]) -> ComparedBoards {
        let told = self.boards.iter().map(|(name, board)| {
            let of_series = board.days.get(key).is_some_and(|days| !days.is_empty());
            (name, of_series, board.days.values().any(|days| !days.is_empty()))
        });
        ComparedBoards::of(told, units)
    }

    fn count(&self, key: &SeriesKey) -> u64 {
        self.days_of(key).values().map(|days| days.len() as u64).sum()
    }

    /// Series that both sides have, the one with most common days first.
    pub fn shared_with(&self, other: &FoundSide) -> Vec<SeriesOfBoard> {
        let one = |(key, words): (&SeriesKey, &String)| {
            let days = self.count(key).min(other.count(key));
            (days > 0).then(|| SeriesOfBoard { key: key.clone(), words: words.clone(), days, last: 0 })
        };
        let mut all: Vec<SeriesOfBoard> = self.words.iter().filter_map(one).collect();
        all.sort_by_key(|one| Reverse(one.days));
        all
    }

    /// Reason for which the sides share no series.
    pub fn nothing_shared(&self, other: &FoundSide) -> String {
        let empty = [self, other].into_iter().find(|side| side.words.keys().all(|key| side.count(key) == 0));
        match empty {
            Some(side) => side.emptied(|_| true).unwrap_or_else(|| {
                format!(
                    "no day with maxima of five minutes matches {}: give other dates, or a kernel or setting \
                     that a board had then",
                    side.name
                )
            }),
            None => self.emptied_beside(other, |_| true).unwrap_or_else(|| {
                "the sides were measured differently: they have no series, interval, policy and load in \
                 common"
                    .to_owned()
            }),
        }
    }

    /// Reason for which one side lost all days of an otherwise shared series.
    pub fn emptied_beside(&self, other: &FoundSide, is_asked: impl Fn(&SeriesKey) -> bool) -> Option<String> {
        let beside = |one: &FoundSide, key: &SeriesKey| one.words.contains_key(key) && is_asked(key);
        self.emptied(|key| beside(other, key)).or_else(|| other.emptied(|key| beside(self, key)))
    }

    /// Reason for which all days of a series were excluded.
    fn emptied(&self, is_asked: impl Fn(&SeriesKey) -> bool) -> Option<String> {
        let mut without = self.words.keys().filter(|key| is_asked(key) && self.count(key) == 0);
        without.find_map(|key| self.left_out(key).nothing_else(self.name))
    }

    /// Environments of the boards on the days of some units, each once.
    pub fn environments_of(&self, units: &[UnitDays]) -> Vec<Arc<EnvironmentRecord>> {
        let days = units.iter().flat_map(|unit| unit.days.iter().map(|day| (&unit.board, *day)));
        let on = |(board, day): (&String, i64)| environment_on(&self.boards.get(board)?.history, day);
        let all: BTreeMap<&String, &Arc<EnvironmentRecord>> =
            days.filter_map(on).map(|one| (&one.record.digest, &one.record)).collect();
        all.into_values().cloned().collect()
    }
}

/// Boards of a side with the times in which they may have days of it, and the number of others
/// whose requested setting is unknown.
async fn boards_of(
    store: &FarmStore,
    known: &KnownEnvironments,
    name: &str,
    side: &FarmSide,
    within: &Range<i64>,
) -> Result<(BoardTimes, u64), Refusal> {
    let named = side.boards();
    for board in &named {
        if store.boards_between(board, board).await?.is_empty() {
            let board = model::text::excerpt(board);
            return Err(Refusal::not_found(format!(
                "no board is called {board}: the list of boards has all"
            )));
        }
    }
    let stretch = TimeStretch { from: within.start, to: within.end };
    if !named.is_empty() {
        let times = known.times(side, within);
        let never = TimeStretch { to: within.start, ..stretch };
        let time = |board: &String| match side.asks_what_it_was() {
            true => times.get(board).copied().unwrap_or(never),
            false => stretch,
        };
        return Ok((named.iter().map(|board| (board.clone(), time(board))).collect(), 0));
    }
    if !side.asks_what_it_was() {
        return Err(Refusal::bad(format!(
            "{name} matches any board: name boards, a machine, a kernel, a setting or an environment"
        )));
    }
    let found = known.times(side, within);
    let unknown = known.unknown(side, within, &found);
    if found.is_empty() {
        let unknown = unknown_boards(name, unknown).map(|words| format!(". {words}"));
        return Err(Refusal::not_found(format!(
            "no board matched {name} at that time: write a setting as NAME=VALUE, like in a board's \
             environments{}",
            unknown.as_deref().map_or("", |words| words.trim_end_matches('.'))
        )));
    }
    Ok((found, unknown))
}

fn unknown_boards(name: &str, unknown: u64) -> Option<String> {
    let boards = several(unknown, "board", "boards");
    (unknown > 0).then(|| format!("The setting of {name} is unknown on {boards}, not included here."))
}
