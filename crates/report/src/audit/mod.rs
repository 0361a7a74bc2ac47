//! The verdicts of an audit: for the terminal, as a page, as JUnit's XML; the difference of two.

pub mod diff;
pub mod gains;
pub mod junit;
mod order;
pub mod page;
pub mod text;
