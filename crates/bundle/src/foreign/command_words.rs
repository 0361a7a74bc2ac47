//! Command line of a tool in a log before its result, and its options.

use super::source::SourceText;

/// Maximum number of lines between a command line and its result.
const REACH: usize = 40;

/// Last value that the search finds in the lines before this index: a prompt or a script's trace is
/// near its result.
///
/// A command holds for the output behind it: not after another command, unless that one prints a
/// file which the first names, and not if its output went to a file.
pub(super) fn before<'a, T>(
    source: &'a SourceText,
    end: usize,
    search: impl Fn(&'a str) -> Option<T>,
) -> Option<T> {
    let lines: Vec<_> = source.slice(end.saturating_sub(REACH)..end).collect();
    let mut printed = None;
    for line in lines.into_iter().rev() {
        match (search(line.text), printed) {
            (Some(_), None) if is_redirected(line.text) => return None,
            (Some(value), None) => return Some(value),
            (Some(value), Some(file)) if file_names(line.text).any(|name| name == file) => {
                return Some(value);
            }
            (Some(_), Some(_)) => {}
            (None, None) => printed = shell_command(line.text).and_then(|line| file_names(line).last()),
            (None, Some(_)) => {}
        }
    }
    None
}

/// Command in a line of a log: after `$`, a script's `+`, or a prompt that names a host or a shell.
fn shell_command(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let traced = line.trim_start_matches('+');
    let (prompt, command) = match traced.strip_prefix(' ') {
        Some(command) if traced.len() < line.len() => ("+", command),
        _ => line.find(['$', '#']).map(|at| line.split_at(at)).map(|(prompt, rest)| (prompt, &rest[1..]))?,
    };
    let is_root = line[prompt.len()..].starts_with('#');
    let named = prompt.contains('@') || ["sh-", "bash-"].iter().any(|shell| prompt.starts_with(shell));
    let is_prompt = prompt == "+" || named || prompt.is_empty() && !is_root;
    let command = command.trim();
    (is_prompt && !command.is_empty()).then_some(command)
}

/// Words of a line that may be names of files, also behind `>` and `=`.
fn file_names(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| c.is_whitespace() || matches!(c, '>' | '=' | ';' | '|' | '&' | '"' | '\''))
        .filter(|word| !word.is_empty())
}

/// True if standard output goes to a file that the line does not name again.
fn is_redirected(line: &str) -> bool {
    let Some((before, behind)) = line.split_once('>') else { return false };
    let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    // Standard error, or a tag.
    let is_other = word == "2" || word.contains('<');
    let file = file_names(behind).next().unwrap_or_default();
    let is_shown =
        file.starts_with("/dev/std") || file_names(behind).filter(|name| *name == file).count() > 1;
    !is_other && !is_shown
}

/// Commands of this program in a line: after a prompt, `sudo`, a quote or a script's `+`, up to the
/// shell's next operator.
pub(super) fn commands<'a>(line: &'a str, program: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(program).filter_map(move |(at, _)| {
        let prompt = line[..at].trim_end_matches(|c: char| !c.is_whitespace() && c != '"' && c != '\'');
        let quote = prompt.chars().next_back().filter(|c| matches!(c, '"' | '\''));
        let is_end = |c: char| matches!(c, '>' | '|' | ';' | '&') || Some(c) == quote;
        // A word that begins with # begins the shell's comment.
        let rest = &line[prompt.len()..];
        let (command, end) = rest.split_at(rest.find(is_end).unwrap_or(rest.len()));
        // The number of a file descriptor belongs to the operator.
        let command =
            if end.starts_with('>') { command.strip_suffix(" 2").unwrap_or(command) } else { command };
        let command = command.split(" #").next()?.trim_end();
        let path = command.split_ascii_whitespace().next()?;
        (path.rsplit('/').next() == Some(program)).then_some(command)
    })
}

/// First command of this program with options: a word of prose has none.
pub(super) fn within<'a>(line: &'a str, program: &'a str) -> Option<&'a str> {
    let has_options =
        |command: &&str| command.split_ascii_whitespace().nth(1).is_some_and(|word| word.starts_with('-'));
    commands(line, program).find(has_options)
}

