//! Syntax of requested loads: `name[:COUNTxSIZE][,key=value][@RATE]`, several separated by blanks
//! or commas, `cmd:` with a command up to the end.

use std::fmt;

use crate::load::{Load, Wanted};
use crate::loads::{self, MIXES};
use model::size;

/// Limit of processes of one load.
const MOST: u32 = 1024;

/// Requested load.
#[derive(Clone)]
pub struct LoadSpec {
    pub load: &'static Load,
    pub count: Option<u32>,
    pub size: Option<u64>,
    pub rate: Option<u64>,
    pub keys: Vec<(&'static str, String)>,
    /// Words of `cmd`.
    pub command: Vec<String>,
}

impl LoadSpec {
    fn of(load: &'static Load) -> LoadSpec {
        LoadSpec { load, count: None, size: None, rate: None, keys: Vec::new(), command: Vec::new() }
    }

    /// Load with defaults for omitted parameters, on this number of CPUs.
    pub fn wanted(&self, cpus: usize) -> Wanted {
        let each = u32::try_from(cpus).unwrap_or(MOST).clamp(1, MOST);
        Wanted {
            count: self.count.or(self.load.count.default).unwrap_or(each),
            size: self.size.or(self.load.size.map(|size| size.default)).unwrap_or(0),
            rate: self.rate,
            keys: self.keys.clone(),
            command: self.command.clone(),
        }
    }
}

impl fmt::Display for LoadSpec {
    /// Writes it in the syntax of [`parse`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.load.name)?;
        if !self.command.is_empty() {
            return write!(f, ":{}", shell_words::join(&self.command));
        }
        match (self.count, self.size) {
            (None, None) => {}
            (Some(count), None) => write!(f, ":{count}")?,
            (None, Some(bytes)) => write!(f, ":x{}", size::text(bytes))?,
            (Some(count), Some(bytes)) => write!(f, ":{count}x{}", size::text(bytes))?,
        }
        // Before the keys: after a path it would be a part of that.
        self.rate.map_or(Ok(()), |rate| write!(f, "@{}", size::text(rate)))?;
        self.keys.iter().try_for_each(|(name, value)| write!(f, ",{name}={value}"))
    }
}

/// Parses the values of several flags or arguments, each with one load or more.
///
/// # Errors
/// A sentence that names the word and the expected form.
pub fn parse<S: AsRef<str>>(texts: &[S]) -> Result<Vec<LoadSpec>, String> {
    let mut specs: Vec<LoadSpec> = Vec::new();
    for text in texts {
        one_text(text.as_ref(), &mut specs)?;
    }
    if specs.is_empty() { Err(format!("a load is missing: choose from {}", names())) } else { Ok(specs) }
}

fn one_text(text: &str, specs: &mut Vec<LoadSpec>) -> Result<(), String> {
    let mut rest = text.trim_start();
    let mut begun = false;
    while !rest.is_empty() {
        if let Some(command) = rest.strip_prefix("cmd:") {
            specs.push(command_of(command)?);
            return Ok(());
        }
        let end = rest.find([',', ' ', '\t', '\n']).unwrap_or(rest.len());
        let (item, behind) = rest.split_at(end);
        match item.split_once('=') {
            Some((name, value)) if begun => {
                let spec = specs.last_mut().ok_or_else(|| format!("'{item}' belongs to no load"))?;
                set_key(spec, name, value)?;
            }
            Some(_) => return Err(format!("'{item}' belongs to no load: start with the name of a load")),
            None => specs.extend(one(item)?),
        }
        begun = true;
        rest = behind.trim_start_matches([',', ' ', '\t', '\n']);
    }
    if begun { Ok(()) } else { Err(format!("a load has no name: choose from {}", names())) }
}

/// Parses one item without keys: a load, or the loads of a mix.
fn one(item: &str) -> Result<Vec<LoadSpec>, String> {
    let (plain, rate) = with_rate(item)?;
    let (name, amount) = plain.split_once(':').map_or((plain, None), |(name, amount)| (name, Some(amount)));
    if let Some((_, mix)) = MIXES.iter().find(|(mix, _)| *mix == name) {
        return match (amount, rate) {
            (None, None) => parse(&[mix]),
            _ => Err(format!(
                "{name} takes no count, size or rate: it stands for {mix}, which can be used instead"
            )),
        };
    }
    let mut spec = LoadSpec::of(named(name)?);
    if let Some(amount) = amount {
        set_amount(&mut spec, amount)?;
    }
    set_rate(&mut spec, rate)?;
    Ok(vec![spec])
}

