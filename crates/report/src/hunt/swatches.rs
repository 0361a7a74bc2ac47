//! Legend of the spikes' pictures: areas of a colour and a strength, in as many columns as fit.

use maud::{Markup, html};

use crate::plot::axis::number;
use crate::plot::svg::{Grid, LINE, Plot, Px, fit, text};
use crate::plot::theme::Theme;

pub struct Swatch {
    pub colour: &'static str,
    /// Strength of the colour, 0 to 1.
    pub strength: f64,
    /// Hatch over the colour.
    pub hatch: Option<&'static str>,
    /// Meaning of the area.
    pub words: String,
}

/// Legend, and its height.
pub fn swatches(keys: &[Swatch], plot: &Plot, y: f64, theme: &Theme) -> (Markup, f64) {
    // A narrow picture has no room for the axis labels' margin too.
    let grid = Grid::new(keys.iter().map(|key| key.words.as_str()), plot.left.min(16.0), plot.right);
    let markup = html! {
        @for (at, key) in keys.iter().enumerate() {
            @let (x, y) = grid.place(at, y);
            rect x=(Px(x)) y=(Px(y - 10.0)) width="20" height="11" fill=(key.colour) fill-opacity=(number(key.strength))
                stroke=(key.colour) stroke-width="0.8" {}
            @if let Some(hatch) = key.hatch {
                rect x=(Px(x)) y=(Px(y - 10.0)) width="20" height="11" fill=(hatch) {}
            }
            (text(x + 27.0, y, "start", theme.ink, &fit(&key.words, grid.width - 30.0)))
        }
    };
    // Without a key the height of a line stays, so that the content below keeps its distance.
    (markup, grid.height().max(LINE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::svg::Size;
    use crate::plot::theme::PAPER;

    #[test]
    fn what_does_not_fit_next_to_it_goes_below() {
        let keys = |n: usize| -> Vec<Swatch> {
            (0..n)
                .map(|_| Swatch { colour: "red", strength: 0.5, hatch: None, words: "x".repeat(30) })
                .collect()
        };
        let height = |size, n| swatches(&keys(n), &Plot::new(size, 0.0, 0.0), 0.0, &PAPER).1;
        assert_eq!((height(Size::Wide, 3), height(Size::Narrow, 3)), (LINE, 3.0 * LINE));
        assert!(height(Size::Wide, 0) > 0.0);
    }
}
