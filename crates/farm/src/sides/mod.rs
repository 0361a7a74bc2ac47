//! Sides of a comparison by environments and times of boards: their days, and the units of the
//! comparison. Values to values; `stats::compare` judges.
//!
//! The histograms and maxima of days are stored for ever, runs are not. Days of one board resemble
//! each other, so that the board is the unit if there are enough of them.

mod compared_boards;
mod differences;
mod left_out;
mod side;
mod spread;
mod told;
mod units;

pub use compared_boards::{ComparedBoards, OtherSeries};
pub use differences::differences;
pub use left_out::LeftOutDays;
pub use side::{FarmSide, days_of, unknown_days_of};
pub use spread::{MOST_BOARDS, boards_to_look_at, boards_to_read};
pub use units::{BoardDays, ChosenUnits, FarmUnit, UnitDays, choose};
