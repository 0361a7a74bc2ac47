//! Placement of the names of the largest values, so that none hides another or the data.

use super::svg::{FONT, LINE, Plot, text_width};

/// Place of a label: its right end, base line, and width.
#[derive(Clone, Copy, Debug)]
pub struct LabelPlace {
    /// Right end of the text.
    pub x: f64,
    /// Base line of the text.
    pub y: f64,
    /// Width of the text.
    pub width: f64,
}

impl LabelPlace {
    pub fn left(&self) -> f64 {
        self.x - self.width
    }

    pub fn top(&self) -> f64 {
        self.y - FONT
    }

    pub fn bottom(&self) -> f64 {
        self.y + 4.0
    }

    fn meets(&self, other: &LabelPlace) -> bool {
        let apart = self.x + 12.0 <= other.left() || other.x + 12.0 <= self.left();
        !apart && (self.y - other.y).abs() < LINE - 1.0
    }

    /// True if another label's leader, drawn up to that label, would cross this one.
    fn is_cut_by(&self, anchor: f64, other: &LabelPlace) -> bool {
        self.left() - 3.0 < anchor && anchor < self.x + 3.0 && other.y < self.bottom()
    }
}

/// Places labels to the left of their anchors, which ascend in x, each as low as possible without
/// touching another label, a leader, or the data, for which `free` is asked.
///
/// With this order, a leader drawn up from its anchor has the earlier labels on its left.
pub fn place_labels(
    anchors: &[(f64, &str)],
    plot: &Plot,
    free: impl Fn(&LabelPlace) -> bool,
) -> Vec<LabelPlace> {
    let mut places: Vec<LabelPlace> = Vec::new();
    let (lowest, step) = (plot.bottom - 26.0, 4.0);
    let levels = ((lowest - plot.top - FONT - 3.0) / step).max(0.0) as usize;
    for &(x, words) in anchors {
        // Labels are in bold.
        let width = text_width(words) * 1.1;
        let x = (x - 5.0).max(plot.left + 4.0 + width);
        let at = |level: usize| LabelPlace { x, y: lowest - level as f64 * step, width };
        let apart = |place: &LabelPlace| {
            let mut others = anchors.iter().zip(&places);
            others.all(|((anchor, _), other)| !place.meets(other) && !place.is_cut_by(*anchor, other))
        };
        let best = (0..=levels).map(at).find(|place| apart(place) && free(place));
        // Over the data if they leave no space: a label has a halo in the background colour.
        let found = best.or_else(|| (0..=levels).map(at).find(|place| apart(place)));
        places.push(found.unwrap_or_else(|| at(levels)));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_do_not_overlap() {
        let plot = Plot { left: 0.0, right: 800.0, top: 0.0, bottom: 300.0 };
        let anchors: Vec<(f64, &str)> = (0..8).map(|i| (600.0 + f64::from(i), "CPU 1: 123.4 us")).collect();
        let places = place_labels(&anchors, &plot, |_| true);
        for (i, a) in places.iter().enumerate() {
            assert!(a.y > plot.top && a.y < plot.bottom);
            assert!(places[..i].iter().all(|b| !a.meets(b)), "{places:?}");
        }
    }
}
