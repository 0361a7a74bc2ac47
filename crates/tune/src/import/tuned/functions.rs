//! The functions of a profile's values, as far as they depend on nothing but what was read of the
//! machine. `exec` runs a command, and is not evaluated.

use std::cell::RefCell;
use std::collections::BTreeSet;

use glob::Pattern;
use model::fact::Fact;
use model::text::{clean, quoted_value};

use super::cpulists::{listed, mask, of_mask, packed, unpacked};
use super::expression::is_word;
use super::search::{Lines, matches};
use crate::import::ImportTarget;

const CPUS: &str = "/sys/devices/system/cpu";
const UNCORES: &str = "/sys/devices/system/cpu/intel_uncore_frequency";

/// Encloses the number of a doubt within a value.
const MARK: char = '\0';

/// More doubts than any profile has; what is beyond them has the last one.
const DOUBTS_LIMIT: usize = 10_000;

/// Processors on which tuned takes the P-state driver off.
const OLDER_PROCESSORS: &[&str] = &["sandybridge", "ivybridge", "haswell", "broadwell", "skylake"];

/// An assertion that does not hold, by its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedAssertion(pub String);

/// A part of a value that is not known here.
struct Doubt {
    /// The words that stand for it.
    shown: String,
    why: String,
}

/// A value, or none where tuned leaves the call as it is.
type CallValue = Option<String>;

/// Functions for a machine.
pub struct Functions<'a> {
    pub target: ImportTarget<'a>,
    doubts: RefCell<Vec<Doubt>>,
    undecided: RefCell<Vec<String>>,
}

