//! Regular expressions of a profile, which are Python's: those that regex-lite accepts have the
//! same meaning there, others are an error.

use std::fmt;

use model::text::quoted_value;
use regex_lite::RegexBuilder;

/// Limit of the length of an expression in bytes.
const EXPRESSION_LIMIT: usize = 4 << 10;

/// Lines at whose ends `^` and `$` match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchLines {
    /// The first and the last.
    All,
    Each,
}

/// True if the expression matches a part of the text.
///
/// # Errors
/// The expression is not supported.
pub fn matches(expression: &str, text: &str, lines: SearchLines) -> Result<bool, UnknownExpression> {
    let unknown = || UnknownExpression(expression.to_owned());
    // Python has no named classes: these brackets are characters there.
    if expression.len() > EXPRESSION_LIMIT || expression.contains("[[:") {
        return Err(unknown());
    }
    let built = RegexBuilder::new(expression).multi_line(lines == SearchLines::Each).build();
    Ok(built.map_err(|_| unknown())?.is_match(text))
}

/// Expression that is not supported.
#[derive(Debug)]
pub struct UnknownExpression(String);

impl fmt::Display for UnknownExpression {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let expression = quoted_value(&model::text::excerpt(&self.0));
        write!(f, "the expression {expression} is not supported")
    }
}
