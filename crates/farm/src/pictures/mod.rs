//! Pictures of years, next to those of a run in `report`.

pub mod long_term;
pub mod spark;
