//! Bundle of a hunt as used by a script: explained again, complete, truncated, damaged.

use model::run::{self, Run};
use model::units::{Cpu, Nanos};
use trace::event::{Context, Event, Named, Task, Vector, What};
use trace::window::Window;

use super::place::*;

const MS: i64 = 1_000_000;
const EXPECTED: i64 = 5_000 * MS;

fn task(comm: &str, pid: i32, prio: i32) -> Task {
    Task { comm: comm.into(), pid, prio }
}

fn at(us: i64, pid: i32, context: u8, what: What<String>) -> Named {
    let time = Nanos(EXPECTED + us * 1_000);
    Event { time, cpu: Cpu(1), pid, context: Context(context), preempt: 0, what }
}

/// A FIFO 90 thread that runs for 20 ms when the measuring thread, FIFO 80, is due.
fn window(cycle: u64) -> Window {
    let (victim, hog) = (task("onbeat/1", 70, 19), task("hog", 66, 9));
    let idle = task("swapper/1", 0, 120);
    let events = vec![
        at(-500, 0, 0, What::Switch { prev: idle, state: 0, next: hog }),
        at(5, 66, 9, What::VectorEntry { vector: Vector::LocalTimer }),
        at(6, 66, 9, What::TimerEntry { timer: 1, function: "hrtimer_wakeup".into(), now: Nanos(EXPECTED) }),
        at(7, 66, 9, What::Waking { task: victim, target: Cpu(1) }),
        at(8, 66, 9, What::TimerExit { timer: 1 }),
        at(9, 66, 9, What::VectorExit { vector: Vector::LocalTimer }),
        at(20_000, 66, 1, What::Switch { prev: hog, state: 1, next: victim }),
    ];
    Window {
        cpu: Cpu(1),
        cycle: Some(cycle),
        expected_ns: Nanos(EXPECTED),
        actual_ns: Nanos(EXPECTED + 20_010_000),
        victim,
        own: true,
        events,
        ..Window::default()
    }
}

/// Bundle of a hunt that was killed before its first spike was in `run.json`, with these lines of
/// events.
fn bundle(place: &Place, lines: &str) -> String {
    let plan = run::Plan { cpus: vec![Cpu(1)], interval_ns: Some(Nanos(MS)), ..run::Plan::default() };
    let hunt = Run {
        schema: run::SCHEMA.into(),
        id: "hunt".into(),
        command: "hunt".into(),
        plan,
        recorder: Some(run::Recorder { over_ns: Some(Nanos(10 * MS)), ..run::Recorder::default() }),
        ..Run::default()
    };
    let dir = place.path("hunt");
    std::fs::create_dir_all(format!("{dir}/events")).unwrap();
    std::fs::write(format!("{dir}/run.json"), serde_json::to_vec(&hunt).unwrap()).unwrap();
    std::fs::write(format!("{dir}/events/spikes.jsonl"), lines).unwrap();
    dir
}

/// Exit code, standard output and standard error.
fn outputs(args: &[&str]) -> (i32, String, String) {
    let output = onbeat(args);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (code(&output), text(&output.stdout), text(&output.stderr))
}

fn line(window: &Window) -> String {
    serde_json::to_string(window).unwrap() + "\n"
}

/// A spike as appended by a hunt, at this time in milliseconds.
fn appended(ms: i64) -> run::Spike {
    let slice =
        run::Slice { kind: "thread".into(), start_ns: Nanos(ms * MS), ns: Nanos(MS), ..Default::default() };
    run::Spike {
        cpu: Cpu(1),
        cycle: Some(ms as u64),
        expected_ns: Nanos(ms * MS),
        actual_ns: Nanos(ms * MS + MS + 5),
        latency_ns: Nanos(MS + 5),
        unexplained_ns: Nanos(5),
        slices: vec![slice],
        ..run::Spike::default()
    }
}

#[test]
fn a_killed_hunt_lists_what_was_appended() {
    let place = Place::new();
    let dir = bundle(&place, &line(&window(7)));
    let spikes: Vec<run::Spike> = (0..40).map(|n| appended(100 + 7 * n)).collect();
    let lines: Vec<String> =
        spikes.iter().map(|spike| serde_json::to_string(spike).unwrap() + "\n").collect();
    // The kill cut the last line.
    std::fs::write(format!("{dir}/events/explained.jsonl"), lines.concat() + "{\"cpu\":1,\"cyc").unwrap();
    let run = json(&["explain", &dir], 0);
    let listed: Vec<u64> =
        run["spikes"].as_array().unwrap().iter().map(|spike| spike["cycle"].as_u64().unwrap()).collect();
    // Also the one with only its events written.
    let expected: Vec<u64> = spikes.iter().filter_map(|spike| spike.cycle).chain([7]).collect();
    assert_eq!((listed, run["spikes_dropped"].as_u64()), (expected, Some(0)));
    for args in [["report", &dir], ["bounds", &dir], ["explain", &dir]] {
        let (code, out, err) = outputs(&args);
        assert_eq!(code, 0, "{args:?}: {err}");
        assert!(err.contains("1 explained spike could not be read"), "{args:?}: {err} {out}");
    }
}

