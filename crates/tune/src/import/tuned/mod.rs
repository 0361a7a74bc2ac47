//! A profile of tuned's (tuned.conf(5) and its plugins): what it writes to sysctls and sysfs.
//! Scripts, commands and services of it are named and never run.

mod ini;
pub mod owned;
mod profile;
mod sections;
mod variables;

use model::error::{Failure, Result};
use model::fact::Fact;

use super::{Collected, Documents, ImportTarget, ImportedFile};
use facts::line::parse_cpus;
use model::units::CpuSet;
use profile::TunedProfile;
use variables::Variables;

/// What the profile asks for.
///
/// # Errors
/// Usage: an assertion of the profile's does not hold, which tuned refuses it for as well.
pub fn collect(
    file: &ImportedFile,
    documents: &Documents,
    given: &[(String, String)],
    target: ImportTarget,
    collected: &mut Collected,
) -> Result<()> {
    let beside = |path: &str| match &documents.profiles {
        Some((files, _)) => files.read_text(&format!("/{path}")).known().cloned(),
        None => None,
    };
    let own = documents.profiles.as_ref().map_or("", |(_, own)| own.as_str());
    let profile =
        TunedProfile::load(own, &file.text, &beside, &mut |what, why| collected.leave(what, why, ""));
    let online = match target.files.read_text("/sys/devices/system/cpu/online") {
        Fact::Known(text) => parse_cpus(&text).unwrap_or_default(),
        _ => CpuSet::default(),
    };
    let mut variables = Variables::new(given, online);
    for (name, value) in &profile.variables {
        variables.define(name, value).map_err(|what| {
            Failure::usage(format!(
                "the profile says that it does not fit this machine: {what}: give its variables with \
                --set NAME=VALUE"
            ))
        })?;
    }
    for section in &profile.sections {
        sections::collect(section, &variables, target.files, collected);
    }
    Ok(())
}
