//! Data that the page's script draws: all kept spikes in parts, the maxima over time, and the lanes
//! of every CPU around some spikes. Each text is written once and referred to by its index; all
//! texts are cleaned here, and the script inserts them only as text.

use std::collections::HashMap;

use serde::Serialize;

use super::flame::Flame;
use super::kinds::{self, KindStyle};
use super::lanes::KeptLanes;
use super::parts::{SpikePart, by_latency, longest, parts};
use super::stages::Landmarks;
use super::tracks::{label_of, look_of, looks};
use super::typical::{self, Involved, most_of};
use super::{picture, sentences, threads};
use crate::input::Input;
use crate::plot::theme::PAGE;
use crate::words::{clean, several, span};
use model::run::{Culprit, Run, Spike};
use model::units::{Cpu, Nanos};
use rules::culprits::belonging::time_by_culprit;

/// Limit of parts of a spike: the longest ones.
const PARTS: usize = 60;
/// Limit of maxima of all CPUs together.
const MAXIMA: usize = 40_000;

/// Document for the script; times are nanoseconds since the start of the pictures.
#[derive(Serialize)]
pub struct AskData {
    texts: Vec<String>,
    over: Option<i64>,
    /// Length of a column of maxima.
    column: i64,
    cpus: Vec<CpuMaxima>,
    kinds: Vec<Look>,
    looks: Vec<Look>,
    culprits: Vec<CulpritData>,
    /// Spike that is shown first.
    first: usize,
    /// Spikes, latest first, numbered from one.
    spikes: Vec<SpikeData>,
}

#[derive(Serialize)]
struct CpuMaxima {
    cpu: Cpu,
    /// Maximum of each column; -1 if the CPU had no wake-up.
    max: Vec<i64>,
}

#[derive(Serialize)]
struct Look {
    name: String,
    words: String,
    fill: &'static str,
    strength: f64,
    hatch: &'static str,
}

#[derive(Serialize)]
struct CulpritData {
    name: usize,
    spikes: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    typical: Option<usize>,
}

#[derive(Serialize)]
struct SpikeData {
    cpu: Cpu,
    at: i64,
    late: i64,
    /// Lateness in words; `since` names the zero of its times.
    told: usize,
    since: usize,
    when: usize,
    classes: usize,
    /// Name of the culprit that took most of it.
    most: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<usize>,
    /// Start, length, kind, owner, evidence, stack (-1: none) and flame leaf of each part.
    parts: Vec<[i64; 7]>,
    /// Landmarks: name and time.
    marks: Vec<(usize, i64)>,
    /// Lanes: the CPU, then start, length, look (-1: idle) and label of each stretch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lanes: Vec<Vec<LaneItem>>,
}

/// Item of a lane: its CPU first, then its stretches.
#[derive(Serialize)]
#[serde(untagged)]
enum LaneItem {
    Of(Cpu),
    Stretch([i64; 4]),
}

/// Table of texts, by index.
#[derive(Default)]
struct Texts {
    all: Vec<String>,
    places: HashMap<String, usize>,
}

impl Texts {
    fn place(&mut self, text: String) -> usize {
        if let Some(&at) = self.places.get(&text) {
            return at;
        }
        self.all.push(text.clone());
        self.places.insert(text, self.all.len() - 1);
        self.all.len() - 1
    }
}

/// Data of a run; none for a run without spikes.
pub fn of(input: &Input, flame: &Flame, involved: &[Involved]) -> Option<AskData> {
    let run = input.run;
    if run.spikes.is_empty() {
        return None;
    }
    let peaks = input.history.peaks().limited(MAXIMA);
    let first = run.spikes.iter().map(|spike| spike.expected_ns).min();
    let mut writer = Writer {
        run,
        start: peaks.start().or(first).unwrap_or_default(),
        input,
        flame,
        texts: Texts::default(),
        kinds: Vec::new(),
    };
    let order = by_latency(run);
    let culprits = writer.culprits(&order, involved);
    let example = typical::example(run, involved);
    let first = order.iter().position(|at| Some(*at) == example).unwrap_or(0);
    let spikes = order.iter().map(|&at| writer.spike(&run.spikes[at])).collect();
    let maxima = |columns: &[Option<Nanos>]| columns.iter().map(|max| max.map_or(-1, |max| max.0)).collect();
    Some(AskData {
        over: run.recorder.as_ref().and_then(|recorder| recorder.over_ns).map(|over| over.0),
        column: peaks.width().0,
        cpus: peaks.cpus().map(|(cpu, columns)| CpuMaxima { cpu, max: maxima(columns) }).collect(),
        kinds: writer.kinds.iter().map(|name| look(kinds::of(name), name, kinds::of(name).words)).collect(),
        looks: looks().map(|(kind, words)| look(kind, "", words)).collect(),
        culprits,
        first,
        spikes,
        texts: writer.texts.all,
    })
}

