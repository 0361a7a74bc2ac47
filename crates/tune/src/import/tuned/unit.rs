//! A section of a profile with what tuned takes out of its options.

use super::ini::IniSection;
use super::options::OptionList;

/// A section of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunedUnit {
    pub name: String,
    /// The plugin.
    pub kind: String,
    pub is_enabled: bool,
    pub devices: String,
    pub priority: Option<String>,
    pub devices_udev_regex: Option<String>,
    pub cpuinfo_regex: Option<String>,
    pub uname_regex: Option<String>,
    pub script_pre: Option<String>,
    pub script_post: Option<String>,
    /// True if it takes the place of what is included.
    pub replaces: bool,
    /// True if its variables come before those that are included.
    pub prepends: bool,
    /// Options of what is included that are omitted.
    pub drops: Vec<String>,
    pub options: OptionList,
}

impl TunedUnit {
    pub fn of(section: IniSection) -> TunedUnit {
        let mut options = section.options;
        let mut take = |name: &str| options.take(name);
        let is_true = |value: Option<String>| value.is_some_and(|value| is_true(&value));
        TunedUnit {
            kind: take("type").unwrap_or_else(|| section.name.clone()),
            is_enabled: take("enabled").is_none_or(|value| self::is_true(&value)),
            devices: take("devices").unwrap_or_else(|| "*".to_owned()),
            priority: take("priority"),
            devices_udev_regex: take("devices_udev_regex"),
            cpuinfo_regex: take("cpuinfo_regex"),
            uname_regex: take("uname_regex"),
            script_pre: take("script_pre"),
            script_post: take("script_post"),
            replaces: is_true(take("replace")),
            prepends: is_true(take("prepend")),
            drops: take("drop").map(|names| separated(&names)).unwrap_or_default(),
            name: section.name,
            options,
        }
    }

    /// Takes over what a later section of its name says. What that one does not say of its kind,
    /// devices and whether it is enabled is the default again.
    pub fn merge(&mut self, later: TunedUnit) {
        self.kind = later.kind;
        self.is_enabled = later.is_enabled;
        self.devices = later.devices;
        let pairs = [
            (&mut self.priority, later.priority),
            (&mut self.devices_udev_regex, later.devices_udev_regex),
            (&mut self.cpuinfo_regex, later.cpuinfo_regex),
            (&mut self.uname_regex, later.uname_regex),
            (&mut self.script_pre, later.script_pre),
            (&mut self.script_post, later.script_post),
        ];
        for (own, later) in pairs {
            if later.is_some() {
                *own = later;
            }
        }
        for name in later.drops {
            self.options.take(&name);
        }
        for (name, value) in later.options.in_order() {
            // Scripts are run one after the other.
            let before = self.options.get(name).filter(|_| self.name == "script" && name == "script");
            let value = before.map_or_else(|| value.to_owned(), |before| format!("{before} {value}"));
            self.options.set(name, value);
        }
    }
}

/// True for the values that tuned takes for yes.
fn is_true(value: &str) -> bool {
    matches!(value, "1" | "true" | "True")
}

/// Names between commas or semicolons.
pub fn separated(names: &str) -> Vec<String> {
    names.split([',', ';']).map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}
