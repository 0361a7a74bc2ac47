//! Keeps numbers and their units on one line: `219` at the end of a line and `us.` on the next read
//! as two things.

/// Units that follow a number in a sentence.
const UNITS: [&str; 12] = ["ns", "us", "ms", "s", "min", "h", "d", "%", "kB", "KiB", "MiB", "GiB"];
/// No-break space, at which textwrap and browsers do not end a line.
pub const NO_BREAK: char = '\u{a0}';

/// Words separated by single blanks, with a no-break space between a number and its unit.
pub fn unbroken(words: &str) -> String {
    let mut text = String::with_capacity(words.len());
    let mut before = "";
    for word in words.split_ascii_whitespace() {
        if !text.is_empty() {
            text.push(if belongs(before, word) { NO_BREAK } else { ' ' });
        }
        text.push_str(word);
        before = word;
    }
    text
}

/// True if the second of two words is the unit of the first, or the number of the CPU it names.
fn belongs(before: &str, word: &str) -> bool {
    let bare = word.trim_end_matches(|c: char| ".,;:)]\"'`".contains(c));
    let number = before.chars().next_back().is_some_and(|c| c.is_ascii_digit());
    let first = word.chars().next().is_some_and(|c| c.is_ascii_digit());
    (number && UNITS.contains(&bare)) || (first && (before == "CPU" || before == "CPUs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_its_unit() {
        let text_of = |text: &str| unbroken(text).replace(NO_BREAK, "_");
        assert_eq!(
            text_of("within 219  us. Then (0.6 %), 2 min 5 s"),
            "within 219_us. Then (0.6_%), 2_min 5_s"
        );
        assert_eq!(text_of("on CPU 1 of 2 CPUs 0-1"), "on CPU_1 of 2 CPUs_0-1");
        assert_eq!(text_of("a d and 3 days, 20 h_x"), "a d and 3 days, 20 h_x");
        assert_eq!(text_of(""), "");
    }
}
