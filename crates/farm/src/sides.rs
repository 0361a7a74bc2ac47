//! Sides of a comparison by what boards were and when: which of their days belong to it, and what
//! is compared with what. Values to values; `stats::compare` judges.
//!
//! The histograms and maxima of days are kept for ever, runs are not. Days of one board resemble
//! each other, so that the board is the unit where there are enough of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use facts::differences::Difference;
use model::units::Nanos;
use model::wall_time::nanos_of;
use stats::pair::unit::ComparedUnit;

use crate::environments::KERNEL_CONFIGURATION;
use crate::environments::settings_of;
use crate::history::environment_on;
use crate::pages::five_minutes::address as at;
use crate::pages::parts::{date, escaped};
use crate::records::{BoardEnvironment, EnvironmentRecord, SeriesKey};

/// Days of a side where each is a unit.
const MOST_DAYS: usize = 28;
/// Boards of a side, and days of each where the board is the unit.
pub const MOST_BOARDS: usize = 20;
/// Boards of a side that are looked at for maxima before those are chosen.
const MOST_LOOKED_AT: usize = 200;
const DAYS_OF_BOARD: usize = 8;
/// Digits of a digest that people are shown.
const SHORT_DIGEST: usize = 10;
/// So many pairs may carry a verdict.
const LEAST_BOARDS: usize = 6;

/// What is asked of a side; what is empty may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FarmSide {
    /// Boards as their addresses have them, with commas or spaces between.
    pub board: String,
    /// A machine's model.
    pub machine: String,
    /// What a kernel's release begins with, in whole parts: `6.1` is not the beginning of `6.12`.
    pub kernel: String,
    /// A setting of the environment and its value, `NAME=VALUE`; without one it is not there.
    pub setting: String,
    /// An environment's digest.
    pub environment: String,
    /// Other digests that mean the same, as far as a farm knows them; no field of an address.
    pub same: BTreeSet<String>,
    /// The first day, `YYYY-MM-DD`,
    pub from: String,
    /// and the first one after.
    pub before: String,
}

impl FarmSide {
    /// The names of its fields in an address.
    pub const FIELDS: [&str; 7] = ["board", "machine", "kernel", "setting", "environment", "from", "before"];

    /// A field by its name.
    pub fn field(&mut self, name: &str) -> Option<&mut String> {
        match name {
            "board" => Some(&mut self.board),
            "machine" => Some(&mut self.machine),
            "kernel" => Some(&mut self.kernel),
            "setting" => Some(&mut self.setting),
            "environment" => Some(&mut self.environment),
            "from" => Some(&mut self.from),
            "before" => Some(&mut self.before),
            _ => None,
        }
    }

