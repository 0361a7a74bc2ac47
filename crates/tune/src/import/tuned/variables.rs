//! Variables of a profile, and the functions in their values that depend on no more than CPUs.
//! Others are not evaluated, and what uses them is left out: `exec` runs a command.

use std::collections::BTreeMap;

use model::text::quoted_value;
use model::units::CpuSet;
use rules::words::cpu_mask;

/// Longer values are no settings.
const VALUE_LIMIT: usize = 64 << 10;

/// Deeper nesting is no value that anybody wrote.
const DEPTH: usize = 16;

/// Why a value cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unexpanded {
    /// It is not evaluated here.
    Unknown(String),
    /// The profile refuses itself.
    Refused(String),
}

impl Unexpanded {
    pub fn words(self) -> String {
        match self {
            Unexpanded::Unknown(why) | Unexpanded::Refused(why) => why,
        }
    }
}

/// The variables that are defined so far.
pub struct Variables {
    given: BTreeMap<String, String>,
    values: BTreeMap<String, Result<String, String>>,
    online: CpuSet,
}

impl Variables {
    /// None but those that the user gave, on a machine with these CPUs.
    pub fn new(given: &[(String, String)], online: CpuSet) -> Variables {
        let given: BTreeMap<String, String> = given.iter().cloned().collect();
        let values = given.iter().map(|(name, value)| (name.clone(), Ok(value.clone()))).collect();
        Variables { given, values, online }
    }

    /// Defines one; those that the user gave stay.
    ///
    /// # Errors
    /// An assertion in its value does not hold.
    pub fn define(&mut self, name: &str, value: &str) -> Result<(), String> {
        let value = match self.expand(value) {
            Ok(value) => Ok(value),
            Err(Unexpanded::Unknown(why)) => Err(why),
            Err(Unexpanded::Refused(why)) => return Err(why),
        };
        // What cannot be had does not take the place of what is known: `x = ${x}`.
        let known = self.values.get(name).is_some_and(Result::is_ok);
        if !self.given.contains_key(name) && (value.is_ok() || !known) {
            self.values.insert(name.to_owned(), value);
        }
        Ok(())
    }

    /// A value with its variables and functions replaced.
    pub fn expand(&self, value: &str) -> Result<String, Unexpanded> {
        let mut rest = value;
        let found = self.until(&mut rest, false, 0)?;
        match found.len() <= VALUE_LIMIT {
            true => Ok(found),
            false => Err(Unexpanded::Unknown("its value is too long".to_owned())),
        }
    }

    /// Expands up to the closing brace, or to the end.
    fn until(&self, rest: &mut &str, braced: bool, depth: usize) -> Result<String, Unexpanded> {
        let mut found = String::new();
        if depth > DEPTH {
            return Err(Unexpanded::Unknown("it is nested too deeply".to_owned()));
        }
        while let Some(c) = rest.chars().next() {
            if let Some(after) = rest.strip_prefix("\\${") {
                // What is escaped stands for itself.
                found += "${";
                *rest = after;
                continue;
            }
            if let Some(after) = rest.strip_prefix("${") {
                *rest = after;
                let inner = self.until(rest, true, depth + 1)?;
                found += &self.value_of(&inner)?;
            } else {
                *rest = &rest[c.len_utf8()..];
                if braced && c == '}' {
                    return Ok(found);
                }
                found.push(c);
            }
            if found.len() > VALUE_LIMIT {
                return Err(Unexpanded::Unknown("its value is too long".to_owned()));
            }
        }
        match braced {
            true => Err(Unexpanded::Unknown("a brace in it is not closed".to_owned())),
            false => Ok(found),
        }
    }

    /// What is between braces: a variable, or `f:NAME:ARGUMENT...`.
    fn value_of(&self, inner: &str) -> Result<String, Unexpanded> {
        if let Some(call) = inner.strip_prefix("f:") {
            let mut words = arguments(call).into_iter();
            let name = words.next().unwrap_or_default();
            return self.call(&name, &words.collect::<Vec<_>>());
        }
        match self.values.get(inner) {
            Some(Ok(value)) => Ok(value.clone()),
            Some(Err(why)) => Err(Unexpanded::Unknown(why.clone())),
            None => {
                let why = format!(
                    "its variable {} has no value: give it with --set NAME=VALUE",
                    quoted_value(inner)
                );
                Err(Unexpanded::Unknown(why))
            }
        }
    }

