//! Spike as one strip: its parts as labelled bars on a time scale, from the expected time to the
//! actual one.

use std::cmp::Ordering;

use maud::{Markup, html};

use super::kinds;
use super::kinds::UNEXPLAINED;
use super::parts::SpikePart;
use super::sentences;
use crate::plot::axis::Scale;
use crate::plot::svg::{FONT, Px, text, text_width};
use crate::plot::theme::Theme;
use crate::words::{clean, span};
use model::run::Who;
use model::sort::CompactSort;

/// Height of the bars.
pub const HEIGHT: f64 = 32.0;
/// Least width of a bar that can be seen.
const MIN_WIDTH: f64 = 1.6;
/// Limit of rows of labels below the bars.
const ROWS: usize = 4;
/// Limit of labels below the bars; beyond it only the first of each sort stays.
const LABELS: usize = 8;
/// Distance of these rows.
const ROW: f64 = 15.0;

/// Label below its bar.
struct Below {
    x: f64,
    from: f64,
    row: usize,
    words: String,
}

/// Places labels in rows so that no stroke from a bar to its label crosses another label: those
/// that reach to the right of their stroke from the last on, those that reach to the left from the
/// first on.
fn place(labels: Vec<(f64, String)>, left: f64, right: f64) -> Vec<Below> {
    let fits = |(x, words): &(f64, String)| x - 4.0 + text_width(words) <= right;
    let (to_right, to_left): (Vec<_>, Vec<_>) = labels.into_iter().partition(fits);
    let mut placed: Vec<Below> = Vec::new();
    let all = to_right
        .into_iter()
        .rev()
        .map(|label| (label, true))
        .chain(to_left.into_iter().map(|label| (label, false)));
    for ((x, words), rightwards) in all {
        // Falls back to the words without the length, and to the other side.
        let short = words.split(' ').next().unwrap_or_default().to_owned();
        let choices =
            [(&words, rightwards), (&words, !rightwards), (&short, rightwards), (&short, !rightwards)];
        let found = choices.into_iter().find_map(|(words, rightwards)| {
            let wide = text_width(words);
            let from = if rightwards { x - 4.0 } else { x + 4.0 - wide };
            let within = from >= left && from + wide <= right;
            let row = (0..ROWS).find(|&row| within && free(&placed, row, x, from, from + wide))?;
            Some(Below { x, from, row, words: words.clone() })
        });
        placed.extend(found);
    }
    placed
}

/// True if a label fits into a row, its stroke crosses no label above it, and no stroke from a
/// lower label crosses it.
fn free(placed: &[Below], row: usize, x: f64, from: f64, to: f64) -> bool {
    let beside = |x: f64, from: f64, to: f64| x < from - 1.0 || to + 1.0 < x;
    placed.iter().all(|had| {
        let end = had.from + text_width(&had.words);
        match had.row.cmp(&row) {
            Ordering::Equal => end + 8.0 <= from || to + 8.0 <= had.from,
            Ordering::Less => beside(x, had.from, end),
            Ordering::Greater => beside(had.x, from, to),
        }
    })
}

