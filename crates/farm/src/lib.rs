//! The farm: runs of many boards, kept for years and shown in a browser.
//!
//! [`ingest`] makes values ([`records`]) of bundles, [`intake`] is the one way in for them,
//! [`store`] has them in a database and all SQL, [`web`] asks it and hands what it finds to
//! [`pages`] and [`pictures`], which are functions from values to markup. [`changes`] judges what
//! changed, [`sides`] chooses the days that a comparison is of, [`encoding`] packs histograms for
//! the store. [`objects`] has bundles in a bucket, [`results`] hands runs to systems that collect
//! results of tests, [`removal`] takes runs off the farm again. [`cli`] is the command line.

pub mod board_names;
pub mod board_settings;
pub mod changes;
pub mod cli;
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
pub mod people;
pub mod pictures;
pub mod records;
pub mod removal;
pub mod results;
pub mod sent_days;
pub mod setting_changes;
pub mod sides;
pub mod store;
pub mod wall_clock;
pub mod web;
