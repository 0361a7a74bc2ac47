//! Map of a machine as a picture: a column for each CPU, siblings side by side, and rows for the
//! purpose of each and the work that may run there; below, the real-time threads by priority. Words
//! next to each row explain it.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::cpus::{CpuProperty, Map, Work};
use super::frame::{Frame, STRIP};
use super::order::grouped;
use super::tasks::{PriorityStep, rank_name};
use super::words::{cpus, interrupts, label, listed, mark, threads};
use crate::plot::svg::{PathData, Picture, Px, Size, group, text, text_width};
use crate::plot::theme::Theme;
use crate::words::clean;
use model::text::several;
use model::units::{Cpu, CpuSet, named_cpus};

/// Limit of steps of the scale; the others are counted.
const STEPS: usize = 40;

/// Draws the map; none if no CPU is known.
pub fn draw(map: &Map, size: Size, theme: &Theme) -> Option<Picture> {
    if map.cpus.is_empty() {
        return None;
    }
    let mut frame = Frame::new(map, size, theme);
    frame.heads();
    for mark in &map.apart {
        frame.mark(mark, theme.lines[0]);
    }
    frame.mark(&map.workqueues, theme.lines[5]);
    frame.y += 8.0;
    frame.work("interrupts", &map.lands, &interrupts(map));
    frame.work("kernel threads", &map.movable, &threads(map));
    frame.scale();
    Some(frame.picture())
}

