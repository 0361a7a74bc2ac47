//! All about a rule, in the rule's own words: for the terminal, as Markdown for `docs/rules`, as JSON.

pub mod json;
pub mod markdown;
pub mod sheet;
pub mod text;
