//! Stops of the machine at any place of onbeat's own path, exact to the nanosecond: derived from
//! recordings, because a stop from outside falls mostly into idle time.
//!
//! The longest silence of a recorded window, a stop by the emulator, is removed; then a stop of 5
//! to 300 ms is inserted between two events while the home CPU idles, runs the measuring thread, or
//! handles its timer. All later events are delayed by it, on every CPU. Time in other handlers is
//! not used: a stop there has a name in the events.

use std::collections::BTreeMap;

use serde_json::Value;

use super::late::WINDOWS;
use super::stops::unit;
use crate::live::tree::Tree;
use crate::tools::Result;

const MS: i64 = 1_000_000;
/// Silences that are stops.
const SILENCE: i64 = 3 * MS;
/// Remainder of a silence.
const REST: i64 = 20_000;
/// The longest wake-up without a stop.
const USUAL: i64 = 2 * MS;
/// Distance between windows, so that their times do not overlap.
const APART: i64 = 10_000 * MS;
/// Draws per window wanted, because many places do not fit.
const DRAWS: usize = 40;

/// A bundle of `count` windows with a stop in each, and the log of the stops.
pub fn stopped_windows(mut bundle: Tree, count: usize, seed: u64) -> Result<(Tree, String)> {
    let windows = bundle.get(WINDOWS).ok_or("the bundle has no windows")?;
    let windows: Vec<Value> = String::from_utf8_lossy(windows)
        .lines()
        .map(|line| serde_json::from_str(line).map_err(|error| format!("{WINDOWS}: {error}")))
        .collect::<Result<_>>()?;
    let calm: Vec<Value> = windows.into_iter().filter_map(calmed).collect();
    let (mut text, mut log, mut at, mut state) = (String::new(), String::new(), 0, seed);
    for _ in 0..count * DRAWS {
        if at == count || calm.is_empty() {
            break;
        }
        let mut window = calm[pick(calm.len(), &mut state)].clone();
        let Some((from, to)) = stopped(&mut window, &mut state) else { continue };
        let apart = (at as i64 + 1) * APART;
        move_all(&mut window, apart);
        window["cycle"] = Value::from(at);
        text += &format!("{window}\n");
        let (from, to) = (from + apart, to + apart);
        log +=
            &format!("seq={at} fault=stopped kind=unexplained cpu=0 from=-1 start={from} end={to} name=-\n");
        at += 1;
    }
    if at < count {
        return Err(format!("{} windows have room for {at} stops only", calm.len()));
    }
    bundle.insert(WINDOWS.to_string(), text.into_bytes());
    forget_spikes(&mut bundle)?;
    Ok((bundle, log + "dropped=0\n"))
}

/// Removes the spikes of the recording, which do not apply to the new bundle.
fn forget_spikes(bundle: &mut Tree) -> Result<()> {
    let run = bundle.get("run.json").ok_or("the bundle has no run.json")?;
    let mut run: Value = serde_json::from_slice(run).map_err(|error| format!("run.json: {error}"))?;
    run["spikes"] = Value::Array(Vec::new());
    bundle.insert("run.json".to_string(), run.to_string().into_bytes());
    Ok(())
}

fn pick(count: usize, state: &mut u64) -> usize {
    ((unit(state) * count as f64) as usize).min(count.saturating_sub(1))
}

/// The window without its longest silence; `None` if it has none or would not be a usual wake-up.
fn calmed(mut window: Value) -> Option<Value> {
    let (expected, actual) = (window["expected_ns"].as_i64()?, window["actual_ns"].as_i64()?);
    let times = times(&window);
    let silences = times.windows(2).map(|pair| (pair[0], pair[1]));
    let during = silences.filter(|&(from, to)| to > expected && from < actual);
    let (from, to) = during.max_by_key(|(from, to)| to - from)?;
    if to - from < SILENCE {
        return None;
    }
    // A timer does not expire before it is due.
    let resumed = (from + REST).max((expected + REST).min(to));
    shift(&mut window, to, resumed - to);
    sort(&mut window);
    let late = window["actual_ns"].as_i64()? - expected;
    (0 < late && late < USUAL).then_some(window)
}

