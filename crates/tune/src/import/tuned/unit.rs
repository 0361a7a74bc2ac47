//! Section of a profile, with tuned's special options extracted.

use super::ini::IniSection;
use super::options::OptionList;

/// Section of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunedUnit {
    pub name: String,
    /// Plugin.
    pub kind: String,
    pub is_enabled: bool,
    pub devices: String,
    pub priority: Option<String>,
    pub devices_udev_regex: Option<String>,
    pub cpuinfo_regex: Option<String>,
    pub uname_regex: Option<String>,
    pub script_pre: Option<String>,
    pub script_post: Option<String>,
    /// True if it replaces the included section.
    pub replaces: bool,
    /// True if its variables precede the included ones.
    pub prepends: bool,
    /// Options of the included section that are dropped.
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

    /// Merges a later section of the same name. Kind, devices and state that the later one does not
    /// set return to their defaults.
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
            // All scripts are run, in order.
            let before = self.options.get(name).filter(|_| self.name == "script" && name == "script");
            let value = before.map_or_else(|| value.to_owned(), |before| format!("{before} {value}"));
            self.options.set(name, value);
        }
    }
}

/// True for the values that tuned accepts as true.
fn is_true(value: &str) -> bool {
    matches!(value, "1" | "true" | "True")
}

/// Names separated by commas or semicolons.
pub fn separated(names: &str) -> Vec<String> {
    names.split([',', ';']).map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}
