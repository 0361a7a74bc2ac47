//! Pictures of years and of five minutes, next to those of a run in `report`.

mod cells;
pub mod cpu_lines;
pub mod long_term;
pub mod periods;
pub mod spark;
pub mod stacked;
