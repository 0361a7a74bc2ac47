//! Comparison of runs A and B: for the terminal and as a page.

mod evidence;
pub mod last_words;
pub mod page;
pub mod text;
