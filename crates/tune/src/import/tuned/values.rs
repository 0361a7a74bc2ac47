//! Values of a profile's variables, and of its options by them.

use super::expression::{VariableValues, expanded};
use super::functions::{FailedAssertion, ProfileFunctions};
use super::is_word;
use crate::import::Collected;

/// The variables that are defined so far.
pub struct Values<'a> {
    given: &'a [(String, String)],
    variables: VariableValues,
    pub functions: &'a ProfileFunctions<'a>,
}

impl<'a> Values<'a> {
    /// None but those that the user gave.
    pub fn new(given: &'a [(String, String)], functions: &'a ProfileFunctions<'a>) -> Values<'a> {
        Values { given, variables: given.iter().cloned().collect(), functions }
    }

    /// Defines one; those that the user gave stay.
    ///
    /// # Errors
    /// An assertion in its value does not hold.
    pub fn define(
        &mut self,
        name: &str,
        value: &str,
        collected: &mut Collected,
    ) -> Result<(), FailedAssertion> {
        let value = self.expand(value)?;
        if !is_word(name) {
            collected.lack(format!("the variable {name}"), "tuned takes no such name");
        } else if !self.given.iter().any(|(given, _)| given == name) {
            self.variables.insert(name.to_owned(), value);
        }
        Ok(())
    }

    /// A value with its variables and functions replaced.
    ///
    /// # Errors
    /// An assertion in it does not hold.
    pub fn expand(&self, value: &str) -> Result<String, FailedAssertion> {
        expanded(value, &self.variables, self.functions)
    }

    /// The value in the form for people, and what is missing of it.
    ///
    /// # Errors
    /// An assertion in it does not hold.
    pub fn readable(&self, value: &str) -> Result<(String, Option<String>), FailedAssertion> {
        let value = self.expand(value)?;
        Ok((model::text::clean(&self.functions.shown(&value)), self.functions.trouble(&value)))
    }
}

/// The text between double quotes, where the whole value is.
pub fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value)
}
