//! Idle states in all combinations of switch, limit, profile and absence.

use super::KNOB;
use crate::fixture::{Machine, check};

/// Lets CPU 2 and 3 use all their states.
const OPEN: &str = "/sys/devices/system/cpu/cpu2/cpuidle/state3/disable: 0
                    /sys/devices/system/cpu/cpu3/cpuidle/state3/disable: 0
                    /sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us: 0
                    /sys/devices/system/cpu/cpu3/power/pm_qos_resume_latency_us: 0";

/// Removes all states.
fn bare() -> String {
    [0, 1, 2, 3].map(|cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle absent")).join("\n")
}

fn open(more: &str) -> String {
    format!("{OPEN}\n{more}")
}

#[test]
fn each_way_to_keep_a_state_out_of_use_counts() {
    let limit = |value| {
        open(&format!(
            "/sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us: {value}\n\
             /sys/devices/system/cpu/cpu3/power/pm_qos_resume_latency_us: {value}"
        ))
    };
    check(&KNOB, "", "pass C1E (10 us) on CPUs 2-3");
    check(&KNOB, OPEN, "fail medium C6 (85 us) on CPUs 2-3");
    check(&KNOB, &limit("5"), "pass C1 (2 us) on CPUs 2-3");
    check(&KNOB, &limit("n/a"), "pass POLL (0 us) on CPUs 2-3");
    check(&KNOB, &limit("500"), "fail medium C6 (85 us) on CPUs 2-3");
    check(
        &KNOB,
        &open("/sys/devices/system/cpu/cpu2/cpuidle/state3/disable: 1"),
        "fail medium C6 (85 us) on CPU 3",
    );
    let gone = "/sys/devices/system/cpu/cpu2/cpuidle/state3 absent\n\
                /sys/devices/system/cpu/cpu3/cpuidle/state3 absent";
    check(&KNOB, &open(gone), "pass C1E (10 us) on CPUs 2-3");
}

#[test]
fn what_the_machine_is_for_sets_the_budget() {
    check(&KNOB, &open("--profile audio"), "pass C6 (85 us) on CPUs 2-3");
    check(&KNOB, &open("--profile busy-poll"), "fail low C6 (85 us) on CPUs 2-3");
    let deep = open("/sys/devices/system/cpu/cpu3/cpuidle/state3/latency: 890");
    check(&KNOB, &deep, "fail high C6 (890 us) on CPU 3; C6 (85 us) on CPU 2");
    check(&KNOB, &format!("{deep}\n--profile audio"), "fail medium C6 (890 us) on CPU 3");
}

#[test]
fn arm_keeps_its_first_state() {
    let dir = "/sys/devices/system/cpu/cpu2/cpuidle/state0";
    check(
        &KNOB,
        &format!(
            "--cpus 2\n{dir}/name: WFI\n{dir}/latency: 1\n\
             /sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us: n/a"
        ),
        "pass WFI (1 us) on CPU 2",
    );
}

#[test]
fn unreadable_states_are_unknown_unless_they_are_irrelevant() {
    let two = "/sys/devices/system/cpu/cpu2";
    check(&KNOB, &format!("{two}/cpuidle/state3/latency refused"), "pass C1E (10 us) on CPUs 2-3");
    check(
        &KNOB,
        &open(&format!(
            "{two}/cpuidle/state3/latency refused\n\
             /sys/devices/system/cpu/cpu3/cpuidle/state3/disable: 1"
        )),
        "unknown",
    );
    check(&KNOB, &format!("{two}/cpuidle/state1/disable refused"), "pass C1E (10 us) on CPUs 2-3");
    check(
        &KNOB,
        &open(&format!("{two}/power refused\n/sys/devices/system/cpu/cpu3/cpuidle/state3/disable: 1")),
        "unknown",
    );
    check(
        &KNOB,
        &open(&format!("{two}/power absent\n/sys/devices/system/cpu/cpu3/power absent")),
        "fail medium C6 (85 us) on CPUs 2-3",
    );
    check(&KNOB, &format!("{two}/cpuidle absent"), "unknown CPU 2 has no idle states, unlike others");
    check(&KNOB, &open(&format!("{two}/cpuidle/state3/latency: soon")), "fail medium C6 (85 us) on CPU 3");
    let long = "x".repeat(300);
    check(
        &KNOB,
        &open(&format!("--cpus 2\n{two}/cpuidle/state3/name: {long}")),
        "fail medium state3 (85 us) on CPU 2",
    );
}

#[test]
fn the_words_are_those_of_the_driver() {
    let fix = |edits: &str| {
        let mut machine = Machine::base();
        machine.edit(OPEN);
        machine.edit(edits);
        machine.finding(&KNOB).fix
    };
    assert!(fix("").contains("intel_idle.max_cstate=1"));
    let acpi = fix("/sys/devices/system/cpu/cpuidle/current_driver: acpi_idle");
    assert!(acpi.contains("processor.max_cstate=1") && !acpi.contains("intel_idle"), "{acpi}");
}

#[test]
fn without_states_it_is_known_why() {
    let driver = "/sys/devices/system/cpu/cpuidle/current_driver";
    check(&KNOB, &bare(), "unknown the idle driver is intel_idle, but these CPUs have no states");
    check(&KNOB, &format!("{}\n{driver}: none", bare()), "pass no idle driver");
    check(&KNOB, &format!("{}\n{driver}: none\ncmdline + idle=halt", bare()), "pass idle=halt");
    let deep = "/sys/devices/system/cpu/cpu2/cpuidle/state1/latency: 700\n\
                /sys/devices/system/cpu/cpu2/cpuidle/state1/disable: 0\n/proc/sys/kernel/arch: aarch64";
    check(&KNOB, &format!("{deep}\ncmdline + nohlt"), "pass nohlt: never entered");
    let x86 = deep.replace("aarch64", "x86_64");
    check(&KNOB, &format!("{x86}\ncmdline + idle=poll"), "pass idle=poll: never entered");
    for value in ["1", "0x1"] {
        let off = format!("{}\n{driver} absent\ncmdline + cpuidle.off={value}", bare());
        check(&KNOB, &off, "pass cpuidle.off=1");
    }
    check(&KNOB, &format!("{}\n{driver} refused", bare()), "unknown");
    check(&KNOB, &format!("{}\n{driver} absent\nCONFIG_CPU_IDLE=y", bare()), "unknown");
    check(&KNOB, &format!("{}\n{driver} absent\nCONFIG_CPU_IDLE=n", bare()), "pass no CONFIG_CPU_IDLE");
    check(&KNOB, &format!("{}\n{driver} absent\n/boot/config-6.12.9-rt-amd64 absent", bare()), "unknown");
    check(
        &KNOB,
        &format!("{}\n{driver}: none\n/sys/hypervisor/type: xen", bare()),
        "not-applicable this guest has no idle states: its host decides how deeply it sleeps",
    );
}
