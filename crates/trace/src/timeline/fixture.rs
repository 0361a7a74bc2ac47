//! Windows in a readable form: one event per line.
//!
//! `TIME CPU PID FLAGS EVENT ...`: the time in microseconds from the expected time; flags are `d`
//! for interrupts off, `N` for a switch that is due, `h` in a hard interrupt, `s` in a softirq, `.`
//! for none, and a digit for the depth of disabled preemption. A thread is `comm/pid/prio`.
//! Anything after `#` is a comment.

#![allow(clippy::unwrap_used)] // Only tests are compiled with it.

use super::{Cost, explain};
use crate::event::{Context, Event, Named, Task, Vector, What};
use crate::window::Window;
use model::run::{Host, Spike};
use model::units::{Cpu, CpuSet, Nanos};

/// Expected time of all windows.
pub const E: i64 = 1_000_000_000;

/// Thread that wakes late: FIFO 80.
pub const VICTIM: &str = "rt/50/19";

/// Machine with a kernel 6.12 and a tick of 250 Hz.
pub fn host() -> Host {
    Host {
        release: "6.12.4-rt-amd64".to_owned(),
        rt_runtime_us: Some(950_000),
        hz: Some(250),
        ..Host::default()
    }
}

/// Window on CPU 1 that ends this number of microseconds late.
pub fn window(late: f64, events: &str) -> Window {
    Window {
        cpu: Cpu(1),
        cycle: Some(7),
        expected_ns: Nanos(E),
        actual_ns: Nanos(E + ns(late)),
        victim: task(VICTIM),
        own: true,
        events: events.lines().filter_map(event).collect(),
        ..Window::default()
    }
}

/// Explanation on [`host`], checked for adding up.
pub fn explained(late: f64, events: &str) -> Spike {
    explained_on(&host(), &window(late, events))
}

/// Explanation of a window on a machine, checked for adding up.
pub fn explained_on(host: &Host, window: &Window) -> Spike {
    let spike = explain(window, host, Cost::default());
    adds_up(&spike);
    spike
}

/// Checks that slices are in order, without overlap, within the spike, and add up with the rest.
pub fn adds_up(spike: &Spike) {
    let mut cursor = spike.actual_ns.0.saturating_sub(spike.latency_ns.0.max(0));
    let mut sum = spike.unexplained_ns.0;
    for slice in &spike.slices {
        assert!(slice.start_ns.0 >= cursor && slice.ns.0 > 0, "{slice:?} at {cursor}");
        cursor = slice.start_ns.0 + slice.ns.0;
        sum += slice.ns.0;
        assert!(!slice.evidence.is_empty(), "{slice:?}");
    }
    assert!(spike.slices.is_empty() || cursor <= spike.actual_ns.0);
    assert_eq!(sum, spike.latency_ns.0);
    assert!(spike.unexplained_ns.0 >= 0 || spike.latency_ns.0 < 0);
}

