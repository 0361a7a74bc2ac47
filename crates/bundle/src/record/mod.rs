//! The record of `onbeat watch`: a folder that takes an interval at a time for months, stays below
//! a size, and loses to a kill no interval but the open one.
//!
//! [`write`] adds intervals to the `tail`, one flush each. From time to time the tail is closed:
//! its lines go to files of one series each (`onbeat.rows/1`), and the worst wake-ups to a packed
//! one. What is old is added up to hours and days (`merge`), and when the folder is full the oldest
//! histograms are dropped (`keep`). `record.json` (`manifest`) says which files count and how long
//! they are: files only grow, and each step becomes true with one rename. [`read`] takes a record
//! at any moment, and what is left of a damaged one.

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
mod merge;
pub mod read;
mod sections;
mod tail;
#[cfg(test)]
mod tests;
pub mod texts;
pub mod write;
