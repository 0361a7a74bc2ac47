//! Windows of hunts as a trace for ui.perfetto.dev and chrome://tracing.
//!
//! Source of the format: "Trace Event Format", the JSON array form with complete (`X`), instant
//! (`i`) and metadata (`M`) events. Times are microseconds, none below 0: Perfetto's importer drops
//! such events. Stretches of a track lie within each other or apart.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::nest::{NestContext, Span, nested};
use super::parts::{SpikePart, parts};
use super::sentences;
use super::stages::Landmarks;
use crate::words::{clean, span};
use model::run::{Run, Spike};
use model::sort::CompactSort;
use model::units::Nanos;
use trace::window::Window;

/// Limit of events; the file has the number of the others.
const EVENTS: usize = 500_000;
/// Offset of the tracks of explanations; tracks of CPUs are numbered from one.
const WHY: u32 = 100_000;

/// Hunt to export.
#[derive(Clone, Copy)]
pub struct Traced<'a> {
    /// Name of its process.
    pub title: &'a str,
    /// Run with its spikes.
    pub run: &'a Run,
    /// Windows around them, as far as they exist.
    pub windows: &'a [Window],
}

/// Renders the hunts as one JSON document, a process each, times since the first event of all.
pub fn render(hunts: &[Traced]) -> String {
    bounded(hunts, EVENTS)
}

fn bounded(hunts: &[Traced], most: usize) -> String {
    // The first event is known after one pass over all.
    let zero = Trace::of(hunts, most, None).earliest.unwrap_or_default();
    let trace = Trace::of(hunts, most, Some(zero));
    let other = json!({
        "writer": concat!("onbeat ", env!("CARGO_PKG_VERSION")),
        "zero_mono_ns": zero.0,
        "events_left_out": trace.dropped,
    });
    let events = trace.events;
    format!("{{\"displayTimeUnit\":\"ns\",\"otherData\":{other},\"traceEvents\":[{events}\n]}}\n")
}

struct Trace {
    /// Time that becomes 0; none in the first pass, which writes nothing.
    zero: Option<Nanos>,
    /// Earliest of all events within the room.
    earliest: Option<Nanos>,
    pid: usize,
    /// JSON texts with commas between them: as values they would take many times the memory.
    events: String,
    room: usize,
    dropped: u64,
    /// End of each track so far: windows of spikes close to each other overlap.
    reached: BTreeMap<u32, Nanos>,
}

impl Trace {
    fn of(hunts: &[Traced], most: usize, zero: Option<Nanos>) -> Trace {
        let mut trace = Trace {
            zero,
            earliest: None,
            pid: 0,
            events: String::new(),
            room: most,
            dropped: 0,
            reached: BTreeMap::new(),
        };
        for (at, hunt) in hunts.iter().enumerate() {
            trace.pid = at + 1;
            trace.reached.clear();
            trace.hunt(hunt);
        }
        trace
    }

    fn hunt(&mut self, hunt: &Traced) {
        self.name("process_name", None, &clean(hunt.title));
        let mut windows: Vec<&Window> = hunt.windows.iter().collect();
        windows.compact_sort_by_key(|window| (window.expected_ns, window.cpu));
        for window in windows {
            self.window(window);
        }
        let mut spikes: Vec<&Spike> = hunt.run.spikes.iter().collect();
        spikes.compact_sort_by_key(|spike| (spike.expected_ns, spike.cpu));
        for spike in spikes {
            self.spike(spike, hunt.windows);
        }
        let tracks: Vec<u32> = self.reached.keys().copied().collect();
        for track in tracks {
            let name = if track > WHY {
                format!("CPU {}: why late", track - WHY - 1)
            } else {
                format!("CPU {}", track - 1)
            };
            self.name("thread_name", Some(track), &name);
            // The explanation is above its CPU.
            let order = if track > WHY { (track - WHY) * 2 } else { track * 2 + 1 };
            self.metadata("thread_sort_index", Some(track), json!({ "sort_index": order }));
        }
    }

    fn window(&mut self, window: &Window) {
        for (cpu, spans) in nested(window) {
            let track = cpu.0.saturating_add(1);
            let from = self.from(track);
            for span in &spans {
                self.stretch(track, span, from);
            }
            let end = spans.iter().map(|span| span.end).max().unwrap_or(from);
            self.reached.insert(track, from.max(end));
        }
    }

    fn from(&self, track: u32) -> Nanos {
        self.reached.get(&track).copied().unwrap_or(Nanos(i64::MIN))
    }

    fn stretch(&mut self, track: u32, span: &Span, from: Nanos) {
        let start = span.start.max(from);
        let category = match span.context {
            NestContext::Idle => "idle",
            NestContext::Thread => "thread",
            NestContext::Softirq => "softirq",
            NestContext::Irq => "irq",
            NestContext::Nmi => "nmi",
            NestContext::Function => "function",
        };
        let mut args = Map::new();
        if span.context == NestContext::Thread {
            args.extend(span.prio.map(|prio| ("priority".to_owned(), sentences::priority(prio).into())));
        }
        self.complete(track, &clean(&span.label), category, start, span.end, args);
    }

