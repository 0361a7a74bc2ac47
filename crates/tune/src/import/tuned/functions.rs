//! Function calls within a profile's values: known results, doubts, and assertions.

use std::cell::RefCell;

use model::text::quoted_value;

use super::calls::{CallValue, Doubt, call};
use super::is_word;
use crate::import::ImportTarget;

/// Encloses the number of a doubt within a value.
const MARK: char = '\0';

/// Limit of doubts; further ones share the last one.
const DOUBTS_LIMIT: usize = 10_000;

/// Text of an assertion that fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedAssertion(pub String);

/// Functions of profiles on a machine.
pub struct ProfileFunctions<'a> {
    pub target: ImportTarget<'a>,
    doubts: RefCell<Vec<Doubt>>,
    undecided: RefCell<Vec<String>>,
}

impl ProfileFunctions<'_> {
    pub fn new(target: ImportTarget) -> ProfileFunctions {
        ProfileFunctions { target, doubts: RefCell::default(), undecided: RefCell::default() }
    }

    /// Adds a doubt; returns a value that stands for it.
    pub fn doubt(&self, placeholder: &str, why: impl Into<String>) -> String {
        let mut doubts = self.doubts.borrow_mut();
        if doubts.len() < DOUBTS_LIMIT {
            let placeholder = shown_with(placeholder, &doubts);
            doubts.push(Doubt { placeholder, why: why.into() });
        }
        format!("{MARK}{}{MARK}", doubts.len() - 1)
    }

    /// Value in readable form.
    pub fn render(&self, value: &str) -> String {
        shown_with(value, &self.doubts.borrow())
    }

    /// Reason for which a value is not usable: a part of it is unknown, a variable has no value, or
    /// a function does not exist in tuned.
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
                if ARGUMENTS.iter().any(|(known, ..)| *known == name) {
                    format!("{name} has no value for such arguments, and tuned does not replace the call")
                } else {
                    format!("{} is not a tuned function", quoted_value(name))
                }
            }
            None => {
                format!("its variable {} has no value: pass --set NAME=VALUE", quoted_value(name))
            }
        })
    }

    /// Texts of assertions that could not be decided.
    pub fn undecided(&self) -> Vec<String> {
        self.undecided.borrow().clone()
    }

    /// Value of `${f:NAME:ARGUMENT...`, without its closing brace.
    ///
    /// # Errors
    /// It is an assertion that fails.
    pub fn value_of(&self, text: &str) -> Result<CallValue, FailedAssertion> {
        if !text.starts_with("${f:") {
            return Ok(None);
        }
        let words = words(text);
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
            return Ok(Some(self.doubt(&format!("{text}}}"), why)));
        }
        let value = call(name, arguments, self.target);
        Ok(value.unwrap_or_else(|doubt| Some(self.doubt(&doubt.placeholder, doubt.why))))
    }

    fn assertion(
        &self,
        name: &str,
        arguments: &[String],
        is_unknown: bool,
    ) -> Result<CallValue, FailedAssertion> {
        let [words, a, b] = arguments else { return Ok(None) };
        if is_unknown {
            let words = self.render(words);
            let mut undecided = self.undecided.borrow_mut();
            if undecided.len() < DOUBTS_LIMIT {
                undecided.push(words);
            }
            return Ok(None);
        }
        if (a == b) == (name == "assertion") { Ok(None) } else { Err(FailedAssertion(words.clone())) }
    }
}

/// Least and largest number of arguments of each function.
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

/// Value with its doubts replaced by their texts.
fn shown_with(value: &str, doubts: &[Doubt]) -> String {
    let part = |(at, part): (usize, &str)| match (at % 2, part.parse::<usize>()) {
        (1, Ok(number)) => doubts.get(number).map_or("", |doubt| doubt.placeholder.as_str()).to_owned(),
        _ => part.to_owned(),
    };
    value.split(MARK).enumerate().map(part).collect()
}

/// Words between colons; `\:` is a colon within a word.
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