/// Puts a stop into the window; from when to when.
fn stopped(window: &mut Value, state: &mut u64) -> Option<(i64, i64)> {
    let (expected, actual) = (window["expected_ns"].as_i64()?, window["actual_ns"].as_i64()?);
    let places = places(window, expected, actual);
    let length = (5.0 * MS as f64 * 60f64.powf(unit(state))) as i64;
    let (from, to) = *places.get(pick(places.len(), state))?;
    let at = from + 1 + (unit(state) * (to - from - 1) as f64) as i64;
    // Most of it must lie in the wake-up.
    if (at + length - expected) * 2 < length {
        return None;
    }
    shift(window, at, length);
    Some((at, at + length))
}

/// The times between two events at which the home CPU is on the path.
fn places(window: &Value, expected: i64, actual: i64) -> Vec<(i64, i64)> {
    let (home, victim) = (&window["cpu"], &window["victim"]["pid"]);
    let mut open: BTreeMap<String, i64> = BTreeMap::new();
    let (mut pid, mut found) = (Value::Null, Vec::new());
    let events: Vec<&Value> = window["events"].as_array().into_iter().flatten().collect();
    for (at, event) in events.iter().enumerate() {
        if event["cpu"] == *home {
            let kind = event["e"].as_str().unwrap_or_default();
            let own = event["vector"] == "local_timer" || event["function"] == "hrtimer_wakeup";
            match kind.rsplit_once('_') {
                // An exit has no name, so it resets the count: its entry may not be counted.
                Some((what, "entry")) => {
                    *open.entry(what.to_string()).or_default() += if own { 0 } else { 1 }
                }
                Some((what, "exit")) => drop(open.insert(what.to_string(), 0)),
                _ => {}
            }
            pid = if kind == "switch" { event["next"]["pid"].clone() } else { event["pid"].clone() };
        }
        let from = time(event);
        let to = events.get(at + 1).map_or(actual, |next| time(next)).min(actual);
        let path = (pid == 0 || pid == *victim) && open.values().all(|&count| count == 0);
        if path && to > from + 1 && to > expected - MS && from < actual {
            found.push((from, to));
        }
    }
    found
}

/// Delays all events from `at` on; earlier timers stay due at their times, and so does that of the
/// wake-up itself, whose time is in the schedule, whenever it is started.
fn shift(window: &mut Value, at: i64, by: i64) {
    let expected = window["expected_ns"].clone();
    for event in window["events"].as_array_mut().into_iter().flatten() {
        if time(event) >= at {
            for field in ["t", "now", "expires"] {
                let value = event[field].as_i64().filter(|_| field != "expires" || event[field] != expected);
                if let Some(value) = value {
                    event[field] = Value::from(value.saturating_add(by));
                }
            }
        }
    }
    if let Some(actual) = window["actual_ns"].as_i64().filter(|&actual| actual >= at) {
        window["actual_ns"] = Value::from(actual + by);
    }
}

/// The window, at another time.
fn move_all(window: &mut Value, by: i64) {
    let expected = window["expected_ns"].take();
    shift(window, i64::MIN, by);
    window["expected_ns"] = Value::from(expected.as_i64().unwrap_or_default() + by);
}

fn sort(window: &mut Value) {
    if let Some(events) = window["events"].as_array_mut() {
        events.sort_by_key(time);
    }
}

fn times(window: &Value) -> Vec<i64> {
    window["events"].as_array().into_iter().flatten().map(time).collect()
}

