//! The legend of the spikes' pictures: areas of a colour and a strength, in as many columns as fit.

use maud::{Markup, html};

use crate::report::axis::number;
use crate::report::svg::{LINE, Plot, Px, fit, text, text_width};
use crate::report::theme::Theme;

/// One entry.
pub struct Swatch {
    /// Its colour.
    pub colour: &'static str,
    /// How strong, 0 to 1.
    pub strength: f64,
    /// What it stands for.
    pub words: String,
}

/// The legend, and its height.
pub fn swatches(keys: &[Swatch], plot: &Plot, y: f64, theme: &Theme) -> (Markup, f64) {
    // A narrow picture has no room for the axis labels' margin too.
    let left = plot.left.min(16.0);
    let room = plot.right - left;
    let widest = keys.iter().map(|key| text_width(&key.words)).fold(0.0, f64::max) + 38.0;
    let columns = ((room / widest) as usize).clamp(1, 4).min(keys.len().max(1));
    let (width, rows) = (room / columns as f64, keys.len().div_ceil(columns).max(1));
    let markup = html! {
        @for (at, key) in keys.iter().enumerate() {
            @let (x, y) = (left + (at / rows) as f64 * width, y + (at % rows) as f64 * LINE);
            rect x=(Px(x)) y=(Px(y - 10.0)) width="20" height="11" fill=(key.colour) fill-opacity=(number(key.strength))
                stroke=(key.colour) stroke-width="0.8" {}
            (text(x + 27.0, y, "start", theme.ink, &fit(&key.words, width - 30.0)))
        }
    };
    (markup, rows as f64 * LINE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::svg::Size;
    use crate::report::theme::PAPER;

    #[test]
    fn what_does_not_fit_beside_stands_below() {
        let keys = |n: usize| -> Vec<Swatch> {
            (0..n).map(|_| Swatch { colour: "red", strength: 0.5, words: "x".repeat(30) }).collect()
        };
        let height = |size, n| swatches(&keys(n), &Plot::new(size, 0.0, 0.0), 0.0, &PAPER).1;
        assert_eq!((height(Size::Wide, 3), height(Size::Narrow, 3)), (LINE, 3.0 * LINE));
        assert!(height(Size::Wide, 0) > 0.0);
    }
}
