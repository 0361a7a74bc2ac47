//! Real traces of a busy SCHED_FIFO 90 thread that delays cyclictest's: all of them name it.

use super::*;
use std::path::PathBuf;

fn file(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/foreign/traces")).join(name)
}

fn explained(name: &str, threads: WantedThreads, wakeups: WantedWakeups) -> Result<ExplainedRun> {
    explain_trace(&file(name), &TraceQuestion { threads, wakeups }, |window| assert!(window.is_sound()))
}

/// Microseconds of the worst of a trace, and the part of it that its first culprit took.
fn worst(name: &str) -> (i64, String, f64) {
    let ExplainedRun { run, .. } =
        explained(name, WantedThreads::RealTime, WantedWakeups::Largest).expect(name);
    assert_eq!(run.check(), Ok(()), "{name}");
    for spike in &run.spikes {
        let parts: i64 = spike.slices.iter().map(|slice| slice.ns.0).sum();
        assert_eq!(parts + spike.unexplained_ns.0, spike.latency_ns.0, "{name}");
    }
    let spike = run.spikes.iter().max_by_key(|spike| spike.latency_ns).expect("a spike");
    let own = |slice: &&model::run::Slice| slice.who.comm.contains("hog");
    let took: i64 = spike.slices.iter().filter(own).map(|slice| slice.ns.0).sum();
    let first = run.culprits.first().map_or(String::new(), |culprit| culprit.name.clone());
    (spike.latency_ns.0 / 1_000, first, took as f64 / spike.latency_ns.0 as f64)
}

#[test]
fn the_busy_thread_is_named_in_every_container() {
    // cyclictest's output, in microseconds, is a little larger: it reads the clock later.
    for (name, cyclictest) in [
        ("v6.dat", 23_422),
        ("v7-marker.dat", 30_832),
        ("v7-zlib.dat", 36_257),
        ("v7-stack.dat", 20_972),
        ("perf.data", 27_500),
        ("ftrace.txt", 20_100),
    ] {
        let (worst, first, share) = worst(name);
        assert!(worst <= cyclictest && worst > cyclictest * 8 / 10, "{name}: {worst}");
        assert!(first.ends_with("hog") && share > 0.5, "{name}: {first} {share}");
    }
}

#[test]
fn what_is_late_is_asked_for() {
    let over = WantedWakeups::Over(Nanos(20_000_000));
    let run = explained("v6.dat", WantedThreads::RealTime, over).expect("explained").run;
    assert!(!run.spikes.is_empty() && run.spikes.iter().all(|spike| spike.latency_ns.0 > 20_000_000));
    let mark = WantedWakeups::AtMark("threshold".to_owned());
    let run = explained("v7-marker.dat", WantedThreads::RealTime, mark).expect("explained").run;
    assert_eq!((run.spikes.len(), run.spikes[0].victim.comm.as_str()), (1, "cyclictest"));
    let named = WantedThreads::Named("ktimers/1".into());
    let run = explained("v7-zlib.dat", named, WantedWakeups::Largest).expect("explained").run;
    assert!(run.spikes.iter().all(|spike| spike.victim.comm == "ktimers/1"));
    let none = explained("v6.dat", WantedThreads::Thread(4_000_000), WantedWakeups::Largest);
    assert!(none.err().is_some_and(|refused| refused.message.contains("4000000")));
}

#[test]
fn a_mark_that_selects_nothing_is_refused() {
    let at = |name, threads, text: &str| {
        explained(name, threads, WantedWakeups::AtMark(text.to_owned())).err().map(|refused| refused.message)
    };
    let none = at("v7-marker.dat", WantedThreads::RealTime, "no such mark").expect("refused");
    assert!(none.contains("no mark with 'no such mark'"), "{none}");
    let none = at("ftrace.txt", WantedThreads::RealTime, "foo").expect("refused");
    assert!(none.contains("no mark with"), "{none}");
    // rtla's own analysis has no marks at all.
    assert!(at("auto-analysis.txt", WantedThreads::RealTime, "foo").is_some());
}

#[test]
fn what_the_trace_lacks_is_said() {
    let remarks = |name| {
        let explained = explained(name, WantedThreads::RealTime, WantedWakeups::Largest).expect(name);
        explained.remarks.join("; ")
    };
    let perf = remarks("perf.data");
    for event in ["hrtimer_start", "hrtimer_expire_entry", "irq_handler_entry", "local_timer_entry"] {
        assert!(perf.contains(event), "{event}: {perf}");
    }
    assert!(remarks("ftrace.txt").contains("does not state its clock"));
    assert!(remarks("auto-analysis.txt").contains("rtla's order"));
}

#[test]
fn what_a_tool_took_apart_is_kept_as_it_is() {
    let of = |name| explained(name, WantedThreads::RealTime, WantedWakeups::Largest).expect(name).run;
    let run = of("auto-analysis.txt");
    assert_eq!(run.spikes[0].latency_ns, Nanos(69_978_550));
    assert_eq!(run.spikes[0].unexplained_ns, run.spikes[0].latency_ns);
    let run = of("timerlat_trace.txt");
    assert_eq!(
        (run.spikes.len(), run.spikes.iter().map(|spike| spike.latency_ns.0).max()),
        (10, Some(196_035_030))
    );
}
