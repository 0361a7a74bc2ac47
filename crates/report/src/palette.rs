//! Colours of a terminal: the same five everywhere, and none if they are disabled.

use anstyle::AnsiColor;
pub use anstyle::Style;

/// Headings and highlights.
pub const BOLD: Style = Style::new().bold();
pub const DIM: Style = Style::new().dimmed();
pub const RED: Style = AnsiColor::Red.on_default().bold();
pub const GREEN: Style = AnsiColor::Green.on_default().bold();
pub const YELLOW: Style = AnsiColor::Yellow.on_default();
/// Default style of the terminal.
pub const PLAIN: Style = Style::new();

/// Switch for colours: true if text is coloured.
#[derive(Clone, Copy)]
pub struct Palette(pub bool);

impl Palette {
    /// Text in a style; unchanged if colours are off.
    pub fn paint(self, style: Style, text: &str) -> String {
        let style = if self.0 { style } else { PLAIN };
        format!("{style}{text}{style:#}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_only_there_if_asked_for() {
        assert_eq!(Palette(true).paint(RED, "a"), "\u{1b}[1m\u{1b}[31ma\u{1b}[0m");
        assert_eq!(
            (Palette(false).paint(RED, "a"), Palette(true).paint(PLAIN, "a")),
            ("a".into(), "a".into())
        );
    }
}
