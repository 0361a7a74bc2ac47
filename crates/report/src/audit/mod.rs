//! Verdicts of an audit: for the terminal, as a page, in the formats of other tools, and the
//! difference of two.

pub mod diff;
pub mod format;
pub mod gains;
pub mod junit;
pub mod last_words;
mod order;
pub mod page;
pub mod text;
