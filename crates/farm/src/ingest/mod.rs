//! Conversion of folders to the records of the farm.

pub mod board_key;
pub mod boot_clock;
pub mod bundle;
pub mod environment;
pub mod find;
pub mod fingerprint;
pub mod keep;
pub mod plausible;
pub mod record_rows;
pub mod remove_tree;
pub mod rows;
pub mod run_rows;
pub mod seconds;
pub mod slots;
pub mod spikes;
pub mod staging;
pub mod stored;
pub mod tar;
pub mod thin;
