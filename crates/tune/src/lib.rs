//! Changes of a machine's settings.
//!
//! [`plan`] makes changes of failing rules and puts them in order, [`apply`] makes them and takes
//! them back when one fails, [`admission`] judges a plan from a file, [`undo`] and [`status`] read
//! the journal. [`isolate`] sets CPUs apart, [`rt_limit`] gives real-time tasks a limit. The
//! machine and the journal's disk are passed in: all of it runs on made-up ones.

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
