//! Tracing that was left on: tracers, events, the function profiler, the stack tracer.

use super::sources::{EVENTS, FTRACE, RT_CONFIG};
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::{unknown_absent, unknown_from};
use crate::view::MachineView;
use crate::words::truncate_list;
use facts::Fact;
use facts::line::parse_word;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "tracing-left-on",
    title: "tracing left on",
    description: "A tracer, trace events, the function profiler or the stack tracer may stay active after \
                  the program that enabled them has ended, in the main trace buffer or in an instance of \
                  another program.",
    rationale: "each traced function or event does extra work, often with preemption off; the function \
                tracers do so at every call in the kernel",
    detection: "tracefs at /sys/kernel/tracing, which only root can read, with its instances, and a sysctl. \
                Enabled probes appear among the events. Events that only report hardware errors (ras, mce, \
                cxl, devlink: rasdaemon) are not counted. Attachments of BPF programs and perf are not \
                seen.",
    side_effects: "The program that uses the trace loses it: first check which program the instance belongs \
                   to.",
    wanted: "tracer nop and no event, in all instances",
    fix: || {
        Remedy::advice(
            AdviceReason::Program,
            "as root, trace-cmd reset -a, or in /sys/kernel/tracing and each of its instances: \
             echo nop >current_tracer; echo 0 >events/enable; echo 0 >function_profile_enabled; \
             sysctl kernel.stack_tracer_enabled=0",
        )
    },
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    unsettable: "it may be in use: another tracer empties the buffer, and the switch for all events does not \
                 restore single ones",
    sources: &[
        Source { title: "kernel: real-time kernel configuration, CONFIG_TRACING", url: RT_CONFIG },
        Source { title: "kernel: ftrace, the files and the tracers", url: FTRACE },
        Source { title: "kernel: event tracing, enabling events", url: EVENTS },
    ],
    cures: &[SliceKind::PreemptOff, SliceKind::IrqsOff, SliceKind::Irq, SliceKind::Unexplained],
    reads: &[TRACER, ENABLED, SET, PROFILE, STACK, OF_INSTANCES, ENABLED_OF_INSTANCES, SET_OF_INSTANCES],
    facts: &["/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "/sys/kernel/tracing/current_tracer: function",
        silent: "/sys/kernel/tracing/current_tracer: nop
                 /sys/kernel/tracing/events/enable: 0
                 /sys/kernel/tracing/function_profile_enabled: 0
                 /proc/sys/kernel/stack_tracer_enabled: 0",
        unknown: "/sys/kernel/tracing refused
                  /sys/kernel/tracing/current_tracer refused
                  /proc/sys/kernel/stack_tracer_enabled: 0",
    },
    ..Knob::DEFAULT
};

const TRACER: &str = "/sys/kernel/tracing/current_tracer";
const ENABLED: &str = "/sys/kernel/tracing/events/enable";
const SET: &str = "/sys/kernel/tracing/set_event";
const PROFILE: &str = "/sys/kernel/tracing/function_profile_enabled";
const STACK: &str = "/proc/sys/kernel/stack_tracer_enabled";
const OF_INSTANCES: &str = "/sys/kernel/tracing/instances/*/current_tracer";
const ENABLED_OF_INSTANCES: &str = "/sys/kernel/tracing/instances/*/events/enable";
const SET_OF_INSTANCES: &str = "/sys/kernel/tracing/instances/*/set_event";

/// Events of errors, which are rare and usually enabled on purpose.
const OF_ERRORS: &[&str] = &["ras:", "mce:", "cxl:", "devlink:", "block:block_rq_error"];

/// Limit of names for settings that are on in several instances.
const SHOWN: usize = 1;

fn judge(machine: &MachineView) -> Judged {
    let stack = switch(machine, STACK, "stack tracer");
    if let Err(early) = traced(machine) {
        return Judgement::all([Err(early), stack]);
    }
    Judgement::all([
        tracers(machine, TRACER),
        tracers(machine, OF_INSTANCES),
        events(machine, ENABLED, SET),
        events(machine, ENABLED_OF_INSTANCES, SET_OF_INSTANCES),
        switch(machine, PROFILE, "function profiler"),
        stack,
    ])
}

/// Returns early unless tracefs is visible.
fn traced(machine: &MachineView) -> Result<(), Judgement> {
    if machine.line_if_present(TRACER)?.is_some() {
        return Ok(());
    }
    match machine.kconfig().map(|config| config.is_yes("TRACING")) {
        Ok(false) => Err(Judgement::not_applicable("the kernel has no TRACING")),
        _ => {
            let mount = "mount -t tracefs none /sys/kernel/tracing";
            Err(Judgement::unknown(format!("{TRACER} is missing: {mount}")))
        }
    }
}