    /// All fields in the order of [`FarmSide::FIELDS`].
    pub fn values(&self) -> [&str; 7] {
        let FarmSide { board, machine, kernel, setting, environment, from, before, .. } = self;
        [board, machine, kernel, setting, environment, from, before]
    }

    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.values().iter().all(|value| value.is_empty())
    }

    /// The boards that are named.
    pub fn boards(&self) -> BTreeSet<String> {
        self.board.split([',', ' ']).filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    /// Whether it matters what the boards were.
    pub fn asks_what_it_was(&self) -> bool {
        [&self.machine, &self.kernel, &self.setting, &self.environment].iter().any(|text| !text.is_empty())
    }

    /// Its time in seconds since 1970. Refused where a text is no date, or nothing lies within.
    pub fn stretch(&self) -> Result<Range<i64>, String> {
        let day = |text: &str, without: i64| match text {
            "" => Ok(without),
            text => nanos_of(&format!("{text}T00:00:00Z"))
                .map(|at| at.0.div_euclid(Nanos::SECOND.0))
                .ok_or("a date is none from 1970 to 2262: write it like 2026-11-02"),
        };
        let stretch = day(&self.from, 0)?..day(&self.before, i64::MAX)?;
        match stretch.is_empty() {
            false => Ok(stretch),
            true => Err("a side ends before it begins: its second date is the later one".to_owned()),
        }
    }

    /// Whether a board in an environment is of it.
    pub fn has(&self, of: &BoardEnvironment) -> bool {
        let is_named = self.environment.is_empty()
            || of.digests.contains(&self.environment)
            || !self.same.is_disjoint(&of.digests);
        is_named && self.has_record(&of.record)
    }

    /// Whether one of this machine, kernel and setting is of it, whatever its digest.
    pub fn has_record(&self, of: &EnvironmentRecord) -> bool {
        (self.machine.is_empty() || self.machine == of.model)
            && is_of_kernel(&self.kernel, &of.release)
            && self.has_setting(of)
    }

    fn has_setting(&self, of: &EnvironmentRecord) -> bool {
        if self.setting.is_empty() {
            return true;
        }
        let (name, value) = self.setting.split_once('=').unwrap_or((&self.setting, ""));
        let settings = settings_of(&of.settings);
        settings.get(name.trim()).map_or("", String::as_str) == value.trim()
    }

    /// For people; of an environment's digest the beginning tells it from the others.
    pub fn words(&self) -> String {
        let names = ["", "machine ", "kernel ", "", "environment ", "from ", "before "];
        let mut values = self.values();
        values[4] = self.environment.get(..SHORT_DIGEST).unwrap_or(&self.environment);
        let parts = names.iter().zip(values).filter(|(_, value)| !value.is_empty());
        parts.map(|(name, value)| format!("{name}{value}")).collect::<Vec<_>>().join(", ")
    }

    /// As a part of an address; `side` is `a` or `b`.
    pub fn query(&self, side: &str) -> String {
        let parts = FarmSide::FIELDS.iter().zip(self.values()).filter(|(_, value)| !value.is_empty());
        let part = |(name, value): (&&str, &str)| format!("{side}_{name}={}", escaped(value));
        parts.map(|(name, value)| part((name, value))).collect::<Vec<_>>().join("&")
    }
}

/// Whether a release begins with what is asked, and a part of it ends there.
fn is_of_kernel(asked: &str, release: &str) -> bool {
    let goes_on = |c: char| c.is_ascii_alphanumeric();
    release.strip_prefix(asked).is_some_and(|rest| !(asked.ends_with(goes_on) && rest.starts_with(goes_on)))
}

/// Of a board's days those of a side. A day on which the environment changed is of no
/// side that asks for one; before its first run nothing is known of a board.
pub fn days_of(side: &FarmSide, days: &[i64], history: &[BoardEnvironment]) -> Vec<i64> {
    let of_side = |day: &&i64| {
        !side.asks_what_it_was() || environment_on(history, **day).is_some_and(|one| side.has(one))
    };
    days.iter().filter(of_side).copied().collect()
}

/// What is one unit of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarmUnit {
    /// A day of a board,
    Day,
    /// a board,
    Board,
    /// or a board on both sides, which is compared with itself.
    Pair,
}

impl FarmUnit {
    /// As the words of a comparison have it.
    pub fn compared(self) -> ComparedUnit {
        match self {
            FarmUnit::Day => ComparedUnit::Day,
            FarmUnit::Board | FarmUnit::Pair => ComparedUnit::Board,
        }
    }
}

/// One unit: its name, its board, and the days that it is of, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitDays {
    pub title: String,
    pub board: String,
    pub days: Vec<i64>,
}

impl UnitDays {
    /// Where its page is: of a day the worst five minutes of it, of more the board's.
    pub fn address(&self, key: &SeriesKey) -> String {
        match self.days[..] {
            [day] => at(&self.board, key, day) + "&worst=day",
            _ => format!(
                "/b/{}?series={}&plan={}",
                escaped(&self.board),
                escaped(&key.series),
                escaped(&key.plan)
            ),
        }
    }
}

/// What is compared with what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenUnits {
    pub unit: FarmUnit,
    pub a: Vec<UnitDays>,
    pub b: Vec<UnitDays>,
}

/// Days of each board, oldest first.
pub type BoardDays = BTreeMap<String, Vec<i64>>;

