//! Boards of a side that are in a comparison, and reasons for the others.

use std::collections::BTreeSet;

use model::text::{excerpt, several};
use serde::Serialize;

use super::units::UnitDays;
use crate::records::SeriesOfBoard;

/// Number of boards named in a sentence.
const SHOWN: usize = 3;

/// The boards of a side in a comparison of one series.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ComparedBoards {
    /// Boards that are compared.
    pub compared: BTreeSet<String>,
    /// Number of boards that have other series only.
    pub other_series: u64,
    /// Number of boards without a day of the side that counts.
    pub no_days: u64,
    /// Number of boards on one side alone, if each board is compared with itself.
    pub one_side: u64,
}

impl ComparedBoards {
    /// Counts boards, each with two flags: days of the series, and days of any series.
    pub fn of<'a>(
        boards: impl Iterator<Item = (&'a String, bool, bool)>,
        units: &[UnitDays],
    ) -> ComparedBoards {
        let compared: BTreeSet<String> = units.iter().map(|unit| unit.board.clone()).collect();
        let mut of = ComparedBoards::default();
        for (board, of_series, of_any) in boards {
            match (compared.contains(board), of_series, of_any) {
                (true, ..) => {}
                (false, true, _) => of.one_side += 1,
                (false, false, true) => of.other_series += 1,
                (false, false, false) => of.no_days += 1,
            }
        }
        ComparedBoards { compared, ..of }
    }

    fn left_out(&self) -> u64 {
        self.other_series + self.no_days + self.one_side
    }

    /// Remark on the boards compared, unless these are all boards of a side.
    fn remark(&self, side: &str) -> Option<String> {
        let all = self.compared.len() as u64 + self.left_out();
        let were = |n: u64| if n == 1 { "was" } else { "were" };
        let others = |n: u64| {
            format!(
                "{n} {} measured as other series, with another plan: choose their series to compare them",
                were(n)
            )
        };
        let none = |n: u64| format!("{n} {} no valid day of it", if n == 1 { "has" } else { "have" });
        let one_side = |n: u64| format!("{n} {} on one side only", if n == 1 { "is" } else { "are" });
        let reasons: Vec<String> = [
            (self.no_days, none(self.no_days)),
            (self.one_side, one_side(self.one_side)),
            (self.other_series, others(self.other_series)),
        ]
        .into_iter()
        .filter_map(|(boards, words)| (boards > 0).then_some(words))
        .collect();
        (!reasons.is_empty()).then(|| {
            format!(
                "Compared of {side}: {}; {} of {} excluded: {}.",
                named(&self.compared),
                self.left_out(),
                several(all, "board", "boards"),
                reasons.join(", ")
            )
        })
    }

    /// The remarks on A and B; one if they are equal.
    pub fn remarks([a, b]: &[ComparedBoards; 2]) -> Vec<String> {
        if a == b {
            a.remark("both sides").into_iter().collect()
        } else {
            [a.remark("A"), b.remark("B")].into_iter().flatten().collect()
        }
    }

    /// The boards of A and B unless these are all, for a heading and a verdict.
    pub fn alone([a, b]: &[ComparedBoards; 2]) -> Option<String> {
        let is_whole = a.left_out() == 0 && b.left_out() == 0;
        (!is_whole).then(|| format!("{} alone", named_of_both(&a.compared, &b.compared)))
    }
}

/// Another series that may be compared, with the boards of A and B that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherSeries {
    pub of: SeriesOfBoard,
    pub boards: [BTreeSet<String>; 2],
}

impl OtherSeries {
    /// Name with conditions, or with the boards, which distinguish it from others.
    pub fn words(&self) -> String {
        let conditions = if self.of.words.is_empty() { "" } else { ": " };
        let [a, b] = &self.boards;
        format!("{}{conditions}{}, of {}", self.of.key.series, self.of.words, named_of_both(a, b))
    }
}

fn named(boards: &BTreeSet<String>) -> String {
    let names: Vec<String> = boards.iter().take(SHOWN).map(|name| excerpt(name)).collect();
    match boards.len().saturating_sub(SHOWN) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

fn named_of_both(a: &BTreeSet<String>, b: &BTreeSet<String>) -> String {
    if a == b { named(a) } else { format!("{} of A and {} of B", named(a), named(b)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::SeriesKey;

    fn units(boards: &[&str]) -> Vec<UnitDays> {
        let unit =
            |board: &&str| UnitDays { title: String::new(), board: (*board).to_owned(), days: Vec::new() };
        boards.iter().map(unit).collect()
    }

    #[test]
    fn boards_that_are_left_out_are_counted_with_the_reason() {
        let named = ["a", "b", "c", "d", "e"].map(str::to_owned);
        let told = [(true, true), (false, true), (false, true), (false, false), (true, true)];
        let boards = || named.iter().zip(told).map(|(name, (series, any))| (name, series, any));
        let of = ComparedBoards::of(boards(), &units(&["a", "a"]));
        assert_eq!((of.compared.len(), of.other_series, of.no_days, of.one_side), (1, 2, 1, 1));
        let both = [of.clone(), of.clone()];
        let remarks = ComparedBoards::remarks(&both);
        let said = "Compared of both sides: a; 4 of 5 boards excluded: 1 has no valid day of it, 1 is on one \
                    side only, 2 were measured as other series, with another plan: choose their series to \
                    compare them.";
        assert_eq!(remarks, [said]);
        assert_eq!(ComparedBoards::alone(&both).unwrap(), "a alone");
        let all = ComparedBoards::of(boards().take(1), &units(&["a"]));
        assert_eq!(ComparedBoards::alone(&[all.clone(), all.clone()]), None);
        assert!(ComparedBoards::remarks(&[all.clone(), all.clone()]).is_empty());
        let remarks = ComparedBoards::remarks(&[all, of]);
        assert!(remarks.len() == 1 && remarks[0].starts_with("Compared of B: a;"), "{remarks:?}");
    }

    #[test]
    fn series_without_words_are_told_apart_by_their_boards() {
        let set = |names: &[&str]| -> BTreeSet<String> { names.iter().map(|name| (*name).into()).collect() };
        let key = SeriesKey { series: "wakeup".into(), plan: "p".into() };
        let of = SeriesOfBoard { key, words: String::new(), days: 1, last: 0 };
        let mut one = OtherSeries { of, boards: [set(&["x"]), set(&["x"])] };
        assert_eq!(one.words(), "wakeup, of x");
        one.of.words = "every 1 ms".into();
        one.boards[1] = set(&["p", "q", "r", "s", "t"]);
        assert_eq!(one.words(), "wakeup: every 1 ms, of x of A and p, q, r and 2 more of B");
    }
}
