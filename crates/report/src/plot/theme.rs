//! Colours: for paper (explicit values) and for a page that follows the reader's light or dark
//! setting (CSS variables).
//!
//! The lines are distinguishable with any of the common kinds of colour blindness: the set is Okabe
//! and Ito's, its yellow and sky blue darkened for contrast with white. The heat map's colours run
//! along one direction of lightness, and even the first, a single sample, keeps a contrast of 3 to
//! 1 with the background.

use std::fmt::Write;

/// Number of lines with distinct colours.
pub const LINES: usize = 8;
/// Number of colours of the heat map.
pub const HEATS: usize = 8;

/// Colours of a picture.
pub struct Theme {
    /// Colours of lines.
    pub lines: [&'static str; LINES],
    /// Colours of words on lines, which need more contrast than a line.
    pub words: [&'static str; LINES],
    /// Colours from a single sample to the fullest cell.
    pub heat: [&'static str; HEATS],
    /// Background of everything.
    pub background: &'static str,
    pub ink: &'static str,
    /// Secondary text and frames.
    pub muted: &'static str,
    pub grid: &'static str,
    /// Band of lines that are not drawn separately.
    pub band: &'static str,
    /// Limits and missed slots.
    pub alarm: &'static str,
}

/// Colours of standalone files and of print.
pub const PAPER: Theme = Theme {
    lines: ["#0072b2", "#d55e00", "#00865f", "#b5478f", "#2f94cf", "#a87300", "#222222", "#7b5bb5"],
    words: ["#0072b2", "#b84f00", "#00805b", "#b5478f", "#2278ad", "#8f6200", "#222222", "#7b5bb5"],
    heat: ["#e0603f", "#d04a55", "#bb3a6b", "#a12a80", "#82208f", "#621a92", "#421686", "#250f63"],
    background: "#ffffff",
    ink: "#1b1f24",
    muted: "#5b6570",
    grid: "#e3e6ea",
    band: "#b8c0ca",
    alarm: "#c1121f",
};

/// Colours of a dark page.
pub const NIGHT: Theme = Theme {
    lines: ["#4da3e0", "#ff8a4c", "#2cc79b", "#e08cc4", "#9adcff", "#f0b541", "#e8e8e8", "#b79ce6"],
    words: ["#4da3e0", "#ff8a4c", "#2cc79b", "#e08cc4", "#9adcff", "#f0b541", "#e8e8e8", "#b79ce6"],
    heat: ["#8a63e6", "#a659d6", "#c352bd", "#db559c", "#ee667c", "#fa8460", "#fdac52", "#f5e663"],
    background: "#15181c",
    ink: "#e6e9ed",
    muted: "#a3adb8",
    grid: "#2c3238",
    band: "#4a535e",
    alarm: "#ff6b6b",
};

/// Names of the variables that [`css`] defines.
pub const PAGE: Theme = Theme {
    lines: [
        "var(--line0)",
        "var(--line1)",
        "var(--line2)",
        "var(--line3)",
        "var(--line4)",
        "var(--line5)",
        "var(--line6)",
        "var(--line7)",
    ],
    words: [
        "var(--words0)",
        "var(--words1)",
        "var(--words2)",
        "var(--words3)",
        "var(--words4)",
        "var(--words5)",
        "var(--words6)",
        "var(--words7)",
    ],
    heat: [
        "var(--heat0)",
        "var(--heat1)",
        "var(--heat2)",
        "var(--heat3)",
        "var(--heat4)",
        "var(--heat5)",
        "var(--heat6)",
        "var(--heat7)",
    ],
    background: "var(--ground)",
    ink: "var(--ink)",
    muted: "var(--muted)",
    grid: "var(--grid)",
    band: "var(--band)",
    alarm: "var(--alarm)",
};

impl Theme {
    /// Variant of a line's colour for words; other colours stay.
    pub fn of_words<'a>(&self, colour: &'a str) -> &'a str {
        self.lines.iter().position(|line| *line == colour).map_or(colour, |at| self.words[at])
    }
}

/// Variables of a page: light, dark if the reader prefers it, and light again on paper.
pub fn css() -> String {
    let (paper, night) = (variables(&PAPER), variables(&NIGHT));
    format!(
        ":root{{color-scheme:light dark;{paper}}}\n\
         @media screen and (prefers-color-scheme:dark){{:root{{{night}}}}}\n"
    )
}

fn variables(theme: &Theme) -> String {
    let mut css = String::new();
    let lists = [
        ("line", theme.lines.as_slice()),
        ("words", theme.words.as_slice()),
        ("heat", theme.heat.as_slice()),
    ];
    for (name, colours) in lists {
        for (i, colour) in colours.iter().enumerate() {
            let _ = write!(css, "--{name}{i}:{colour};");
        }
    }
    let singles = [
        ("ground", theme.background),
        ("ink", theme.ink),
        ("muted", theme.muted),
        ("grid", theme.grid),
        ("band", theme.band),
        ("alarm", theme.alarm),
    ];
    for (name, colour) in singles {
        let _ = write!(css, "--{name}:{colour};");
    }
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance as the Web Content Accessibility Guidelines define it.
    fn luminance(colour: &str) -> f64 {
        let part = |i: usize| {
            let c = f64::from(u8::from_str_radix(&colour[i..i + 2], 16).unwrap()) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
        if a > b { a / b } else { b / a }
    }

    #[test]
    fn a_single_sample_and_every_line_contrast_with_the_background() {
        for theme in [&PAPER, &NIGHT] {
            for colour in theme.lines.iter().chain(&theme.heat).chain([&theme.alarm]) {
                let ratio = contrast(colour, theme.background);
                assert!(ratio >= 3.0, "{colour} on {}: {ratio:.2}", theme.background);
            }
            for colour in [theme.ink, theme.muted, theme.alarm].iter().chain(&theme.words) {
                assert!(contrast(colour, theme.background) >= 4.5, "{colour}");
            }
            for line in theme.lines {
                assert!(contrast(theme.of_words(line), theme.background) >= 4.5, "{line}");
            }
            assert_eq!(theme.of_words(theme.alarm), theme.alarm);
        }
    }

    #[test]
    fn heat_goes_one_way() {
        for (theme, rising) in [(&PAPER, false), (&NIGHT, true)] {
            for pair in theme.heat.windows(2) {
                assert_eq!(luminance(pair[1]) > luminance(pair[0]), rising, "{pair:?}");
            }
        }
    }
}
