//! Overlay of runs: the rate at which each reaches a latency. A group of runs has one colour, thin
//! lines for its runs and a thick one for all of them together.

use maud::html;

use super::axis::{Scale, nice_at_or_above, nice_at_or_below, power_label, span_label};
use super::curve::Curve;
use super::exceedance_rate;
use super::svg;
use super::svg::{LegendEntry, Picture, Plot, Size, legend};
use super::theme::{LINES, Theme};
use crate::words::{clean, several};
use model::units::Nanos;
use stats::pair::unit::ComparedUnit;
use stats::series::Series;

/// Limit of runs of a group with a line each: the first ones.
const MAX_SINGLE_RUNS: usize = 60;

/// Runs, or days, of one colour.
pub struct RunGroup<'a> {
    pub name: String,
    pub series: Vec<&'a Series>,
    pub unit: ComparedUnit,
}

/// Curves of one group: all together, and of each run if there are several.
struct Drawn {
    all: Curve,
    single: Vec<Curve>,
}

/// Picture of the groups, at most as many as there are colours; `None` without blocks.
pub fn draw(groups: &[RunGroup], limit: Option<Nanos>, size: Size, theme: &Theme) -> Option<Picture> {
    let drawn: Vec<Option<Drawn>> = groups.iter().take(LINES).map(curves).collect();
    let all = || drawn.iter().flatten().flat_map(|drawn| std::iter::once(&drawn.all).chain(&drawn.single));
    let least = |of: fn(&Curve) -> f64| all().map(of).reduce(f64::min);
    let most = |of: fn(&Curve) -> f64| all().map(of).reduce(f64::max);
    let (lowest, worst) = (least(|curve| curve.extent().0)?, most(|curve| curve.extent().1)?);
    // The limit is shown as long as the curves keep most of the picture.
    let near = |limit: &Nanos| limit.0 as f64 / 4.0 <= worst && limit.0 as f64 * 4.0 >= lowest;
    let limit_mark = limit.filter(near);
    let furthest = limit_mark.map_or(worst, |limit| worst.max(limit.0 as f64));
    let lowest = limit_mark.map_or(lowest, |limit| lowest.min(limit.0 as f64));
    let plot = Plot::new(size, 30.0, if size == Size::Wide { 290.0 } else { 250.0 });
    // The picture holds all that is compared, so its axis need not match another. The largest value
    // has room at the end.
    let (from, to) = (nice_at_or_below(lowest), nice_at_or_above(furthest * 1.1));
    let x = Scale::log(from, to, plot.left, plot.right);
    let y = Scale::log(least(Curve::one)? / 2.0, most(Curve::most)? * 1.5, plot.bottom, plot.top);
    let path = |curve: &Curve| curve.path(&x, &y, curve.observed()).0;
    let (legend, legend_height) = legend(&keys(groups, &drawn, theme), &plot, plot.bottom + 58.0, theme);
    let body = html! {
        (plot.x_axis(&x, &x.ticks(size.x_ticks(), span_label), "latency, logarithmic", theme))
        (plot.y_axis(&y, &y.ticks(8, power_label), "blocks per hour that reach it", theme))
        @for (colour, drawn) in drawn.iter().enumerate().filter_map(|(i, drawn)| Some((theme.lines[i], drawn.as_ref()?))) {
            @for curve in &drawn.single {
                path d=(path(curve)) fill="none" stroke=(colour) stroke-width="0.9" stroke-opacity="0.55" {}
            }
        }
        // Thick lines last, so that no thin one hides them.
        @for (i, drawn) in drawn.iter().enumerate().filter_map(|(i, drawn)| Some((i, drawn.as_ref()?))) {
            @let width = if drawn.single.is_empty() { "1.7" } else { "2.8" };
            path d=(path(&drawn.all)) fill="none" stroke=(theme.lines[i]) stroke-width=(width) { title { (groups[i].name) } }
        }
        @if let Some(limit) = limit_mark { (exceedance_rate::limit(limit, &plot, &x, theme)) }
        (plot.frame(theme))
        (legend)
    };
    Some(Picture {
        width: size.width(),
        height: plot.bottom + 58.0 + legend_height,
        body: svg::group(theme, body),
        label: format!(
            "Rate at which a latency is reached, of {}.",
            several(groups.len() as u64, "group", "groups")
        ),
        notes: notes(
            groups,
            limit.filter(|_| limit_mark.is_none()).map(|limit| (limit, limit.0 as f64 > worst)),
        ),
    })
}

fn curves(group: &RunGroup) -> Option<Drawn> {
    let all = Curve::of(&group.series)?;
    let several = group.series.len() > 1;
    let single = group
        .series
        .iter()
        .filter(|_| several)
        .take(MAX_SINGLE_RUNS)
        .filter_map(|series| Curve::of(&[*series]));
    Some(Drawn { all, single: single.collect() })
}

