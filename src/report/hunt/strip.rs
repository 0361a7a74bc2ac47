//! A spike as one strip: its parts as labelled bars on a scale of time, from the expected time to the actual one.

use maud::{Markup, html};

use super::kinds::{self, UNEXPLAINED};
use super::{Part, said};
use crate::report::axis::Scale;
use crate::report::svg::{FONT, Px, text, text_width};
use crate::report::theme::Theme;
use crate::report::words::{clean, span};

/// Height of the bars.
pub const HEIGHT: f64 = 32.0;
/// Narrower bars could not be seen.
const LEAST: f64 = 1.6;
/// Rows of labels below the bars.
const ROWS: usize = 4;
/// Distance of these rows.
const ROW: f64 = 15.0;

/// A label below its bar.
struct Below {
    x: f64,
    from: f64,
    row: usize,
    words: String,
}

/// The strip, and the height it takes with its labels.
pub fn draw(parts: &[Part], scale: &Scale, top: f64, theme: &Theme) -> (Markup, f64) {
    let mut below: Vec<Below> = Vec::new();
    let mut ends = [f64::MIN; ROWS];
    let (left, right) = (scale.at(scale.lo()), scale.at(scale.hi()));
    let mut order: Vec<&Part> = parts.iter().collect();
    order.sort_by_key(|part| part.start);
    let inside: Vec<Option<String>> =
        order.iter().map(|part| label_inside(part, extent(part, scale).1)).collect();
    for (part, _) in order.iter().zip(&inside).filter(|(_, inside)| inside.is_none()) {
        let (x, width) = extent(part, scale);
        let words = format!("{} {}", clean(part.kind()), span(part.ns));
        let wide = text_width(&words);
        let middle = x + width / 2.0;
        let from = (middle - 4.0).min(right - wide).max(left);
        if let Some(row) = (0..ROWS).find(|&row| ends[row] + 8.0 <= from) {
            ends[row] = from + wide;
            below.push(Below { x: middle, from, row, words });
        }
    }
    let rows = below.iter().map(|label| label.row + 1).max().unwrap_or(0);
    let base = top + HEIGHT;
    let markup = html! {
        @for (part, inside) in order.iter().zip(&inside) { (bar(part, inside.as_deref(), scale, top, theme)) }
        @for label in &below {
            @let y = base + 14.0 + label.row as f64 * ROW;
            path d=(format!("M{} {}V{}", Px(label.x), Px(base), Px(y - 10.0))) stroke=(theme.muted) stroke-width="0.8" fill="none" {}
            (text(label.from, y, "start", theme.ink, &label.words))
        }
    };
    (markup, HEIGHT + if rows > 0 { 6.0 + rows as f64 * ROW } else { 4.0 })
}

/// Left edge and width of a bar.
fn extent(part: &Part, scale: &Scale) -> (f64, f64) {
    let from = scale.at(part.start.0 as f64);
    let to = scale.at(part.start.0.saturating_add(part.ns.0) as f64);
    let width = (to - from).max(LEAST);
    (from.min(scale.at(scale.hi()) - width), width)
}

/// The most that fits into a bar: kind, who and how long; less where there is less room.
fn label_inside(part: &Part, width: f64) -> Option<String> {
    let (kind, long) = (clean(part.kind()), span(part.ns));
    let who = part.slice.map(|slice| short(&said::who(&slice.who))).unwrap_or_default();
    let mut choices = Vec::new();
    if !who.is_empty() {
        choices.push(format!("{kind}: {who}, {long}"));
    }
    choices.extend([format!("{kind} {long}"), long]);
    choices.into_iter().find(|words| text_width(words) + 8.0 <= width)
}

/// Without the priority, which the table has.
fn short(who: &str) -> String {
    match (who.find(" ("), who.find(')')) {
        (Some(open), Some(close)) if open < close => format!("{}{}", &who[..open], &who[close + 1..]),
        _ => who.to_owned(),
    }
}

fn bar(part: &Part, inside: Option<&str>, scale: &Scale, top: f64, theme: &Theme) -> Markup {
    let (x, width) = extent(part, scale);
    let kind = kinds::of(part.kind());
    let colour = kind.colour(theme);
    let dashed = (kind.name == UNEXPLAINED).then_some("3 3");
    let ink = if kind.strength >= 0.75 { theme.ground } else { theme.ink };
    html! {
        g {
            title { (hover(part)) }
            rect x=(Px(x)) y=(Px(top)) width=(Px(width)) height=(Px(HEIGHT)) fill=(colour)
                fill-opacity=(Px2(kind.strength)) stroke=(colour) stroke-width="1" stroke-dasharray=[dashed] {}
            @if let Some(words) = inside {
                text x=(Px(x + width / 2.0)) y=(Px(top + HEIGHT / 2.0 + FONT * 0.36)) text-anchor="middle" fill=(ink)
                    font-weight="600" pointer-events="none" { (words) }
            }
        }
    }
}

/// An opacity.
struct Px2(f64);

impl maud::Render for Px2 {
    fn render_to(&self, out: &mut String) {
        out.push_str(&crate::report::axis::number(self.0));
    }
}

/// What a reader is told who points at a bar.
fn hover(part: &Part) -> String {
    let words = part.slice.map_or_else(|| kinds::of(UNEXPLAINED).words.to_owned(), said::slice);
    let words = if words.is_empty() { kinds::of(part.kind()).words.to_owned() } else { words };
    format!("{}: {} from +{} on; {words}", clean(part.kind()), span(part.ns), span(part.start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::hunt::{fixture, parts};
    use crate::report::theme::PAPER;

    #[test]
    fn every_part_has_a_bar_and_a_name_or_is_too_many() {
        for case in fixture::cases() {
            let parts = parts(&case.spike);
            let scale = Scale::linear(0.0, case.spike.latency_ns.0 as f64, 80.0, 900.0);
            let text = draw(&parts, &scale, 0.0, &PAPER).0.into_string();
            assert_eq!(text.matches("<rect").count(), parts.len());
            assert_eq!(text.matches("<title>").count(), parts.len());
        }
    }

    #[test]
    fn the_priority_is_left_to_the_table() {
        assert_eq!(short("a:1 (real-time 9), f [m]"), "a:1, f [m]");
        assert_eq!(short("eth0"), "eth0");
    }
}
