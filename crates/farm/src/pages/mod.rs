//! Pages: one file each, functions from values to markup; all work without a script.

pub mod admin;
pub mod admin_board;
pub mod audit;
pub mod board;
mod board_lines;
pub mod board_span;
pub mod changes;
pub mod compare;
pub mod culprits;
pub mod environments;
pub mod five_minutes;
pub mod fleet;
mod frame;
pub mod kernels;
pub mod login;
pub mod parts;
pub mod run;
pub mod runs;
pub mod spike;

pub use frame::{Section, page, refusal, style_sheet};
