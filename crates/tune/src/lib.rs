//! Changes of a machine's settings.
//!
//! [`plan`] turns failing rules into ordered changes, [`apply`] makes them and reverts them if one
//! fails, [`admission`] judges a plan from a file, [`undo`] and [`status`] read the journal.
//! [`isolate`] isolates CPUs, [`rt_limit`] limits real-time tasks. The machine and the journal's
//! disk are parameters: all of it runs on fakes.

pub mod admission;
pub mod apply;
pub mod confirm;
pub mod expiry;
pub mod export;
pub mod import;
pub mod isolate;
pub mod order;
pub mod plan;
pub mod reading;
pub mod rivals;
pub mod rt_limit;
pub mod status;
pub mod undo;
