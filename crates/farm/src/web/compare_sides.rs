//! The sides of a comparison of days: which boards are of them, and which of their days.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use super::answer::Refusal;
use crate::changes::is_spoiled;
use crate::environments::{KnownRecords, ToldSettings};
use crate::history::{environment_on, history};
use crate::records::{
    BoardEnvironment, EnvironmentRecord, EnvironmentRuns, SeriesDays, SeriesKey, SeriesOfBoard, Tier,
};
use crate::sides::{BoardDays, FarmSide, MOST_BOARDS, UnitDays, boards_to_look_at, boards_to_read, days_of};
use crate::store::{FarmStore, TimeStretch};

/// Series of a board that are looked at, those with most days first.
const MOST_SERIES: usize = 32;

/// Boards with the time in which they may have days of a side.
type BoardTimes = BTreeMap<String, TimeStretch>;

/// What boards were, as far as their runs and recorders say.
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

    /// A side with all digests that mean the environment that it asks for.
    fn with_same(&self, side: &FarmSide) -> FarmSide {
        let mut told = ToldSettings::of(&self.by_digest);
        let asked = &side.environment;
        let is_same = |digest: &&String| !asked.is_empty() && told.is_same(asked, digest);
        FarmSide { same: self.by_digest.keys().filter(is_same).cloned().collect(), ..side.clone() }
    }

    /// The boards that may have been what a side asks for in its time, and when: what a run and a
    /// recorder say of one environment is here by both.
    fn times(&self, side: &FarmSide, within: &Range<i64>) -> BoardTimes {
        let mut told = ToldSettings::of(&self.by_digest);
        let mut is_asked = |one: &EnvironmentRecord| {
            side.has_record(one)
                && (side.environment.is_empty() || told.agree(&side.environment, &one.digest))
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
}

/// What the store has of a board.
struct FoundBoard {
    history: Vec<BoardEnvironment>,
    series: Vec<SeriesDays>,
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
        let mut series = days.remove(*name).unwrap_or_default();
        // Their histograms have samples of runs that do not count.
        let invalid = invalid.remove(*name).unwrap_or_default();
        for SeriesDays { key, days, .. } in &mut series {
            days.retain(|day| !is_spoiled(&invalid, key, *day));
        }
        series.sort_by_key(|one| Reverse(one.days.len()));
        series.truncate(MOST_SERIES);
        all.push(((*name).to_owned(), FoundBoard { history, series }));
    }
    Ok(all)
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
    history: Vec<BoardEnvironment>,
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
        let asked = asked.each_ref().map(|side| known.with_same(side));
        let within = [asked[0].stretch().map_err(Refusal::bad)?, asked[1].stretch().map_err(Refusal::bad)?];
        let named = [
            boards_of(store, &known, "A", &asked[0], &within[0]).await?,
            boards_of(store, &known, "B", &asked[1], &within[1]).await?,
        ];
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
            side.remark = chosen.left_out(name, at);
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
                days.insert(series.key.clone(), days_of(side, &there, &board.history));
                words.insert(series.key.clone(), series.words.clone());
            }
            BoardOfSide { history: board.history.clone(), days }
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
    pub fn environments_of(&self, units: &[UnitDays]) -> Vec<Arc<EnvironmentRecord>> {
        let days = units.iter().flat_map(|unit| unit.days.iter().map(|day| (&unit.board, *day)));
        let on = |(board, day): (&String, i64)| environment_on(&self.boards.get(board)?.history, day);
        let all: BTreeMap<&String, &Arc<EnvironmentRecord>> =
            days.filter_map(on).map(|one| (&one.record.digest, &one.record)).collect();
        all.into_values().cloned().collect()
    }
}

/// The boards of both sides whose days are read, and how many were left out on the way.
struct ChosenBoards {
    named: [usize; 2],
    looked_at: [usize; 2],
    measured: [usize; 2],
    read: [Vec<String>; 2],
}

impl ChosenBoards {
    /// Chosen among those that have maxima in their time: others would take the place of these.
    /// Where all that are named are read, none is asked.
    async fn of(store: &FarmStore, named: &[BoardTimes; 2]) -> Result<ChosenBoards, Refusal> {
        let names = named.each_ref().map(|side| side.keys().cloned().collect::<BTreeSet<_>>());
        let counts = names.each_ref().map(BTreeSet::len);
        let (mut looked_at, mut measured) = (counts, names);
        if counts.iter().any(|count| *count > MOST_BOARDS) {
            let boards = boards_to_look_at(measured.each_ref());
            looked_at = boards.each_ref().map(Vec::len);
            measured = [
                with_maxima(store, &boards[0], &named[0]).await?,
                with_maxima(store, &boards[1], &named[1]).await?,
            ];
        }
        let read = boards_to_read(measured.each_ref());
        Ok(ChosenBoards { named: counts, looked_at, measured: measured.each_ref().map(BTreeSet::len), read })
    }

    fn left_out(&self, name: &str, at: usize) -> Option<String> {
        let (named, looked_at, measured) = (self.named[at], self.looked_at[at], self.measured[at]);
        if named <= MOST_BOARDS {
            return None;
        }
        let spread = "those of both sides first, evenly spread by name";
        let read = self.read[at].len();
        let looked = format!("Of {named} boards of {name} {looked_at} are looked at, {spread}.");
        let have = format!("Of {looked_at} boards of {name} {measured} have maxima of five minutes then.");
        let taken = format!("Of {measured} boards of {name} {read} are taken, {spread}.");
        let parts = [(looked_at < named, looked), (measured < looked_at, have), (read < measured, taken)];
        let parts: Vec<String> =
            parts.into_iter().filter(|(is_left_out, _)| *is_left_out).map(|(_, words)| words).collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    }
}

async fn with_maxima(
    store: &FarmStore,
    boards: &[String],
    times: &BoardTimes,
) -> Result<BTreeSet<String>, Refusal> {
    let all: Vec<(&str, TimeStretch)> =
        boards.iter().filter_map(|board| Some((board.as_str(), *times.get(board)?))).collect();
    let asked =
        quarters(&all).map(|some| async move { Ok::<_, Refusal>(store.boards_with_maxima(some).await?) });
    Ok(beside_each_other(asked).await?.into_iter().collect())
}

/// The boards of a side, by name, and when they may have days of it.
async fn boards_of(
    store: &FarmStore,
    known: &KnownEnvironments,
    name: &str,
    side: &FarmSide,
    within: &Range<i64>,
) -> Result<BoardTimes, Refusal> {
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
        return Ok(named.iter().map(|board| (board.clone(), time(board))).collect());
    }
    if !side.asks_what_it_was() {
        return Err(Refusal::bad(format!(
            "{name} may be any board: name some, or a machine, kernel, setting or environment"
        )));
    }
    let found = known.times(side, within);
    match found.is_empty() {
        true => Err(Refusal::not_found(format!(
            "no board was what {name} asks for at that time: a setting is NAME=VALUE, as a board's \
             environments have it"
        ))),
        false => Ok(found),
    }
}
