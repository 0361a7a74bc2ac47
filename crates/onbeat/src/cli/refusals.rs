//! Errors of clap as one line with a remedy.

use std::ffi::OsString;

use super::outputs::print;
use model::error::{Exit, Failure, Result};

/// Command that was called without one of its subcommands: `onbeat tune`.
fn named_command(error: &clap::Error) -> Option<String> {
    let help = error.render().to_string();
    let usage = help.lines().find_map(|line| line.strip_prefix("Usage: "))?;
    let command = usage.split(['<', '[']).next()?.trim();
    command.contains(' ').then(|| command.to_owned())
}

/// Prints help and version; reduces an error to its sentence, and names the help.
pub fn of_clap(error: &clap::Error) -> Result<Exit> {
    use clap::error::ErrorKind::*;
    match error.kind() {
        DisplayHelp | DisplayVersion => {
            print(error.render().to_string().as_bytes())?;
            Ok(Exit::Ok)
        }
        DisplayHelpOnMissingArgumentOrSubcommand => Err(Failure::usage(match named_command(error) {
            Some(command) => {
                format!("`{command}` needs a subcommand: `{command} --help` lists them")
            }
            None => {
                "a command is missing: try `onbeat measure -D 10s`, or `onbeat --help` for all".to_owned()
            }
        })),
        _ => Err(Failure::usage(format!("{} (see --help)", sentence_of(&error.render().to_string())))),
    }
}

/// Refuses a `--` without the program that belongs after it: the command would do something else
/// without one.
pub fn of_empty_program(args: &[OsString], commands: impl Fn() -> clap::Command) -> Result<()> {
    if args.last().is_none_or(|last| last != "--") {
        return Ok(());
    }
    let root = commands();
    let command = args.get(1).and_then(|name| root.find_subcommand(name));
    let mut places = command.into_iter().flat_map(clap::Command::get_positionals);
    let program = places.find(|place| place.is_last_set());
    program.and_then(|place| place.get_value_names()?.first()).map_or(Ok(()), |name| {
        Err(Failure::usage(format!("<{name}> is missing: give a program after `--`, or remove `--`")))
    })
}

/// Messages of the standard library for invalid numbers, and those of onbeat.
const NUMBERS: [(&str, &str); 5] = [
    ("invalid digit found in string", "expected a whole number, not below 0"),
    ("cannot parse integer from empty string", "expected a whole number, not below 0"),
    ("number too large to fit in target type", "it is too large"),
    ("number too small to fit in target type", "it is too small"),
    ("invalid float literal", "expected a number"),
];

/// clap's message of several lines as one sentence; its tips become separate clauses.
fn sentence_of(text: &str) -> String {
    let mut sentence = String::new();
    for line in text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:")) {
        let line = line.trim_start_matches("error: ");
        // The tip to pass a flag as a name is never what the user wanted.
        if line.is_empty() || line.starts_with("For more information") || line.starts_with("tip: to pass '") {
            continue;
        }
        match line.strip_prefix("tip: ") {
            Some(tip) => sentence += &format!("; {tip}"),
            None if sentence.is_empty() => sentence += line,
            None => sentence += &format!(" {line}"),
        }
    }
    // clap names the range of the type, which is irrelevant.
    let ranged = sentence.rsplit_once(": ").filter(|(_, end)| end.ends_with(" is not in 0..=4294967295"));
    let sentence = ranged.map(|(start, _)| format!("{start}: {}", NUMBERS[0].1)).unwrap_or(sentence);
    let sentence = if sentence.starts_with("the argument ") && sentence.contains(" cannot be used with") {
        sentence + ": give one of them"
    } else if sentence.starts_with("unexpected argument ") && sentence.ends_with(" found") {
        sentence + ": remove it"
    } else {
        sentence
    };
    let known = NUMBERS.iter().find_map(|(theirs, ours)| Some((sentence.strip_suffix(theirs)?, ours)));
    let sentence = known.map(|(start, ours)| format!("{start}{ours}")).unwrap_or(sentence);
    match sentence.strip_prefix("the following required arguments were not provided: ") {
        Some(missing) => format!("{missing} is missing"),
        None => sentence,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clap_says_is_a_sentence_with_what_to_do() {
        let number = "error: invalid value 'x' for '--loops <N>': invalid digit found in string\n\n\
                      For more information, try '--help'.";
        assert_eq!(
            sentence_of(number),
            "invalid value 'x' for '--loops <N>': expected a whole number, not below 0"
        );
        let missing =
            "error: the following required arguments were not provided:\n  --load <SPEC>\n\nUsage: onbeat";
        assert_eq!(sentence_of(missing), "--load <SPEC> is missing");
        let flag =
            "error: unexpected argument '--foo' found\n\n  tip: to pass '--foo' as a value, use '-- --foo'\n";
        assert_eq!(sentence_of(flag), "unexpected argument '--foo' found: remove it");
        let both = "error: the argument '--strict' cannot be used with '--all'\n\nUsage: onbeat";
        assert_eq!(
            sentence_of(both),
            "the argument '--strict' cannot be used with '--all': give one of them"
        );
        let near =
            "error: unrecognized subcommand 'measur'\n\n  tip: a similar subcommand exists: 'measure'\n";
        assert!(sentence_of(near).ends_with("; a similar subcommand exists: 'measure'"));
    }
}
