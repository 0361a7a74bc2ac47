//! Last step of every text for a terminal or a viewer: no field's content can control the reader's
//! screen.
//!
//! Fields are cleaned when they enter a sentence; this step catches those that were missed.

use crate::palette::{BOLD, DIM, GREEN, RED, YELLOW};
use model::text::steered_by_none;

/// Text for a terminal; with `color` the ANSI styles in it are kept.
pub fn for_terminal(text: String, color: bool) -> String {
    // Longer sequences first: that of bold is a prefix of others.
    let used = if color { [RED, GREEN, YELLOW, BOLD, DIM].as_slice() } else { &[] };
    let styles: Vec<String> =
        used.iter().flat_map(|style| [style.to_string(), format!("{style:#}")]).collect();
    steered_by_none(text, &styles)
}

/// Text for a viewer of pages, pictures or tables.
pub fn for_viewer(document: String) -> String {
    steered_by_none(document, &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::palette::Palette;

    #[test]
    fn own_colours_stay_and_what_steers_does_not() {
        let own = format!("{}\n\t{}\n", Palette(true).paint(RED, "a"), Palette(true).paint(DIM, "b"));
        assert_eq!(for_terminal(own.clone(), true), own);
        let bare = for_terminal(own, false);
        assert!(!bare.contains('\u{1b}') && bare.contains("a\u{fffd}"), "{bare:?}");
        let raw = "x\u{1b}]0;t\u{7}\u{9b}J\u{202e}\u{200b}y\r\n";
        let clean = "x\u{fffd}]0;t\u{fffd}\u{fffd}J\u{fffd}\u{fffd}y\u{fffd}\n";
        assert_eq!(for_terminal(raw.into(), true), clean);
        assert_eq!(for_viewer(raw.into()), clean);
    }
}
