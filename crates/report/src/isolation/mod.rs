//! Isolated CPUs as text.

pub mod text;