    fn call(&self, name: &str, arguments: &[String]) -> Result<String, Unexpanded> {
        let cpus = || cpus_of(arguments, &self.online).map_err(Unexpanded::Unknown);
        let said = |at: usize| arguments.get(at).map_or("", String::as_str);
        Ok(match name {
            "cpulist_pack" => cpus()?.to_string(),
            "cpulist_unpack" => unpacked(&cpus()?),
            "cpulist_invert" => unpacked(&self.online.without(&cpus()?)),
            "cpulist_online" => unpacked(&self.online.and(&cpus()?)),
            "cpulist2hex" => cpu_mask(&cpus()?),
            "cpulist2hex_invert" => cpu_mask(&self.online.without(&cpus()?)),
            "hex2cpulist" => unpacked(&of_mask(said(0)).map_err(Unexpanded::Unknown)?),
            "strip" => arguments.concat().trim().to_owned(),
            "assertion" if said(1) == said(2) => String::new(),
            "assertion_non_equal" if said(1) != said(2) => String::new(),
            "assertion" | "assertion_non_equal" => {
                return Err(Unexpanded::Refused(format!("it asserts {}", quoted_value(said(0)))));
            }
            "exec" => {
                return Err(Unexpanded::Unknown(
                    "its value comes from a command, which is not run".to_owned(),
                ));
            }
            other => {
                let why =
                    format!("its value comes from {}, which is not evaluated here", quoted_value(other));
                return Err(Unexpanded::Unknown(why));
            }
        })
    }
}

/// The words between colons; `\:` is a colon of a word.
fn arguments(call: &str) -> Vec<String> {
    let (mut words, mut chars) = (vec![String::new()], call.chars().peekable());
    while let Some(c) = chars.next() {
        let escaped = c == '\\' && chars.peek() == Some(&':');
        match c {
            '\\' if escaped => {
                chars.next();
                words.iter_mut().last().into_iter().for_each(|word| word.push(':'));
            }
            ':' => words.push(String::new()),
            c => words.iter_mut().last().into_iter().for_each(|word| word.push(c)),
        }
    }
    words
}

fn unpacked(cpus: &CpuSet) -> String {
    cpus.iter().map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",")
}

/// CPUs as tuned's profiles name them: a list, in which `^N` takes some out, or a mask with `0x`.
fn cpus_of(arguments: &[String], online: &CpuSet) -> Result<CpuSet, String> {
    let (mut found, mut out) = (CpuSet::default(), CpuSet::default());
    for argument in arguments {
        let argument = argument.trim().trim_matches(['"', '\'']);
        if argument.starts_with("0x") {
            found = found.or(&of_mask(argument)?);
            continue;
        }
        for part in argument.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part.strip_prefix(['^', '!']) {
                Some(part) => out = out.or(&CpuSet::parse(part)?),
                None if part == "all" => found = found.or(online),
                None => found = found.or(&CpuSet::parse(part)?),
            }
        }
    }
    Ok(found.without(&out))
}

fn of_mask(text: &str) -> Result<CpuSet, String> {
    let digits: String = text.trim().trim_start_matches("0x").chars().filter(|c| *c != ',').collect();
    let mut cpus = Vec::new();
    if digits.is_empty() || digits.len() > 4096 {
        return Err(format!("{} is no mask of CPUs", quoted_value(text)));
    }
    for (nibble, c) in digits.chars().rev().enumerate() {
        let bits = c.to_digit(16).ok_or_else(|| format!("{} is no mask of CPUs", quoted_value(text)))?;
        let first = u32::try_from(nibble * 4).unwrap_or(u32::MAX);
        cpus.extend((0..4).filter(|bit| bits >> bit & 1 == 1).map(|bit| model::units::Cpu(first + bit)));
    }
    Ok(cpus.into_iter().collect())
}
