//! The environment settings of irqbalance: CPUs that it must not use.
//!
//! Source: "ENVIRONMENT VARIABLES" in irqbalance(1), setup_banned_cpus in its source, and
//! Environment= and EnvironmentFile= in systemd.exec(5) for the forms of the files.

use super::line::{excerpt, parse_mask};
use host::access::{unit_lines, unit_words};
use model::units::CpuSet;

/// The CPUs in an environment file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Banned {
    /// `IRQBALANCE_BANNED_CPULIST`; empty if it names no CPU, none if it is not set.
    pub list: Option<CpuSet>,
    /// True if the list is set to an empty text, which versions interpret differently.
    pub blank: bool,
    /// `IRQBALANCE_BANNED_CPUS`, a mask that overrides the list; none if it is not set or blank.
    pub mask: Option<CpuSet>,
}

impl Banned {
    /// These settings, completed by those of an earlier file.
    pub fn over(self, earlier: Banned) -> Banned {
        let blank = if self.list.is_some() { self.blank } else { earlier.blank };
        Banned { list: self.list.or(earlier.list), blank, mask: self.mask.or(earlier.mask) }
    }
}

impl Banned {
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "IRQBALANCE_BANNED_CPULIST" => {
                self.blank = value.is_empty();
                self.list = Some(parse_list(value)?);
            }
            "IRQBALANCE_BANNED_CPUS" if value.is_empty() => self.mask = None,
            "IRQBALANCE_BANNED_CPUS" => self.mask = Some(parse_mask(value)?),
            _ => {}
        }
        Ok(())
    }
}

/// Parses an environment file; the last setting of a variable counts.
pub fn parse_banned(text: &str) -> Result<Banned, String> {
    let mut banned = Banned::default();
    for line in text.lines().map(str::trim) {
        let Some((name, value)) = line.split_once('=') else { continue };
        if name.starts_with("export ") && name.contains("IRQBALANCE_BANNED") {
            return Err("expected NAME=VALUE, found export, which systemd does not accept".to_owned());
        }
        banned.set(name.trim(), unquoted(value.trim()))?;
    }
    Ok(banned)
}

/// Environment that a systemd unit sets, by its file and its drop-ins in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitEnvironment {
    settings: Vec<(String, String)>,
    /// Environment files; each overrides those before it and the settings.
    pub files: Vec<String>,
    /// True if a file of the unit resets the list of environment files.
    pub is_reset: bool,
}

impl UnitEnvironment {
    /// Adds the section `[Service]` of a further file of the unit.
    pub fn read(&mut self, text: &str) {
        let mut is_service = false;
        for line in unit_lines(text) {
            if line.starts_with(['#', ';']) {
                continue;
            }
            if line.starts_with('[') {
                is_service = line == "[Service]";
            }
            let Some((key, value)) = line.split_once('=').filter(|_| is_service) else { continue };
            match (key.trim_end(), value.trim_start()) {
                ("Environment", "") => self.settings.clear(),
                ("Environment", value) => {
                    let words = unit_words(value).into_iter();
                    self.settings.extend(words.filter_map(|word| {
                        word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
                    }));
                }
                ("EnvironmentFile", "") => {
                    self.files.clear();
                    self.is_reset = true;
                }
                ("EnvironmentFile", path) => self.files.push(path.trim_start_matches('-').to_owned()),
                _ => {}
            }
        }
    }

    /// Banned CPUs by its settings, without those of its files.
    pub fn banned(&self) -> Result<Banned, String> {
        let mut banned = Banned::default();
        self.settings.iter().try_for_each(|(name, value)| banned.set(name, value))?;
        Ok(banned)
    }
}

/// A dash is used where no CPU is to be banned. A list with anything but digits, commas and hyphens
/// (a comment, a stride of the kernel's) is refused whole, and then no CPU is banned
/// (`__bitmap_parselist` and `setup_banned_cpus`).
fn parse_list(value: &str) -> Result<CpuSet, String> {
    let is_refused = value.starts_with(|c: char| c.is_ascii_digit())
        && value.contains(|c: char| !c.is_ascii_digit() && c != ',' && c != '-');
    if matches!(value, "" | "-") || is_refused {
        return Ok(CpuSet::default());
    }
    CpuSet::parse(value).map_err(|error| format!("IRQBALANCE_BANNED_CPULIST: {}", excerpt(&error)))
}

