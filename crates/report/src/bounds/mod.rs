//! What a run supports: the sentences, for the terminal and as a section of the run's page.

#[cfg(test)]
pub mod fixture;
mod last_words;
pub mod section;
pub mod sentences;
pub mod text;