    fn spike(&mut self, spike: &Spike, windows: &[Window]) {
        let track = spike.cpu.0.saturating_add(WHY + 1);
        let from = self.from(track);
        let end = Nanos(spike.expected_ns.0.saturating_add(spike.latency_ns.0.max(0)));
        let name = format!("{} late: {}", span(spike.latency_ns), sentences::classes(spike));
        let mut args = Map::new();
        args.insert("cycle".into(), json!(spike.cycle));
        args.insert("latency_ns".into(), json!(spike.latency_ns));
        args.insert("unexplained_ns".into(), json!(spike.unexplained_ns));
        args.insert("events_lost".into(), json!(spike.events_lost));
        self.complete(track, &name, "spike", spike.expected_ns.max(from), end, args);
        let mut reached = spike.expected_ns.max(from);
        for part in parts(spike) {
            let at = Nanos(spike.expected_ns.0.saturating_add(part.start.0));
            let to = Nanos(at.0.saturating_add(part.ns.0)).min(end);
            self.complete(track, &part_name(&part), "slice", at.max(reached), to, part_args(&part));
            reached = reached.max(to);
        }
        self.reached.insert(track, from.max(end));
        let window =
            windows.iter().find(|window| (window.cpu, window.expected_ns) == (spike.cpu, spike.expected_ns));
        let bare = Landmarks {
            expected: spike.expected_ns,
            switch: spike.switched_ns,
            actual: spike.actual_ns,
            ..Landmarks::default()
        };
        for (name, time) in window.map_or(bare, Landmarks::of).named() {
            self.instant(track, name, time);
        }
    }

    /// Writes a stretch of a track with its name and category; nothing if it has no length.
    fn complete(
        &mut self,
        track: u32,
        name: &str,
        category: &str,
        from: Nanos,
        to: Nanos,
        mut args: Map<String, Value>,
    ) {
        if to <= from {
            return;
        }
        args.insert("mono_ns".into(), json!(from));
        let length = Nanos(to.0.saturating_sub(from.0));
        let pid = self.pid;
        self.push(from, |ts| {
            json!({
                "ph": "X", "pid": pid, "tid": track, "name": name, "cat": category,
                "ts": ts, "dur": length.as_micros(), "args": args,
            })
        });
    }

    fn instant(&mut self, track: u32, name: &str, time: Nanos) {
        let pid = self.pid;
        self.push(time, |ts| {
            json!({
                "ph": "i", "s": "t", "pid": pid, "tid": track, "name": name, "cat": "landmark",
                "ts": ts, "args": { "mono_ns": time },
            })
        });
    }

    fn name(&mut self, what: &str, track: Option<u32>, name: &str) {
        self.metadata(what, track, json!({ "name": name }));
    }

    /// Writes metadata, which are few and not counted: without them nothing has a name.
    fn metadata(&mut self, what: &str, track: Option<u32>, args: Value) {
        let tid = track.unwrap_or(0);
        if self.zero.is_some() {
            self.write(&json!({ "ph": "M", "pid": self.pid, "tid": tid, "name": what, "args": args }));
        }
    }

    /// Writes an event, from its distance to zero in microseconds; counts it if there is no room.
    fn push(&mut self, time: Nanos, event: impl FnOnce(f64) -> Value) {
        let Some(room) = self.room.checked_sub(1) else {
            self.dropped += 1;
            return;
        };
        self.room = room;
        self.earliest = Some(self.earliest.map_or(time, |earliest| earliest.min(time)));
        if let Some(zero) = self.zero {
            self.write(&event(Nanos(time.0.saturating_sub(zero.0)).as_micros()));
        }
    }

    fn write(&mut self, event: &Value) {
        let comma = if self.events.is_empty() { "\n" } else { ",\n" };
        self.events.push_str(comma);
        self.events.push_str(&event.to_string());
    }
}

fn part_name(part: &SpikePart) -> String {
    let who = part.slice.map(|slice| sentences::who(&slice.who)).unwrap_or_default();
    if who.is_empty() { clean(part.kind()) } else { format!("{}: {who}", clean(part.kind())) }
}

