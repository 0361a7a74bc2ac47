//! Values of a profile's variables, and of its options by these.

use super::expression::{VariableValues, expanded};
use super::functions::{FailedAssertion, ProfileFunctions};
use super::is_word;
use crate::import::Collected;

/// Variables defined so far.
pub struct Values<'a> {
    given: &'a [(String, String)],
    variables: VariableValues,
    pub functions: &'a ProfileFunctions<'a>,
}

impl<'a> Values<'a> {
    /// Starts with only the user's variables.
    pub fn new(given: &'a [(String, String)], functions: &'a ProfileFunctions<'a>) -> Values<'a> {
        Values { given, variables: given.iter().cloned().collect(), functions }
    }

    /// Defines a variable; those given by the user take precedence.
    ///
    /// # Errors
    /// An assertion in its value fails.
    pub fn define(
        &mut self,
        name: &str,
        value: &str,
        collected: &mut Collected,
    ) -> Result<(), FailedAssertion> {
        let value = self.expand(value)?;
        if !is_word(name) {
            collected.lack(format!("the variable {name}"), "tuned does not accept such a name");
        } else if !self.given.iter().any(|(given, _)| given == name) {
            self.variables.insert(name.to_owned(), value);
        }
        Ok(())
    }

    /// Value with its variables and functions substituted.
    ///
    /// # Errors
    /// An assertion in it fails.
    pub fn expand(&self, value: &str) -> Result<String, FailedAssertion> {
        expanded(value, &self.variables, self.functions)
    }

    /// Value in readable form, and the reason if a part of it is unknown.
    ///
    /// # Errors
    /// An assertion in it fails.
    pub fn readable(&self, value: &str) -> Result<(String, Option<String>), FailedAssertion> {
        let value = self.expand(value)?;
        Ok((model::text::clean(&self.functions.render(&value)), self.functions.trouble(&value)))
    }
}

/// Text between double quotes, if they enclose the whole value.
pub fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value)
}
