//! Regular expressions of a profile. They are Python's; what regex-lite knows of them means the
//! same there, and what it does not know gives no answer.

use std::fmt;

use model::text::quoted_value;
use regex_lite::RegexBuilder;

/// Longer expressions are none that anybody wrote.
const EXPRESSION_LIMIT: usize = 4 << 10;

/// The lines at whose ends `^` and `$` match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchLines {
    /// The first and the last.
    All,
    Each,
}

/// True if something in the text matches.
///
/// # Errors
/// The expression is not understood.
pub fn matches(expression: &str, text: &str, lines: SearchLines) -> Result<bool, UnknownExpression> {
    let unknown = || UnknownExpression(expression.to_owned());
    // Python has no classes by name: these brackets are characters there.
    if expression.len() > EXPRESSION_LIMIT || expression.contains("[[:") {
        return Err(unknown());
    }
    let built = RegexBuilder::new(expression).multi_line(lines == SearchLines::Each).build();
    Ok(built.map_err(|_| unknown())?.is_match(text))
}

/// An expression that is not understood here.
#[derive(Debug)]
pub struct UnknownExpression(String);

impl fmt::Display for UnknownExpression {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let expression = quoted_value(&model::text::excerpt(&self.0));
        write!(f, "the expression {expression} is not understood here")
    }
}
