//! Cost of a hunt's page of a day in a browser: its size, the first paint, a click that opens a
//! spike, a step of zoom; by the main thread's time in the browser's own trace.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::{Folder, Row, Rows};
use crate::browser;
use crate::tools::{Result, Tool, read, root, target};

const SPIKES: u64 = 2_000;
const CPUS: u64 = 8;
const HOURS: u64 = 24;
/// Number of windows that a hunt keeps with the events of every CPU.
const WINDOWS: u64 = 200;
/// Repetitions of each action; their median counts.
const ACTS: usize = 20;
const SIZE_BYTES: f64 = 6e6;
const PAINT_MS: f64 = 1_000.0;
const CLICK_MS: f64 = 100.0;
const ZOOM_MS: f64 = 16.0;
/// Seconds until the browser writes its trace, regardless of the page.
const TRACED_S: u64 = 40;
const DRIVE: &str = include_str!("page.js");

pub fn measure(onbeat: &Path) -> Rows {
    let browser = browser::installed_browser().ok_or("no Chromium found")?;
    let folder = Folder(target("lab/bench")?.join("page"));
    let bundle = folder.0.join("day");
    day_bundle(&bundle)?;
    let page = folder.0.join("day.html");
    let paths = [bundle.display().to_string(), page.display().to_string()];
    Tool::new(onbeat).args(["report", &paths[0], "-o", &paths[1]]).quiet().show()?;
    let text = String::from_utf8_lossy(&read(&page)?).into_owned();
    let driven = folder.0.join("driven.html");
    let drive = DRIVE.replace("ACTS", &ACTS.to_string());
    std::fs::write(&driven, browser::driven_by(&text, &drive)).map_err(|error| error.to_string())?;
    let trace = traced(browser, &driven, &folder.0)?;
    let mut rows =
        vec![row("page of 2,000 spikes, 24 h of 8 CPUs: MB", text.len() as f64 / 1e6, SIZE_BYTES / 1e6)];
    rows.push(row("its first paint: ms", trace.first_paint()?, PAINT_MS));
    for (act, what, limit) in
        [("click", "a click to a spike's drawing: ms", CLICK_MS), ("zoom", "a step of zoom: ms", ZOOM_MS)]
    {
        rows.push(row(what, trace.median(act)?, limit));
    }
    Ok(rows)
}

/// A bundle of a day, from the fixture's spikes over and over.
fn day_bundle(bundle: &Path) -> Result<()> {
    let fail = |error: std::io::Error| error.to_string();
    std::fs::create_dir_all(bundle.join("events")).map_err(fail)?;
    let source = root().join("tests/fixtures/runs/hunt");
    let mut run = parsed(&String::from_utf8_lossy(&read(&source.join("run.json"))?))?;
    let windows = String::from_utf8_lossy(&read(&source.join("events/spikes.jsonl"))?).into_owned();
    let windows: Vec<Value> = windows.lines().map(parsed).collect::<Result<_>>()?;
    let start = run["cpus"][0]["t0_mono_ns"].as_i64().ok_or("the fixture has no start")?;
    let length = i64::try_from(HOURS * 3_600).unwrap_or(0) * 1_000_000_000;
    run["elapsed_ns"] = length.into();
    let cpu = run["cpus"][0].clone();
    let cpus = (0..CPUS).map(|at| {
        let mut cpu = cpu.clone();
        cpu["cpu"] = at.into();
        cpu
    });
    run["cpus"] = cpus.collect();
    run["plan"]["cpus"] = (0..CPUS).collect::<Vec<u64>>().into();
    let own = run["spikes"].as_array().cloned().ok_or("the fixture has no spikes")?;
    let (mut spikes, mut lines) = (Vec::new(), String::new());
    for at in 0..SPIKES {
        let place = usize::try_from(at).unwrap_or(0) % own.len();
        // Spread over the day, and no two of the same length.
        let by = length / SPIKES as i64 * at as i64;
        let shift = |value: &Value| value.as_i64().map_or(Value::Null, |ns| (ns + by).into());
        let mut spike = own[place].clone();
        spike["cpu"] = (at % CPUS).into();
        for name in ["expected_ns", "actual_ns", "switched_ns"] {
            spike[name] = shift(&spike[name]);
        }
        if at < WINDOWS {
            let mut window = windows[place % windows.len()].clone();
            window["cpu"] = spike["cpu"].clone();
            window["expected_ns"] = spike["expected_ns"].clone();
            window["actual_ns"] = spike["actual_ns"].clone();
            for event in window["events"].as_array_mut().into_iter().flatten() {
                event["t"] = shift(&event["t"]);
                if event["cpu"] == 1 {
                    event["cpu"] = spike["cpu"].clone();
                }
            }
            let _ = writeln!(lines, "{window}");
        }
        spikes.push(spike);
    }
    run["spikes"] = spikes.into();
    std::fs::write(bundle.join("run.json"), run.to_string()).map_err(fail)?;
    std::fs::write(bundle.join("events/spikes.jsonl"), lines).map_err(fail)?;
    blocks(&bundle.join("blocks.jsonl"), start).map_err(fail)
}

fn blocks(file: &Path, start: i64) -> std::io::Result<()> {
    let mut to = std::io::BufWriter::new(std::fs::File::create(file)?);
    for second in 0..HOURS * 3_600 {
        for cpu in 0..CPUS {
            let mono = start + second as i64 * 1_000_000_000;
            let max = 20_000 + (second * 7_919 + cpu * 104_729) % 400_000;
            writeln!(
                to,
                "{{\"cpu\":{cpu},\"mono_ns\":{mono},\"span_ns\":1000000000,\"n\":1000,\"max_ns\":{max},\
                 \"max_mono_ns\":{},\"top_ns\":[],\"over\":[[10112,1000],[50176,9]],\"missed\":0}}",
                mono + 500_000_000
            )?;
        }
    }
    to.flush()
}

