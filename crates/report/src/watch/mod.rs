//! Record of `onbeat watch`, as text, as a page, and as tables.

mod blamed;
pub mod csv;
pub mod last_words;
pub mod page;
pub mod summary;
pub mod text;
pub mod words;

#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
#[cfg(test)]
mod tests;
