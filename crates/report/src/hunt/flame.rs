//! Time of all kept spikes as boxes below each other: kind, owner, function. The width of a box is
//! its time; boxes are ordered by size, not by time of day.

use std::collections::{BTreeMap, HashMap};

use maud::{Markup, html};

use super::kinds;
use super::parts::{SpikePart, parts, share};
use super::sentences::percent;
use crate::plot::axis::number;
use crate::plot::svg::{self, Picture, Px, Size, fit, text_width};
use crate::plot::theme::Theme;
use crate::words::{clean, several, span};
use model::run::{Run, Slice};
use model::sort::CompactSort;
use model::units::Nanos;
use rules::culprits::names;

/// Limit of kinds, names and functions that are kept apart; the others of a kind are merged.
const LEAVES: usize = 300;
const OTHERS: &str = "others";
/// Height of a box in user units; `STEP` is the distance of two rows.
const HEIGHT: f64 = 22.0;
const STEP: f64 = HEIGHT + 2.0;
/// Least width of a box that can be seen.
const MIN_WIDTH: f64 = 1.0;

/// Kind, name, function; empty if there is none.
type Leaf = [String; 3];

/// Time of all kept spikes by kind, name and function.
pub struct Flame {
    /// Leaves in the order in which they are drawn.
    leaves: Vec<(Leaf, i64)>,
    places: HashMap<Leaf, usize>,
    total: i64,
}

/// Box: the leaves that it holds, and its row.
struct FlameBox<'a> {
    depth: usize,
    path: &'a [String],
    leaves: (usize, usize),
    before: i64,
    ns: i64,
}

impl Flame {
    pub fn of(run: &Run) -> Flame {
        let mut sums: BTreeMap<Leaf, i64> = BTreeMap::new();
        for part in run.spikes.iter().flat_map(parts) {
            let sum = sums.entry(leaf(&part)).or_default();
            *sum = sum.saturating_add(part.ns.0);
        }
        let mut order: Vec<(Leaf, i64)> = sums.into_iter().collect();
        order.compact_sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let (mut sums_by_name, mut pooled) = (BTreeMap::<Leaf, i64>::new(), HashMap::new());
        for (at, (own, ns)) in order.into_iter().enumerate() {
            let name = if at < LEAVES { own.clone() } else { [own[0].clone(), OTHERS.into(), String::new()] };
            let sum = sums_by_name.entry(name.clone()).or_default();
            *sum = sum.saturating_add(ns);
            pooled.insert(own, name);
        }
        let leaves = by_size(sums_by_name);
        let total = leaves.iter().fold(0i64, |sum, leaf| sum.saturating_add(leaf.1));
        let at = |name: &Leaf| leaves.iter().position(|leaf| leaf.0 == *name).unwrap_or(0);
        let places = pooled.into_iter().map(|(own, name)| (own, at(&name))).collect();
        Flame { leaves, places, total }
    }

    /// Place of a part's leaf, in the order in which they are drawn.
    pub fn place(&self, part: &SpikePart) -> usize {
        self.places.get(&leaf(part)).copied().unwrap_or(0)
    }

    fn boxes(&self) -> Vec<FlameBox<'_>> {
        let (mut boxes, mut before) = (Vec::<FlameBox>::new(), 0i64);
        for (at, (path, ns)) in self.leaves.iter().enumerate() {
            let named = (1..=path.len()).filter(|&depth| !path[depth - 1].is_empty());
            for (row, depth) in named.enumerate() {
                let path = &path[..depth];
                let open = boxes.iter_mut().rev().find(|open| open.depth == row);
                match open.filter(|open| open.path == path && open.leaves.1 + 1 >= at) {
                    Some(open) => (open.leaves.1, open.ns) = (at, open.ns.saturating_add(*ns)),
                    None => boxes.push(FlameBox { depth: row, path, leaves: (at, at), before, ns: *ns }),
                }
            }
            before = before.saturating_add(*ns);
        }
        boxes
    }

    /// Picture; none if no time was taken.
    pub fn draw(&self, size: Size, theme: &Theme) -> Option<Picture> {
        if self.total <= 0 {
            return None;
        }
        let boxes = self.boxes();
        let width = size.width();
        let at = |ns: i64| ns as f64 / self.total as f64 * width;
        let (drawn, tiny): (Vec<&FlameBox>, Vec<&FlameBox>) =
            boxes.iter().partition(|one| at(one.ns) >= MIN_WIDTH);
        let rows = drawn.iter().map(|one| one.depth + 1).max().unwrap_or(0);
        let words = format!("all {}", span(Nanos(self.total)));
        let body = html! {
            rect x="0" y="0" width=(Px(width)) height=(Px(HEIGHT)) fill=(theme.grid) {}
            (svg::text(6.0, 15.5, "start", theme.ink, &words))
            @for one in drawn { (self.one(one, at(one.before), at(one.ns), theme)) }
        };
        let notes = (!tiny.is_empty()).then(|| {
            let many = several(tiny.len() as u64, "more box is", "more boxes are");
            format!("{many} too narrow to be drawn.")
        });
        Some(Picture {
            width,
            height: STEP * (rows + 1) as f64,
            body: svg::group(theme, body),
            label: format!("{} of all kept spikes by kind, name and function.", span(Nanos(self.total))),
            notes: notes.into_iter().collect(),
        })
    }

    fn one(&self, one: &FlameBox, x: f64, width: f64, theme: &Theme) -> Markup {
        let kind = kinds::of(&one.path[0]);
        let colour = kind.colour(theme);
        let top = STEP * (one.depth + 1) as f64;
        let named: Vec<String> =
            one.path.iter().filter(|name| !name.is_empty()).map(|name| clean(name)).collect();
        let path = named.join(" > ");
        let own = named.last().map_or("", String::as_str);
        let part = percent(share(Nanos(one.ns), Nanos(self.total)));
        let label = format!("{own} {part}");
        let label = if text_width(&label) + 8.0 <= width { label } else { fit(own, width - 8.0) };
        // Below the kind the boxes are lighter, so that their text is readable on any colour.
        let strength = if one.depth == 0 { kind.strength } else { kind.strength * 0.35 };
        let ink = if strength >= 0.75 { theme.background } else { theme.ink };
        html! {
            a class="box" href={ "#boxes=" (one.leaves.0) "-" (one.leaves.1) }
                data-path=(path) data-ns=(one.ns) {
                title { (path) ": " (span(Nanos(one.ns))) ", " (part) }
                rect x=(Px(x)) y=(Px(top)) width=(Px((width - 0.6).max(0.6))) height=(Px(HEIGHT))
                    fill=(colour) fill-opacity=(number(strength)) stroke=(colour) stroke-width="0.8" {}
                @if let Some(hatch) = kind.hatch().filter(|_| one.depth == 0) {
                    rect x=(Px(x)) y=(Px(top)) width=(Px((width - 0.6).max(0.6))) height=(Px(HEIGHT))
                        fill=(hatch) {}
                }
                @if width >= 26.0 {
                    text x=(Px(x + 4.0)) y=(Px(top + 15.5)) fill=(ink) pointer-events="none"
                        stroke=[kind.hatch().filter(|_| one.depth == 0).map(|_| colour)]
                        stroke-width="3" paint-order="stroke" { (label) }
                }
            }
        }
    }
}

