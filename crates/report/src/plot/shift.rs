//! Shift function: difference of each quantile of the block maxima between B and A, with its
//! interval.

use maud::{Markup, html};

use super::axis::{Scale, Tick, number, unit_of};
use super::svg;
use super::svg::stroke;
use super::svg::{PathData, Picture, Plot, Px, Size, text_over};
use super::theme::Theme;
use crate::words::signed;
use stats::bounds::numbers::digits;
use stats::compare::secondary::QuantileShift;
use stats::pair::unit::ComparedUnit;

/// Half the width of the ends of an interval.
const SERIF: f64 = 5.0;

/// Picture; `None` without quantiles.
pub fn draw(shifts: &[QuantileShift], of: ComparedUnit, size: Size, theme: &Theme) -> Option<Picture> {
    let last = shifts.len().checked_sub(1)?;
    let ends = || shifts.iter().flat_map(|one| one.ci.iter().flatten().chain([&one.difference_ns]).copied());
    let (low, high) = (ends().fold(0.0, f64::min), ends().fold(0.0, f64::max));
    // Equal quantiles need no picture.
    if low == 0.0 && high == 0.0 {
        return None;
    }
    let room = (high - low).max(1.0) * 0.14;
    let plot = Plot::new(size, 30.0, if size == Size::Wide { 250.0 } else { 220.0 });
    let y = Scale::linear(low - room, high + room, plot.bottom, plot.top);
    let x = Scale::linear(-0.5, last as f64 + 0.5, plot.left, plot.right);
    let (unit, unit_ns) = unit_of(high.max(-low));
    let tick = |(i, one): (usize, &QuantileShift)| Tick { value: i as f64, label: name(one, i, size) };
    let ticks: Vec<Tick> = shifts.iter().enumerate().map(tick).collect();
    let mut zero = PathData::default();
    zero.go(plot.left, y.at(0.0));
    zero.across(plot.right);
    let mut line = PathData::default();
    for (i, one) in shifts.iter().enumerate() {
        let at = (x.at(i as f64), y.at(one.difference_ns));
        if i == 0 { line.go(at.0, at.1) } else { line.to(at.0, at.1) }
    }
    let body = html! {
        (plot.x_axis(&x, &ticks, "quantile of the block maxima", theme))
        (plot.y_axis(&y, &y.ticks(7, |ns| number(ns / unit_ns)), &format!("B \u{2212} A in {unit}: above 0 B is later"), theme))
        path d=(zero.0) fill="none" stroke=(theme.ink) stroke-width="1.2" {}
        path d=(line.0) fill="none" stroke=(theme.muted) stroke-width="1.2" {}
        @for (i, one) in shifts.iter().enumerate() { (point(one, x.at(i as f64), &y, size, theme)) }
        (plot.frame(theme))
    };
    let many = of.many();
    let without = shifts.iter().all(|one| one.ci.is_none());
    let note = if without {
        format!("No intervals: unknown, too few {many} how far {many} of one side differ.")
    } else {
        format!("Bars: 95 % intervals over the {many}, individual, not simultaneous; grey if they contain 0.")
    };
    let worst = &shifts[last];
    Some(Picture {
        width: size.width(),
        height: plot.bottom + 44.0,
        body: svg::group(theme, body),
        label: format!(
            "Shift of the block maxima from A to B; {} at p{}.",
            signed(worst.difference_ns),
            digits(worst.q * 100.0)
        ),
        notes: vec![note],
    })
}

/// `p99`; on a narrow picture every other point has a name.
fn name(one: &QuantileShift, i: usize, size: Size) -> String {
    if size == Size::Narrow && i % 2 == 1 { String::new() } else { format!("p{}", digits(one.q * 100.0)) }
}

fn point(one: &QuantileShift, x: f64, y: &Scale, size: Size, theme: &Theme) -> Markup {
    // The colour shows better or worse only if the interval excludes 0.
    let colour = match one.ci {
        Some([low, _]) if low > 0.0 => theme.lines[1],
        Some([_, high]) if high < 0.0 => theme.lines[2],
        _ => theme.muted,
    };
    let (at, words) = (y.at(one.difference_ns), signed(one.difference_ns));
    // Above the bar, each in its column.
    let above = one.ci.map_or(at, |ci| y.at(ci[1])).min(at) - 8.0;
    let bar = one.ci.map(|[low, high]| {
        let mut path = PathData(stroke(x, y.at(low), y.at(high)));
        for end in [low, high] {
            path.go(x - SERIF, y.at(end));
            path.across(x + SERIF);
        }
        path.0
    });
    html! {
        @if let Some(bar) = bar { path d=(bar) fill="none" stroke=(colour) stroke-width="1.6" {} }
        circle cx=(Px(x)) cy=(Px(at)) r="4" fill=(colour) stroke=(theme.background) stroke-width="1.2" { title { (words) } }
        @if size == Size::Wide { (text_over(x, above, "middle", colour, theme, &words)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::theme::PAPER;

    fn shift(q: f64, difference_ns: f64, ci: Option<[f64; 2]>) -> QuantileShift {
        QuantileShift { q, a_ns: 0.0, b_ns: 0.0, difference_ns, ci, p_value: 1.0, p_holm: 1.0 }
    }

    #[test]
    fn each_quantile_has_a_point_and_where_known_a_bar() {
        let shifts = [shift(0.5, -1_200.0, Some([-2_000.0, -400.0])), shift(0.99, 30_000.0, None)];
        let picture = draw(&shifts, ComparedUnit::Run, Size::Wide, &PAPER).unwrap();
        let text = picture.body.into_string();
        assert_eq!((text.matches("<circle").count(), text.matches("stroke-width=\"1.6\"").count()), (2, 1));
        assert!(text.contains("p99") && text.contains("+30 us") && picture.notes[0].contains("95 %"));
        let bare = draw(&shifts[1..], ComparedUnit::Day, Size::Narrow, &PAPER).unwrap();
        assert!(bare.notes[0].contains("No intervals") && bare.label.contains("p99"));
        assert!(draw(&[], ComparedUnit::Run, Size::Wide, &PAPER).is_none());
    }

    #[test]
    fn a_colour_takes_an_interval_without_zero() {
        let colour = |one: QuantileShift| {
            let text = draw(&[one], ComparedUnit::Run, Size::Narrow, &PAPER).unwrap().body.into_string();
            let at = text.find("<circle").unwrap();
            [PAPER.lines[1], PAPER.lines[2], PAPER.muted]
                .iter()
                .position(|colour| text[at..].contains(colour))
        };
        assert_eq!(colour(shift(0.5, 30.0, Some([10.0, 50.0]))), Some(0));
        assert_eq!(colour(shift(0.5, -30.0, Some([-50.0, -10.0]))), Some(1));
        assert_eq!(colour(shift(0.5, -30.0, Some([-70.0, 10.0]))), Some(2));
        assert_eq!(colour(shift(0.5, -30.0, None)), Some(2), "without an interval nothing is told");
    }
}
