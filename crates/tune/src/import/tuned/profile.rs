//! A profile with those that it includes, merged as tuned does: what includes has the last word.

use super::ini::{IniSection, sections};

/// Longer chains of includes are circles.
const DEPTH: usize = 8;

/// A merged profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunedProfile {
    /// In the order in which they are defined, files of variables in their place.
    pub variables: Vec<(String, String)>,
    /// All other sections.
    pub sections: Vec<IniSection>,
}

impl TunedProfile {
    /// The profile of a text. `beside` gives the text of a file below the folder of profiles, none
    /// where there is none; what cannot be taken goes to `leave` with the reason.
    pub fn load(
        name: &str,
        text: &str,
        beside: &dyn Fn(&str) -> Option<String>,
        leave: &mut dyn FnMut(String, String),
    ) -> TunedProfile {
        let mut loader =
            Loader { beside, leave, seen: vec![name.to_owned()], profile: TunedProfile::default() };
        loader.add(name, text, 0);
        loader.profile
    }
}

struct Loader<'a> {
    beside: &'a dyn Fn(&str) -> Option<String>,
    leave: &'a mut dyn FnMut(String, String),
    seen: Vec<String>,
    profile: TunedProfile,
}

impl Loader<'_> {
    fn add(&mut self, name: &str, text: &str, depth: usize) {
        let (parsed, wrong) = sections(text);
        let shown = |what: &str| if name.is_empty() { what.to_owned() } else { format!("{name}, {what}") };
        for line in wrong {
            (self.leave)(shown(&format!("line {line}")), "it is no option of a section".to_owned());
        }
        let main = parsed.iter().find(|section| section.name == "main");
        let includes = main.and_then(|main| main.option("include")).unwrap_or("");
        for include in includes.split([',', ';']).map(str::trim).filter(|include| !include.is_empty()) {
            let include = include.trim_start_matches('-');
            match self.included(include, depth) {
                Ok(Some(text)) => self.add(include, &text, depth + 1),
                Ok(None) => {}
                Err(why) => (self.leave)(shown(&format!("include {include}")), why),
            }
        }
        for section in parsed.into_iter().filter(|section| section.name != "main") {
            match section.option("type").unwrap_or(&section.name) {
                "variables" => self.variables(name, section),
                _ => self.merge(section),
            }
        }
    }

    /// The text of another profile; none where it was included before.
    fn included(&mut self, name: &str, depth: usize) -> Result<Option<String>, String> {
        if !is_plain(name) {
            return Err("it is no name of a profile".to_owned());
        }
        if self.seen.iter().any(|seen| seen == name) {
            return Ok(None);
        }
        if depth >= DEPTH {
            return Err(format!("it is included by more than {DEPTH} profiles, one in the other"));
        }
        self.seen.push(name.to_owned());
        let text = (self.beside)(&format!("{name}/tuned.conf"));
        text.map(Some).ok_or_else(|| "there is no such profile beside this one".to_owned())
    }

    fn variables(&mut self, profile: &str, section: IniSection) {
        if replaces(&section) {
            self.profile.variables.clear();
        }
        for (name, value) in section.options {
            if name == "include" {
                self.file_of_variables(profile, &value);
            } else {
                self.define(name, value);
            }
        }
    }

    /// A file of variables is read where the profile itself is; those elsewhere are not.
    fn file_of_variables(&mut self, profile: &str, path: &str) {
        let name = path.rsplit('/').next().unwrap_or(path);
        let text = is_plain(name).then(|| (self.beside)(&format!("{profile}/{name}"))).flatten();
        let Some(text) = text else {
            let why = "it is not in the profile's folder: give its variables with --set NAME=VALUE";
            (self.leave)(format!("variables of {path}"), why.to_owned());
            return;
        };
        let (parsed, _) = sections(&format!("[variables]\n{text}"));
        for (name, value) in parsed.into_iter().flat_map(|section| section.options) {
            self.define(name, value);
        }
    }

    fn define(&mut self, name: String, value: String) {
        // One that is defined by itself comes after what it is made of.
        self.profile.variables.push((name, value));
    }

    fn merge(&mut self, section: IniSection) {
        let own = self.profile.sections.iter_mut().find(|other| other.name == section.name);
        match own {
            Some(own) if replaces(&section) => *own = section,
            Some(own) => section.options.iter().for_each(|(name, value)| own.set(name, value)),
            None => self.profile.sections.push(section),
        }
    }
}

fn replaces(section: &IniSection) -> bool {
    section.option("replace").is_some_and(is_true)
}

/// What tuned takes for yes.
pub fn is_true(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "1" | "y" | "yes" | "t" | "true" | "on")
}

/// As tuned has the names of profiles.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 255
        && !name.starts_with('.')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}
