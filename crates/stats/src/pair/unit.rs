//! What one unit of a comparison is, for the sentences on it.

use serde::Serialize;

/// Of what a comparison takes one number each.
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
    /// One of them.
    pub const fn one(self) -> &'static str {
        match self {
            ComparedUnit::Run => "run",
            ComparedUnit::Day => "day",
            ComparedUnit::Board => "board",
        }
    }

    /// Several.
    pub const fn many(self) -> &'static str {
        match self {
            ComparedUnit::Run => "runs",
            ComparedUnit::Day => "days",
            ComparedUnit::Board => "boards",
        }
    }

    /// Of one against many: it is no worse than they are at times.
    pub const fn within_baseline(self) -> &'static str {
        match self {
            ComparedUnit::Run => {
                "one new run: it lies within the spread of the baseline, which is no proof that it is as good"
            }
            ComparedUnit::Day => {
                "B is one day, and lies within the spread of A's, which is no proof that it is as good"
            }
            ComparedUnit::Board => {
                "B is one board, and lies within the spread of A's, which is no proof that it is as good"
            }
        }
    }

    /// Of one against many: they are too few.
    pub const fn too_few_for_baseline(self) -> &'static str {
        match self {
            ComparedUnit::Run => "one new run, and too few past runs to know their spread: 5 are the least",
            ComparedUnit::Day => "B is one day, and A has too few to know their spread: 5 are the least",
            ComparedUnit::Board => "B is one board, and A has too few to know their spread: 5 are the least",
        }
    }
}

/// Why no answer was sought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairRefusal {
    /// A unit's number is none.
    NoValue,
    /// One unit on each side.
    OneEach,
    /// So few pairs, and as many as it takes.
    Pairs { are: usize, needed: usize },
    /// So few units of A and B, and as many as it takes of each.
    Units { are: (usize, usize), needed: usize },
}

impl PairRefusal {
    /// One line.
    pub fn words(self, unit: ComparedUnit) -> String {
        match (self, unit) {
            (PairRefusal::NoValue, _) => "a unit has no value: leave it out of the comparison".into(),
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
