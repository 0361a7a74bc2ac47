//! Flags of cyclictest and rtla that a command does not have, or has with another meaning: the
//! refusal names the tool, the flag's effect there, and the equivalent here.

mod cyclictest;
mod rtla;

use std::borrow::Cow;
use std::ffi::OsString;

use clap::{Arg, Command};
use model::error::{Failure, Result};

use cyclictest::{BOTH, CYCLICTEST, HISTOGRAM};
use rtla::{EXPERIMENTS, HUNT, OSNOISE, OSNOISE_TOOL, RTLA, TIMERLAT};

/// Flag of another tool.
struct ForeignFlag {
    tool: &'static str,
    /// `' '` if it has none.
    letter: char,
    long: &'static str,
    /// Effect in the other tool.
    meaning: &'static str,
    /// Equivalent in onbeat.
    serves: &'static str,
    when: When,
}

/// Uses of a flag that are refused.
#[derive(Clone, Copy)]
enum When {
    /// All uses, if the command has no flag of that name.
    NotOwn,
    /// Uses of the command's flag of that name with such a value, or without one.
    Value(fn(Option<&str>) -> bool),
}

impl ForeignFlag {
    const fn new(
        tool: &'static str,
        letter: char,
        long: &'static str,
        meaning: &'static str,
        serves: &'static str,
    ) -> ForeignFlag {
        ForeignFlag { tool, letter, long, meaning, serves, when: When::NotOwn }
    }

    const fn where_value(self, is_theirs: fn(Option<&str>) -> bool) -> ForeignFlag {
        ForeignFlag { when: When::Value(is_theirs), ..self }
    }
}

/// Tables for a command, first that of the tool it replaces.
fn tables_of(path: &[&str]) -> &'static [&'static [ForeignFlag]] {
    match path {
        ["measure"] => &[HISTOGRAM, BOTH, CYCLICTEST, TIMERLAT, RTLA, OSNOISE],
        ["hunt"] => &[HUNT, BOTH, TIMERLAT, RTLA, HISTOGRAM, CYCLICTEST, OSNOISE],
        ["probe", "spin"] => &[OSNOISE, RTLA, HISTOGRAM],
        ["prove" | "cure"] => &[EXPERIMENTS, HISTOGRAM],
        _ => &[HISTOGRAM],
    }
}

/// Refuses other tools' flags, in any spelling.
pub fn refuse(args: &[OsString], root: impl FnOnce() -> Command) -> Result<()> {
    // Arguments after `--` belong to another program.
    let words: Vec<Cow<str>> =
        args.iter().skip(1).take_while(|arg| *arg != "--").map(|arg| arg.to_string_lossy()).collect();
    if !words.iter().any(|word| word.starts_with('-')) {
        return Ok(());
    }
    let mut command = root();
    let mut path = Vec::new();
    while let Some(inner) = words.get(path.len()).and_then(|word| command.find_subcommand(word.as_ref())) {
        path.push(inner.get_name().to_owned());
        let mut inner = inner.clone();
        inner.build();
        command = inner;
    }
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let called = CalledCommand { command: &command, tables: tables_of(&path) };
    let words = &words[path.len()..];
    let refused = words.iter().enumerate().find_map(|(at, word)| {
        let next = words.get(at + 1).map(Cow::as_ref);
        match (word.strip_prefix("--"), word.strip_prefix('-')) {
            (Some(long), _) => called.long(long, next),
            (None, Some(group)) => called.letters(group, next),
            _ => None,
        }
        .map(|flags| sentence(word, &flags))
    });
    refused.map_or(Ok(()), |sentence| Err(Failure::usage(sentence)))
}

/// Called command, and the tables of foreign flags for it.
struct CalledCommand<'a> {
    command: &'a Command,
    tables: &'static [&'static [ForeignFlag]],
}

