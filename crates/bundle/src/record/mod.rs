//! The record of `onbeat watch`: a folder that takes an interval at a time for months, stays below
//! a size, and loses to a kill no interval but the open one.
//!
//! [`write`] adds intervals to the `tail`, one flush each. From time to time the tail is closed:
//! its lines go to files of one series each (`onbeat.rows/1`), and the worst wake-ups to a packed
//! one. Old lines are added up to hours and days (`merge`), and if the folder is full the oldest
//! histograms are dropped (`keep`). `record.json` (`manifest`) has the files that count with their
//! lengths: files only grow, and each step takes effect with one rename. [`read`] reads a record at
//! any moment, and the rest of a damaged one.

mod close;
pub mod cuts;
pub mod damage;
#[cfg(any(test, feature = "fixture"))]
pub mod fake;
mod faults;
mod keep;
mod limits;
pub mod lines;
mod listed;
#[cfg(any(test, feature = "fixture"))]
pub mod made;
pub mod manifest;
pub mod merge;
pub mod read;
mod sections;
mod tail;
#[cfg(test)]
mod tests;
pub mod texts;
pub mod write;
