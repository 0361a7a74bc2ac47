//! The check of a running program: terminal text, page, JUnit.

pub mod groups;
pub mod junit;
pub mod page;
pub mod text;
