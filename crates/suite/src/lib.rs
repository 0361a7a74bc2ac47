//! Test recipes of the field as data: which phases, under which load and settings, how many samples
//! each.
//!
//! [`recipe`] reads them, from [`recipes`] or a user's file; [`phases`] puts them into the order in
//! which they are run, with what is set for each ([`setting`]); [`outcome`] makes a row of a run,
//! [`stops`] that of a thread that never sleeps. Pure: what runs them is `onbeat`.

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
