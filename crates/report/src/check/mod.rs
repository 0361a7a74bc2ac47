//! Check of a running program: terminal text, page, JUnit, processes that outlive it.

pub mod groups;
pub mod junit;
pub mod last_words;
pub mod left;
pub mod page;
pub mod text;
