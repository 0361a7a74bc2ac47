//! Regular expressions of a profile. They are Python's; what regex-lite knows of them means the
//! same there, and what it does not know is no answer.

use model::text::quoted_value;
use regex_lite::RegexBuilder;

/// Longer expressions are none that anybody wrote.
const EXPRESSION_LIMIT: usize = 4 << 10;

/// The lines at whose ends `^` and `$` match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// The first and the last.
    All,
    Each,
}

/// Whether something in the text matches.
///
/// # Errors
/// The expression is not understood.
pub fn matches(expression: &str, text: &str, lines: Lines) -> Result<bool, String> {
    let trouble = || format!("the expression {} is not understood here", quoted_value(expression));
    if expression.len() > EXPRESSION_LIMIT {
        return Err("an expression of it is too long".to_owned());
    }
    let built = RegexBuilder::new(expression).multi_line(lines == Lines::Each).build();
    Ok(built.map_err(|_| trouble())?.is_match(text))
}