#[test]
fn a_spike_is_explained_again_from_its_events() {
    let place = Place::new();
    let dir = bundle(&place, &line(&window(7)));
    let run = json(&["explain", &dir], 0);
    let spike = &run["spikes"][0];
    assert_eq!((spike["cycle"].as_u64(), spike["classes"][0].as_str()), (Some(7), Some("thread")));
    let slices = spike["slices"].as_array().unwrap();
    let sum: i64 = slices.iter().map(|slice| slice["ns"].as_i64().unwrap()).sum();
    assert_eq!(sum + spike["unexplained_ns"].as_i64().unwrap(), 20_010_000);
    let hog = slices.iter().find(|slice| slice["kind"] == "thread").unwrap();
    assert_eq!((hog["who"]["comm"].as_str(), hog["who"]["pid"].as_i64()), (Some("hog"), Some(66)));
    let culprit = &run["culprits"][0];
    assert_eq!((culprit["rule"].as_str(), culprit["spikes"].as_u64()), (Some("realtime-thread"), Some(1)));
    assert!(culprit["share"].as_f64().unwrap() > 0.95, "{culprit}");
    let page = place.path("hunt.html");
    assert_eq!(outputs(&["report", &dir, "-o", &page]).0, 0);
    let page = std::fs::read_to_string(page).unwrap().replace("http://www.w3.org/2000/svg", "");
    assert!(page.contains("hog") && !page.contains("://"), "one page, with no address in it");
    let trace = place.path("trace.json");
    assert_eq!(outputs(&["explain", &dir, "--perfetto", &trace]).0, 0);
    let trace: serde_json::Value = serde_json::from_slice(&std::fs::read(trace).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let times: Vec<f64> = events.iter().filter_map(|event| event["ts"].as_f64()).collect();
    assert!(times.len() > 5 && times.iter().all(|&ts| ts >= 0.0), "{times:?}");
}

#[test]
fn what_was_cut_short_or_damaged_is_counted_and_the_rest_is_explained() {
    let place = Place::new();
    let whole = line(&window(1));
    let backwards = Window { actual_ns: Nanos(1), ..window(2) };
    let far = Window { expected_ns: Nanos(i64::MIN), actual_ns: Nanos(i64::MAX), ..window(3) };
    let text =
        format!("{whole}not json\n{{}}\n{}{}{}", line(&backwards), line(&far), &whole[..whole.len() / 2]);
    let dir = bundle(&place, &text);
    let (code, out, err) = outputs(&["explain", &dir]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("windows of events could not be read"), "{err}");
    assert!(out.contains("hog"), "{out}");
    let (code, _, err) = outputs(&["explain", &dir, "-q", "--json", "/dev/null"]);
    assert_eq!((code, err.as_str()), (0, ""));
    // A time at the end of the range of a number breaks nothing.
    let mut wild = window(4);
    wild.events[2].time = Nanos(i64::MAX);
    wild.events[3].time = Nanos(i64::MIN);
    let dir = bundle(&place, &line(&wild));
    let run = json(&["explain", &dir], 0);
    let spike = &run["spikes"][0];
    let sum: i64 =
        spike["slices"].as_array().unwrap().iter().map(|slice| slice["ns"].as_i64().unwrap()).sum();
    assert_eq!(sum + spike["unexplained_ns"].as_i64().unwrap(), 20_010_000);
}

#[test]
fn what_is_no_hunt_is_refused_with_the_way_out() {
    let place = Place::new();
    let dir = bundle(&place, "");
    assert!(outputs(&["explain", &dir]).1.contains("o wake-up"), "no spikes at all");
    let path = format!("{dir}/run.json");
    let text = std::fs::read_to_string(&path).unwrap().replace("\"hunt\"", "\"measure\"");
    std::fs::write(&path, text).unwrap();
    for (args, word) in [
        (vec!["explain", &dir], "onbeat hunt"),
        (vec!["explain", "/nonexistent"], "/nonexistent"),
        (vec!["hunt", "--over", "0", "-D", "1"], "--over"),
        (vec!["hunt", "--over", "5x", "-D", "1"], "--over"),
        (vec!["hunt", "--victim", "no such thread", "-D", "1"], "--victim"),
        (vec!["hunt", "--victim", "1", "-a", "0"], "--victim"),
    ] {
        let err = refused(&args, 2);
        assert!(err.contains(word), "{args:?}: {err}");
    }
}
