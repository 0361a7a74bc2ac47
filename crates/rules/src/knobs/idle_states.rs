//! Idle states: time that a CPU takes to leave them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::idle_poll;
use super::per_cpu::{PerCpuSetting, numbered};
use super::sources::{CPUIDLE, ISOLATION, RT_CONFIG};
use crate::change::Change;
use crate::change::Persistence;
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::{unknown_absent, unknown_from};
use crate::view::MachineView;
use crate::words::{cpu_list, group_by_value};
use facts::Fact;
use facts::kbool::kint;
use facts::line::{parse_line, parse_u64};
use facts::power::parse_resume_latency;
use model::slice::SliceKind;
use model::sort::CompactSort;
use model::units::{Cpu, CpuSet};

const LATENCY: &str = "/sys/devices/system/cpu/cpu#/cpuidle/state#/latency";
const DISABLE: &str = "/sys/devices/system/cpu/cpu#/cpuidle/state#/disable";
const NAME: &str = "/sys/devices/system/cpu/cpu#/cpuidle/state#/name";
const LIMIT: &str = "/sys/devices/system/cpu/cpu#/power/pm_qos_resume_latency_us";

pub static KNOB: Knob = Knob {
    id: "idle-states",
    title: "idle states",
    description: "States of an idle CPU, from a stopped clock (C1, WFI) to flushed caches and power off (C6 \
                  and beyond, or a sleeping cluster). The deeper the state, the longer the time to the first \
                  instruction after a wake-up. A state is not used if it is disabled, exceeds the CPU's \
                  resume latency limit, or is excluded by processor.max_cstate or intel_idle.max_cstate.",
    rationale: "a wake-up on a CPU in a deep state waits until the CPU is running, tens to hundreds of \
                microseconds, and then finds cold caches",
    detection: "Exit latency and `disable` of each state of the audited CPUs, and their resume latency \
                limit: up to 10 us is acceptable, 100 us with --profile audio. Not visible: programs that \
                hold /dev/cpu_dma_latency open (cyclictest, onbeat and some applications do while they run), \
                what the firmware does for a state, and in a guest the idle states of the host.",
    side_effects: "Power and heat, and less turbo for the other cores. If all states are off the CPU polls, \
                   which takes execution units from a sibling. On the command line, states are excluded for \
                   all CPUs.",
    wanted: "no state in use with a long exit latency",
    fix: Remedy::default,
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    disputed: "a loop that can afford the exit latency may keep the states: comparing `onbeat measure --idle \
               as-is` with a run without that flag shows what they cost on this machine",
    persistence: Persistence::Runtime,
    sets: LIMIT,
    sources: &[
        Source { title: "kernel: real-time kernel configuration, CONFIG_CPU_IDLE", url: RT_CONFIG },
        Source {
            title: "kernel: CPU idle time management, representation of idle states, power \
                    management quality of service",
            url: CPUIDLE,
        },
        Source { title: "kernel: CPU isolation, checklist", url: ISOLATION },
    ],
    cures: &[SliceKind::IdleExit],
    after: &["resume-latency-qos"],
    reads: &[LATENCY, DISABLE, NAME, LIMIT],
    facts: &["/sys/devices/system/cpu/cpuidle/current_driver", "/proc/cmdline", "/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "/sys/devices/system/cpu/cpu2/cpuidle/state3/name: C6
                /sys/devices/system/cpu/cpu2/cpuidle/state3/latency: 133
                /sys/devices/system/cpu/cpu2/cpuidle/state3/disable: 0
                /sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us: 0",
        silent: "/sys/devices/system/cpu/cpu2/cpuidle/state3/name: C6
                 /sys/devices/system/cpu/cpu2/cpuidle/state3/latency: 133
                 /sys/devices/system/cpu/cpu2/cpuidle/state3/disable: 1
                 /sys/devices/system/cpu/cpu3/cpuidle/state3/name: C6
                 /sys/devices/system/cpu/cpu3/cpuidle/state3/latency: 133
                 /sys/devices/system/cpu/cpu3/cpuidle/state3/disable: 0
                 /sys/devices/system/cpu/cpu3/power/pm_qos_resume_latency_us: 10",
        unknown: "/sys/devices/system/cpu/cpu2/cpuidle/state3/latency: 133
                  /sys/devices/system/cpu/cpu2/cpuidle/state3/disable refused
                  /sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us: 0",
    },
    ..Knob::DEFAULT
};