fn named(name: &str) -> Result<&'static Load, String> {
    let found = loads::LOADS.iter().copied().find(|load| load.name == name);
    found.filter(|load| load.name != "cmd").ok_or_else(|| match name {
        "cmd" => "cmd needs a command: cmd:'stress-ng --vm 2'".to_owned(),
        _ => format!("invalid load '{name}': choose from {}", names()),
    })
}

/// Names of all loads and mixes.
fn names() -> String {
    let loads = loads::LOADS.iter().map(|load| load.name);
    loads.chain(MIXES.iter().map(|(name, _)| *name)).collect::<Vec<_>>().join(" ")
}

fn with_rate(item: &str) -> Result<(&str, Option<u64>), String> {
    match item.split_once('@') {
        None => Ok((item, None)),
        Some((plain, rate)) => {
            let rate = rate.trim_end_matches("/s");
            size::parse(rate).map(|rate| (plain, Some(rate))).map_err(|what| format!("{item}: {what}"))
        }
    }
}

fn set_amount(spec: &mut LoadSpec, amount: &str) -> Result<(), String> {
    let name = spec.load.name;
    let (count, bytes) = match amount.split_once('x') {
        Some((count, bytes)) => (Some(count).filter(|count| !count.is_empty()), Some(bytes)),
        None if amount.bytes().all(|byte| byte.is_ascii_digit()) => (Some(amount), None),
        None => (None, Some(amount)),
    };
    if let Some(count) = count {
        let number = count.parse::<u32>().ok().filter(|count| (1..=MOST).contains(count));
        let what = spec.load.count.what;
        let number = number.ok_or_else(|| format!("{name}: {what}: expected 1 to {MOST}, not '{count}'"))?;
        spec.count = Some(number);
    }
    if let Some(bytes) = bytes {
        let size = spec.load.size.ok_or_else(|| format!("{name} takes no size: remove '{bytes}'"))?;
        let number = size::parse(bytes).map_err(|what| format!("{name}: {what}"))?;
        if !(size.least..=size.most).contains(&number) {
            let (least, most) = (size::text(size.least), size::text(size.most));
            return Err(format!("{name}: {}: expected {least} to {most}, not '{bytes}'", size.what));
        }
        spec.size = Some(number);
    }
    Ok(())
}

fn set_rate(spec: &mut LoadSpec, rate: Option<u64>) -> Result<(), String> {
    if rate.is_some() && !spec.load.paced {
        return Err(format!("{} takes no rate: remove the part after @", spec.load.name));
    }
    spec.rate = rate.or(spec.rate);
    Ok(())
}

/// Sets a key, whose value may end with the rate.
fn set_key(spec: &mut LoadSpec, name: &str, value: &str) -> Result<(), String> {
    let load = spec.load;
    let key = load.keys.iter().find(|key| key.name == name);
    let key = key.ok_or_else(|| match load.keys {
        [] => format!("{} takes no keys: remove '{name}={value}'", load.name),
        keys => {
            let known: Vec<&str> = keys.iter().map(|key| key.name).collect();
            format!("{}: invalid key '{name}': choose from {}", load.name, known.join(" "))
        }
    })?;
    let (value, rate) = if key.values.is_empty() { (value, None) } else { with_rate(value)? };
    if value.is_empty() || !(key.values.is_empty() || key.values.contains(&value)) {
        let known = if key.values.is_empty() { key.what.to_owned() } else { key.values.join(" or ") };
        return Err(format!("{}: {name}: expected {known}, not '{value}'", load.name));
    }
    if spec.keys.iter().any(|(given, _)| *given == key.name) {
        return Err(format!("{}: {name} is given twice", load.name));
    }
    spec.keys.push((key.name, value.to_owned()));
    set_rate(spec, rate)
}

