//! Full page of a rule, from its record: for the terminal, as Markdown for `docs/rules`, as JSON.

pub mod json;
pub mod markdown;
pub mod sheet;
pub mod text;