/// Makes units of the days of both sides: of many boards each is one, of few their days are. More
/// than a comparison takes are thinned out evenly. Refused where a day is on both sides.
pub fn choose(a: &BoardDays, b: &BoardDays) -> Result<ChosenUnits, String> {
    let is_shared = |board: &&String| b.contains_key(*board);
    let twice = a.iter().find(|(board, days)| {
        b.get(*board).is_some_and(|others| days.iter().any(|day| others.binary_search(day).is_ok()))
    });
    if let Some((board, _)) = twice {
        let board = model::text::excerpt(board);
        return Err(format!(
            "days of {board} are on both sides: tell the sides apart by a kernel, a setting or dates"
        ));
    }
    let shared: Vec<&String> = a.keys().filter(is_shared).collect();
    if shared.len() >= LEAST_BOARDS {
        let of = |side: &BoardDays| by_board(shared.iter().filter_map(|board| side.get_key_value(*board)));
        return Ok(ChosenUnits { unit: FarmUnit::Pair, a: of(a), b: of(b) });
    }
    if a.len().min(b.len()) >= LEAST_BOARDS {
        return Ok(ChosenUnits { unit: FarmUnit::Board, a: by_board(a.iter()), b: by_board(b.iter()) });
    }
    Ok(ChosenUnits { unit: FarmUnit::Day, a: by_day(a), b: by_day(b) })
}

fn by_board<'a>(of: impl Iterator<Item = (&'a String, &'a Vec<i64>)>) -> Vec<UnitDays> {
    let all: Vec<_> = of.collect();
    let unit = |(board, days): (&String, &Vec<i64>)| UnitDays {
        title: board.clone(),
        board: board.clone(),
        days: spread(days, DAYS_OF_BOARD),
    };
    spread(&all, MOST_BOARDS).into_iter().map(unit).collect()
}

/// Of each board as many days as of the others, as far as it has them.
fn by_day(of: &BoardDays) -> Vec<UnitDays> {
    let mut boards: Vec<(&String, &Vec<i64>)> = of.iter().collect();
    // What those with few days leave is for the others.
    boards.sort_by_key(|(_, days)| days.len());
    let (mut taken, mut left) = (Vec::new(), boards.len());
    for (board, days) in boards {
        let share = MOST_DAYS.saturating_sub(taken.len()) / left;
        left -= 1;
        taken.extend(spread(days, share.max(1)).into_iter().map(|day| (day, board)));
    }
    taken.sort_unstable();
    let unit = |(day, board): (i64, &String)| UnitDays {
        title: format!("{board} {}", date(day)),
        board: board.clone(),
        days: vec![day],
    };
    taken.into_iter().map(unit).collect()
}

/// The boards of each side that are asked whether they have maxima at all.
pub fn boards_to_look_at(named: [&BTreeSet<String>; 2]) -> [Vec<String>; 2] {
    at_most(MOST_LOOKED_AT, named)
}

/// Of those that have, the boards of each side whose days are read: no more than a comparison
/// takes.
pub fn boards_to_read(measured: [&BTreeSet<String>; 2]) -> [Vec<String>; 2] {
    at_most(MOST_BOARDS, measured)
}

/// The boards of both sides first, which are compared with themselves, then others, both evenly
/// spread by name.
fn at_most(most: usize, named: [&BTreeSet<String>; 2]) -> [Vec<String>; 2] {
    let shared: Vec<&String> = named[0].intersection(named[1]).collect();
    let shared = spread(&shared, most);
    named.map(|side| {
        let others: Vec<&String> = side.iter().filter(|name| !shared.contains(name)).collect();
        let others = spread(&others, most - shared.len());
        shared.iter().copied().chain(others).cloned().collect()
    })
}

/// At most this number of a list, one of each of so many stretches of it. Its place in the stretch
/// changes from one to the next, by the golden section: of weeks each would be of the same day.
fn spread<T: Copy>(all: &[T], most: usize) -> Vec<T> {
    let taken = all.len().min(most);
    let one = |at: usize| {
        let (begin, end) = (at * all.len() / taken, (at + 1) * all.len() / taken);
        all.get(begin + (end - begin) * (at * 618 % 1_000) / 1_000).copied()
    };
    (0..taken).filter_map(one).collect()
}

