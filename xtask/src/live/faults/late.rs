//! A virtual CPU that was idle and woke late: derived from recordings, because no emulator can be
//! made to do it at will.
//!
//! In each window the other CPU sleeps through the rest of a handler: its first due timer expires,
//! and all of its later events follow, right after the handler's end. Nothing else changes, so the
//! handler still has its time.

use serde_json::Value;

use crate::live::tree::Tree;
use crate::tools::Result;

/// The file of a bundle that holds the windows.
pub const WINDOWS: &str = "events/spikes.jsonl";

/// Minimum lateness that counts: longer than a host usually needs to run an idle virtual CPU.
const LEAST: i64 = 9_000_000;
/// Delay after the handler's end.
const AFTER: i64 = 60_000;

/// The bundle in which the other CPU sleeps on during the handler's function.
pub fn bundle(mut bundle: Tree, function: &str) -> Result<Tree> {
    let windows = bundle.get(WINDOWS).ok_or("the bundle has no windows")?;
    let (text, made) = sleeping_windows(&String::from_utf8_lossy(windows), function)?;
    if made == 0 {
        return Err(format!("no window has both {function} and a sleeping CPU"));
    }
    println!("  the other CPU is made to sleep on in {made} windows");
    bundle.insert(WINDOWS.to_string(), text.into_bytes());
    Ok(bundle)
}

/// The windows, and the number of them in which the other CPU sleeps on.
fn sleeping_windows(windows: &str, function: &str) -> Result<(String, usize)> {
    let (mut text, mut count) = (String::new(), 0);
    for line in windows.lines() {
        let mut window: Value = serde_json::from_str(line).map_err(|error| format!("{WINDOWS}: {error}"))?;
        count += usize::from(sleep_on(&mut window, function).is_some());
        text += &format!("{window}\n");
    }
    Ok((text, count))
}

fn sleep_on(window: &mut Value, function: &str) -> Option<()> {
    let home = window["cpu"].as_i64()?;
    let events = window["events"].as_array_mut()?;
    let is =
        |event: &Value, home_too: bool, kind: &str| (event["cpu"] == home) == home_too && event["e"] == kind;
    let runs = |event: &&Value| {
        let name = event["function"].as_str().unwrap_or_default();
        is(event, true, "timer_entry") && name.split(' ').next() == Some(function)
    };
    let start = events.iter().rev().find(runs).and_then(time)?;
    let ends = |event: &&Value| is(event, true, "timer_exit") && time(event) > Some(start);
    let end = events.iter().find(ends).and_then(time)?;
    // Started by a thread that then slept on it.
    let sleeps = |event: &&Value| {
        is(event, false, "timer_start")
            && event["function"] == "hrtimer_wakeup"
            && event["pid"] != 0
            && event["in"].as_i64().is_some_and(|context| context < 8)
    };
    let due = events.iter().filter(sleeps).filter_map(|event| event["expires"].as_i64());
    let due = due.filter(|&due| due > start && due + LEAST < end).min()?;
    let shift = end + AFTER - due;
    for event in events.iter_mut().filter(|event| event["cpu"] != home && time(event) >= Some(due)) {
        for field in ["t", "now", "expires"] {
            if let Some(value) = event[field].as_i64() {
                event[field] = Value::from(value + shift);
            }
        }
    }
    events.sort_by_key(time);
    Some(())
}

fn time(event: &Value) -> Option<i64> {
    event["t"].as_i64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn window(function: &str, due: i64) -> String {
        let event = |t: i64, cpu: i64, e: &str| json!({ "t": t, "cpu": cpu, "pid": 7, "in": 1, "e": e });
        let mut start = event(100, 0, "timer_start");
        (start["function"], start["expires"]) = (json!("hrtimer_wakeup"), json!(due));
        let mut entry = event(1_000, 1, "timer_entry");
        entry["function"] = json!(format!("{function} [onbeat_fault]"));
        let events = [
            start,
            entry,
            event(due + 50, 0, "timer_entry"),
            event(20_001_000, 1, "timer_exit"),
            event(20_500_000, 0, "idle"),
        ];
        json!({ "cpu": 1, "events": events }).to_string()
    }

    #[test]
    fn the_other_cpu_goes_on_after_the_handlers_end() {
        let (text, count) = sleeping_windows(&window("handler", 5_000_000), "handler").unwrap();
        let window: Value = serde_json::from_str(&text).unwrap();
        let told: Vec<(i64, &str)> = window["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| (event["t"].as_i64().unwrap(), event["e"].as_str().unwrap()))
            .collect();
        let shifted = 20_001_000 + AFTER - 5_000_000;
        let wanted = [
            (100, "timer_start"),
            (1_000, "timer_entry"),
            (20_001_000, "timer_exit"),
            (5_000_050 + shifted, "timer_entry"),
            (20_500_000 + shifted, "idle"),
        ];
        assert_eq!((told.as_slice(), count), (wanted.as_slice(), 1));
    }

    #[test]
    fn what_is_not_late_or_another_handler_stays_as_it_is() {
        for (function, due) in [("handler", 15_000_000), ("handler_too", 5_000_000)] {
            let window = window(function, due);
            let (text, count) = sleeping_windows(&window, "handler").unwrap();
            let same = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            assert_eq!((same(&text), count), (same(&window), 0));
        }
        assert!(sleeping_windows("{", "handler").is_err());
    }
}
