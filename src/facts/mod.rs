//! (rooms follow)
pub mod stat;
