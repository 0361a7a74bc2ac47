//! Test recipes of the field as data: which phases, under which load, how many samples each.
//!
//! [`recipe`] reads them, from [`recipes`] or a user's file; [`phases`] puts them into the order in
//! which they are run; [`outcome`] makes a row of a phase's run. Pure: what runs them is `onbeat`.

pub mod outcome;
pub mod page;
pub mod phases;
pub mod recipe;
pub mod recipes;