fn part_args(part: &SpikePart) -> Map<String, Value> {
    let mut args = Map::new();
    args.insert("kind".into(), clean(part.kind()).into());
    if let Some(slice) = part.slice {
        args.insert("evidence".into(), clean(&slice.evidence).into());
        if !slice.stack.is_empty() {
            let frames: Vec<String> = slice.stack.iter().map(|frame| clean(frame)).collect();
            args.insert("stack".into(), frames.join(" < ").into());
        }
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::fixture;

    fn events(hunts: &[Traced]) -> Vec<Value> {
        let document: Value = serde_json::from_str(&render(hunts)).unwrap();
        assert_eq!(document["otherData"]["events_left_out"], 0);
        assert_from_zero(&document);
        document["traceEvents"].as_array().unwrap().clone()
    }

    /// Checks that the first event is at 0, and the others at their distance from `zero_mono_ns`.
    fn assert_from_zero(document: &Value) {
        let zero = document["otherData"]["zero_mono_ns"].as_i64().unwrap();
        let timed = document["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] != "M");
        let times = timed.map(|event| {
            let ns = (event["ts"].as_f64().unwrap() * 1e3).round() as i64;
            assert_eq!(ns, event["args"]["mono_ns"].as_i64().unwrap() - zero, "{event}");
            ns
        });
        assert!(matches!(times.min(), None | Some(0)));
    }

    /// Stretches of each track by their start, in whole nanoseconds.
    fn tracks(events: &[Value]) -> BTreeMap<(i64, i64), Vec<(i64, i64)>> {
        let mut tracks: BTreeMap<(i64, i64), Vec<(i64, i64)>> = BTreeMap::new();
        let ns = |value: &Value| (value.as_f64().unwrap() * 1e3).round() as i64;
        for event in events.iter().filter(|event| event["ph"] == "X") {
            let track = (event["pid"].as_i64().unwrap(), event["tid"].as_i64().unwrap());
            let start = ns(&event["ts"]);
            tracks.entry(track).or_default().push((start, start + ns(&event["dur"])));
        }
        tracks
    }

    fn assert_nested(events: &[Value]) {
        for (track, mut stretches) in tracks(events) {
            stretches.sort_by_key(|&(start, end)| (start, -end));
            let mut open: Vec<i64> = Vec::new();
            for (start, end) in stretches {
                open.retain(|&until| until > start);
                assert!(open.iter().all(|&until| end <= until), "{track:?} {start} {end} {open:?}");
                open.push(end);
            }
        }
    }

    #[test]
    fn a_hunt_reads_back_nested_with_its_landmarks() {
        let windows: Vec<Window> = fixture::cases().into_iter().map(|case| case.window).collect();
        let run = fixture::run();
        let hunt = Traced { title: "a \"hunt\"", run: &run, windows: &windows };
        let found = events(&[hunt, hunt]);
        assert_nested(&found);
        assert_eq!(tracks(&found).keys().filter(|track| track.0 == 2).count(), 4);
        let instants =
            |name: &str| found.iter().filter(|event| event["ph"] == "i" && event["name"] == name).count();
        assert_eq!(["expected", "waking", "actual"].map(instants), [16; 3]);
        let slices: f64 = found
            .iter()
            .filter(|event| event["cat"] == "slice" && event["pid"] == 1)
            .map(|event| event["dur"].as_f64().unwrap())
            .sum();
        let latency: i64 = run.spikes.iter().map(|spike| spike.latency_ns.0).sum();
        assert!((slices * 1e3 - latency as f64).abs() < 1.0, "{slices}");
        // Events before the first spike are exported: they are its cause.
        let first = run.spikes.iter().map(|spike| spike.expected_ns.0).min().unwrap();
        assert!(found.iter().any(|event| event["args"]["mono_ns"].as_i64().is_some_and(|time| time < first)));
    }

    #[test]
    fn windows_that_overlap_still_nest() {
        let mut windows = vec![fixture::fifo().window, fixture::irqs_off().window];
        // The second window begins in the middle of the first.
        let shift = windows[0].expected_ns - windows[1].expected_ns + Nanos(100_300);
        windows[1].events.iter_mut().for_each(|event| event.time = event.time + shift);
        windows[1].expected_ns = windows[1].expected_ns + shift;
        windows[1].actual_ns = windows[1].actual_ns + shift;
        let run = Run::default();
        assert_nested(&events(&[Traced { title: "two", run: &run, windows: &windows }]));
    }

    #[test]
    fn of_too_much_the_rest_is_counted() {
        let run = fixture::run();
        let hunt = Traced { title: "", run: &run, windows: &[] };
        let all = events(&[hunt]).iter().filter(|event| event["ph"] != "M").count();
        let document: Value = serde_json::from_str(&bounded(&[hunt], 20)).unwrap();
        assert_from_zero(&document);
        let count =
            document["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] != "M").count();
        assert_eq!((count, &document["otherData"]["events_left_out"]), (20, &json!(all - 20)));
    }

    #[test]
    fn nothing_is_an_empty_trace() {
        let run = Run::default();
        assert_eq!(events(&[Traced { title: "none", run: &run, windows: &[] }]).len(), 1);
        assert!(events(&[]).is_empty());
    }
}