fn unquoted(value: &str) -> &str {
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(value).trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expected: &str) {
        let summary = parse_banned(text).map(|banned| {
            let cpus = |set: &Option<CpuSet>| set.as_ref().map(ToString::to_string).unwrap_or("unset".into());
            format!("{} {} {}", cpus(&banned.list), cpus(&banned.mask), banned.blank)
        });
        assert_eq!(summary.unwrap_or("error".into()), expected, "{text}");
    }

    #[test]
    fn lists_and_masks() {
        check("", "unset unset false");
        check("# IRQBALANCE_BANNED_CPULIST=2-3\nIRQBALANCE_ARGS=--banirq=9\n", "unset unset false");
        check("IRQBALANCE_BANNED_CPULIST=2-3\n", "2-3 unset false");
        check("IRQBALANCE_BANNED_CPULIST=\"1,3\"\nIRQBALANCE_BANNED_CPUS=c", "1,3 2-3 false");
        check("IRQBALANCE_BANNED_CPULIST=1\nIRQBALANCE_BANNED_CPULIST=\n", " unset true");
        check("IRQBALANCE_BANNED_CPULIST=-", " unset false");
        check("IRQBALANCE_BANNED_CPUS=\"00000001,0000000c\"", "unset 2-3,32 false");
        check("IRQBALANCE_BANNED_CPUS=\n", "unset unset false");
        check("IRQBALANCE_BANNED_CPULIST=2-3 # rt cores", " unset false");
        check("IRQBALANCE_BANNED_CPULIST=0-3:2/2", " unset false");
        check("IRQBALANCE_BANNED_CPULIST=all", "error");
        check("export IRQBALANCE_BANNED_CPULIST=2-3", "error");
        check("export A=1", "unset unset false");
        check("IRQBALANCE_BANNED_CPUS=0-3", "error");
    }

    #[test]
    fn a_unit_and_its_drop_ins_add_up() {
        let of = |texts: &[&str]| {
            let mut unit = UnitEnvironment::default();
            texts.iter().for_each(|text| unit.read(text));
            let list = unit.banned().map(|banned| banned.list.map(|cpus| cpus.to_string()));
            (list.unwrap_or(Some("error".into())).unwrap_or("unset".into()), unit.files, unit.is_reset)
        };
        const LIST: &str = "[Service]\nEnvironment=IRQBALANCE_BANNED_CPULIST=2-3\n";
        let none: Vec<String> = Vec::new();
        assert_eq!(of(&[LIST]), ("2-3".into(), none.clone(), false));
        assert_eq!(of(&[LIST, "[Service]\nEnvironment=\n"]), ("unset".into(), none.clone(), false));
        for unset in
            [LIST.replace("[Service]", "[Unit]"), LIST.replace("Env", ";Env"), LIST.replace("Env", "#Env")]
        {
            assert_eq!(of(&[&unset]).0, "unset", "{unset}");
        }
        let quoted = "[Service]\nEnvironment = \\\n 'A=b c' \"IRQBALANCE_BANNED_CPULIST=1\" C=\\\"\n";
        assert_eq!(of(&[LIST, quoted]).0, "1");
        let files = "[Service]\nEnvironmentFile=-/a\nEnvironmentFile=/b\n";
        assert_eq!(of(&[files]).1, ["/a", "/b"]);
        assert_eq!(of(&[files, "[Service]\nEnvironmentFile=\nEnvironmentFile=/c\n"]).1, ["/c"]);
        assert!(of(&["[Service]\nEnvironmentFile=\n"]).2);
        assert_eq!(of(&[&format!("[Service]\n# note \\\n{}", &LIST[10..])]).0, "2-3");
        assert_eq!(unit_words("a  'b c'd \"\" \\ e"), ["a", "b cd", "", " e"]);
    }

    proptest! {
        #[test]
        fn unit_parser_is_total(text in "(\\[Service\\]|Environment(File)?=|[\"'\\\\ \n]|\\PC{0,6}){0,9}") {
            let mut unit = UnitEnvironment::default();
            unit.read(&text);
            let _ = unit.banned();
        }

        #[test]
        fn parser_is_total(text in "((IRQBALANCE_BANNED_CPU(LIST|S)|\\PC{0,4})=?[\"']?(\\PC{0,6}|[0-9a-f,-]{0,9})\n?){0,5}") {
            let _ = parse_banned(&text);
        }
    }
}
