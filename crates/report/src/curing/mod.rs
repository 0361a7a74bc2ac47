//! Story of a cure: the initial state, the culprits, each step, the kept changes, the rest; as
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