impl ChosenUnits {
    /// What is to be known of them.
    pub fn remarks(&self, a: &BoardDays, b: &BoardDays) -> Vec<String> {
        let unit = match self.unit {
            FarmUnit::Day => {
                "The unit is a day of a board, a block is the maximum of five minutes. Days of one board \
                 resemble each other: a verdict says what came with the sides, and not that it is the cause."
            }
            FarmUnit::Board => {
                "The unit is a board with all its days, a block is the maximum of five minutes."
            }
            FarmUnit::Pair => {
                "The unit is a board with all its days, a block is the maximum of five minutes. Each board \
                 is on both sides, and compared with itself; boards that are on one alone are left out."
            }
        };
        let thinned = |name: &str, units: &[UnitDays], of: &BoardDays| {
            let taken: usize = units.iter().map(|unit| unit.days.len()).sum();
            let boards: BTreeSet<&String> = units.iter().map(|unit| &unit.board).collect();
            let all: usize =
                of.iter().filter(|(board, _)| boards.contains(board)).map(|(_, days)| days.len()).sum();
            (taken < all).then(|| format!("Of {all} days of {name} {taken} are taken, evenly spread."))
        };
        let thinned = [thinned("A", &self.a, a), thinned("B", &self.b, b)];
        [unit.to_owned()].into_iter().chain(thinned.into_iter().flatten()).collect()
    }
}

