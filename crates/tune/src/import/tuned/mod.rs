//! Profiles of tuned (tuned.conf(5) and its plugins): the values that they write to sysctls and
//! sysfs. Their scripts, commands and services are listed and never run.

mod bootloader;
mod calls;
mod cpu;
mod cpulists;
mod expression;
mod functions;
mod ini;
mod option;
mod options;
pub mod owned;
mod packages;
pub mod places;
mod profile;
mod scheduler;
mod search;
mod sections;
mod unit;
mod values;

use model::error::{Failure, Result};

use super::{Collected, ImportTarget};
use functions::ProfileFunctions;
use places::{ProfileFile, ProfilePlaces};
use profile::{RefusedProfile, TunedProfile};
use values::Values;

/// True for a text that consists of characters allowed in variable names.
fn is_word(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Collects the values requested by the profiles.
///
/// # Errors
/// Usage: an assertion of a profile fails, for which tuned refuses it as well, or profiles include
/// each other, where tuned skips the second reading.
pub fn collect(
    files: Vec<ProfileFile>,
    places: &ProfilePlaces,
    given: &[(String, String)],
    target: ImportTarget,
    collected: &mut Collected,
) -> Result<()> {
    let functions = ProfileFunctions::new(target);
    read(files, places, given, &functions, collected).map_err(|refused| match refused {
        RefusedProfile::Assertion(failed) => {
            let words = model::text::quoted_value(&functions.render(&failed.0));
            Failure::usage(format!(
                "the profile does not fit this machine: it asserts {words}: pass its variables with --set \
                 NAME=VALUE"
            ))
        }
        RefusedProfile::Circle(names) => Failure::usage(format!(
            "the profiles include each other in a circle, {}: remove one include=",
            model::text::quoted_value(&names)
        )),
    })?;
    for words in functions.undecided() {
        let what = format!("the assertion {}", model::text::quoted_value(&words));
        collected.lack(what, "a part of it is unknown");
    }
    Ok(())
}

fn read(
    files: Vec<ProfileFile>,
    places: &ProfilePlaces,
    given: &[(String, String)],
    functions: &ProfileFunctions,
    collected: &mut Collected,
) -> Result<(), RefusedProfile> {
    let profile = TunedProfile::load(files, places, functions, &mut |what, why| collected.lack(what, why))?;
    let mut values = Values::new(given, functions);
    for (name, value) in profile.variables.in_order() {
        if name != "include" {
            values.define(name, value, collected)?;
            continue;
        }
        match places.variables(value, &profile.including) {
            Some(text) => {
                for (name, value) in ini::bare_options(&text.replace('\0', "\u{fffd}")) {
                    values.define(&name, &value, collected)?;
                }
            }
            // tuned continues as well.
            None => collected.leave(
                format!("variables of {value}"),
                "the file does not exist: the variables have the values from --set",
                "",
            ),
        }
    }
    Ok(sections::collect(profile.units, &values, collected)?)
}

#[cfg(test)]
mod tests;