fn tracers(machine: &MachineView, pattern: &'static str) -> Judged {
    let (found, unknown) = words(machine, pattern)?;
    let on: Vec<_> = found.iter().filter(|(_, tracer)| tracer != "nop").collect();
    let of: Vec<&[String]> = on.iter().map(|(names, _)| *names).collect();
    let on: Vec<String> =
        on.iter().map(|(names, tracer)| format!("tracer {}{}", cut(tracer), place(names))).collect();
    if on.is_empty() {
        return unknown.map_or_else(|| Ok(Judgement::pass("no tracer")), Err);
    }
    Ok(Judgement::fail(several(&on)).severity(Severity::High).fix(off(pattern, &of, "nop")))
}

/// Enabled events in the top-level buffer or in all instances.
fn events(machine: &MachineView, enabled: &'static str, set: &'static str) -> Judged {
    let (switches, mut unknown) = words(machine, enabled)?;
    if enabled == ENABLED && switches.is_empty() && unknown.is_none() {
        return Err(unknown_absent(enabled));
    }
    let (mut on, mut of) = (Vec::new(), Vec::new());
    for (names, state) in switches {
        let before = on.len();
        match state.as_str() {
            // A directory without events shows a question mark.
            "0" | "?" => {}
            "1" => on.push(format!("all events{}", place(names))),
            "X" => {
                let text = machine.texts(set)?.iter().find(|text| text.names == names);
                // Events are not named if the list is too long to be read, or was cleared in
                // between.
                let listed = text.and_then(|text| text.content.known()).map(|text| counted(text));
                match listed {
                    Some((first, 0)) if first.is_empty() => {}
                    Some((first, more)) => {
                        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                        on.push(format!("events {first}{more}{}", place(names)));
                    }
                    None => on.push(format!("events{}", place(names))),
                }
            }
            other => unknown = Some(Judgement::unknown(format!("{enabled} holds '{}'", cut(other)))),
        }
        if on.len() > before {
            of.push(names);
        }
    }
    if on.is_empty() {
        return unknown.map_or_else(|| Ok(Judgement::pass("no event")), Err);
    }
    Ok(Judgement::fail(several(&on)).severity(Severity::Medium).fix(off(enabled, &of, "0")))
}

/// Writes a value that disables it to the files of a pattern with these names.
fn off(pattern: &str, of: &[&[String]], value: &str) -> Remedy {
    let path = |names: &&[String]| match names.first() {
        Some(name) => pattern.replacen('*', name, 1),
        None => pattern.to_owned(),
    };
    let instances =
        truncate_list(of.iter().filter_map(|names| names.first()).map(|name| match name.as_str() {
            name if name.starts_with("onbeat-") => "onbeat".to_owned(),
            name => cut(name),
        }));
    let shown_as = pattern.replacen('*', "NAME", 1);
    let which = if instances.is_empty() { instances } else { format!("instance {instances}") };
    Change::each(of.iter().map(path).collect(), &shown_as, &which, value).into()
}

/// Words of a pattern's files by instance, and the unknown judgement for the first unreadable one.
type Words<'a> = (Vec<(&'a [String], String)>, Option<Judgement>);

fn words<'a>(machine: &MachineView<'a>, pattern: &'static str) -> Result<Words<'a>, Judgement> {
    let (mut found, mut first) = (Vec::new(), None);
    for text in machine.texts(pattern)? {
        match text.content.clone().parse(|content| parse_word(&content)) {
            Fact::Known(word) => found.push((text.names.as_slice(), word)),
            other => {
                first.get_or_insert_with(|| unknown_from(&text.path, &other));
            }
        }
    }
    Ok((found, first))
}

/// First of the counted events, and the number of the others.
fn counted(text: &str) -> (String, usize) {
    let counts = |event: &&str| !OF_ERRORS.iter().any(|quiet| event.starts_with(quiet));
    let mut events = text.lines().map(str::trim).filter(|event| !event.is_empty()).filter(counts);
    let first = events.next().map(cut).unwrap_or_default();
    (first, events.count())
}

fn switch(machine: &MachineView, path: &'static str, what: &str) -> Judged {
    match machine.number_if_present(path)? {
        None => Err(Judgement::not_applicable(format!("the kernel has no {what}"))),
        Some(0) => Ok(Judgement::pass(format!("no {what}"))),
        Some(_) if path == STACK => Ok(Judgement::fail(what)
            .severity(Severity::High)
            .fix(Change::sysctl("kernel.stack_tracer_enabled", 0))),
        Some(_) => Ok(Judgement::fail(what).severity(Severity::High).fix(Change::write(path, 0))),
    }
}

/// Instance in which it is on. A stale instance of onbeat is named after a process, whose ID is
/// irrelevant.
fn place(names: &[String]) -> String {
    match names.first() {
        Some(name) if name.starts_with("onbeat-") => " in instance onbeat".to_owned(),
        Some(name) => format!(" in instance {}", cut(name)),
        None => String::new(),
    }
}

fn cut(word: &str) -> String {
    word.chars().take(28).map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// The first few, and the number of the others.
fn several(found: &[String]) -> String {
    let examples = found.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match found.len() - found.len().min(SHOWN) {
        0 => examples,
        more => format!("{examples}, and {more} more"),
    }
}

#[cfg(test)]
#[path = "tracing_left_on/tests.rs"]
mod tests;