/// Strip, and its height with the labels. Parts that begin at `until` or later have no label below:
/// they are drawn again, larger.
pub fn draw(parts: &[SpikePart], scale: &Scale, top: f64, until: i64, theme: &Theme) -> (Markup, f64) {
    let right = scale.at(scale.hi());
    let mut order: Vec<&SpikePart> = parts.iter().collect();
    order.compact_sort_by_key(|part| part.start);
    let inside: Vec<Option<String>> =
        order.iter().map(|part| label_inside(part, extent(part, scale).1)).collect();
    let mut outside: Vec<&SpikePart> =
        order.iter().zip(&inside).filter(|had| had.1.is_none()).map(|had| *had.0).collect();
    outside.retain(|part| part.start.0 < until);
    if outside.len() > LABELS {
        // With many events the first of each kind represents the others.
        let mut seen: Vec<(&str, Option<&Who>)> = Vec::new();
        outside.retain(|part| {
            let sort = (part.kind(), part.slice.map(|slice| &slice.who));
            let fresh = !seen.contains(&sort);
            seen.push(sort);
            fresh
        });
    }
    let label = |part: &SpikePart| {
        let (x, width) = extent(part, scale);
        (x + width / 2.0, format!("{} {}", clean(part.kind()), span(part.ns)))
    };
    let below = place(outside.into_iter().map(label).collect(), scale.at(scale.lo()) - 8.0, right);
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

/// Bars without labels below, with those that fit inside.
pub fn bars(parts: &[SpikePart], scale: &Scale, top: f64, theme: &Theme) -> Markup {
    html! {
        @for part in parts {
            (bar(part, label_inside(part, extent(part, scale).1).as_deref(), scale, top, theme))
        }
    }
}

/// Left edge and width of a bar.
fn extent(part: &SpikePart, scale: &Scale) -> (f64, f64) {
    let from = scale.at(part.start.0 as f64);
    let to = scale.at(part.start.0.saturating_add(part.ns.0) as f64);
    let width = (to - from).max(MIN_WIDTH);
    (from.min(scale.at(scale.hi()) - width), width)
}

/// Longest label that fits into a bar: kind, owner and length, or without the owner.
fn label_inside(part: &SpikePart, width: f64) -> Option<String> {
    let (kind, long) = (clean(part.kind()), span(part.ns));
    let who = part.slice.map(|slice| short(&sentences::who(&slice.who))).unwrap_or_default();
    let mut choices = Vec::new();
    if !who.is_empty() {
        choices.push(format!("{kind}: {who}, {long}"));
    }
    choices.push(format!("{kind} {long}"));
    choices.into_iter().find(|words| text_width(words) + 8.0 <= width)
}

/// Owner without the priority, which the table has.
fn short(who: &str) -> String {
    match (who.find(" ("), who.find(')')) {
        (Some(open), Some(close)) if open < close => format!("{}{}", &who[..open], &who[close + 1..]),
        _ => who.to_owned(),
    }
}

fn bar(part: &SpikePart, inside: Option<&str>, scale: &Scale, top: f64, theme: &Theme) -> Markup {
    let (x, width) = extent(part, scale);
    let kind = kinds::of(part.kind());
    let colour = kind.colour(theme);
    let dashed = (kind.name == UNEXPLAINED).then_some("3 3");
    let ink = if kind.strength >= 0.75 { theme.background } else { theme.ink };
    html! {
        g {
            title { (hover(part)) }
            rect x=(Px(x)) y=(Px(top)) width=(Px(width)) height=(Px(HEIGHT)) fill=(colour)
                fill-opacity=(Px2(kind.strength)) stroke=(colour) stroke-width="1" stroke-dasharray=[dashed] {}
            @if let Some(hatch) = kind.hatch() {
                rect x=(Px(x)) y=(Px(top)) width=(Px(width)) height=(Px(HEIGHT)) fill=(hatch) {}
            }
            @if let Some(words) = inside {
                text x=(Px(x + width / 2.0)) y=(Px(top + HEIGHT / 2.0 + FONT * 0.36)) text-anchor="middle" fill=(ink)
                    font-weight="600" pointer-events="none"
                    stroke=[kind.hatch().map(|_| colour)] stroke-width="3" paint-order="stroke" { (words) }
            }
        }
    }
}

struct Px2(f64);

impl maud::Render for Px2 {
    fn render_to(&self, out: &mut String) {
        out.push_str(&crate::plot::axis::number(self.0));
    }
}

/// Tooltip of a bar.
fn hover(part: &SpikePart) -> String {
    let words = part.slice.map_or_else(|| kinds::of(UNEXPLAINED).words.to_owned(), sentences::slice);
    let words = if words.is_empty() { kinds::of(part.kind()).words.to_owned() } else { words };
    format!("{}: {} from +{} on; {words}", clean(part.kind()), span(part.ns), span(part.start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::fixture;
    use crate::hunt::parts::parts;
    use crate::plot::theme::PAPER;

    #[test]
    fn every_part_has_a_bar_and_a_name_or_is_too_many() {
        for case in fixture::cases() {
            let parts = parts(&case.spike);
            let scale = Scale::linear(0.0, case.spike.latency_ns.0 as f64, 80.0, 900.0);
            let text = draw(&parts, &scale, 0.0, i64::MAX, &PAPER).0.into_string();
            assert_eq!(text.matches("fill-opacity").count(), parts.len());
            assert_eq!(text.matches("<title>").count(), parts.len());
        }
    }

    #[test]
    fn no_stroke_crosses_a_label() {
        let labels = (0..12).map(|at| (100.0 + f64::from(at) * 72.0, format!("timer-softirq {at}")));
        let crowd = (0..4).map(|at| (990.0 + f64::from(at), "return-to-user".to_owned()));
        let placed = place(labels.chain(crowd).collect(), 0.0, 1_000.0);
        assert!(placed.len() > 8, "{}", placed.len());
        for one in &placed {
            for other in placed.iter().filter(|other| other.row < one.row) {
                let end = other.from + text_width(&other.words);
                assert!(one.x < other.from || end < one.x, "{} crosses {}", one.words, other.words);
            }
        }
    }

    #[test]
    fn the_priority_is_left_to_the_table() {
        assert_eq!(short("a:1 (real-time 9), f [m]"), "a:1, f [m]");
        assert_eq!(short("eth0"), "eth0");
    }
}
