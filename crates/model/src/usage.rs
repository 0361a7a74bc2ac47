//! Errors in arguments, which the parser of the command line words in several lines, as one line
//! with a remedy.

/// Messages of the standard library for invalid numbers, and those of onbeat.
const NUMBERS: [(&str, &str); 5] = [
    ("invalid digit found in string", "expected a whole number, not below 0"),
    ("cannot parse integer from empty string", "expected a whole number, not below 0"),
    ("number too large to fit in target type", "it is too large"),
    ("number too small to fit in target type", "it is too small"),
    ("invalid float literal", "expected a number"),
];

/// clap's message of several lines as one sentence; its tips become separate clauses.
pub fn sentence_of(text: &str) -> String {
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
