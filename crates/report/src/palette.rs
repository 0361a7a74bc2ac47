//! Colours of a terminal, as codes of ECMA-48 (SGR): the same five everywhere, and none where none are wanted.

/// What stands out.
pub const BOLD: &str = "\u{1b}[1m";
/// What steps back.
pub const DIM: &str = "\u{1b}[2m";
/// What is wrong.
pub const RED: &str = "\u{1b}[1;31m";
/// What is right.
pub const GREEN: &str = "\u{1b}[1;32m";
/// What is less wrong.
pub const YELLOW: &str = "\u{1b}[33m";
/// The end of them all.
pub const PLAIN: &str = "\u{1b}[0m";

/// Whether text is coloured.
#[derive(Clone, Copy)]
pub struct Ink(pub bool);

impl Ink {
    /// The text in a colour; as it is without one, or where none are wanted.
    pub fn dye(self, code: &str, text: &str) -> String {
        if self.0 && !code.is_empty() { format!("{code}{text}{PLAIN}") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_only_there_if_asked_for() {
        assert_eq!(Ink(true).dye(RED, "a"), "\u{1b}[1;31ma\u{1b}[0m");
        assert_eq!((Ink(false).dye(RED, "a"), Ink(true).dye("", "a")), ("a".into(), "a".into()));
    }
}
