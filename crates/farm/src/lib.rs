//! The farm: runs of many boards, stored for years and shown in a browser.
//!
//! [`ingest`] makes values ([`records`]) of bundles, [`intake`] is their only way in, [`store`] has
//! the database and all SQL, [`web`] queries it and passes the results to [`pages`] and
//! [`pictures`], which are functions from values to markup. [`changes`] detects changes, [`sides`]
//! chooses the days of a comparison, [`encoding`] packs histograms for the store. [`objects`]
//! stores bundles in a bucket, [`results`] exports runs to systems that collect test results,
//! [`removal`] removes runs from the farm, [`demo`] writes the records of made-up boards. [`cli`]
//! is the command line.

pub mod board_names;
pub mod board_settings;
pub mod changes;
pub mod cli;
pub mod culprit_records;
pub mod demo;
pub mod encoding;
pub mod environments;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod folders;
pub mod history;
pub mod ingest;
pub mod intake;
pub mod joined_slots;
pub mod objects;
pub mod pages;
pub mod parts_of_run;
pub mod pictures;
pub mod records;
pub mod refused;
pub mod removal;
pub mod results;
pub mod sent_days;
pub mod setting_changes;
pub mod sides;
pub mod store;
pub mod users;
pub mod wall_clock;
pub mod web;
pub mod words;
