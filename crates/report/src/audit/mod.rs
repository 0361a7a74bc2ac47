//! The verdicts of an audit: for the terminal, as a page, as JUnit's XML.

pub mod junit;
pub mod last_words;
pub mod page;
pub mod text;