impl Functions<'_> {
    pub fn new(target: ImportTarget) -> Functions {
        Functions { target, doubts: RefCell::default(), undecided: RefCell::default() }
    }

    /// A value that stands for one that is not known.
    pub fn doubt(&self, shown: &str, why: impl Into<String>) -> String {
        let mut doubts = self.doubts.borrow_mut();
        if doubts.len() < DOUBTS_LIMIT {
            let shown = shown_with(shown, &doubts);
            doubts.push(Doubt { shown, why: why.into() });
        }
        format!("{MARK}{}{MARK}", doubts.len() - 1)
    }

    /// The value as it is to be read by people.
    pub fn shown(&self, value: &str) -> String {
        shown_with(value, &self.doubts.borrow())
    }

    /// The reason for which a value is none: a part of it is not known, a variable has no value, or
    /// a function is none of tuned's.
    pub fn trouble(&self, value: &str) -> Option<String> {
        if let Some(number) = value.split(MARK).nth(1) {
            let doubts = self.doubts.borrow();
            let doubt = number.parse::<usize>().ok().and_then(|number| doubts.get(number));
            return Some(
                doubt.map_or_else(|| "its value is not known".to_owned(), |doubt| doubt.why.clone()),
            );
        }
        let (_, rest) = value.split_once("${")?;
        let name = rest.split_once('}').map_or(rest, |(name, _)| name);
        Some(match name.strip_prefix("f:") {
            Some(call) => {
                let name = call.split(':').next().unwrap_or_default();
                format!("{} is no function of tuned's with such arguments", quoted_value(name))
            }
            None => {
                format!("its variable {} has no value: give it with --set NAME=VALUE", quoted_value(name))
            }
        })
    }

    /// The words of assertions that could not be decided.
    pub fn undecided(&self) -> Vec<String> {
        self.undecided.borrow().clone()
    }

    /// The value of `${f:NAME:ARGUMENT...`, without its closing brace.
    ///
    /// # Errors
    /// It is an assertion that does not hold.
    pub fn value_of(&self, call: &str) -> Result<CallValue, FailedAssertion> {
        if !call.starts_with("${f:") {
            return Ok(None);
        }
        let words = words(call);
        let [start, name, arguments @ ..] = words.as_slice() else { return Ok(None) };
        if start != "${f" || !is_word(name) {
            return Ok(None);
        }
        let takes = ARGUMENTS.iter().find(|(known, ..)| known == name);
        let fits = |(_, least, most): &(&str, usize, usize)| (*least..=*most).contains(&arguments.len());
        if !takes.is_some_and(fits) {
            return Ok(None);
        }
        let deciding = match name.as_str() {
            "strip" | "log" => &[][..],
            "regex_search_ternary" => &arguments[..2],
            _ => arguments,
        };
        let unknown = deciding.iter().find(|argument| argument.contains(MARK));
        if name.starts_with("assertion") {
            return self.assertion(name, arguments, unknown.is_some());
        }
        if let Some(unknown) = unknown {
            let why = self.trouble(unknown).unwrap_or_default();
            return Ok(Some(self.doubt(&format!("{call}}}"), why)));
        }
        let value = self.call(name, arguments);
        Ok(value.unwrap_or_else(|doubt| Some(self.doubt(&doubt.shown, doubt.why))))
    }

    fn assertion(
        &self,
        name: &str,
        arguments: &[String],
        is_unknown: bool,
    ) -> Result<CallValue, FailedAssertion> {
        let [words, a, b] = arguments else { return Ok(None) };
        if is_unknown {
            self.undecided.borrow_mut().push(self.shown(words));
            return Ok(None);
        }
        match (a == b) == (name == "assertion") {
            true => Ok(None),
            false => Err(FailedAssertion(words.clone())),
        }
    }

    fn call(&self, name: &str, arguments: &[String]) -> Result<CallValue, Doubt> {
        let first = arguments.first().map_or("", String::as_str);
        let parted = |separator: &str| {
            unpacked(&arguments.join(separator)).ok_or_else(|| unknown(name, "it names too many CPUs"))
        };
        let cpus = || parted(",,");
        Ok(Some(match name {
            "cpulist_pack" => packed(&cpus()?),
            "cpulist_unpack" => listed(&cpus()?),
            "cpulist_invert" => listed(&(&self.cpus_of("online")? - &cpus()?)),
            "cpulist_online" => listed(&(&parted(",")? & &self.cpus_of("online")?)),
            "cpulist_present" => listed(&(&cpus()? & &self.cpus_of("present")?)),
            "cpulist2hex" => mask(&cpus()?),
            "cpulist2hex_invert" => mask(&(&self.cpus_of("online")? - &cpus()?)),
            "cpulist2devs" => devices("cpu", parted(",")?),
            "hex2cpulist" => listed(&of_mask(first).ok_or_else(|| unknown(name, "it names too many CPUs"))?),
            "strip" => arguments.concat().trim().to_owned(),
            "log" => arguments.concat(),
            "kb2s" => return Ok(first.trim().parse::<i64>().ok().map(|kb| (i128::from(kb) * 2).to_string())),
            "s2kb" => return Ok(first.trim().parse::<i64>().ok().map(|sectors| halved(sectors).to_string())),
            "regex_search_ternary" => return ternary(arguments),
            "calc_isolated_cores" => return self.calc_isolated_cores(arguments.first()),
            "cpuinfo_check" => self.checked(arguments, self.text(name, "/proc/cpuinfo"))?,
            "lscpu_check" => {
                self.checked(arguments, Err(unknown(name, "lscpu prints it, which is not run")))?
            }
            "package2cpus" => return self.package2cpus(arguments),
            "package2uncores" => return self.package2uncores(arguments),
            "intel_recommended_pstate" => {
                let processor = self.text(name, "/sys/devices/cpu/caps/pmu_name")?;
                let processor = processor.trim();
                let is_older = processor.is_empty() || OLDER_PROCESSORS.contains(&processor);
                if is_older { "disable" } else { "active" }.to_owned()
            }
            "virt_check" => match self.target.survey.facts.virtualization.as_str() {
                "" => {
                    return Err(alternatives(name, arguments, "by the kind of machine, which is not known"));
                }
                "none" => arguments.get(1).cloned().unwrap_or_default(),
                _ => first.to_owned(),
            },
            "check_net_queue_count" if !first.is_empty() && first.chars().all(|c| c.is_ascii_digit()) => {
                first.to_owned()
            }
            "check_net_queue_count" => return Err(unknown(name, "nproc prints it, which is not run")),
            _ => {
                let shown = format!("(the output of {})", clean(&arguments.join(" ")));
                return Err(Doubt {
                    shown,
                    why: "its value comes from a command, which is not run".to_owned(),
                });
            }
        }))
    }

    /// A file of the machine; empty where a running machine has none.
    fn text(&self, name: &str, path: &str) -> Result<String, Doubt> {
        match self.target.files.read_text(path) {
            Fact::Known(text) => Ok(text),
            Fact::Absent if self.target.files.is_live() => Ok(String::new()),
            _ => Err(unknown(name, &format!("its value depends on {path}, which cannot be read"))),
        }
    }

    fn cpus_of(&self, which: &str) -> Result<BTreeSet<u32>, Doubt> {
        let text = self.text(which, &format!("{CPUS}/{which}"))?;
        Ok(unpacked(text.trim()).unwrap_or_default())
    }

    /// Each CPU with the text of its package, in their order; those that have none are left out.
    fn packages(&self, name: &str) -> Result<Vec<(u32, String)>, Doubt> {
        let names = self.target.files.list(CPUS);
        let names = names.known().into_iter().flatten();
        let mut cpus: Vec<u32> = names.filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
        cpus.sort_unstable();
        let path = |cpu: u32| format!("{CPUS}/cpu{cpu}/topology/physical_package_id");
        let package = |cpu: u32| Some((cpu, self.target.files.read_text(&path(cpu)).known()?.clone()));
        let found: Vec<(u32, String)> = cpus.into_iter().filter_map(package).collect();
        match found.is_empty() && !self.target.files.is_live() {
            true => Err(unknown(name, "its value depends on the packages of the CPUs, which cannot be read")),
            false => Ok(found),
        }
    }

    fn calc_isolated_cores(&self, reserved: Option<&String>) -> Result<CallValue, Doubt> {
        let is_number = |text: &&String| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        let reserved = match reserved {
            None => 1,
            Some(text) if is_number(&text) => text.parse().unwrap_or(usize::MAX),
            Some(_) => return Ok(None),
        };
        let mut cpus: std::collections::BTreeMap<String, Vec<u32>> = std::collections::BTreeMap::new();
        for (cpu, package) in self.packages("calc_isolated_cores")? {
            let package = package.trim();
            if !package.is_empty() && package.chars().all(|c| c.is_ascii_digit()) {
                cpus.entry(package.to_owned()).or_default().push(cpu);
            }
        }
        let isolated = cpus.values().flat_map(|cpus| cpus.iter().skip(reserved)).copied().collect();
        Ok(Some(packed(&isolated)))
    }

    /// The text behind the first expression that something in the file matches.
    fn checked(&self, arguments: &[String], text: Result<String, Doubt>) -> Result<String, Doubt> {
        let text = text.map_err(|doubt| alternatives("", arguments, &doubt.why))?;
        for pair in arguments.chunks(2) {
            let [expression, value] = pair else { break };
            let found = matches(expression, &text, Lines::Each);
            if found.map_err(|why| alternatives("", arguments, &why))? {
                return Ok(value.clone());
            }
        }
        Ok(if arguments.len() % 2 == 1 {
            arguments.last().cloned().unwrap_or_default()
        } else {
            String::new()
        })
    }

    fn package2cpus(&self, patterns: &[String]) -> Result<CallValue, Doubt> {
        let packages = self.packages("package2cpus")?;
        let cpus: BTreeSet<u32> = packages
            .iter()
            .filter(|(_, package)| is_package(patterns, package))
            .map(|(cpu, _)| *cpu)
            .collect();
        Ok(Some(devices("cpu", cpus)).filter(|devices| !devices.is_empty()))
    }

    fn package2uncores(&self, patterns: &[String]) -> Result<CallValue, Doubt> {
        let listed = self.target.files.list(UNCORES);
        let names = match &listed {
            Fact::Known(names) => names.clone(),
            Fact::Absent => return Ok(None),
            _ => {
                return Err(unknown("package2uncores", "its value depends on uncores, which cannot be read"));
            }
        };
        let newer: Vec<&String> = names.iter().filter(|name| name.starts_with("uncore")).collect();
        let is_wanted = |name: &&&String| match newer.is_empty() {
            true => name.get(8..10).is_some_and(|package| is_package(patterns, package)),
            false => {
                let path = format!("{UNCORES}/{name}/package_id");
                self.target.files.read_text(&path).known().is_some_and(|text| is_package(patterns, text))
            }
        };
        let all: Vec<&String> = if newer.is_empty() { names.iter().collect() } else { newer.clone() };
        let found: Vec<&str> = all.iter().filter(is_wanted).map(|name| name.as_str()).collect();
        Ok(Some(found.join(",")).filter(|devices| !devices.is_empty()))
    }
}

