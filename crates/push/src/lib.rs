//! Sends what a board measured and recorded to a farm, each row and each run until it is
//! acknowledged.
//!
//! [`cli`] is the command line, [`document`] what it says of its work, [`enrolment`] the board's
//! token. [`round`] sends what is there to be sent: [`rows`] of records with their
//! [`environments`], and the [`runs`] that [`found_runs`] finds, by [`upload`], through [`link`],
//! which speaks HTTP; [`receipt`] tells a farm's answers from others. What was acknowledged is in
//! [`sent`], [`known`] compares it with what the farm has, and [`removed`] asks whether what was
//! removed there may come again; nothing is copied, the record and the runs themselves wait, and
//! [`spool`] holds the runs to a size where one is given. [`named_folders`] says of which that were
//! named nothing is to be sent.

pub mod address;
pub mod backoff;
pub mod cli;
pub mod document;
pub mod enrolment;
pub mod environments;
pub mod found_runs;
pub mod known;
pub mod link;
pub mod manifest;
pub mod named_folders;
pub mod parts;
pub mod quiet;
pub mod receipt;
pub mod removed;
pub mod round;
pub mod rows;
pub mod runs;
pub mod sent;
pub mod seq_ranges;
pub mod session;
pub mod spool;
pub mod stop;
pub mod upload;
