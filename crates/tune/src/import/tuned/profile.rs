//! Profiles merged with included ones like in tuned: the including profile takes precedence.

use super::expression::{VariableValues, expanded};
use super::functions::{FailedAssertion, ProfileFunctions};
use super::ini::sections;
use super::options::OptionList;
use super::places::{ProfileFile, ProfilePlaces, ProfileSearch};
use super::unit::{TunedUnit, separated};

/// Limit of a chain of includes.
const DEPTH: usize = 16;

/// Limit of profiles that are merged.
const PROFILES_LIMIT: usize = 64;

/// Merged profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunedProfile {
    /// Variables before expansion; `include` is a file of variables.
    pub variables: OptionList,
    /// All other sections.
    pub units: Vec<TunedUnit>,
    /// Profile whose `include` of variables takes precedence.
    pub including: ProfileFile,
}

impl TunedProfile {
    /// Merges the profiles of some files, the last one with precedence. Passes unreadable parts to
    /// `leave`, with the reasons.
    ///
    /// # Errors
    /// An assertion in an included name fails, or profiles include each other.
    pub fn load(
        files: Vec<ProfileFile>,
        places: &ProfilePlaces,
        functions: &ProfileFunctions,
        leave: &mut dyn FnMut(String, String),
    ) -> Result<TunedProfile, RefusedProfile> {
        let (read_files, chain, profile) = (Vec::new(), Vec::new(), TunedProfile::default());
        let mut loader = Loader { places, functions, leave, read_files, chain, profile };
        for file in files {
            loader.add(file)?;
        }
        Ok(loader.profile)
    }
}

/// Reason for which a profile is refused as a whole.
pub enum RefusedProfile {
    Assertion(FailedAssertion),
    /// Names of profiles that include each other, the first one repeated at the end.
    Circle(String),
}

impl From<FailedAssertion> for RefusedProfile {
    fn from(failed: FailedAssertion) -> RefusedProfile {
        RefusedProfile::Assertion(failed)
    }
}

struct Loader<'a> {
    places: &'a ProfilePlaces,
    functions: &'a ProfileFunctions<'a>,
    leave: &'a mut dyn FnMut(String, String),
    /// Places of the files merged so far.
    read_files: Vec<String>,
    /// Names of the profiles being read, each of which includes the next.
    chain: Vec<String>,
    profile: TunedProfile,
}

impl Loader<'_> {
    fn add(&mut self, file: ProfileFile) -> Result<(), RefusedProfile> {
        self.read_files.push(file.place.clone());
        self.chain.push(file.name.clone());
        // The text must not contain the mark of doubts.
        let (parsed, wrong) = sections(&file.text.replace('\0', "\u{fffd}"));
        let label = |what: &str| match file.name.as_str() {
            "" => what.to_owned(),
            name => format!("{name}, {what}"),
        };
        for line in wrong {
            (self.leave)(label(&format!("line {line}")), "it is not an option of a section".to_owned());
        }
        let mut units = Vec::new();
        for mut section in parsed {
            let written = section.options.in_order();
            let mut changed: Vec<(String, String)> = (written.into_iter())
                .filter(|(_, value)| value.contains(PROFILE_DIR))
                .map(|(name, value)| (name.to_owned(), with_folder(value, &file.folder)))
                .collect();
            let script = section.options.get("script").filter(|path| !path.starts_with(['/', '$']));
            changed.extend(script.map(|path| ("script".to_owned(), format!("{}/{path}", file.folder))));
            changed.into_iter().for_each(|(name, value)| section.options.set(&name, value));
            match section.name.as_str() {
                "main" => self.include(section.options.get("include").unwrap_or(""), &label)?,
                "DEFAULT" => {
                    (self.leave)(label("[DEFAULT]"), "options for all sections are not read".to_owned());
                }
                _ => units.push(TunedUnit::of(section)),
            }
        }
        for unit in units {
            match unit.kind.as_str() {
                "variables" => self.variables(unit, &file),
                _ => self.merge(unit),
            }
        }
        self.chain.pop();
        Ok(())
    }

    /// Merges the profiles in `include`; one with a leading dash may be missing.
    fn include(&mut self, names: &str, label: &dyn Fn(&str) -> String) -> Result<(), RefusedProfile> {
        let names = expanded(names, &VariableValues::new(), self.functions)?;
        if let Some(why) = self.functions.trouble(&names) {
            (self.leave)(label(&format!("include {}", self.functions.render(&names))), why);
            return Ok(());
        }
        for name in separated(&names) {
            let wanted = name.strip_prefix('-').unwrap_or(&name);
            let why = match self.places.find(wanted, &self.read_files) {
                ProfileSearch::Found(_)
                    if self.chain.len() > DEPTH || self.read_files.len() >= PROFILES_LIMIT =>
                {
                    "too many profiles include each other".to_owned()
                }
                ProfileSearch::Found(file) => {
                    self.add(file)?;
                    continue;
                }
                ProfileSearch::Missing if wanted.len() == name.len() => {
                    let places = self.places.description();
                    format!("no such profile {places}: copy it there, or use --root")
                }
                // A profile that includes its own name gets the system's, if there is one.
                ProfileSearch::Taken => {
                    let from = self.chain.iter().position(|own| own == wanted);
                    let circle = from.map_or(&[][..], |at| &self.chain[at..]);
                    if circle.iter().all(|own| own == wanted) {
                        continue;
                    }
                    let names = circle.iter().map(String::as_str).chain([wanted]);
                    return Err(RefusedProfile::Circle(names.collect::<Vec<_>>().join(" -> ")));
                }
                ProfileSearch::Missing => continue,
            };
            (self.leave)(label(&format!("include {name}")), why);
        }
        Ok(())
    }

    fn variables(&mut self, unit: TunedUnit, file: &ProfileFile) {
        let own = &mut self.profile.variables;
        if unit.replaces {
            own.clear();
        }
        let options = unit.options.in_order();
        let new: Vec<&str> =
            options.iter().map(|(name, _)| *name).filter(|name| own.get(name).is_none()).collect();
        for (name, value) in &options {
            own.set(name, (*value).to_owned());
        }
        if unit.prepends {
            new.iter().rev().for_each(|name| own.move_to_front(name));
        }
        if unit.options.get("include").is_some() {
            self.profile.including = ProfileFile { text: String::new(), ..file.clone() };
        }
    }

    fn merge(&mut self, unit: TunedUnit) {
        let own = self.profile.units.iter_mut().find(|own| own.name == unit.name);
        match own {
            Some(own) if unit.replaces => *own = unit,
            Some(own) => own.merge(unit),
            None => self.profile.units.push(unit),
        }
    }
}

const PROFILE_DIR: &str = "${i:PROFILE_DIR}";

/// Value with the profile's folder in place of its variable, unless a backslash precedes it.
fn with_folder(value: &str, folder: &str) -> String {
    let mut parts = value.split(PROFILE_DIR);
    let mut found = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        found += if found.ends_with('\\') { PROFILE_DIR } else { folder };
        found += part;
    }
    found
}
