//! Names of points in time above a strip: a stroke for each, one joint name for close ones.

use maud::{Markup, html};

use crate::plot::svg::{Px, text, text_width};
use crate::plot::theme::Theme;

/// Height of the names and strokes.
pub const HEIGHT: f64 = 26.0;
/// Distance from the names to the strip.
const FOOT: f64 = 8.0;
const APART: f64 = 8.0;

/// Points with one name, and the left edge of the name.
struct Pin {
    xs: Vec<f64>,
    words: String,
    from: f64,
}

impl Pin {
    fn new(xs: Vec<f64>, words: String, left: f64, right: f64) -> Pin {
        let wide = text_width(&words);
        let middle = xs.iter().sum::<f64>() / xs.len().max(1) as f64;
        Pin { xs, words, from: (middle - wide / 2.0).min(right - wide).max(left) }
    }
}

/// Names at their positions, ascending, between two edges.
pub fn draw(points: &[(&str, f64)], left: f64, right: f64, top: f64, theme: &Theme) -> Markup {
    let mut pins: Vec<Pin> = Vec::new();
    for &(name, x) in points {
        let mut pin = Pin::new(vec![x], name.to_owned(), left, right);
        while let Some(mut last) = pins.pop() {
            if last.from + text_width(&last.words) + APART <= pin.from {
                pins.push(last);
                break;
            }
            last.xs.append(&mut pin.xs);
            pin = Pin::new(last.xs, format!("{}, {}", last.words, pin.words), left, right);
        }
        pins.push(pin);
    }
    let base = top + HEIGHT;
    html! {
        @for pin in &pins {
            @for x in &pin.xs {
                path d=(format!("M{} {}V{}", Px(*x), Px(base - FOOT + 3.0), Px(base)))
                    stroke=(theme.ink) stroke-width="1" fill="none" {}
            }
            (text(pin.from, base - FOOT, "start", theme.ink, &pin.words))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::theme::PAPER;

    #[test]
    fn names_that_would_overlap_are_one() {
        let points = [("a", 10.0), ("b", 15.0), ("interrupt", 300.0), ("waking", 330.0), ("actual", 500.0)];
        let text = draw(&points, 0.0, 600.0, 0.0, &PAPER).into_string();
        for words in [">a, b<", ">interrupt, waking<", ">actual<"] {
            assert!(text.contains(words), "{text}");
        }
        assert_eq!(text.matches("<path").count(), 5);
    }
}