/// Value of an option: `-i 250`, `-i250`, `--interval 250`, `--interval=250`; the last of several.
pub(super) fn option<'a>(command: &'a str, short: &str, long: &str) -> Option<&'a str> {
    let mut words = command.split_ascii_whitespace().skip(1).peekable();
    let mut value = None;
    while let Some(word) = words.next() {
        if word == short || word == long {
            value = words.peek().copied().or(value);
        } else if let Some(attached) = word.strip_prefix(long).and_then(|rest| rest.strip_prefix('=')) {
            value = Some(attached);
        } else if let Some(attached) = word.strip_prefix(short).filter(|_| !word.starts_with("--")) {
            value = Some(attached);
        }
    }
    value
}

/// True if a long option names this one: in whole, or as `getopt_long` takes it, by its beginning.
pub(super) fn names_option(word: &str, name: &str) -> bool {
    word.len() >= 2 && name.starts_with(word)
}

/// True if the command has a flag, also among other letters: `-N`, `-vN`, `--nsec`.
pub(super) fn has_flag(command: &str, letter: char, long: &str) -> bool {
    let is_cluster = |word: &str| word.starts_with('-') && !word.starts_with("--");
    command.split_ascii_whitespace().skip(1).any(|word| {
        let name = word.strip_prefix("--").zip(long.strip_prefix("--"));
        name.is_some_and(|(word, name)| names_option(word, name)) || is_cluster(word) && word.contains(letter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn commands_are_recognised_in_lines() {
        for (line, command) in [
            ("root@board:~# latency -h -s -T 600", Some("latency -h -s -T 600")),
            ("$ sudo /usr/xenomai/bin/latency -T 5 | tee log", Some("/usr/xenomai/bin/latency -T 5")),
            ("invoked with 'latency -T 2' by user 0 'root'", Some("latency -T 2")),
            ("$ latency -T 5 # -p 99", Some("latency -T 5")),
            ("the latency is low", None),
            ("sudo\u{a0}latency -h", Some("latency -h")),
            ("klatency -h", None),
            ("latency", None),
        ] {
            assert_eq!(within(line, "latency"), command, "{line}");
        }
    }

    #[test]
    fn a_command_holds_for_the_output_behind_it() {
        let command = |log: &str| {
            let source = SourceText::decode(format!("{log}\nresult\n").as_bytes()).unwrap();
            let end = source.lines().len() - 1;
            before(&source, end, |line| within(line, "latency").map(str::to_owned))
        };
        let own = Some("latency -h".to_owned());
        for log in [
            "$ latency -h",
            "$ latency -h 2>&1 | tee log",
            "$ latency -h > a.txt\n$ ls\n$ cat a.txt",
            "$ latency -h > a.txt; cat a.txt",
            "root@board:~# latency -h\n# a comment",
            "+ latency -h\nRTT|  00:00:01",
        ] {
            assert_eq!(command(log), own, "{log}");
        }
        for log in [
            "$ latency -h\n$ cat b.txt",
            "$ latency -h > a.txt",
            "$ latency -h > a.txt\n$ cat b.txt",
            "+ latency -h\n+ ssh board cat b.txt",
            "root@board:~# latency -h\nroot@board:~# cat b.txt",
            "sh-5.2# latency -h >a\nsh-5.2# cat b",
        ] {
            assert_eq!(command(log), None, "{log}");
        }
    }

    #[test]
    fn options_have_their_value_attached_or_behind() {
        let of = |command| option(command, "-i", "--interval");
        assert_eq!(of("x -i 250 -p 3"), Some("250"));
        assert_eq!(of("x -i250"), Some("250"));
        assert_eq!(of("x --interval=250"), Some("250"));
        assert_eq!(of("x --interval 1 -i 2"), Some("2"));
        assert_eq!((of("x -p 3"), of("x -i")), (None, None));
        assert!(has_flag("x -vN", 'N', "--nsec") && has_flag("x --nsec", 'N', "--nsec"));
        assert!(has_flag("x --ns", 'N', "--nsec") && !has_flag("x --None -v", 'N', "--nsec"));
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "\\PC{0,20}[\u{a0}\u{2003}é]?latency[ -]{0,3}\\PC{0,40}") {
            if let Some(command) = within(&line, "latency") {
                option(command, "-T", "--time");
            }
        }
    }
}