fn command_of(text: &str) -> Result<LoadSpec, String> {
    let mut words = shell_words::split(text).map_err(|_| format!("cmd: missing closing quote in {text}"))?;
    // The whole command may be quoted: cmd:'stress-ng --vm 2'.
    if let [whole] = words.as_slice()
        && whole.contains(char::is_whitespace)
    {
        words = shell_words::split(whole).map_err(|_| format!("cmd: missing closing quote in {whole}"))?;
    }
    if words.first().is_none_or(String::is_empty) {
        return Err("cmd needs a command: cmd:'stress-ng --vm 2'".into());
    }
    Ok(LoadSpec { command: words, ..LoadSpec::of(&loads::cmd::LOAD) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(given: &str) -> Vec<String> {
        parse(&[given]).unwrap().iter().map(LoadSpec::to_string).collect()
    }

    #[test]
    fn loads_are_separated_by_blanks_or_commas() {
        assert_eq!(texts("mem:2x1G,cpu"), ["mem:2x1G", "cpu"]);
        assert_eq!(texts(" cpu:2  vm:x15M "), ["cpu:2", "vm:x15M"]);
        assert_eq!(texts("vm:15M"), ["vm:x15M"]);
        assert_eq!(texts("messaging:4x128,through=pipes,cpu"), ["messaging:4x128,through=pipes", "cpu"]);
        assert_eq!(texts("hdd:1x20M@1M"), ["hdd:1x20M@1M"]);
        assert_eq!(texts("hdd@1M,folder=/a"), ["hdd@1M,folder=/a"], "the rate reaches the process");
        assert_eq!(texts("hdd,folder=/a@b"), ["hdd,folder=/a@b"], "a path may have any character");
    }

    #[test]
    fn a_command_goes_to_the_end() {
        let words = |given: &str| parse(&[given]).unwrap().pop().unwrap().command;
        assert_eq!(words("cmd:stress-ng --vm 2"), ["stress-ng", "--vm", "2"]);
        assert_eq!(words("cpu cmd:'stress-ng --vm 2'"), ["stress-ng", "--vm", "2"]);
        assert_eq!(words("cmd:sh -c 'a, b=1'"), ["sh", "-c", "a, b=1"]);
    }

    #[test]
    fn a_mix_is_its_loads() {
        assert_eq!(texts("full"), ["cpu:4", "io:4", "vm:4x15M", "hdd:4x20M"]);
    }

    #[test]
    fn what_is_wrong_is_named_with_what_would_be_right() {
        for (given, message) in [
            ("", "has no name"),
            ("memory", "invalid load"),
            ("cmd", "needs a command"),
            ("cmd:", "needs a command"),
            ("cmd:'a", "missing closing quote"),
            ("cpu:0", "expected 1 to"),
            ("cpu:5000", "expected 1 to"),
            ("cpu:2x1G", "takes no size"),
            ("vm:2x", "not a size"),
            ("vm:2x1", "expected 4K to"),
            ("fork@", "not a size"),
            ("messaging,through=mail", "expected sockets or pipes"),
            ("messaging,to=mail", "invalid key"),
            ("messaging,through=pipes,through=pipes", "given twice"),
            ("through=pipes", "start with the name"),
            ("cpu,through=pipes", "takes no keys"),
            ("full:2", "which can be used instead"),
            ("messaging@5", "takes no rate"),
        ] {
            let error = parse(&[given]).err().unwrap_or_else(|| panic!("{given} is taken"));
            assert!(error.contains(message) && !error.contains('\n'), "{given}: {error}");
        }
        assert!(parse::<&str>(&[]).is_err());
    }

    proptest! {
        /// Total, and printed specs parse to the same ones.
        #[test]
        fn any_text_is_read_or_refused(text in "[a-z:,=@x0-9KMG ']{0,40}") {
            if let Ok(specs) = parse(&[&text]) {
                let printed: Vec<String> = specs.iter().map(LoadSpec::to_string).collect();
                let again: Vec<String> = parse(&printed).unwrap().iter().map(LoadSpec::to_string).collect();
                prop_assert_eq!(printed, again);
            }
        }
    }
}
