//! Pages: one file each, functions from values to markup, whole without a script.

pub mod board;
pub mod compare;
pub mod culprits;
pub mod environments;
pub mod fleet;
mod frame;
mod parts;
pub mod run;

pub use frame::{Section, page, refusal, style_sheet};