/// Longest permitted exit latency, in us.
pub fn budget_us(machine: &MachineView) -> u64 {
    if machine.has_profile(Profile::Audio) { 100 } else { 10 }
}

fn judge(machine: &MachineView) -> Judged {
    // If the command line cannot be read, the states are judged as they are.
    let polls = |cmdline| idle_poll::polls(machine, cmdline);
    if let Ok(Some(word)) = machine.cmdline().and_then(polls) {
        return Ok(Judgement::pass(format!("{word}: never entered")));
    }
    let budget = budget_us(machine);
    let latencies = numbered(machine, LATENCY, parse_u64)?;
    let seen: CpuSet = latencies.keys().map(|&(cpu, _)| cpu).collect();
    if seen.is_empty() {
        return without_states(machine);
    }
    let disabled = numbered(machine, DISABLE, parse_u64)?;
    let names = numbered(machine, NAME, parse_line).unwrap_or_default();
    let limits = PerCpuSetting::of(machine, LIMIT, parse_resume_latency);
    let (mut deep, mut deepest, mut unclear) = (BTreeMap::new(), BTreeMap::new(), None);
    let mut too_slow = Vec::new();
    for (&(cpu, state), latency) in &latencies {
        let usable = usable(disabled.get(&(cpu, state)), &limits, cpu, state, latency);
        match (latency, usable) {
            (_, Ok(false)) => {}
            (Ok(latency), Ok(true)) => {
                let name = names.get(&(cpu, state)).and_then(|name| name.as_ref().ok());
                let words = format!("{} ({latency} us)", short(name, state));
                let worst = if *latency > budget { &mut deep } else { &mut deepest };
                if *latency > budget {
                    too_slow.push((cpu, state));
                }
                let known = worst.entry(cpu).or_insert((*latency, words.clone()));
                if known.0 < *latency {
                    *known = (*latency, words);
                }
            }
            // Shallow enough: it does not matter if it is in use.
            (Ok(latency), Err(_)) if *latency <= budget => {}
            (Ok(_), Err(why)) => drop(unclear.get_or_insert(why)),
            (Err(why), _) => drop(unclear.get_or_insert(why.clone())),
        }
    }
    if !deep.is_empty() {
        return Ok(too_deep(machine, budget, deep, &too_slow));
    }
    let unseen = machine.cpus().without(&seen);
    match unclear {
        Some(why) => Err(why),
        None if !unseen.is_empty() => {
            Err(Judgement::unknown(format!("{} has no idle states, unlike others", cpu_list(&unseen))))
        }
        None => {
            Ok(Judgement::pass(group_by_value(deepest.into_iter().map(|(cpu, (_, words))| (cpu, words))))
                .wanted(wanted(budget)))
        }
    }
}

fn wanted(budget: u64) -> String {
    format!("no state in use with an exit latency above {budget} us")
}

fn short(name: Option<&String>, state: u32) -> String {
    // Longer names than the kernel's 15 bytes are invalid.
    match name {
        Some(name) if !name.is_empty() && name.len() < 16 => name.clone(),
        _ => format!("state{state}"),
    }
}

/// True if a CPU may enter a state.
fn usable(
    disabled: Option<&Result<u64, Judgement>>,
    limits: &PerCpuSetting<Option<u64>>,
    cpu: Cpu,
    state: u32,
    latency: &Result<u64, Judgement>,
) -> Result<bool, Judgement> {
    let limit = limits.known.get(&cpu);
    if let (Some(Some(limit)), Ok(latency)) = (limit, latency) {
        // The first state remains even if it exceeds the limit.
        if latency > limit && state > 0 {
            return Ok(false);
        }
    }
    match disabled {
        Some(Ok(1..)) => Ok(false),
        Some(Ok(0)) if limit.is_some() => Ok(true),
        Some(Ok(0)) => {
            // Without the file (no CONFIG_PM) there is no limit.
            if limits.is_absent() { Ok(true) } else { limits.all_known().map(|()| true) }
        }
        Some(Err(why)) => Err(why.clone()),
        None => Err(unknown_absent(&DISABLE.replacen('#', &cpu.to_string(), 1).replacen(
            '#',
            &state.to_string(),
            1,
        ))),
    }
}

