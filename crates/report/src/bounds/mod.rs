//! Bounds that a run supports: sentences, for the terminal and as a section of the run's page.

#[cfg(test)]
pub mod fixture;
pub mod last_words;
pub mod section;
pub mod sentences;
mod shortest_period;
pub mod text;
