//! The story of a cure: what it was, who took the time, each step, what was kept, what remains; as
//! text, as Markdown, as a page.

mod answer;
mod changes;
pub mod markdown;
pub mod page;
mod sentences;
pub mod text;

pub use sentences::conditions;

#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