/// In what the environments of two sides differ, by name; several values have `|` between.
pub fn differences(a: &[Arc<EnvironmentRecord>], b: &[Arc<EnvironmentRecord>]) -> Vec<Difference> {
    let values = |side: &[Arc<EnvironmentRecord>]| {
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let settings: Vec<_> = side.iter().map(|one| settings_of(&one.settings)).collect();
        let names: BTreeSet<&String> = settings.iter().flat_map(BTreeMap::keys).collect();
        for (name, of) in names.into_iter().flat_map(|name| settings.iter().map(move |of| (name, of))) {
            all.entry(name.clone()).or_default().insert(of.get(name).cloned().unwrap_or_default());
        }
        all
    };
    let (a, b) = (values(a), values(b));
    // A recorder tells nothing of the kernel's files: it is not known whether these differ.
    let is_file = |name: &String| name.starts_with('/') || name == KERNEL_CONFIGURATION;
    let tells_files = |side: &BTreeMap<String, BTreeSet<String>>| side.keys().any(is_file);
    let files = tells_files(&a) && tells_files(&b);
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).filter(|name| files || !is_file(name)).collect();
    let shown = |side: &BTreeMap<String, BTreeSet<String>>, name: &String| {
        let Some(values) = side.get(name) else { return String::new() };
        let value = |value: &String| match value.as_str() {
            "" if values.len() > 1 => "(none)".to_owned(),
            value => value.to_owned(),
        };
        values.iter().map(value).collect::<Vec<_>>().join(" | ")
    };
    let one = |name: &String| Difference { what: name.clone(), a: shown(&a, name), b: shown(&b, name) };
    names.into_iter().map(one).filter(|one| one.a != one.b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    fn environment(release: &str, settings: &str) -> Arc<EnvironmentRecord> {
        Arc::new(EnvironmentRecord {
            digest: format!("d{release}"),
            model: "board x".into(),
            release: release.into(),
            settings: settings.into(),
            ..EnvironmentRecord::default()
        })
    }

    /// What a board was from a time on, under two digests.
    fn since(first: i64, release: &str) -> BoardEnvironment {
        let record = environment(release, r#"{"cmdline isolcpus":"2-3","rt":"-1"}"#);
        let digests = Arc::new([record.digest.clone(), format!("e{release}")].into());
        BoardEnvironment { record, digests, first, ..BoardEnvironment::default() }
    }

    fn side(name: &str, value: &str) -> FarmSide {
        let mut side = FarmSide::default();
        *side.field(name).unwrap() = value.to_owned();
        side
    }

    #[test]
    fn a_side_is_what_its_fields_say() {
        let of = since(0, "6.12.9-rt");
        for (name, value, wanted) in [
            ("machine", "board x", true),
            ("machine", "board", false),
            ("kernel", "6.12", true),
            ("kernel", "6.12.9-rt", true),
            ("kernel", "6.12.", true),
            ("kernel", "6.12.9-", true),
            ("kernel", "6.12.9-r", false),
            ("kernel", "6.1", false),
            ("kernel", "6.1.", false),
            ("kernel", "12", false),
            ("setting", "cmdline isolcpus=2-3", true),
            ("setting", "cmdline isolcpus=", false),
            ("setting", "nohz_full", true),
            ("setting", "rt = -1", true),
            ("environment", "d6.12.9-rt", true),
            ("environment", "e6.12.9-rt", true),
            ("environment", "d", false),
        ] {
            let side = side(name, value);
            assert_eq!(side.has(&of), wanted, "{name} {value}");
            assert!(side.asks_what_it_was() && !side.is_empty());
            assert_eq!(side.query("a"), format!("a_{name}={}", escaped(value)));
        }
        let same = BTreeSet::from(["e6.12.9-rt".to_owned()]);
        assert!(FarmSide { same, ..side("environment", "of another board") }.has(&of));
        assert!(FarmSide::FIELDS.iter().all(|name| FarmSide::default().field(name).is_some()));
        assert_eq!(side("board", "a, b  c").boards().into_iter().collect::<String>(), "abc");
        assert_eq!(
            FarmSide { from: "2026-01-02".into(), ..side("board", "a") }.words(),
            "a, from 2026-01-02"
        );
    }

    #[test]
    fn a_unit_leads_to_its_day_or_to_its_board() {
        let key = SeriesKey { series: "watch".into(), plan: "p".into() };
        let of = |days: &[i64]| UnitDays { title: "t".into(), board: "a b".into(), days: days.to_vec() };
        assert_eq!(of(&[DAY]).address(&key), "/b/a%20b/at/86400?series=watch&plan=p&worst=day");
        assert_eq!(of(&[DAY, 2 * DAY]).address(&key), "/b/a%20b?series=watch&plan=p");
    }

    #[test]
    fn people_are_shown_the_beginning_of_a_digest() {
        assert_eq!(side("environment", "0123456789abcdef").words(), "environment 0123456789");
        assert_eq!(side("environment", "0").words(), "environment 0");
    }

    #[test]
    fn dates_are_days_in_utc() {
        let of = |from: &str, before: &str| FarmSide {
            from: from.into(),
            before: before.into(),
            ..FarmSide::default()
        };
        assert_eq!(of("1970-01-02", "1970-01-04").stretch().unwrap(), DAY..3 * DAY);
        assert_eq!(of("", "").stretch().unwrap(), 0..i64::MAX);
        assert!(of("yesterday", "").stretch().unwrap_err().contains("2026-11-02"));
        assert!(of("1970-01-04", "1970-01-04").stretch().is_err());
    }

    #[test]
    fn a_day_on_which_the_environment_changed_is_of_neither_side() {
        let history = [since(DAY / 2, "6.1"), since(3 * DAY + 9, "6.12"), since(6 * DAY, "6.1")];
        let days: Vec<i64> = (-1..8).map(|at| at * DAY).collect();
        let found = |name: &str, value: &str| days_of(&side(name, value), &days, &history);
        assert_eq!(found("kernel", "6.1."), [] as [i64; 0]);
        assert_eq!(found("kernel", "6.12"), [4 * DAY, 5 * DAY]);
        // All the times that it was so.
        for digest in ["d6.1", "e6.1"] {
            assert_eq!(found("environment", digest), [0, 1, 2, 6, 7].map(|day| day * DAY));
        }
        assert_eq!(found("board", "a"), days);
    }

    fn boards(names: &[&str], days: std::ops::Range<i64>) -> BoardDays {
        let days: Vec<i64> = days.map(|at| at * DAY).collect();
        names.iter().map(|name| ((*name).to_owned(), days.clone())).collect()
    }

    #[test]
    fn of_many_boards_each_is_a_unit_and_of_few_their_days_are() {
        let many = ["a", "b", "c", "d", "e", "f", "g"];
        let (a, b) = (boards(&many, 0..30), boards(&many[1..], 30..60));
        let paired = choose(&a, &b).unwrap();
        assert_eq!((paired.unit, paired.a.len(), paired.b.len()), (FarmUnit::Pair, 6, 6));
        assert!(paired.a.iter().zip(&paired.b).all(|(a, b)| a.title == b.title && a.days.len() == 8));
        assert!(paired.remarks(&a, &b).iter().any(|one| one.contains("Of 180 days of A 48")));
        let others = boards(&["p", "q", "r", "s", "t", "u"], 0..3);
        let unpaired = choose(&a, &others).unwrap();
        assert_eq!((unpaired.unit, unpaired.a.len(), unpaired.b.len()), (FarmUnit::Board, 7, 6));
        let (before, after) = (boards(&["a"], 0..100), boards(&["a"], 100..105));
        let days = choose(&before, &after).unwrap();
        assert_eq!((days.unit, days.a.len(), days.b.len()), (FarmUnit::Day, 28, 5));
        assert_eq!(days.b[0].title, "a 1970-04-11");
        // Evenly over all of them.
        let first = days.a[0].days[0] / DAY;
        let last = days.a[27].days[0] / DAY;
        assert!(first <= 3 && last >= 96, "{first} {last}");
        // No board goes unseen, and days are of the whole week.
        let few = choose(&boards(&["a", "b"], 0..28), &boards(&["a", "b", "c"], 28..84)).unwrap();
        let of = |units: &[UnitDays], board: &str| units.iter().filter(|one| one.board == board).count();
        assert_eq!((of(&few.a, "a"), of(&few.a, "b"), few.a.len()), (14, 14, 28));
        assert_eq!(["a", "b", "c"].map(|board| of(&few.b, board)), [9, 9, 10]);
        let mut uneven = boards(&["a"], 0..100);
        uneven.extend(boards(&["b"], 0..3));
        assert_eq!(by_day(&uneven).len(), 28);
        assert_eq!(of(&by_day(&uneven), "b"), 3);
        let year = spread(&(0..28 * 7).collect::<Vec<_>>(), 28);
        let weekdays: BTreeSet<i64> = year.iter().map(|day| day % 7).collect();
        assert!(weekdays.len() == 7 && year.windows(2).all(|two| two[0] < two[1]), "{year:?}");
        assert!(choose(&before, &boards(&["a"], 99..101)).unwrap_err().contains("both sides"));
        assert!(choose(&before, &BoardDays::new()).unwrap().b.is_empty());
    }

    #[test]
    fn boards_of_both_sides_are_read_first() {
        let named = |of: std::ops::Range<usize>| of.map(|at| format!("b{at:03}")).collect::<BTreeSet<_>>();
        let [a, b] = boards_to_read([&named(0..100), &named(60..200)]);
        assert_eq!(a, b);
        assert!(a.len() == 20 && a[0].as_str() < "b063" && a[19].as_str() > "b096", "{a:?}");
        let [a, b] = boards_to_read([&named(0..10), &named(8..300)]);
        assert_eq!((a.len(), b.len()), (10, 20));
        assert!(a[..2] == b[..2] && b[2..].iter().any(|name| name.as_str() > "b280"), "{b:?}");
        let [a, b] = boards_to_read([&named(0..2), &named(0..0)]);
        assert_eq!((a.len(), b.len()), (2, 0));
        let [a, b] = boards_to_look_at([&named(0..150), &named(0..900)]);
        assert_eq!((a.len(), b.len()), (150, 200));
    }

    #[test]
    fn sides_differ_in_what_their_environments_do() {
        let (one, two) =
            (environment("6.1", r#"{"k":"1","same":"x"}"#), environment("6.12", r#"{"k":"2","same":"x"}"#));
        let third = environment("6.12", r#"{"k":"3","same":"x","new":"y"}"#);
        let found = differences(std::slice::from_ref(&one), &[two, third]);
        let shown: Vec<_> = found.iter().map(|one| (&*one.what, &*one.a, &*one.b)).collect();
        assert_eq!(shown, [("k", "1", "2 | 3"), ("new", "", "(none) | y")]);
        assert!(differences(std::slice::from_ref(&one), std::slice::from_ref(&one)).is_empty());
        // What a recorder says has no files, and no configuration.
        let run = environment("6.1", r#"{"/proc/x":"1","kernel configuration":"c","k":"1"}"#);
        let recorded = environment("6.12", r#"{"k":"2"}"#);
        let found = differences(std::slice::from_ref(&run), std::slice::from_ref(&recorded));
        assert_eq!(found.iter().map(|one| &*one.what).collect::<Vec<_>>(), ["k"]);
    }
}