fn time(event: &Value) -> i64 {
    event["t"].as_i64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A wake-up 50 ms late: a silence after the thread slept, then its timer, a softirq, the
    /// switch.
    fn window() -> Value {
        let event = |t: i64, pid: i64, e: &str| json!({ "t": t, "cpu": 1, "pid": pid, "in": 1, "e": e });
        let ran = event(400_000, 50, "fault");
        let mut start = event(500_000, 50, "timer_start");
        start["expires"] = json!(1_000_000);
        let mut asleep = event(510_000, 50, "switch");
        asleep["next"] = json!({ "pid": 0 });
        let mut vector = event(51_000_000, 0, "vector_entry");
        vector["vector"] = json!("local_timer");
        let mut entry = event(51_010_000, 0, "timer_entry");
        entry["function"] = json!("hrtimer_wakeup");
        let mut switch = event(51_200_000, 0, "switch");
        switch["next"] = json!({ "pid": 50 });
        let events = [
            ran,
            start,
            asleep,
            vector,
            entry,
            event(51_020_000, 0, "timer_exit"),
            event(51_030_000, 0, "vector_exit"),
            event(51_040_000, 0, "softirq_entry"),
            event(51_100_000, 0, "softirq_exit"),
            switch,
        ];
        json!({ "cpu": 1, "cycle": 7, "expected_ns": 1_000_000, "actual_ns": 51_300_000,
            "victim": { "pid": 50 }, "events": events })
    }

    fn bundle(window: &Value) -> Tree {
        let run = json!({ "spikes": [1] }).to_string();
        [
            (WINDOWS.to_string(), format!("{window}\n").into_bytes()),
            ("run.json".to_string(), run.into_bytes()),
        ]
        .into()
    }

    #[test]
    fn a_stop_is_taken_out_and_others_put_in() {
        let calm = calmed(window()).unwrap();
        assert_eq!((times(&calm)[3], &calm["actual_ns"]), (1_020_000, &json!(1_320_000)));
        let (made, log) = stopped_windows(bundle(&window()), 20, 1).unwrap();
        let stops: Vec<(i64, i64)> =
            super::super::log::parse(&log).unwrap().iter().map(|stop| (stop.start, stop.end)).collect();
        let text = String::from_utf8_lossy(&made[WINDOWS]).into_owned();
        let windows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((stops.len(), windows.len()), (20, 20));
        assert!(String::from_utf8_lossy(&made["run.json"]).contains("\"spikes\":[]"));
        let mut before = 0;
        for (window, (from, to)) in windows.iter().zip(stops) {
            // The thread arms its timer for the planned time, even late.
            assert_eq!(window["events"][1]["expires"], window["expected_ns"]);
            before += usize::from(times(window)[1] > from);
            assert!((5 * MS..=300 * MS).contains(&(to - from)));
            // There are no events during the stop, and it delays the wake-up.
            assert!(times(window).iter().all(|&time| time <= from || time >= to), "{from} {to} {window}");
            let late = window["actual_ns"].as_i64().unwrap() - window["expected_ns"].as_i64().unwrap();
            assert_eq!(late, 320_000 + to - from);
        }
        assert!(before > 0, "no stop before the thread slept");
    }

    #[test]
    fn no_stop_comes_into_another_handler_or_thread() {
        let calm = calmed(window()).unwrap();
        let (expected, actual) = (1_000_000, calm["actual_ns"].as_i64().unwrap());
        let softirq = (1_060_000, 1_120_000);
        let places = places(&calm, expected, actual);
        assert!(!places.contains(&softirq) && places.len() == 9, "{places:?}");
        let mut other = calm.clone();
        for event in other["events"].as_array_mut().unwrap() {
            event["pid"] = json!(60);
            event["next"]["pid"] = json!(60);
        }
        assert!(super::places(&other, expected, actual).is_empty());
    }

    #[test]
    fn a_window_without_a_silence_has_no_place() {
        let mut calm = calmed(window()).unwrap();
        assert!(calmed(calm.clone()).is_none());
        calm["actual_ns"] = json!(9_000_000);
        assert!(
            stopped_windows(bundle(&calm), 1, 1).unwrap_err().contains("0 windows have room for 0 stops")
        );
    }
}
