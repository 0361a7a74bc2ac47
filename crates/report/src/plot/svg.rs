//! Helpers for pictures: paths, axes, legends. `maud` writes the elements, so all text is escaped.

use std::fmt::{self, Write};

use maud::{Markup, html};

use super::axis::{Scale, Tick};
use super::theme::Theme;

/// Picture before it becomes an element: its parts, its size, and a description.
pub struct Picture {
    /// Width in units of the picture.
    pub width: f64,
    /// Height in units of the picture.
    pub height: f64,
    pub body: Markup,
    /// Text alternative for screen readers.
    pub label: String,
    /// Remarks on what the picture leaves out, and on how to read it.
    pub notes: Vec<String>,
}

impl Picture {
    /// Element in a page, without the namespace, which HTML does not need.
    pub fn inline(&self, class: &str) -> Markup {
        let (width, height) = (Px(self.width), Px(self.height));
        // Screen readers skip links in an image, but not in a group (WAI-ARIA 1.2, img).
        let role = if self.body.0.contains("<a ") { "group" } else { "img" };
        html! {
            svg class=(class) viewBox={ "0 0 " (width) " " (height) } role=(role) aria-label=(self.label) {
                (self.body)
            }
        }
    }
}

/// Size of a picture: for the page, or for a narrow screen, where the wide one scaled down would
/// not be readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    Wide,
    Narrow,
}

impl Size {
    pub fn width(self) -> f64 {
        if self == Size::Wide { 920.0 } else { 360.0 }
    }

    /// Space on the left for the labels of the y axis.
    pub fn left(self) -> f64 {
        if self == Size::Wide { 74.0 } else { 54.0 }
    }

    /// Space on the right.
    pub fn right(self) -> f64 {
        if self == Size::Wide { 22.0 } else { 14.0 }
    }

    /// Approximate number of labels that fit below.
    pub fn x_ticks(self) -> usize {
        if self == Size::Wide { 10 } else { 5 }
    }
}

/// Size of the labels.
pub const FONT: f64 = 12.0;
/// Width of a letter of that size, rounded up.
const LETTER: f64 = 6.9;
/// Distance of lines of text.
pub const LINE: f64 = 17.0;

/// Width of a text, rounded up.
pub fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

/// Text cut to a width, with an ellipsis if something is missing.
pub fn fit(text: &str, width: f64) -> String {
    let letters = ((width / LETTER) as usize).max(2);
    if text.chars().count() <= letters {
        return text.to_string();
    }
    text.chars().take(letters - 1).chain(['\u{2026}']).collect()
}

/// Coordinate with at most one decimal: pictures have thousands of them.
pub struct Px(pub f64);

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round() as i64;
        if tenths % 10 == 0 {
            return write!(f, "{}", tenths / 10);
        }
        let sign = if tenths < 0 { "-" } else { "" };
        write!(f, "{sign}{}.{}", tenths.unsigned_abs() / 10, tenths.unsigned_abs() % 10)
    }
}

impl maud::Render for Px {
    fn render_to(&self, out: &mut String) {
        let _ = write!(out, "{self}");
    }
}

/// `d` attribute of a path.
#[derive(Default)]
pub struct PathData(pub String);

impl PathData {
    /// Begins a new stroke.
    pub fn go(&mut self, x: f64, y: f64) {
        let _ = write!(self.0, "M{} {}", Px(x), Px(y));
    }

    /// Draws a straight line.
    pub fn to(&mut self, x: f64, y: f64) {
        let _ = write!(self.0, "L{} {}", Px(x), Px(y));
    }

    /// Draws a horizontal line.
    pub fn across(&mut self, x: f64) {
        let _ = write!(self.0, "H{}", Px(x));
    }

    /// Draws a vertical line.
    pub fn down(&mut self, y: f64) {
        let _ = write!(self.0, "V{}", Px(y));
    }

    pub fn rect(&mut self, x: f64, y: f64, width: f64, height: f64) {
        let _ = write!(self.0, "M{} {}h{}v{}h-{}z", Px(x), Px(y), Px(width), Px(height), Px(width));
    }
}

/// Rectangle of the data.
#[derive(Clone, Copy, Debug)]
pub struct Plot {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl Plot {
    /// Plot of the size, with the upper edge and the height given.
    pub fn new(size: Size, top: f64, height: f64) -> Plot {
        Plot { left: size.left(), right: size.width() - size.right(), top, bottom: top + height }
    }

    /// Frame around the data.
    pub fn frame(&self, theme: &Theme) -> Markup {
        let (width, height) = (Px(self.right - self.left), Px(self.bottom - self.top));
        html! {
            rect x=(Px(self.left)) y=(Px(self.top)) width=(width) height=(height)
                fill="none" stroke=(theme.muted) stroke-width="1" {}
        }
    }

    /// Grid lines, labels and title of the x axis.
    pub fn x_axis(&self, scale: &Scale, ticks: &[Tick], title: &str, theme: &Theme) -> Markup {
        let (major, minor) = grid(ticks, |path, value| {
            path.go(scale.at(value), self.top);
            path.down(self.bottom);
        });
        let middle = (self.left + self.right) / 2.0;
        let edge = if self.right > Size::Narrow.width() { Size::Wide } else { Size::Narrow }.width();
        // The last label may be wider than the space to the right of the plot.
        let place = |tick: &Tick| scale.at(tick.value).min(edge - text_width(&tick.label) / 2.0);
        html! {
            (grid_lines(&major, &minor, theme))
            @for tick in ticks.iter().filter(|tick| !tick.label.is_empty()) {
                (text(place(tick), self.bottom + 16.0, "middle", theme.muted, &tick.label))
            }
            (text(middle, self.bottom + 34.0, "middle", theme.ink, title))
        }
    }