impl CalledCommand<'_> {
    /// Meanings that a long flag, without its dashes, has in other tools; none if it is valid here.
    fn long(&self, word: &str, next: Option<&str>) -> Option<Vec<&'static ForeignFlag>> {
        let (name, value) = word.split_once('=').map_or((word, next), |(name, value)| (name, Some(value)));
        let has = |arg: &&Arg| {
            arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|all| all.contains(&name))
        };
        let own = self.command.get_arguments().find(has);
        self.elsewhere(|flag| flag.long == name, own.map(|_| value))
    }

    /// Meanings for a group of letters, up to the one that takes the rest as its value.
    fn letters(&self, group: &str, next: Option<&str>) -> Option<Vec<&'static ForeignFlag>> {
        for (at, letter) in group.char_indices() {
            let rest = group[at + letter.len_utf8()..].trim_start_matches('=');
            let has = |arg: &&Arg| {
                arg.get_short() == Some(letter)
                    || arg.get_all_short_aliases().is_some_and(|all| all.contains(&letter))
            };
            let own = self.command.get_arguments().find(has);
            let takes_value = own.is_some_and(|arg| arg.get_action().takes_values());
            let value = match rest {
                "" => next,
                rest => (takes_value || number(Some(rest)).is_some()).then_some(rest),
            };
            let found = self.elsewhere(|flag| flag.letter == letter, own.map(|_| value));
            if found.is_some() || own.is_none() || takes_value {
                return found;
            }
        }
        None
    }

    /// Rows for a name; `own` is the value of the command's flag of that name.
    fn elsewhere(
        &self,
        is_named: impl Fn(&ForeignFlag) -> bool,
        own: Option<Option<&str>>,
    ) -> Option<Vec<&'static ForeignFlag>> {
        let is_meant = |flag: &&ForeignFlag| match (flag.when, own) {
            (When::NotOwn, own) => own.is_none(),
            (When::Value(is_theirs), Some(value)) => is_theirs(value),
            (When::Value(_), None) => false,
        };
        let rows = self.tables.iter().flat_map(|table| table.iter());
        let mut found: Vec<_> = rows.filter(|flag| is_named(flag)).filter(is_meant).collect();
        // Only rows of osnoise that no other tool has, to keep the line readable.
        if found.iter().any(|flag| flag.tool != OSNOISE_TOOL) {
            found.retain(|flag| flag.tool != OSNOISE_TOOL);
        }
        (!found.is_empty()).then_some(found)
    }
}

fn sentence(word: &str, flags: &[&ForeignFlag]) -> String {
    let of = |flag: &&ForeignFlag| {
        let name = if word.starts_with("--") { String::new() } else { format!(" --{}", flag.long) };
        format!("{}'s{name} ({}): {}", flag.tool, flag.meaning, flag.serves)
    };
    format!("{word} is {}", flags.iter().map(of).collect::<Vec<_>>().join("; or "))
}