impl Frame<'_> {
    /// Draws the nodes, the kinds of cores, the cores, and the audited CPUs.
    fn heads(&mut self) {
        let map = self.map;
        if !map.nodes.is_empty() {
            let nodes = map.nodes.values().collect::<BTreeSet<_>>().len();
            self.bands("NUMA node", &several(nodes as u64, "node", "nodes"), |cpu| {
                map.nodes.get(&cpu).map_or_else(String::new, u32::to_string)
            });
        }
        if !map.types.is_empty() {
            let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
            map.types.values().for_each(|kind| *kinds.entry(kind).or_insert(0) += 1);
            let words: Vec<String> = kinds.iter().map(|(kind, n)| format!("{n} x {}", clean(kind))).collect();
            self.bands("core type", &words.join(", "), |cpu| {
                map.types.get(&cpu).map_or_else(String::new, |kind| clean(kind))
            });
        }
        let top = self.y;
        self.row("CPU", &cpus(map), true, |frame, y| frame.cores(y));
        self.run_labels(top);
        if !map.matter.is_empty() {
            let (colour, words) = (self.theme.ink, named_cpus(&map.matter));
            self.row("matters", &words, true, |frame, y| {
                html! {
                    (frame.background(y)) (frame.fill(y, colour, |cpu| map.matter.contains(cpu)))
                }
            });
        }
        self.y += 6.0;
    }

    fn bands(&mut self, name: &str, words: &str, value: impl Fn(Cpu) -> String) {
        let theme = self.theme;
        self.row(name, words, false, |frame, y| html! {
            @for (from, to, word) in frame.runs(&value) {
                @let (x, width) = (frame.x(from) + 0.5, frame.x(to) - frame.x(from) - 1.0);
                rect x=(Px(x)) y=(Px(y + 0.5)) width=(Px(width)) height=(Px(STRIP - 1.0)) rx="3" fill="none" stroke=(theme.muted) {}
                @if text_width(&word) < width { (text(x + width / 2.0, y + 12.5, "middle", theme.ink, &word)) }
            }
        });
    }

    /// Draws the numbers of similar CPUs below the boxes, if a number per CPU does not fit.
    fn run_labels(&mut self, top: f64) {
        if self.numbered() {
            return;
        }
        let groups = grouped(self.map);
        let labels = self.runs(|cpu| groups.get(&cpu).copied());
        let labels = labels.into_iter().map(|(from, to, _)| {
            let cpus: CpuSet = self.order[from..to].iter().copied().collect();
            (cpus.to_string(), self.x(from), self.x(to))
        });
        // On narrow screens the words are above the boxes.
        let y = if self.wide() { top + STRIP + 14.0 } else { self.y + 8.0 };
        let ink = self.theme.ink;
        let markup = html! {
            @for (label, from, to) in labels.filter(|(label, from, to)| text_width(label) + 8.0 < to - from) {
                (text((from + to) / 2.0, y, "middle", ink, &label))
            }
        };
        self.rows.push(markup);
        self.y = self.y.max(y + 9.0);
    }

    /// True if there is room for the number of each CPU.
    fn numbered(&self) -> bool {
        let widest = self.order.iter().map(|cpu| text_width(&cpu.to_string())).fold(0.0, f64::max);
        widest < self.column()
    }

    /// Box for each core, with its CPUs in it if there is room.
    fn cores(&self, y: f64) -> Markup {
        let (map, theme, column) = (self.map, self.theme, self.column());
        let gap = (column * 0.12).min(2.0);
        // Boxes too narrow to be distinguished are drawn as one.
        let first = |cpu: Cpu| {
            if column < 1.5 {
                Cpu(0)
            } else {
                map.core_of(cpu).and_then(|core| core.iter().next()).unwrap_or(cpu)
            }
        };
        html! {
            @for (from, to, _) in self.runs(|cpu| (first(cpu), map.offline.contains(cpu))) {
                @let off = map.offline.contains(self.order[from]);
                @let (x, width) = (self.x(from) + gap / 2.0, self.x(to) - self.x(from) - gap);
                rect x=(Px(x)) y=(Px(y)) width=(Px(width)) height=(Px(STRIP)) rx=(Px((column * 0.2).min(4.0))) fill=(if off { "none" } else { theme.band })
                    stroke=[off.then_some(theme.muted)] stroke-dasharray=[off.then_some("2 2")] {}
            }
            @if self.numbered() {
                @for (at, cpu) in self.order.iter().enumerate() {
                    (text(self.x(at) + column / 2.0, y + 12.5, "middle", theme.ink, &cpu.to_string()))
                }
            }
        }
    }

    fn mark(&mut self, of: &CpuProperty, colour: &'static str) {
        self.row(of.name, &mark(of), false, |frame, y| match &of.cpus {
            None => frame.unknown(y),
            Some(cpus) => html! { (frame.background(y)) (frame.fill(y, colour, |cpu| cpus.contains(cpu))) },
        });
    }

    /// Draws the amount of work on each CPU as the strength of a colour.
    fn work(&mut self, name: &str, work: &Work, words: &str) {
        let (counts, theme) = (work.per_cpu(), self.theme);
        let count = |cpu: Cpu| counts.get(&cpu).copied().unwrap_or(0);
        let heat = |n: usize| theme.heat[(n.ilog2() as usize).min(theme.heat.len() - 1)];
        self.row(name, words, false, |frame, y| {
            if work.partial && work.items.is_empty() {
                return frame.unknown(y);
            }
            let column = frame.column();
            html! {
                (frame.background(y))
                @for (from, to, n) in frame.runs(count).into_iter().filter(|run| run.2 > 0) {
                    rect x=(Px(frame.x(from))) y=(Px(y)) width=(Px(frame.x(to) - frame.x(from))) height=(Px(STRIP)) fill=(heat(n)) {}
                    @for at in from..to {
                        @if text_width(&n.to_string()) < column {
                            g font-weight="600" { (text(frame.x(at) + column / 2.0, y + 12.5, "middle", theme.background, &n.to_string())) }
                        }
                    }
                }
            }
        });
    }

    fn scale(&mut self) {
        let (map, theme) = (self.map, self.theme);
        self.y += 22.0;
        let x = if self.wide() { self.left - 10.0 } else { self.left };
        let anchor = if self.wide() { "end" } else { "start" };
        let heading = html! {
            g font-weight="600" { (text(x, self.y - 8.0, anchor, theme.ink, "RT priority")) }
            @if self.wide() { (text(self.right + 14.0, self.y - 8.0, "start", theme.muted, "programs in bold, kernel threads in plain")) }
        };
        self.rows.push(heading);
        if map.realtime.is_empty() {
            let unknown = map.bound.partial;
            self.row("", if unknown { "not known" } else { "no real-time threads" }, false, |frame, y| {
                if unknown { frame.unknown(y) } else { frame.background(y) }
            });
        }
        let mut before = None;
        for step in map.realtime.iter().take(STEPS) {
            let rank = rank_name(step.rank);
            let name = if before == Some(step.rank) && self.wide() { "" } else { rank.as_str() };
            before = Some(step.rank);
            self.row(name, &listed(&step.names, 12), !step.kernel, |frame, y| frame.step(step, y));
        }
    }

    fn step(&self, step: &PriorityStep, y: f64) -> Markup {
        let Some(cpus) = &step.cpus else { return self.unknown(y) };
        let colour = if step.kernel { self.theme.muted } else { self.theme.lines[2] };
        let column = self.column();
        if !step.each {
            return html! { (self.background(y)) (self.fill(y, colour, |cpu| cpus.contains(cpu))) };
        }
        // Each thread may use a part of them: a cell for each CPU, unless cells are too small.
        let mut cells = PathData::default();
        if column < 5.0 {
            for (from, to, _) in self.runs(|cpu| cpus.contains(cpu)).into_iter().filter(|run| run.2) {
                cells.rect(self.x(from), y + 4.0, self.x(to) - self.x(from), STRIP - 8.0);
            }
        } else {
            let gap = (column * 0.25).min(10.0);
            for (at, _) in self.order.iter().enumerate().filter(|(_, cpu)| cpus.contains(**cpu)) {
                cells.rect(self.x(at) + gap / 2.0, y + 3.0, column - gap, STRIP - 6.0);
            }
        }
        html! { (self.background(y)) path d=(cells.0) fill=(colour) fill-opacity="0.8" {} }
    }

    fn picture(self) -> Picture {
        let (map, theme, height) = (self.map, self.theme, self.y + 4.0);
        let behind = |from: usize, to: usize| {
            html! {
                rect x=(Px(self.x(from))) y="0" width=(Px(self.x(to) - self.x(from))) height=(Px(height)) fill=(theme.lines[0]) fill-opacity="0.09" {}
            }
        };
        let body = group(
            theme,
            html! {
                @for (from, to, _) in self.runs(|cpu| map.matter.contains(cpu)).into_iter().filter(|run| run.2) { (behind(from, to)) }
                @for row in &self.rows { (row) }
            },
        );
        let mut notes = Vec::new();
        if !map.matter.is_empty() {
            notes.push("Shaded: the audited CPUs.".to_owned());
        }
        if map.realtime.iter().any(|step| step.each) {
            notes.push("Thin bars: each thread may run only on some of these CPUs.".to_owned());
        }
        if map.realtime.len() > STEPS {
            notes.push(format!(
                "Not drawn: {} of real-time threads.",
                several((map.realtime.len() - STEPS) as u64, "more row", "more rows")
            ));
        }
        Picture { width: self.size.width(), height, body, label: label(map), notes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::tests::{four, machine, map_of};
    use crate::plot::theme::PAPER;

    #[test]
    fn nothing_is_drawn_outside_and_nothing_is_left_out() {
        for machine in [four(), machine(1, ""), machine(256, "--cpus 255")] {
            let map = map_of(&machine);
            for size in [Size::Wide, Size::Narrow] {
                let picture = draw(&map, size, &PAPER).unwrap();
                let body = picture.body.into_string();
                for word in ["isolcpus", "cpuset partition", "unbound work", "migration/", "RT priority"] {
                    assert!(body.contains(word), "{word}");
                }
                let places = body.split(" x=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
                let places: Vec<f64> = places.map(|x| x.parse().unwrap()).collect();
                assert!(places.iter().all(|&x| (0.0..=picture.width).contains(&x)));
                assert!(body.len() < 120_000, "{}", body.len());
            }
        }
    }
}