    /// Grid lines and labels of the y axis; its title is above, to be read horizontally.
    pub fn y_axis(&self, scale: &Scale, ticks: &[Tick], title: &str, theme: &Theme) -> Markup {
        let (major, minor) = grid(ticks, |path, value| {
            path.go(self.left, scale.at(value));
            path.across(self.right);
        });
        html! {
            (grid_lines(&major, &minor, theme))
            @for tick in ticks.iter().filter(|tick| !tick.label.is_empty()) {
                (text(self.left - 7.0, scale.at(tick.value) + 4.0, "end", theme.muted, &tick.label))
            }
            (text(4.0, self.top - 9.0, "start", theme.ink, title))
        }
    }
}

fn grid(ticks: &[Tick], draw: impl Fn(&mut PathData, f64)) -> (PathData, PathData) {
    let (mut major, mut minor) = (PathData::default(), PathData::default());
    for tick in ticks {
        draw(if tick.label.is_empty() { &mut minor } else { &mut major }, tick.value);
    }
    (major, minor)
}

fn grid_lines(major: &PathData, minor: &PathData, theme: &Theme) -> Markup {
    html! {
        @if !minor.0.is_empty() {
            path d=(minor.0) fill="none" stroke=(theme.grid) stroke-width="0.5" {}
        }
        path d=(major.0) fill="none" stroke=(theme.grid) stroke-width="1" {}
    }
}

/// Line of text; `anchor` is `start`, `middle` or `end`.
pub fn text(x: f64, y: f64, anchor: &str, colour: &str, words: &str) -> Markup {
    html! { text x=(Px(x)) y=(Px(y)) text-anchor=(anchor) fill=(colour) { (words) } }
}

/// Line of text over data, kept readable by a halo in the background colour; a line's colour is
/// replaced by its variant for words.
pub fn text_over(x: f64, y: f64, anchor: &str, colour: &str, theme: &Theme, words: &str) -> Markup {
    let colour = theme.of_words(colour);
    html! {
        text x=(Px(x)) y=(Px(y)) text-anchor=(anchor) fill=(colour) font-weight="600"
            stroke=(theme.background) stroke-width="3.5" stroke-linejoin="round" paint-order="stroke" { (words) }
    }
}

/// Group of a picture's parts, which sets the font once.
pub fn group(theme: &Theme, body: Markup) -> Markup {
    html! {
        g font-family="system-ui, 'DejaVu Sans', Arial, sans-serif" font-size=(Px(FONT)) fill=(theme.ink) { (body) }
    }
}

/// Entry of a legend.
pub struct LegendEntry {
    /// Colour of the swatch.
    pub colour: &'static str,
    /// True for an area, false for a line.
    pub area: bool,
    /// Its meaning.
    pub words: String,
}

/// Placement of the words of a legend, in as many columns as fit between two edges.
pub struct Grid {
    left: f64,
    rows: usize,
    /// Width of a column.
    pub width: f64,
}

impl Grid {
    /// Grid for these words.
    pub fn new<'a>(words: impl ExactSizeIterator<Item = &'a str>, left: f64, right: f64) -> Grid {
        let count = words.len();
        let widest = words.map(text_width).fold(0.0, f64::max) + 38.0;
        let columns = (((right - left) / widest) as usize).clamp(1, 4).min(count.max(1));
        Grid { left, rows: count.div_ceil(columns), width: (right - left) / columns as f64 }
    }

    /// Left end and base line of the word at a place, below `y`; columns are filled one by one.
    pub fn place(&self, at: usize, y: f64) -> (f64, f64) {
        let rows = self.rows.max(1);
        (self.left + (at / rows) as f64 * self.width, y + (at % rows) as f64 * LINE)
    }

    /// Height of all rows.
    pub fn height(&self) -> f64 {
        self.rows as f64 * LINE
    }
}

/// Legend below a plot, in as many columns as fit, and its height.
pub fn legend(keys: &[LegendEntry], plot: &Plot, y: f64, theme: &Theme) -> (Markup, f64) {
    let grid = Grid::new(keys.iter().map(|key| key.words.as_str()), plot.left, plot.right);
    let markup = html! {
        @for (i, key) in keys.iter().enumerate() {
            @let (x, y) = grid.place(i, y);
            @let thick = if key.area { 10.0 } else { 3.0 };
            rect x=(Px(x)) y=(Px(y - 4.0 - thick / 2.0)) width="20" height=(Px(thick)) fill=(key.colour) {}
            (text(x + 27.0, y, "start", theme.ink, &fit(&key.words, grid.width - 30.0)))
        }
    };
    (markup, grid.height())
}

/// Vertical line, for marks.
pub fn stroke(x: f64, from: f64, to: f64) -> String {
    let mut path = PathData::default();
    path.go(x, from);
    path.down(to);
    path.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        for (value, text) in [(1.0, "1"), (1.25, "1.3"), (-0.04, "0"), (-0.26, "-0.3"), (920.0, "920")] {
            assert_eq!(Px(value).to_string(), text);
        }
    }

    #[test]
    fn words_in_the_colour_of_a_line_are_darker_than_it() {
        let theme = &crate::plot::theme::PAPER;
        let text = text_over(1.0, 2.0, "end", theme.lines[1], theme, "CPU 1").into_string();
        assert!(text.contains(theme.words[1]) && !text.contains(theme.lines[1]), "{text}");
    }

    #[test]
    fn long_words_are_cut() {
        assert_eq!(fit("abcdefgh", 40.0), "abcd\u{2026}");
        assert_eq!(fit("abc", 40.0), "abc");
    }
}
