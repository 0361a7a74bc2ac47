//! Tracers and events, of the top-level buffer and of instances.

use super::KNOB;
use crate::fixture::{Machine, check};

const DIR: &str = "/sys/kernel/tracing";

#[test]
fn tracers_and_events_are_named() {
    check(&KNOB, "", "pass no tracer; no event; no function profiler; no stack tracer");
    check(&KNOB, &format!("{DIR}/current_tracer: function_graph"), "fail high tracer function_graph");
    check(&KNOB, &format!("{DIR}/events/enable: 1"), "fail medium all events");
    let some = format!(
        "{DIR}/events/enable: X\n{DIR}/set_event: sched:sched_switch\n| sched:sched_waking\n| \
         kprobes:mine"
    );
    check(&KNOB, &some, "fail medium events sched:sched_switch and 2 more");
    check(&KNOB, &format!("{DIR}/events/enable: X\n{DIR}/set_event refused"), "fail medium events");
    check(&KNOB, "/proc/sys/kernel/stack_tracer_enabled: 1", "fail high stack tracer");
    check(&KNOB, &format!("{DIR}/function_profile_enabled: 1"), "fail high function profiler");
}

#[test]
fn the_worst_sets_the_severity() {
    let both = format!("{DIR}/current_tracer: function\n{DIR}/events/enable: 1");
    check(&KNOB, &both, "fail high tracer function; all events");
    check(
        &KNOB,
        &format!("{DIR} absent\n/proc/sys/kernel/stack_tracer_enabled: 1"),
        "fail high stack tracer",
    );
}

#[test]
fn instances_count_except_for_reports_of_errors() {
    let of = |name: &str, events: &str| {
        let dir = format!("{DIR}/instances/{name}");
        format!("{dir}/current_tracer: nop\n{dir}/events/enable: X\n{dir}/set_event: {events}\n")
    };
    let quiet = "pass no tracer; no event; no function profiler; no stack tracer";
    check(&KNOB, &of("rasdaemon", "ras:mc_event\n| mce:mce_record"), quiet);
    check(
        &KNOB,
        &of("mine", "irq:irq_handler_entry"),
        "fail medium events irq:irq_handler_entry in instance mine",
    );
    let rtla = format!("{DIR}/instances/osnoise_top/current_tracer: osnoise");
    check(&KNOB, &rtla, "fail high tracer osnoise in instance osnoise_top");
    let ours = format!("{DIR}/instances/onbeat-41-99/current_tracer: function");
    check(&KNOB, &ours, "fail high tracer function in instance onbeat");
    let many: String = (0..9).map(|n| format!("{DIR}/instances/i{n}/current_tracer: hwlat\n")).collect();
    check(&KNOB, &many, "fail high tracer hwlat in instance i0, and 8 more");
}

#[test]
fn what_cannot_be_read_is_no_pass() {
    check(&KNOB, &format!("{DIR} absent"), "unknown");
    check(
        &KNOB,
        &format!("{DIR} absent\n/proc/sys/kernel/stack_tracer_enabled absent\nCONFIG_TRACING=n"),
        "not-applicable the kernel has no TRACING",
    );
    check(&KNOB, &format!("{DIR}/events/enable absent"), "unknown");
    check(&KNOB, &format!("{DIR}/instances refused"), "unknown");
    check(
        &KNOB,
        &format!("{DIR}/events/enable refused\n{DIR}/current_tracer: function"),
        "fail high tracer function",
    );
    check(&KNOB, &format!("{DIR}/events/enable: maybe"), "unknown");
    let instances =
        format!("{DIR}/instances/a/current_tracer refused\n{DIR}/instances/b/current_tracer: nop\n");
    check(&KNOB, &instances, "unknown");
    let bad = format!("{instances}{DIR}/instances/c/current_tracer: hwlat");
    check(&KNOB, &bad, "fail high tracer hwlat in instance c");
    check(&KNOB, &format!("{DIR}/current_tracer: \u{1b}]0;x"), "unknown");
}

#[test]
fn hostile_names_are_cut() {
    let long = "x".repeat(255);
    let instance = |name: &str| {
        let dir = format!("{DIR}/instances/{name}{long}");
        format!(
            "{dir}/current_tracer: {long}\n{dir}/events/enable: X\n{dir}/set_event: {long}\n| \
             {long}\n"
        )
    };
    let mut machine = Machine::base();
    let main = format!("{DIR}/current_tracer: {long}\n{DIR}/events/enable: X\n{DIR}/set_event: {long}\n");
    machine.edit(&(main + &instance("a") + &instance("b")));
    let value = machine.finding(&KNOB).value;
    assert!(value.len() < 320 && !value.contains(&"x".repeat(29)), "{value}");
}
