//! Frame of the map's picture: a column for each CPU, rows with a name, a strip and words.

use maud::{Markup, html};

use super::cpus::Map;
use super::order::order;
use crate::plot::svg::{LINE, PathData, Px, Size, fit, text, text_width};
use crate::plot::theme::Theme;
use model::units::Cpu;

/// Height of a strip.
pub const STRIP: f64 = 16.0;
/// Limit of lines of words next to a row.
const LINES: usize = 3;

/// Rows drawn so far, and the position of the next one.
pub struct Frame<'a> {
    pub map: &'a Map,
    pub size: Size,
    pub theme: &'a Theme,
    /// CPUs from left to right.
    pub order: Vec<Cpu>,
    pub left: f64,
    pub right: f64,
    pub y: f64,
    pub rows: Vec<Markup>,
}

impl<'a> Frame<'a> {
    pub fn new(map: &'a Map, size: Size, theme: &'a Theme) -> Frame<'a> {
        let (left, right) = if size == Size::Wide { (132.0, 548.0) } else { (8.0, 352.0) };
        Frame { map, size, theme, order: order(map), left, right, y: 4.0, rows: Vec::new() }
    }

    pub fn wide(&self) -> bool {
        self.size == Size::Wide
    }

    pub fn column(&self) -> f64 {
        (self.right - self.left) / self.order.len().max(1) as f64
    }

    pub fn x(&self, at: usize) -> f64 {
        self.left + at as f64 * self.column()
    }

    /// Ranges of columns in which neighbours have the same value.
    pub fn runs<T: PartialEq>(&self, value: impl Fn(Cpu) -> T) -> Vec<(usize, usize, T)> {
        let mut runs: Vec<(usize, usize, T)> = Vec::new();
        for (at, &cpu) in self.order.iter().enumerate() {
            let value = value(cpu);
            match runs.last_mut() {
                Some((_, end, last)) if *last == value => *end = at + 1,
                _ => runs.push((at, at + 1, value)),
            }
        }
        runs
    }

    /// Adds a row: the name to the left and the words to the right, or both above; `strip` draws
    /// the strip at the height that it gets.
    pub fn row(&mut self, name: &str, words: &str, strong: bool, strip: impl FnOnce(&Self, f64) -> Markup) {
        let theme = self.theme;
        let weight = if strong { "600" } else { "400" };
        let (room, words) = match self.size {
            Size::Wide => (920.0 - self.right - 22.0, words.to_owned()),
            Size::Narrow => (self.right - self.left, format!("{name}: {words}")),
        };
        let lines = wrapped(&words, room, LINES);
        let tall = lines.len() as f64 * LINE;
        let (strip_y, words_x, words_y, height) = match self.size {
            Size::Wide => (self.y, self.right + 14.0, self.y + 12.5, tall.max(STRIP)),
            Size::Narrow => (self.y + tall, self.left, self.y + 12.0, tall + STRIP + 2.0),
        };
        let drawn = strip(self, strip_y);
        let left = self.left - 10.0;
        let ink = if strong { theme.ink } else { theme.muted };
        self.rows.push(html! {
            (drawn)
            g font-weight=(weight) {
                @if self.wide() { (text(left, words_y, "end", theme.ink, name)) }
                @for (n, line) in lines.iter().enumerate() {
                    (text(words_x, words_y + n as f64 * LINE, "start", ink, line))
                }
            }
        });
        self.y += height + 6.0;
    }

    /// Background of a strip, visible on CPUs without content.
    pub fn background(&self, y: f64) -> Markup {
        let (x, width) = (Px(self.left), Px(self.right - self.left));
        html! { rect x=(x) y=(Px(y)) width=(width) height=(Px(STRIP)) fill=(self.theme.grid) fill-opacity="0.55" {} }
    }

    pub fn fill(&self, y: f64, colour: &str, has: impl Fn(Cpu) -> bool) -> Markup {
        let mut path = PathData::default();
        for (from, to, _) in self.runs(has).into_iter().filter(|run| run.2) {
            path.rect(self.x(from), y, self.x(to) - self.x(from), STRIP);
        }
        html! { @if !path.0.is_empty() { path d=(path.0) fill=(colour) {} } }
    }

    pub fn unknown(&self, y: f64) -> Markup {
        let (x, width) = (Px(self.left + 0.5), Px(self.right - self.left - 1.0));
        html! {
            rect x=(x) y=(Px(y + 0.5)) width=(width) height=(Px(STRIP - 1.0)) fill="none" stroke=(self.theme.muted) stroke-dasharray="4 3" {}
            (text((self.left + self.right) / 2.0, y + 12.5, "middle", self.theme.muted, "?"))
        }
    }
}

/// Words in lines of a width; the last line is cut.
fn wrapped(words: &str, width: f64, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    let mut words = words.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let last = lines.len() == most;
        let Some(line) = lines.last_mut() else { break };
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if text_width(&longer) <= width || line.is_empty() {
            *line = longer;
        } else if last {
            let rest = words.fold(format!("{longer} "), |all, word| all + word + " ");
            *line = rest;
            break;
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.iter().map(|line| fit(line.trim_end(), width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_on_the_last_line_only() {
        assert_eq!(wrapped("aa bb cc dd", 40.0, 2), ["aa bb", "cc dd"]);
        assert_eq!(wrapped("aa bb cc dd ee", 40.0, 2), ["aa bb", "cc d\u{2026}"]);
        assert_eq!(wrapped("", 40.0, 2), [""]);
    }
}
