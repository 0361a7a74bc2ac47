//! The tail beyond what was seen: extreme value laws fitted to values that were recorded in steps, with profile bounds.

pub mod cells;
pub mod experiments;
pub mod fit_test;
pub mod gap;
pub mod gev;
pub mod gpd;
pub mod lmoments;
pub mod profile;
pub mod search;
pub mod steps;
pub mod threshold;
pub mod variation;
