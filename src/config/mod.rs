//! (rooms follow)