/// Remedy: a limit if the kernel has one, disabled deep states, or on x86 none of them from boot
/// on.
fn shallow(machine: &MachineView, budget: u64, cpus: &CpuSet, states: &[(Cpu, u32)]) -> Remedy {
    let path = |&(cpu, state): &(Cpu, u32)| {
        DISABLE.replacen('#', &cpu.to_string(), 1).replacen('#', &state.to_string(), 1)
    };
    let shown_as = DISABLE.replacen('#', "N", 1).replacen('#', "M", 1);
    let of = format!("each such state of {}", cpu_list(cpus));
    let off = Remedy::from(Change::each(states.iter().map(path).collect(), &shown_as, &of, 1));
    let limits = PerCpuSetting::of(machine, LIMIT, parse_resume_latency);
    let limited = cpus.iter().all(|cpu| limits.known.contains_key(&cpu));
    let ways = if limited { Remedy::from(Change::each_cpu(LIMIT, cpus, budget)).or(off) } else { off };
    let words = ["processor.max_cstate=1", "intel_idle.max_cstate=1"];
    // The second driver is for Intel's processors, and not active here.
    let is_acpi = machine.facts().cpuidle_driver.known().is_some_and(|name| name == "acpi_idle");
    let words = if is_acpi { &words[..1] } else { &words[..] };
    let whole = Remedy::of(words.iter().map(|word| Change::cmdline_add(*word)))
        .note("which applies to the whole machine");
    if machine.require_x86().is_ok() { ways.or(whole) } else { ways }
}

fn too_deep(
    machine: &MachineView,
    budget: u64,
    deep: BTreeMap<Cpu, (u64, String)>,
    states: &[(Cpu, u32)],
) -> Judgement {
    let worst = deep.values().map(|&(latency, _)| latency).max().unwrap_or(0);
    let cpus: CpuSet = deep.keys().copied().collect();
    let severity = match worst {
        // A CPU that polls does not idle.
        _ if machine.has_profile(Profile::BusyPoll) => Severity::Low,
        101.. if !machine.has_profile(Profile::Audio) => Severity::High,
        _ => Severity::Medium,
    };
    let mut worst_first: Vec<(Cpu, (u64, String))> = deep.into_iter().collect();
    worst_first.compact_sort_by_key(|&(cpu, (latency, _))| (Reverse(latency), cpu));
    Judgement::fail(group_by_value(worst_first.into_iter().map(|(cpu, (_, words))| (cpu, words))))
        .severity(severity)
        .wanted(wanted(budget))
        .fix(shallow(machine, budget, &cpus, states))
}

/// Judgement if no audited CPU shows a state: the architecture's halt is then the only one.
fn without_states(machine: &MachineView) -> Judged {
    let driver = &machine.facts().cpuidle_driver;
    if let Fact::Refused(_) | Fact::Malformed(_) | Fact::NotCaptured = driver {
        return Err(unknown_from("/sys/devices/system/cpu/cpuidle/current_driver", driver));
    }
    if machine.is_virtual()? {
        return Err(Judgement::not_applicable(
            "this guest has no idle states: its host decides how deeply it sleeps",
        ));
    }
    let cmdline = machine.cmdline()?;
    let cpuidle_off = cmdline.values("cpuidle.off").filter_map(kint).next_back();
    let off = match (cmdline.value("idle"), cpuidle_off) {
        (Some("halt"), _) if machine.require_x86().is_ok() => Some("idle=halt".to_owned()),
        (_, Some(off)) if off != 0 => Some("cpuidle.off=1".to_owned()),
        _ if driver.known().is_some_and(|name| name == "none") => Some("no idle driver".to_owned()),
        _ => None,
    };
    if let Some(how) = off {
        return Ok(Judgement::pass(how));
    }
    match driver {
        Fact::Known(name) => {
            let name: String = name.chars().take(40).collect();
            Err(Judgement::unknown(format!("the idle driver is {name}, but these CPUs have no states")))
        }
        _ if machine.kconfig()?.is_yes("CPU_IDLE") => Err(Judgement::unknown(
            "/sys/devices/system/cpu/cpuidle is not there, though the kernel has CONFIG_CPU_IDLE",
        )),
        _ => Ok(Judgement::pass("no CONFIG_CPU_IDLE")),
    }
}

#[cfg(test)]
#[path = "idle_states_tests.rs"]
mod tests;
