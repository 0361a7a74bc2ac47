//! Unit of a comparison, with its sentences.

use serde::Serialize;

/// Unit that gives one number to a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ComparedUnit {
    /// A run, or a segment of one.
    #[default]
    Run,
    /// A day of a board.
    Day,
    /// All days of a board.
    Board,
}

impl ComparedUnit {
    /// Singular.
    pub const fn one(self) -> &'static str {
        match self {
            ComparedUnit::Run => "run",
            ComparedUnit::Day => "day",
            ComparedUnit::Board => "board",
        }
    }

    /// Plural.
    pub const fn many(self) -> &'static str {
        match self {
            ComparedUnit::Run => "runs",
            ComparedUnit::Day => "days",
            ComparedUnit::Board => "boards",
        }
    }

    /// Reason if one new unit is no worse than the baseline is at times.
    pub const fn within_baseline(self) -> &'static str {
        match self {
            ComparedUnit::Run => {
                "one new run: it lies within the spread of the baseline, which does not prove that it is as \
                 good"
            }
            ComparedUnit::Day => {
                "B is one day, and lies within the spread of A's, which does not prove that it is as good"
            }
            ComparedUnit::Board => {
                "B is one board, and lies within the spread of A's, which does not prove that it is as good"
            }
        }
    }

    /// Reason if the baseline has too few units.
    pub const fn too_few_for_baseline(self) -> &'static str {
        match self {
            ComparedUnit::Run => {
                "one new run, and too few past runs to know their spread: at least 5 are needed"
            }
            ComparedUnit::Day => {
                "B is one day, and A has too few to know their spread: at least 5 are needed"
            }
            ComparedUnit::Board => {
                "B is one board, and A has too few to know their spread: at least 5 are needed"
            }
        }
    }
}

/// Reason why no verdict was sought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairRefusal {
    /// A unit without a number.
    NoValue,
    /// One unit on each side.
    OneEach,
    /// Too few pairs: their number, and the number that is needed.
    Pairs { are: usize, needed: usize },
    /// Too few units of A and B: their numbers, and the number that is needed of each.
    Units { are: (usize, usize), needed: usize },
}

impl PairRefusal {
    /// Reason in one line.
    pub fn words(self, unit: ComparedUnit) -> String {
        match (self, unit) {
            (PairRefusal::NoValue, _) => "a unit has no value: remove it from the comparison".into(),
            (PairRefusal::OneEach, ComparedUnit::Run) => {
                "one run each cannot separate the change from the boot: measure more of each".into()
            }
            (PairRefusal::OneEach, _) => {
                let one = unit.one();
                format!(
                    "one {one} each cannot separate what came with the sides from what differs from {one} to \
                     {one}: choose more of each"
                )
            }
            (PairRefusal::Pairs { are, needed }, _) => {
                format!("{needed} pairs are needed for a verdict, there are {are}")
            }
            (PairRefusal::Units { are: (a, b), needed }, _) => {
                let many = unit.many();
                format!("{needed} v {needed} {many} are needed for a verdict, there are {a} v {b}")
            }
        }
    }
}