/// A bare number as the value of a flag.
fn number(value: Option<&str>) -> Option<u64> {
    value.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit())).and_then(|text| text.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn refusal_of(line: &str) -> Option<String> {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        refuse(&args, super::super::Cli::command).err().map(|failure| failure.message)
    }

    #[test]
    fn what_serves_instead_is_named_in_any_spelling() {
        for (line, words) in [
            ("onbeat measure -A", "cyclictest's and rtla's --aligned|--phase aligned"),
            ("onbeat measure --laptop -D 1", "--idle as-is"),
            ("onbeat measure -Smx -p80", "-Smx is|--wake signal"),
            ("onbeat hunt --tracemark", "onbeat hunt -b"),
            ("onbeat measure -q -M", "once a second"),
            ("onbeat measure --clock=1", "CLOCK_MONOTONIC"),
            ("onbeat measure --smi", "cyclictest's|probe spin"),
            ("onbeat measure --oscope=5", "cyclictest's|printed"),
            ("onbeat hunt --dbg_cyclictest", "-v"),
            ("onbeat hunt -T 100", "rtla's --thread|-b SPAN|--over"),
            ("onbeat hunt -qT100", "rtla's --thread"),
            ("onbeat hunt -c 0-1", "rtla's --cpus|-a CPUS|cyclictest's --clock"),
            ("onbeat hunt -H 0", "rtla's --house-keeping|--housekeeping CPUS|--histofall"),
            ("onbeat measure -H400", "cyclictest's --histofall|--hist FILE|rtla's"),
            ("onbeat hunt --on-threshold trace", "--on-spike"),
            ("onbeat hunt --dma-latency 0", "--idle held"),
            ("onbeat hunt --dump-tasks", "rtla's"),
            ("onbeat hunt -e sched:sched_switch", "rtla's --event"),
            ("onbeat hunt -i 50 -l 20", "rtla's --irq|-b SPAN|-i 50us"),
            ("onbeat hunt -p 1000", "rtla's --period|-i SPAN"),
            ("onbeat hunt -S 100", "rtla osnoise's --stop-total|probe spin"),
            ("onbeat hunt -t trace.txt", "rtla's --trace|--perfetto"),
            ("onbeat hunt -D -a 0", "rtla's --debug|-v"),
            ("onbeat hunt -U", "-- PROGRAM"),
            ("onbeat probe spin -T 5", "rtla osnoise's --threshold|--over SPAN"),
            ("onbeat probe spin -d 10s", "rtla's --duration|-D SPAN"),
            ("onbeat probe spin -r 900000", "--runtime|all the time"),
            ("onbeat prove --limit 1ms -d 10s", "--segment|-i"),
            ("onbeat cure -P f:95", "-p N"),
        ] {
            let said = refusal_of(line).unwrap_or_else(|| panic!("{line} is taken"));
            assert!(words.split('|').all(|word| said.contains(word)), "{line}: {said}");
            assert!(!said.contains('\n') && said.len() < 300, "{line}: {said}");
        }
    }

    #[test]
    fn the_histogram_is_named_and_help_stays_help() {
        for flags in ["-h400", "--histofall=400", "-h=400", "-qh400", "-H400", "-mSqh 400", "--histfile x"] {
            let said = refusal_of(&format!("onbeat measure {flags}"));
            assert!(said.as_ref().is_some_and(|said| said.contains("--hist FILE")), "{flags}: {said:?}");
        }
        assert_eq!(refusal_of("onbeat report run -h"), None);
    }

    #[test]
    fn what_onbeat_has_is_left_alone() {
        for line in [
            "onbeat measure -Smn -p80 -i 200 -a 0-1 -q -v",
            "onbeat measure -o FsA",
            "onbeat measure -oxs",
            "onbeat measure -D -5 -p -1",
            "onbeat measure -i 50 -t 2 -tn -h --hist x --help",
            "onbeat hunt -i 50us -i100 -D 10s -P f:95 --cpus 0 --house-keeping 1 --nano",
            "onbeat hunt -- ./robot -A --laptop",
            "onbeat probe spin -P f:1 -D 5",
            "onbeat compare -s",
            "onbeat",
        ] {
            assert_eq!(refusal_of(line), None, "{line}");
        }
    }

    #[test]
    fn every_row_is_met_somewhere() {
        let paths = [&["measure"][..], &["hunt"], &["probe", "spin"], &["prove"], &["cure"]];
        let is_met = |flag: &ForeignFlag, path: &&[&str]| {
            let tables = tables_of(path).iter();
            let is_there = tables.flat_map(|table| table.iter()).any(|row| std::ptr::eq(row, flag));
            let words = [format!("-{}", flag.letter), format!("--{}", flag.long)];
            let refused = words.map(|word| refusal_of(&format!("onbeat {} {word}", path.join(" "))));
            is_there && refused.iter().flatten().any(|said| said.contains(flag.meaning))
        };
        for flag in paths.iter().flat_map(|path| tables_of(path)).flat_map(|table| table.iter()) {
            let has_values = matches!(flag.when, When::Value(_));
            assert!(has_values || paths.iter().any(|path| is_met(flag, path)), "--{}", flag.long);
        }
    }
}