/// Sorts kinds by their time, names within a kind by theirs, then functions.
fn by_size(sums: BTreeMap<Leaf, i64>) -> Vec<(Leaf, i64)> {
    let (mut kinds, mut named) = (HashMap::<String, i64>::new(), HashMap::<(String, String), i64>::new());
    for ([kind, who, _], ns) in &sums {
        let of_kind = kinds.entry(kind.clone()).or_default();
        *of_kind = of_kind.saturating_add(*ns);
        let of_name = named.entry((kind.clone(), who.clone())).or_default();
        *of_name = of_name.saturating_add(*ns);
    }
    let mut leaves: Vec<(Leaf, i64)> = sums.into_iter().collect();
    leaves.sort_by_cached_key(|(leaf, ns)| {
        let [kind, who, function] = leaf.clone();
        let of_kind = std::cmp::Reverse(kinds[&kind]);
        let of_name = std::cmp::Reverse(named[&(kind.clone(), who.clone())]);
        (of_kind, kind, of_name, who, std::cmp::Reverse(*ns), function)
    });
    leaves
}

fn leaf(part: &SpikePart) -> Leaf {
    let kind = part.kind().to_owned();
    let Some(slice) = part.slice else { return [kind, String::new(), String::new()] };
    [kind, name(slice), function(slice)]
}

/// Owner of a slice: the same name on every CPU.
fn name(slice: &Slice) -> String {
    match slice.who.irq.as_str() {
        "" => names::thread_name(&slice.who.comm).to_owned(),
        irq => irq.to_owned(),
    }
}

/// Function of a slice, from the event or else the stack.
fn function(slice: &Slice) -> String {
    match names::function_with_module(&slice.who) {
        none if none.is_empty() => {
            slice.stack.first().map_or_else(String::new, |frame| names::bare_function(frame).to_owned())
        }
        function => function,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::fixture;
    use crate::plot::theme::PAPER;

    #[test]
    fn boxes_add_up_to_those_above_them() {
        let run = fixture::run();
        let flame = Flame::of(&run);
        let latency: i64 = run.spikes.iter().map(|spike| spike.latency_ns.0).sum();
        assert_eq!(flame.total, latency);
        let boxes = flame.boxes();
        let top: i64 = boxes.iter().filter(|one| one.depth == 0).map(|one| one.ns).sum();
        assert_eq!(top, latency);
        for one in &boxes {
            let sum: i64 = flame.leaves[one.leaves.0..=one.leaves.1].iter().map(|leaf| leaf.1).sum();
            assert_eq!(sum, one.ns, "{:?}", one.path);
        }
        for part in run.spikes.iter().flat_map(parts) {
            assert_eq!(flame.leaves[flame.place(&part)].0, leaf(&part));
        }
    }

    #[test]
    fn of_any_number_of_names_the_picture_stays_small() {
        let mut run = fixture::run();
        let slice = run.spikes[0].slices[1].clone();
        let many = (0..5_000).map(|at| Slice {
            who: model::run::Who { comm: format!("</svg>{at}\u{202e}"), ..slice.who.clone() },
            ..slice.clone()
        });
        run.spikes[0].slices = many.collect();
        let flame = Flame::of(&run);
        assert!(flame.leaves.len() <= LEAVES + 40);
        let text = flame.draw(Size::Wide, &PAPER).unwrap().body.into_string();
        assert!(!text.contains("</svg>") && !text.contains('\u{202e}'));
        assert!(Flame::of(&Run::default()).draw(Size::Wide, &PAPER).is_none());
    }
}