/// `KIND NAME MICROSECONDS` of each slice in order of time, and of the rest.
pub fn slice_lines(spike: &Spike) -> Vec<String> {
    let name = |who: &model::run::Who| {
        let parts = [&who.irq, &who.function, &who.comm];
        parts.into_iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join("/")
    };
    let us = |ns: Nanos| format!("{}", ns.as_micros());
    let line = |kind: &str, who: String, ns: Nanos| {
        [kind.to_owned(), who, us(ns)]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut lines: Vec<String> =
        spike.slices.iter().map(|slice| line(slice.kind.as_str(), name(&slice.who), slice.ns)).collect();
    lines.push(line("unexplained", String::new(), spike.unexplained_ns));
    lines
}

fn ns(us: f64) -> i64 {
    (us * 1e3).round() as i64
}

fn task(text: &str) -> Task {
    let mut parts = text.rsplitn(3, '/');
    let prio = parts.next().unwrap().parse().unwrap();
    let pid = parts.next().unwrap().parse().unwrap();
    Task { comm: parts.next().unwrap().into(), pid, prio }
}

fn event(line: &str) -> Option<Named> {
    let line = line.split('#').next()?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let [time, cpu, pid, flags, name, args @ ..] = words.as_slice() else {
        assert!(words.is_empty(), "{line}");
        return None;
    };
    let bit = |c| match c {
        'd' => 0x01,
        'N' => 0x04,
        'h' => 0x08,
        's' => 0x10,
        _ => 0,
    };
    Some(Event {
        time: Nanos(E + ns(time.parse().unwrap())),
        cpu: Cpu(cpu.parse().unwrap()),
        pid: pid.parse().unwrap(),
        context: Context(flags.chars().map(bit).sum()),
        preempt: flags.chars().find_map(|c| c.to_digit(10)).unwrap_or(0) as u8,
        what: what(name, args).unwrap_or_else(|| panic!("{line}")),
    })
}

fn vector(name: &str) -> Vector {
    serde_json::from_value(serde_json::Value::String(name.to_owned())).unwrap()
}

fn what(name: &str, args: &[&str]) -> Option<What<String>> {
    // A plus stands for a blank within a name.
    let text = |at: usize| args.get(at).map(|arg| arg.replace('+', " "));
    let number = |at: usize| args.get(at).and_then(|arg| arg.parse::<i64>().ok());
    let cpu = |at: usize| number(at).map(|n| Cpu(n as u32));
    let function = || text(0);
    Some(match name {
        "switch" => {
            let state = match args[1] {
                "R" => 0,
                "P" => 256,
                _ => 1,
            };
            What::Switch { prev: task(args[0]), state, next: task(args[2]) }
        }
        "waking" => What::Waking { task: task(args[0]), target: cpu(1).unwrap_or(Cpu(1)) },
        "wakeup" => What::Wakeup { task: task(args[0]), target: cpu(1).unwrap_or(Cpu(1)) },
        "migrate" => What::Migrate { pid: number(0)? as i32, from: cpu(1)?, to: cpu(2)? },
        "inherit" => What::Inherit { pid: number(0)? as i32, old: number(1)? as i32, new: number(2)? as i32 },
        "irq+" => What::IrqEntry { irq: number(0)? as i32, name: args[1].replace('+', " ").as_str().into() },
        "irq-" => What::IrqExit { irq: number(0)? as i32 },
        "raise" => What::SoftirqRaise { vec: number(0)? as u8 },
        "soft+" => What::SoftirqEntry { vec: number(0)? as u8 },
        "soft-" => What::SoftirqExit { vec: number(0)? as u8 },
        "vector+" => What::VectorEntry { vector: vector(args[0]) },
        "vector-" => What::VectorExit { vector: vector(args[0]) },
        "ipi+" => What::IpiEntry { reason: function()? },
        "ipi-" => What::IpiExit { reason: function()? },
        "send" => What::IpiSend {
            targets: CpuSet::parse(args[0]).unwrap(),
            callsite: text(1)?,
            callback: text(2).unwrap_or_default(),
        },
        "queue" => What::CallQueue { target: cpu(0)?, callsite: text(1)?, function: text(2)? },
        "call+" => What::CallEntry { function: function()? },
        "call-" => What::CallExit { function: function()? },
        "wheel+" => What::WheelEntry { function: function()? },
        "wheel-" => What::WheelExit,
        "tasklet+" => What::TaskletEntry { function: function()? },
        "tasklet-" => What::TaskletExit,
        "nmi" => What::Nmi { handler: function()?, ns: Nanos(ns(number(1)? as f64)) },
        "work+" => What::WorkEntry { function: function()? },
        "work-" => What::WorkExit { function: function().unwrap_or_default() },
        "hotplug+" => What::HotplugEntry { of: cpu(0)?, offline: args[1] == "off", function: text(2)? },
        "hotplug-" => What::HotplugExit { of: cpu(0)? },
        "idle" => What::Idle { state: number(0).map(|n| n as u32) },
        "enter" => {
            let [object, second, third] = [1, 2, 3].map(|nth| number(nth).unwrap_or_default() as u64);
            What::SyscallEntry { id: number(0)?, args: [object, second, third, 0] }
        }
        "leave" => What::SyscallExit { id: number(0)? },
        "fault" => What::Fault { user: true },
        "spin+" => What::ContentionBegin { lock: number(0)? as u64, flags: number(1).unwrap_or(1) as u32 },
        "spin-" => What::ContentionEnd { lock: number(0)? as u64 },
        "release" => What::ContendedRelease { lock: number(0)? as u64 },
        "irqs_off" | "irqs_on" => What::Toggle { irqs: true, off: name == "irqs_off", caller: function()? },
        "preempt_off" | "preempt_on" => {
            What::Toggle { irqs: false, off: name == "preempt_off", caller: function()? }
        }
        "stack" => What::Stack {
            frames: args[0].split(',').map(|frame| frame.replace('+', " ")).collect(),
            enables: number(1).map(|n| n as usize),
        },
        _ => return of_timer(name, args),
    })
}

fn of_timer(name: &str, args: &[&str]) -> Option<What<String>> {
    let timer = || args.first().and_then(|arg| arg.parse().ok());
    let function = || args[1].replace('+', " ");
    let time = |at: usize| Nanos(E + ns(args[at].parse().unwrap()));
    Some(match name {
        "start" => What::TimerStart { timer: timer()?, function: function(), expires: time(2) },
        "timer+" => What::TimerEntry { timer: timer()?, function: function(), now: Nanos(0) },
        "timer-" => What::TimerExit { timer: timer()? },
        "over" => What::TimerStartExpired { timer: timer()? },
        "rearm" => What::TimerRearm { next: time(0), deferred: args.get(1) == Some(&"deferred") },
        _ => return None,
    })
}
