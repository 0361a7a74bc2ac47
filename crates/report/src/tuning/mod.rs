//! Changes of settings as text: planned, made, undone, in force.

pub mod export;
pub mod text;
