//! Units of a comparison: boards, or days of few boards.

use std::collections::{BTreeMap, BTreeSet};

use stats::pair::unit::ComparedUnit;

use super::spread::{MOST_BOARDS, spread};
use crate::records::SeriesKey;
use crate::words::address as at;
use crate::words::{date, escaped};

/// Limit of the days of a side that are units.
const MOST_DAYS: usize = 28;
/// Days of a board that is the unit.
const DAYS_OF_BOARD: usize = 8;
/// Minimum number of pairs for a verdict.
const LEAST_BOARDS: usize = 6;

/// Kind of a comparison's units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarmUnit {
    /// A day of a board.
    Day,
    /// A board with all its days.
    Board,
    /// A board on both sides, compared with itself.
    Pair,
}

impl FarmUnit {
    /// Name in a comparison.
    pub fn compared(self) -> ComparedUnit {
        match self {
            FarmUnit::Day => ComparedUnit::Day,
            FarmUnit::Board | FarmUnit::Pair => ComparedUnit::Board,
        }
    }
}

/// One unit: its name, its board, and its days, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitDays {
    pub title: String,
    pub board: String,
    pub days: Vec<i64>,
}

impl UnitDays {
    /// Address of its page: for a day its worst five minutes, for several days the board.
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

/// Units of both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenUnits {
    pub unit: FarmUnit,
    pub a: Vec<UnitDays>,
    pub b: Vec<UnitDays>,
}

/// Days of each board, oldest first.
pub type BoardDays = BTreeMap<String, Vec<i64>>;

impl ChosenUnits {
    /// Remarks on the units.
    pub fn remarks(&self, a: &BoardDays, b: &BoardDays) -> Vec<String> {
        let unit = match self.unit {
            FarmUnit::Day => {
                "The unit is a day of a board, a block is the maximum of five minutes. Days of one board \
                 resemble each other: a verdict says that the sides differ, not why."
            }
            FarmUnit::Board => {
                "The unit is a board with all its days, a block is the maximum of five minutes."
            }
            FarmUnit::Pair => {
                "The unit is a board with all its days, a block is the maximum of five minutes. Each board \
                 is on both sides and compared with itself; boards on one side only are excluded."
            }
        };
        let thinned = |name: &str, units: &[UnitDays], of: &BoardDays| {
            let taken: usize = units.iter().map(|unit| unit.days.len()).sum();
            let boards: BTreeSet<&String> = units.iter().map(|unit| &unit.board).collect();
            let all: usize =
                of.iter().filter(|(board, _)| boards.contains(board)).map(|(_, days)| days.len()).sum();
            (taken < all).then(|| format!("Of {all} days of {name}, {taken} are used, evenly spread."))
        };
        let thinned = [thinned("A", &self.a, a), thinned("B", &self.b, b)];
        [unit.to_owned()].into_iter().chain(thinned.into_iter().flatten()).collect()
    }
}

/// Makes units of the days of both sides: each board if there are many, their days if there are
/// few. More than a comparison takes are thinned out evenly. Fails if a day is on both sides.
pub fn choose(a: &BoardDays, b: &BoardDays) -> Result<ChosenUnits, String> {
    let is_shared = |board: &&String| b.contains_key(*board);
    let twice = a.iter().find(|(board, days)| {
        b.get(*board).is_some_and(|others| days.iter().any(|day| others.binary_search(day).is_ok()))
    });
    if let Some((board, _)) = twice {
        let board = model::text::excerpt(board);
        return Err(format!(
            "days of {board} are on both sides: separate the sides by a kernel, a setting or dates"
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

/// As many days of each board as of the others, as far as it has them.
fn by_day(of: &BoardDays) -> Vec<UnitDays> {
    let mut boards: Vec<(&String, &Vec<i64>)> = of.iter().collect();
    // The share that boards with few days do not use is for the others.
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

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    #[test]
    fn a_unit_leads_to_its_day_or_to_its_board() {
        let key = SeriesKey { series: "watch".into(), plan: "p".into() };
        let of = |days: &[i64]| UnitDays { title: "t".into(), board: "a b".into(), days: days.to_vec() };
        assert_eq!(of(&[DAY]).address(&key), "/b/a%20b/at/86400?series=watch&plan=p&worst=day");
        assert_eq!(of(&[DAY, 2 * DAY]).address(&key), "/b/a%20b?series=watch&plan=p");
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
        assert!(paired.remarks(&a, &b).iter().any(|one| one.contains("Of 180 days of A, 48")));
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
        // Every board is represented.
        let few = choose(&boards(&["a", "b"], 0..28), &boards(&["a", "b", "c"], 28..84)).unwrap();
        let of = |units: &[UnitDays], board: &str| units.iter().filter(|one| one.board == board).count();
        assert_eq!((of(&few.a, "a"), of(&few.a, "b"), few.a.len()), (14, 14, 28));
        assert_eq!(["a", "b", "c"].map(|board| of(&few.b, board)), [9, 9, 10]);
        let mut uneven = boards(&["a"], 0..100);
        uneven.extend(boards(&["b"], 0..3));
        assert_eq!(by_day(&uneven).len(), 28);
        assert_eq!(of(&by_day(&uneven), "b"), 3);
        assert!(choose(&before, &boards(&["a"], 99..101)).unwrap_err().contains("both sides"));
        assert!(choose(&before, &BoardDays::new()).unwrap().b.is_empty());
    }
}