fn look(kind: KindStyle, name: &str, words: &str) -> Look {
    let hatch = kind.hatch().unwrap_or_default();
    let (fill, strength) = (kind.colour(&PAGE), kind.strength);
    Look { name: clean(name), words: words.into(), fill, strength, hatch }
}

struct Writer<'a> {
    run: &'a Run,
    input: &'a Input<'a>,
    start: Nanos,
    flame: &'a Flame,
    texts: Texts,
    kinds: Vec<String>,
}

impl Writer<'_> {
    fn culprits(&mut self, order: &[usize], involved: &[Involved]) -> Vec<CulpritData> {
        // Maps places in the run's list to ranks in the order of latency.
        let mut ranks = vec![0usize; order.len()];
        order.iter().enumerate().for_each(|(rank, &at)| ranks[at] = rank);
        let data = |(culprit, part): (&Culprit, &Involved)| CulpritData {
            name: self.texts.place(clean(&culprit.name)),
            spikes: part.spikes.iter().map(|&at| ranks[at]).collect(),
            typical: part.typical.map(|at| ranks[at]),
        };
        self.run.culprits.iter().zip(involved).map(data).collect()
    }

    fn spike(&mut self, spike: &Spike) -> SpikeData {
        let tracks = self.input.windows.and_then(|windows| windows.lanes(spike));
        let (longest_parts, others, length) = longest(parts(spike), PARTS);
        let mut data = SpikeData {
            cpu: spike.cpu,
            at: spike.actual_ns.0.saturating_sub(self.start.0),
            late: spike.latency_ns.0,
            told: self.texts.place(threads::late(spike)),
            since: self.texts.place(picture::since_what(spike).to_owned()),
            when: self.texts.place(sentences::when(spike, self.run)),
            classes: self.texts.place(sentences::classes(spike)),
            most: self.most(spike),
            notes: Vec::new(),
            parts: longest_parts.iter().map(|part| self.part(part, tracks.is_some())).collect(),
            marks: self.marks(spike, tracks),
            lanes: tracks.map_or_else(Vec::new, |tracks| self.lanes(spike, tracks)),
        };
        let mut note = |text: String| data.notes.push(self.texts.place(text));
        if let Some(victim) = sentences::victim(spike) {
            note(format!("The late thread: {victim}."));
        }
        if spike.events_lost > 0 {
            let lost = several(spike.events_lost, "event", "events");
            note(format!("{lost} of this CPU lost: slices may be missing."));
        }
        if others > 0 {
            let more = several(others as u64, "shorter part", "shorter parts");
            note(format!("And {more}, {} together.", span(length)));
        }
        if !spike.unexplained_why.is_empty() {
            note(format!("Reason why it is unexplained: {}.", clean(&spike.unexplained_why)));
        }
        spike.notes.iter().for_each(|text| note(clean(text)));
        tracks.into_iter().flat_map(|tracks| &tracks.notes).for_each(|text| note(text.clone()));
        data
    }

    /// Name of the culprit that took most of it; the classes if no listed culprit has a part.
    fn most(&mut self, spike: &Spike) -> usize {
        let took = time_by_culprit(&self.run.culprits, spike);
        let name = most_of(&took).map(|at| clean(&self.run.culprits[at].name));
        self.texts.place(name.unwrap_or_else(|| sentences::classes(spike)))
    }

    fn part(&mut self, part: &SpikePart, with_stack: bool) -> [i64; 7] {
        let kind = self.kind(part.kind());
        let none = || kinds::of(kinds::UNEXPLAINED).words.to_owned();
        let who = part.slice.map_or_else(String::new, |slice| sentences::who(&slice.who));
        let evidence = part.slice.map_or_else(none, |slice| clean(&slice.evidence));
        let stack = part
            .slice
            .filter(|slice| with_stack && !slice.stack.is_empty())
            .map(|slice| slice.stack.iter().map(|frame| clean(frame)).collect::<Vec<_>>().join("\n"));
        [
            part.start.0,
            part.ns.0,
            kind as i64,
            self.texts.place(who) as i64,
            self.texts.place(evidence) as i64,
            stack.map_or(-1, |stack| self.texts.place(stack) as i64),
            self.flame.place(part) as i64,
        ]
    }

    fn kind(&mut self, name: &str) -> usize {
        if let Some(at) = self.kinds.iter().position(|kind| kind == name) {
            return at;
        }
        self.kinds.push(name.to_owned());
        self.kinds.len() - 1
    }

    fn marks(&mut self, spike: &Spike, tracks: Option<&KeptLanes>) -> Vec<(usize, i64)> {
        let bare = Landmarks {
            expected: spike.expected_ns,
            switch: spike.switched_ns,
            actual: spike.actual_ns,
            ..Landmarks::default()
        };
        let named = tracks.map_or_else(|| bare.named(), |tracks| tracks.marks.clone());
        let mark = |(name, time): (&'static str, Nanos)| {
            (
                self.texts.place(picture::mark_name(name, spike).to_owned()),
                time.0.saturating_sub(spike.expected_ns.0),
            )
        };
        named.into_iter().map(mark).collect()
    }

    fn lanes(&mut self, spike: &Spike, tracks: &KeptLanes) -> Vec<Vec<LaneItem>> {
        let mut lanes = Vec::new();
        for lane in &tracks.lanes {
            let mut row = vec![LaneItem::Of(lane.cpu)];
            for stretch in &lane.spans {
                let look = look_of(stretch, spike.victim.pid).map_or(-1, |look| look as i64);
                let label = self.texts.place(label_of(stretch)) as i64;
                let start = stretch.start.0.saturating_sub(spike.expected_ns.0);
                row.push(LaneItem::Stretch([start, stretch.ns.0, look, label]));
            }
            lanes.push(row);
        }
        lanes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::{fixture, typical};

    fn data(run: &Run) -> serde_json::Value {
        let (sample, windows) = (crate::fixture::quiet(), fixture::windows());
        let input = Input { run, windows: Some(&windows), ..sample.input() };
        serde_json::to_value(of(&input, &Flame::of(run), &typical::all(run)).unwrap()).unwrap()
    }

    #[test]
    fn all_spikes_are_there_in_parts_that_add_up() {
        let run = fixture::run();
        let data = data(&run);
        let spikes = data["spikes"].as_array().unwrap();
        assert_eq!(spikes.len(), run.spikes.len());
        for spike in spikes {
            let parts = spike["parts"].as_array().unwrap();
            let sum: i64 = parts.iter().map(|part| part[1].as_i64().unwrap()).sum();
            assert_eq!(spike["late"].as_i64(), Some(sum));
            assert!(!spike["lanes"].as_array().unwrap().is_empty());
        }
        let late: Vec<i64> = spikes.iter().map(|spike| spike["late"].as_i64().unwrap()).collect();
        assert!(late.windows(2).all(|pair| pair[0] >= pair[1]));
        let typical = data["culprits"][0]["typical"].as_u64().unwrap() as usize;
        assert_eq!(typical, 0, "the one spike without any event is the latest");
    }

    #[test]
    fn texts_are_clean_and_a_run_without_spikes_has_none() {
        let mut run = fixture::run();
        for slice in run.spikes.iter_mut().flat_map(|spike| &mut spike.slices) {
            (slice.evidence, slice.who.comm) = ("\u{1b}[2J\u{202e}".into(), "\u{7}\u{2066}".into());
        }
        let data = data(&run);
        for text in data["texts"].as_array().unwrap() {
            // Each line of a stack is a frame.
            assert!(text.as_str().unwrap().split('\n').all(|line| !line.chars().any(model::text::steers)));
        }
        run.spikes.clear();
        let sample = crate::fixture::quiet();
        assert!(of(&Input { run: &run, ..sample.input() }, &Flame::of(&run), &[]).is_none());
    }
}
