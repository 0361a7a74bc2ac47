//! The sides of a comparison of days: which boards are of them, and which of their days.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::answer::Refusal;
use crate::environments::{ToldSettings, environment_steps, merged};
use crate::records::{EnvironmentRecord, EnvironmentRuns, SeriesDays, SeriesKey, SeriesOfBoard, Tier};
use crate::sides::{
    BoardDays, FarmSide, MOST_BOARDS, UnitDays, boards_to_look_at, boards_to_read, days_of, environment_on,
};
use crate::store::{FarmStore, TimeStretch};

/// Series of a board that are looked at, those with most days first.
const MOST_SERIES: usize = 32;

/// Boards with the time in which they may have days of a side.
type BoardTimes = BTreeMap<String, TimeStretch>;

/// What boards were, as far as their runs and recorders say.
struct KnownEnvironments {
    by_digest: BTreeMap<String, EnvironmentRecord>,
    of_boards: BTreeMap<String, Vec<EnvironmentRuns>>,
}

impl KnownEnvironments {
    async fn of(store: &FarmStore) -> Result<KnownEnvironments, Refusal> {
        let all = store.environment_records().await?;
        let by_digest = all.into_iter().map(|one| (one.digest.clone(), one)).collect();
        let mut of_boards = store.environment_runs().await?;
        let mut told = ToldSettings::of(&by_digest);
        for (board, of_rows) in store.recorded_environments().await? {
            let of_runs = of_boards.remove(&board).unwrap_or_default();
            let both = merged(of_runs, of_rows, &mut told).into_iter().map(|(one, _)| one);
            of_boards.insert(board, both.collect());
        }
        Ok(KnownEnvironments { by_digest, of_boards })
    }

    /// The boards that may have been what a side asks for in its time, and when.
    fn times(&self, side: &FarmSide, within: &Range<i64>) -> BoardTimes {
        let asked: BTreeSet<&String> =
            self.by_digest.values().filter(|one| side.has(one)).map(|one| &one.digest).collect();
        let time = |all: &Vec<EnvironmentRuns>| {
            let of_side = all.iter().filter(|one| {
                asked.contains(&one.digest) && one.first < within.end && one.until(all) > within.start
            });
            // The day of its first run is one of its days.
            let from = Tier::Day.begin(of_side.clone().map(|one| one.first).min()?);
            let to = of_side.map(|one| one.until(all)).max()?;
            Some(TimeStretch { from: from.max(within.start), to: to.min(within.end) })
        };
        self.of_boards.iter().filter_map(|(board, all)| Some((board.clone(), time(all)?))).collect()
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
    let mut of_runs = store.environment_steps(names).await?;
    let mut days = store.days_with_slots(names, within).await?;
    let record = |(from, digest): (i64, String)| Some((from, known.by_digest.get(&digest)?.clone()));
    let mut all = Vec::new();
    for name in names {
        let of_rows = store.recorded_stretches(name).await?;
        let of_runs = of_runs.remove(*name).unwrap_or_default();
        let steps = environment_steps(&of_runs, &of_rows, &mut ToldSettings::of(&known.by_digest));
        let mut series = days.remove(*name).unwrap_or_default();
        series.sort_by_key(|one| Reverse(one.days.len()));
        series.truncate(MOST_SERIES);
        let steps = steps.into_iter().filter_map(record).collect();
        all.push(((*name).to_owned(), FoundBoard { steps, series }));
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