/// How many arguments each takes.
const ARGUMENTS: &[(&str, usize, usize)] = &[
    ("assertion", 3, 3),
    ("assertion_non_equal", 3, 3),
    ("calc_isolated_cores", 0, 1),
    ("check_net_queue_count", 1, 1),
    ("cpuinfo_check", 2, usize::MAX),
    ("cpulist2devs", 0, usize::MAX),
    ("cpulist2hex", 0, usize::MAX),
    ("cpulist2hex_invert", 0, usize::MAX),
    ("cpulist_invert", 0, usize::MAX),
    ("cpulist_online", 0, usize::MAX),
    ("cpulist_pack", 0, usize::MAX),
    ("cpulist_present", 0, usize::MAX),
    ("cpulist_unpack", 0, usize::MAX),
    ("exec", 1, usize::MAX),
    ("hex2cpulist", 1, 1),
    ("intel_recommended_pstate", 0, usize::MAX),
    ("kb2s", 1, 1),
    ("log", 1, usize::MAX),
    ("lscpu_check", 2, usize::MAX),
    ("package2cpus", 1, usize::MAX),
    ("package2uncores", 1, usize::MAX),
    ("regex_search_ternary", 4, 4),
    ("s2kb", 1, 1),
    ("strip", 1, usize::MAX),
    ("virt_check", 2, 2),
];

