//! Options of a command line as `getopt_long` reads them, and command lines within a log.

use super::command_words;
use super::source::SourceText;

/// Short options of a program by the form of their value.
#[derive(Clone, Copy)]
pub(super) struct OptionLetters {
    /// Options with a value, attached or as the next word.
    pub valued: &'static str,
    /// Options with a value that is attached, or the next word if that begins with a digit.
    pub optional: &'static str,
}

/// An option of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GivenOption<'a> {
    Absent,
    Bare,
    Value(&'a str),
}

impl<'a> GivenOption<'a> {
    pub(super) fn value(self) -> Option<&'a str> {
        match self {
            GivenOption::Value(value) => Some(value),
            GivenOption::Absent | GivenOption::Bare => None,
        }
    }

    /// Value of the option as a number.
    pub(super) fn number<N: std::str::FromStr>(self) -> Option<N> {
        self.value()?.parse().ok()
    }
}

impl OptionLetters {
    /// Last option of this letter or long name in the line, whose first word is the program.
    pub(super) fn option<'a>(self, line: &'a str, letter: char, name: &str) -> GivenOption<'a> {
        let mut given = GivenOption::Absent;
        let mut words = line.split_ascii_whitespace().skip(1).peekable();
        let of = |value: Option<&'a str>| value.map_or(GivenOption::Bare, GivenOption::Value);
        while let Some(word) = words.next() {
            if let Some(long) = word.strip_prefix("--") {
                let (long, attached) = long.split_once('=').map_or((long, None), |(a, b)| (a, Some(b)));
                if command_words::names_option(long, name) {
                    given = of(attached.or_else(|| words.next_if(|next| !next.starts_with('-'))));
                }
                continue;
            }
            let letters = word.strip_prefix('-').unwrap_or_default();
            for (at, found) in letters.char_indices() {
                let rest = Some(&letters[at + found.len_utf8()..]).filter(|rest| !rest.is_empty());
                let is_valued = self.valued.contains(found);
                let takes = is_valued || self.optional.contains(found);
                let is_number = |next: &&str| next.starts_with(|c: char| c.is_ascii_digit());
                let value = match rest {
                    _ if !takes => None,
                    None if is_valued => words.next(),
                    None => words.next_if(is_number),
                    rest => rest,
                };
                if found == letter {
                    given = of(value);
                }
                if takes {
                    break;
                }
            }
        }
        given
    }
}

/// Command line of this program before a block of the text, from a shell, a script's trace or a
/// heading.
pub(super) fn command_before<'a>(source: &'a SourceText, start: usize, program: &'a str) -> Option<&'a str> {
    let is_command =
        |command: &&str| command.split_ascii_whitespace().nth(1).is_none_or(|word| word.starts_with('-'));
    command_words::before(source, start, |line| command_words::commands(line, program).find(is_command))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LETTERS: OptionLetters = OptionLetters { valued: "Dip", optional: "at" };

    #[test]
    fn options_are_read_as_getopt_reads_them() {
        let option = |line, letter, name| LETTERS.option(line, letter, name);
        assert_eq!(option("x -qp80 -D 2", 'p', "prio").number(), Some(80));
        assert_eq!(option("x -p 80 --prio=90", 'p', "prio").number(), Some(90));
        assert_eq!(option("x -D -q", 'q', "quiet"), GivenOption::Absent, "-q is the value of -D");
        assert_eq!(option("x -q -D 2", 'q', "quiet"), GivenOption::Bare);
        assert_eq!(option("x -a -p 80", 'a', "affinity"), GivenOption::Bare);
        assert_eq!(option("x -a 1,3 -p 80", 'a', "affinity"), GivenOption::Value("1,3"));
        assert_eq!(option("x --affinity 3", 'a', "affinity"), GivenOption::Value("3"));
        assert_eq!(option("x --aff=3", 'a', "affinity"), GivenOption::Value("3"));
        assert_eq!(option("x", 'a', "affinity"), GivenOption::Absent);
    }

    #[test]
    fn commands_are_found_in_a_log() {
        let log = "starting ptsematest now\nboard# sudo /usr/bin/ptsematest -q -S | tee log\n#0: ID1\n";
        let source = SourceText::decode(log.as_bytes()).unwrap();
        assert_eq!(command_before(&source, 2, "ptsematest"), Some("/usr/bin/ptsematest -q -S"));
        assert_eq!(command_before(&source, 2, "svsematest"), None);
        assert_eq!(command_before(&source, 1, "ptsematest"), None, "a word of prose is no command");
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "[xé -]{0,3}\\PC{0,60}") {
            LETTERS.option(&line, 'a', "affinity");
            command_words::commands(&line, "x").for_each(drop);
        }
    }
}
