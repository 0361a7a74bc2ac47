//! Sends the rows and runs of a board to a farm, each until it is acknowledged.
//!
//! [`cli`] is the command line, [`arguments`] its refusals, [`document`] its output,
//! [`enrolment`] the board's token. [`round`] sends everything that is due: [`rows`] of records
//! with their [`environments`], and the [`runs`] that [`runs::found_runs`] finds, by
//! [`runs::upload`], through [`link`], which speaks HTTP; [`receipt`] recognises a farm's
//! answers. [`sent`] logs what was acknowledged, [`runs::known`] compares it with what the farm
//! has, and [`runs::removed`] asks whether runs that were removed there may come again. Nothing
//! is copied: the record and the runs themselves are the queue, and [`spool`] limits the size
//! of the runs if a limit is given. [`named_folders`] reports named folders that hold nothing
//! to send.

pub mod address;
pub mod arguments;
pub mod backoff;
pub mod cli;
pub mod document;
pub mod enrolment;
pub mod environments;
pub mod link;
pub mod named_folders;
pub mod quiet;
pub mod receipt;
pub mod round;
pub mod rows;
pub mod runs;
pub mod sent;
pub mod seq_ranges;
pub mod session;
pub mod spool;
pub mod stop;
