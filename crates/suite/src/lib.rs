//! Test recipes as data: the phases with their loads and settings, and the number of samples of
//! each.
//!
//! [`recipe`] reads them, from [`recipes`] or a user's file; [`phases`] puts them into the order in
//! which they run, with the settings of each ([`setting`]); [`outcome`] makes a row of a run,
//! [`stops`] that of a thread that never sleeps. Pure: `onbeat` runs them.

pub mod begun;
pub mod outcome;
pub mod page;
pub mod phases;
pub mod recipe;
pub mod recipe_boots;
pub mod recipe_phase;
pub mod recipes;
pub mod setting;
pub mod stops;