/// A value with the words that stand for its doubts.
fn shown_with(value: &str, doubts: &[Doubt]) -> String {
    let part = |(at, part): (usize, &str)| match (at % 2, part.parse::<usize>()) {
        (1, Ok(number)) => doubts.get(number).map_or("", |doubt| doubt.shown.as_str()).to_owned(),
        _ => part.to_owned(),
    };
    value.split(MARK).enumerate().map(part).collect()
}

/// The words between colons; `\:` is a colon of a word.
fn words(call: &str) -> Vec<String> {
    let (mut words, mut last) = (Vec::new(), String::new());
    for c in call.chars() {
        match c {
            ':' if last.ends_with('\\') => {
                last.pop();
                last.push(':');
            }
            ':' => words.push(std::mem::take(&mut last)),
            c => last.push(c),
        }
    }
    words.push(last);
    words
}

fn unknown(name: &str, why: &str) -> Doubt {
    Doubt { shown: format!("(the value of {name})"), why: why.to_owned() }
}

/// Of the values to choose from, which the machine decides.
fn alternatives(name: &str, arguments: &[String], why: &str) -> Doubt {
    let values: Vec<&str> = match name {
        "virt_check" => arguments.iter().map(String::as_str).collect(),
        _ => {
            let behind = arguments.iter().skip(1).step_by(2);
            let last = arguments.last().filter(|_| arguments.len() % 2 == 1);
            behind.chain(last).map(String::as_str).collect()
        }
    };
    let values: Vec<&str> = values.into_iter().filter(|value| !value.is_empty()).collect();
    Doubt { shown: format!("(one of {}, by the processor)", values.join(", ")), why: why.to_owned() }
}

fn ternary(arguments: &[String]) -> Result<CallValue, Doubt> {
    let [text, expression, yes, no] = arguments else { return Ok(None) };
    let found = matches(expression, text, Lines::All).map_err(|why| {
        let shown = format!("(one of {}, {})", quoted_value(yes), quoted_value(no));
        Doubt { shown, why }
    })?;
    Ok(Some(if found { yes } else { no }.clone()))
}

/// Half a number, to the even one of two that are as near.
fn halved(number: i64) -> i64 {
    let below = number.div_euclid(2);
    match number.rem_euclid(2) {
        0 => below,
        _ => below + below.rem_euclid(2),
    }
}

fn devices(prefix: &str, numbers: BTreeSet<u32>) -> String {
    numbers.iter().map(|number| format!("{prefix}{number}")).collect::<Vec<_>>().join(",")
}

/// Whether a package is one of those that are named by number or pattern.
fn is_package(patterns: &[String], text: &str) -> bool {
    let Ok(number) = text.trim().parse::<i64>() else { return false };
    patterns.iter().any(|pattern| match pattern.trim().parse::<i64>() {
        Ok(wanted) => wanted == number,
        Err(_) => Pattern::new(pattern).is_ok_and(|pattern| pattern.matches(text)),
    })
}
