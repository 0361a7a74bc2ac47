//! Bytes that turn one screen into the next: only cells that differ, and no more than a slow
//! console takes.

use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};

/// Limit of bytes for one second, if no key was pressed: a console of 115,200 baud takes 11,500.
pub const PER_SECOND: usize = 3_600;

/// Contents of the terminal.
pub struct Painter {
    shown: Buffer,
    color: bool,
    /// Line after the last one that was painted when the bytes were used up.
    next: u16,
}

impl Painter {
    /// A painter of a cleared screen.
    pub fn new(columns: u16, rows: u16, color: bool) -> Painter {
        Painter { shown: Buffer::empty(Rect::new(0, 0, columns, rows)), color, next: 0 }
    }

    /// Appends the bytes for a screen of the same size, at most about `limit`; what is left comes
    /// with the next one.
    pub fn paint(&mut self, screen: &Buffer, limit: usize, out: &mut Vec<u8>) {
        let start = self.next;
        let changes = self.shown.diff(screen);
        let (before, after): (Vec<_>, Vec<_>) = changes.iter().partition(|(_, y, _)| *y < start);
        let mut pen = Pen { color: self.color, at: None, style: Style::new(), begun: out.len() };
        let mut painted = Vec::new();
        self.next = 0;
        for &(x, y, cell) in after.into_iter().chain(before) {
            if out.len() - pen.begun >= limit {
                self.next = y;
                break;
            }
            pen.put(x, y, cell, out);
            painted.push((x, y));
        }
        if pen.style != Style::new() {
            out.extend(b"\x1b[0m");
        }
        for at in painted {
            self.shown[at] = screen[at].clone();
        }
    }
}

/// Place and style of the terminal.
struct Pen {
    color: bool,
    at: Option<(u16, u16)>,
    style: Style,
    begun: usize,
}

impl Pen {
    fn put(&mut self, x: u16, y: u16, cell: &Cell, out: &mut Vec<u8>) {
        if self.at != Some((x, y)) {
            out.extend(format!("\x1b[{};{}H", y + 1, x + 1).bytes());
        }
        let color = if self.color { cell.fg } else { Color::Reset };
        let style = Style::new().fg(color).add_modifier(cell.modifier);
        let style = if color == Color::Reset { Style::new().add_modifier(cell.modifier) } else { style };
        if style != self.style {
            out.extend(sgr(style).bytes());
            self.style = style;
        }
        out.extend(cell.symbol().bytes());
        // Where the cursor is after a letter of another width is not relied upon.
        self.at =
            cell.symbol().chars().all(|letter| letter.is_ascii() || is_sign(letter)).then_some((x + 1, y));
    }
}

/// Signs of sparklines and bars, one column wide.
fn is_sign(letter: char) -> bool {
    ('\u{2580}'..='\u{259f}').contains(&letter)
}

/// Select graphic rendition (ECMA-48).
fn sgr(style: Style) -> String {
    let mut text = String::from("\x1b[0");
    for (modifier, number) in [(Modifier::BOLD, ";1"), (Modifier::DIM, ";2"), (Modifier::REVERSED, ";7")] {
        if style.add_modifier.contains(modifier) {
            text += number;
        }
    }
    match style.fg {
        Some(Color::Yellow) => text += ";33",
        Some(Color::Red) => text += ";31",
        _ => {}
    }
    text + "m"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(lines: &[&str]) -> Buffer {
        Buffer::with_lines(lines.iter().copied())
    }

    fn painted(painter: &mut Painter, next: &Buffer, limit: usize) -> String {
        let mut out = Vec::new();
        painter.paint(next, limit, &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn only_changed_cells_are_written() {
        let mut painter = Painter::new(6, 2, true);
        let first = painted(&mut painter, &screen(&["abc   ", "123456"]), 999);
        assert_eq!(first, "\x1b[1;1Habc\x1b[2;1H123456");
        assert_eq!(painted(&mut painter, &screen(&["abc   ", "123x56"]), 999), "\x1b[2;4Hx");
        assert_eq!(painted(&mut painter, &screen(&["abc   ", "123x56"]), 999), "");
    }

    #[test]
    fn what_is_beyond_the_limit_follows_and_no_line_waits_forever() {
        let mut painter = Painter::new(6, 3, false);
        let wanted = ["aaaaaa", "bbbbbb", "cccccc"];
        assert_eq!(painted(&mut painter, &screen(&wanted), 12), "\x1b[1;1Haaaaaa");
        // The first line changes all the time; the others come all the same.
        let wanted = ["dddddd", "bbbbbb", "cccccc"];
        assert_eq!(painted(&mut painter, &screen(&wanted), 12), "\x1b[2;1Hbbbbbb");
        assert_eq!(painted(&mut painter, &screen(&wanted), 12), "\x1b[3;1Hcccccc");
        assert_eq!(painted(&mut painter, &screen(&wanted), 99), "\x1b[1;1Hdddddd");
        assert_eq!(painted(&mut painter, &screen(&wanted), 99), "");
    }

    #[test]
    fn styles_are_written_with_and_without_colour() {
        let style = Style::new().fg(Color::Yellow).add_modifier(Modifier::REVERSED);
        for (color, expected) in
            [(true, "\x1b[1;1H\x1b[0;7;33mab\x1b[0mc"), (false, "\x1b[1;1H\x1b[0;7mab\x1b[0mc")]
        {
            let mut next = screen(&["abc"]);
            next.set_style(Rect::new(0, 0, 2, 1), style);
            assert_eq!(painted(&mut Painter::new(3, 1, color), &next, 99), expected);
        }
    }
}