fn keys(groups: &[RunGroup], drawn: &[Option<Drawn>], theme: &Theme) -> Vec<LegendEntry> {
    let key = |(i, group): (usize, &RunGroup)| {
        let runs = match group.series.len() {
            _ if drawn[i].is_none() => ": no block records".into(),
            0 | 1 => String::new(),
            n => format!(": {n} {}, thick: all together", group.unit.many()),
        };
        LegendEntry { colour: theme.lines[i], area: false, words: format!("{}{runs}", clean(&group.name)) }
    };
    groups.iter().take(LINES).enumerate().map(key).collect()
}

/// Remarks on omissions; `far` is a distant limit, and true if it is to the right.
fn notes(groups: &[RunGroup], far: Option<(Nanos, bool)>) -> Vec<String> {
    let mut notes = Vec::new();
    if groups.len() > LINES {
        notes.push(format!("Only the first {LINES} of {} are drawn.", groups.len()));
    }
    let cut = groups.iter().map(|group| group.series.len()).max().filter(|&most| most > MAX_SINGLE_RUNS);
    let many = groups.first().map_or(ComparedUnit::Run, |group| group.unit).many();
    notes.extend(
        cut.map(|_| format!("The first {MAX_SINGLE_RUNS} {many} of each side have a separate line.")),
    );
    notes.extend(far.map(|(limit, right)| exceedance_rate::lies_far(limit, right)));
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::plot::theme::PAPER;
    use stats::series::BLOCK;

    #[test]
    fn a_group_has_a_thin_line_per_run_and_a_thick_one() {
        let (a, b) = (fixture::quiet(), fixture::early());
        let groups = [
            RunGroup { name: "<A>".into(), series: vec![&a.series, &b.series], unit: ComparedUnit::Day },
            RunGroup { name: "B".into(), series: vec![&b.series], unit: ComparedUnit::Run },
        ];
        let picture = draw(&groups, Some(Nanos(1_000_000_000)), Size::Narrow, &PAPER).unwrap();
        let text = picture.body.into_string();
        let count = |width: &str| text.matches(&format!("stroke-width=\"{width}\"")).count();
        assert_eq!((count("0.9"), count("2.8"), count("1.7")), (2, 1, 1));
        assert!(
            text.contains("&lt;A&gt;: 2 days") && picture.notes[0].contains("1 s"),
            "{:?}",
            picture.notes
        );
    }

    /// Within an octave of latencies an axis of four decades would show nothing.
    #[test]
    fn the_axis_begins_and_ends_near_the_data() {
        let list: Vec<Option<Nanos>> = (45..=95).map(|us| Some(Nanos(us * 1_000))).collect();
        let series = Series::of_list(&list, BLOCK, Nanos(1));
        let groups = [RunGroup { name: "A".into(), series: vec![&series], unit: ComparedUnit::Day }];
        for size in [Size::Wide, Size::Narrow] {
            let text = draw(&groups, Some(Nanos(70_000)), size, &PAPER).unwrap().body.into_string();
            assert!(text.contains(">20 us<") && text.contains(">200 us<"), "{text}");
            assert!(!text.contains(">1 us<") && !text.contains(">1 ms<"), "{text}");
            // The curve falls: there is room above it to the right of the limit.
            let limit = text.split(">limit 70 us<").next().unwrap().rsplit("<text").next().unwrap();
            assert!(limit.contains("\"start\""), "{limit}");
        }
    }

    #[test]
    fn a_limit_below_all_maxima_stands_where_it_is() {
        let a = fixture::early();
        let groups = [RunGroup { name: "A".into(), series: vec![&a.series], unit: ComparedUnit::Run }];
        let (lowest, _) = Curve::of(&groups[0].series).unwrap().extent();
        let drawn = |limit: f64| draw(&groups, Some(Nanos(limit as i64)), Size::Wide, &PAPER).unwrap();
        let near = drawn(lowest / 2.0);
        assert!(near.notes.is_empty() && near.body.into_string().contains("limit"));
        let far = drawn(lowest / 10.0);
        assert!(far.notes[0].contains("far to the left") && !far.body.into_string().contains(">limit"));
    }

    #[test]
    fn many_groups_are_bounded_and_none_is_no_picture() {
        let a = fixture::early();
        let groups: Vec<RunGroup> = (0..20)
            .map(|i| RunGroup { name: i.to_string(), series: vec![&a.series], unit: ComparedUnit::Run })
            .collect();
        assert!(draw(&groups, None, Size::Wide, &PAPER).unwrap().notes[0].contains("first 8 of 20"));
        let bare = || RunGroup { name: "x".into(), series: Vec::new(), unit: ComparedUnit::Run };
        let beside =
            [RunGroup { name: "a".into(), series: vec![&a.series], unit: ComparedUnit::Run }, bare()];
        let text = draw(&beside, None, Size::Wide, &PAPER).unwrap().body.into_string();
        assert!(text.contains("x: no block records"));
        assert!(draw(&[bare()], None, Size::Wide, &PAPER).is_none());
    }
}
