//! Pictures of years, next to those of a run in `report`.

mod cells;
pub mod long_term;
pub mod periods;
pub mod spark;
pub mod stacked;