/// Activity of the browser's main thread on the page, times in us.
struct PageTrace {
    /// Start and length of its tasks.
    tasks: Vec<(f64, f64)>,
    /// The page's own marks, and the browser's: names and times.
    marks: BTreeMap<String, f64>,
}

fn traced(browser: &str, page: &Path, folder: &Path) -> Result<PageTrace> {
    let file = folder.join("trace.json");
    let flags = [
        "--headless".to_owned(),
        "--no-sandbox".to_owned(),
        "--disable-gpu".to_owned(),
        format!("--user-data-dir={}", folder.join("profile").display()),
        "--window-size=1280,900".to_owned(),
        "--trace-startup=toplevel,blink.user_timing,loading".to_owned(),
        "--trace-startup-format=json".to_owned(),
        format!("--trace-startup-file={}", file.display()),
        format!("--trace-startup-duration={TRACED_S}"),
        // Without it, a headless browser draws only one picture, at its end.
        "--remote-debugging-port=0".to_owned(),
        format!("file://{}", page.display()),
    ];
    let _running = Tool::new(browser).args(flags).start(Some(&folder.join("browser.log")))?;
    // It stays after its trace is written, and ends with this function.
    for _ in 0..TRACED_S + 60 {
        thread::sleep(Duration::from_secs(1));
        if let Ok(document) = read(&file).and_then(|text| parsed(&String::from_utf8_lossy(&text))) {
            return PageTrace::of(&document);
        }
    }
    Err("the browser wrote no trace".to_owned())
}

fn parsed(text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

impl PageTrace {
    fn of(document: &Value) -> Result<PageTrace> {
        let events = document["traceEvents"].as_array().ok_or("the trace has no events")?;
        let first = events
            .iter()
            .find(|event| event["name"] == "click-0")
            .ok_or("the page was not driven while it was traced")?;
        let same = |event: &&Value| event["pid"] == first["pid"];
        let time = |event: &Value| event["ts"].as_f64();
        let mut marks = BTreeMap::new();
        for event in events.iter().filter(same) {
            let (Some(name), Some(at)) = (event["name"].as_str(), time(event)) else { continue };
            let own = ["click-", "zoom-", "settled-"].iter().any(|start| name.starts_with(start));
            if own || ["navigationStart", "firstPaint", "firstContentfulPaint"].contains(&name) {
                marks.insert(name.to_owned(), at);
            }
        }
        let ours = |event: &&Value| same(event) && event["tid"] == first["tid"] && event["ph"] == "X";
        let is_task = |event: &&Value| event["name"].as_str().is_some_and(|name| name.ends_with("RunTask"));
        let length = |event: &Value| event["dur"].as_f64();
        let task = |event: &Value| Some((time(event)?, length(event)?));
        let tasks = events.iter().filter(ours).filter(is_task).filter_map(task).collect();
        Ok(PageTrace { tasks, marks })
    }

    fn at(&self, mark: &str) -> Result<f64> {
        self.marks.get(mark).copied().ok_or_else(|| format!("the trace has no {mark}"))
    }

    fn first_paint(&self) -> Result<f64> {
        let painted = self.at("firstContentfulPaint").or_else(|_| self.at("firstPaint"))?;
        Ok((painted - self.at("navigationStart")?) / 1e3)
    }

    /// The main thread's time from an act until it was drawn, in ms; the median of all.
    fn median(&self, act: &str) -> Result<f64> {
        let took = |at: usize| {
            let (from, to) = (self.at(&format!("{act}-{at}"))?, self.at(&format!("settled-{act}-{at}"))?);
            let within = |(start, long): &(f64, f64)| (start + long).min(to) - start.max(from);
            Ok(self.tasks.iter().map(within).filter(|long| *long > 0.0).sum::<f64>() / 1e3)
        };
        let mut all = (0..ACTS).map(took).collect::<Result<Vec<f64>>>()?;
        all.sort_by(f64::total_cmp);
        Ok(all[ACTS / 2])
    }
}

fn row(what: &str, ours: f64, limit: f64) -> Row {
    Row {
        what: what.to_owned(),
        ours: format!("{ours:.2}"),
        peer: String::new(),
        limit: format!("{limit}"),
        holds: Some(ours <= limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn time_counts_between_an_act_and_its_drawing_on_its_own_thread() {
        let event = |name: &str, ts: f64, dur: f64, tid: u32| {
            let ph = if dur > 0.0 { "X" } else { "R" };
            json!({"name": name, "ts": ts, "dur": dur, "ph": ph, "pid": 1, "tid": tid})
        };
        let mut events =
            vec![event("navigationStart", 0.0, 0.0, 1), event("firstContentfulPaint", 250_000.0, 0.0, 1)];
        for at in 0..ACTS {
            let from = 1e6 * (at + 1) as f64;
            events.push(event(&format!("click-{at}"), from, 0.0, 1));
            events.push(event("ThreadControllerImpl::RunTask", from - 1_000.0, 5_000.0, 1));
            events.push(event("ThreadControllerImpl::RunTask", from + 1_000.0, 5_000.0, 2));
            events.push(event(&format!("settled-click-{at}"), from + 20_000.0, 0.0, 1));
        }
        let trace = PageTrace::of(&json!({ "traceEvents": events })).unwrap();
        assert_eq!((trace.first_paint().unwrap(), trace.median("click").unwrap()), (250.0, 4.0));
        assert!(trace.median("zoom").is_err());
    }
}
