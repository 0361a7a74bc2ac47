//! Effect of a change on the kernel of a synthetic machine, immediately or at the next boot, for
//! the tests that follow advice. Only effects that a rule reads are modelled.

use super::kernel::{partition, set};
use crate::change::Change;
use crate::fixture::Machine;
use crate::parameters::{is_given, is_present, other_values};
use crate::setting::of_change;
use facts::cmdline::{Cmdline, parse_cmdline};
use facts::kbool::kbool;
use facts::line::parse_cpus;
use host::access::Access;
use model::units::{Cpu, CpuSet};

const CMDLINE: &str = "/proc/cmdline";

pub fn text(machine: &Machine, path: &str) -> Option<String> {
    match machine.answers.get(path)? {
        Access::File(bytes) => Some(String::from_utf8_lossy(bytes).trim_end().to_owned()),
        _ => None,
    }
}

/// Applies a change, with its effect immediately or at the next boot; returns an error if it
/// changes nothing.
pub fn make(machine: &mut Machine, change: &Change) -> Result<(), String> {
    let unchanged = machine.answers.clone();
    for (path, value) in change.writes() {
        write(machine, &path, value)?;
    }
    match change {
        Change::CmdlineAdd { word } => {
            let line = text(machine, CMDLINE).ok_or("there is no command line")?;
            let others = words(&line, |one| other_values(one, word).is_empty() && !is_given(one, word));
            machine.edit(&format!("{CMDLINE}: {others} {word}"));
            booted_with(machine, word);
        }
        Change::CmdlineRemove { word } => {
            let line = text(machine, CMDLINE).ok_or("there is no command line")?;
            machine.edit(&format!("{CMDLINE}: {}", words(&line, |one| !is_present(one, word))));
            booted_without(machine, word);
        }
        Change::Kconfig { option, value } => built(machine, option, value),
        Change::Disable { program, .. } => machine.stop(program),
        Change::Partition { cpus, root, .. } => partition(machine, root, cpus),
        Change::Affinity { .. } | Change::Policy { .. } => {
            for setting in of_change(change, &machine.read()) {
                set(machine, &setting)?;
            }
        }
        Change::Advice { .. } => return Ok(()),
        Change::Sysctl { .. } | Change::Write { .. } => {}
    }
    if unchanged == machine.answers { Err(format!("{change:?} is so already")) } else { Ok(()) }
}

/// Words of a line without quotes that pass a test, each parsed by itself.
fn words(line: &str, test: impl Fn(&Cmdline) -> bool) -> String {
    let words = line.split_whitespace().filter(|word| test(&parse_cmdline(word).unwrap_or_default()));
    words.collect::<Vec<_>>().join(" ")
}

/// Applies the effect of a value that is written to a kernel file.
pub fn write(machine: &mut Machine, path: &str, value: &str) -> Result<(), String> {
    if let Some(cpu) =
        path.strip_prefix("/sys/devices/system/cpu/cpu").and_then(|rest| rest.strip_suffix("/online"))
    {
        return switch(machine, cpu, value);
    }
    let was = text(machine, path).ok_or(format!("{path} is not there"))?;
    let is = match was.split_whitespace().find(|word| word.starts_with(['[', '('])) {
        Some(chosen) => choose(&was, chosen, value).ok_or(format!("{path} does not offer {value}: {was}"))?,
        // The first numbers of this file are written, and the others stay
        // (`Documentation/admin-guide/sysctl/kernel.rst`).
        None if path == "/proc/sys/kernel/printk" => {
            let given = value.split_whitespace();
            let others = was.split_whitespace().skip(given.clone().count());
            given.chain(others).collect::<Vec<_>>().join(" ")
        }
        None => value.to_owned(),
    };
    refused(machine, path, value)?;
    machine.edit(&format!("{path}: {is}"));
    follows(machine, path, value);
    Ok(())
}

/// Refuses values that kernels are known to refuse.
fn refused(machine: &Machine, path: &str, value: &str) -> Result<(), String> {
    let throttled = || text(machine, "/proc/sys/kernel/sched_rt_runtime_us").is_some_and(|us| us != "-1");
    let release = || text(machine, "/proc/sys/kernel/osrelease").unwrap_or_default();
    let locked = || text(machine, CMDLINE).is_some_and(|line| line.contains("printk.devkmsg="));
    match path {
        // Observed on 6.12, and not from 7.x on: a smaller runtime is refused while real-time
        // throttling is on.
        _ if path.contains("_server/") && throttled() && !release().starts_with("7.") => {
            Err(format!("{path} refuses {value} (EBUSY)"))
        }
        "/proc/sys/kernel/printk_devkmsg" if locked() => Err(format!("{path} refuses {value} (EINVAL)")),
        _ if path.ends_with("cpumask") && value.chars().all(|c| "0,".contains(c)) => {
            Err(format!("{path} refuses an empty mask (EINVAL)"))
        }
        _ => Ok(()),
    }
}

/// Applies the changes of other files that follow from a write.
fn follows(machine: &mut Machine, path: &str, value: &str) {
    let set_if_there = |machine: &mut Machine, path: &str, value: &str| {
        if text(machine, path).is_some() {
            machine.edit(&format!("{path}: {value}"));
        }
    };
    if path == "/proc/sys/kernel/watchdog" && value == "0" {
        set_if_there(machine, "/proc/sys/kernel/soft_watchdog", "0");
        set_if_there(machine, "/proc/sys/kernel/nmi_watchdog", "0");
    }
    if path == "/sys/module/damon_stat/parameters/enabled" && value == "N" {
        machine.stop("kdamond.0");
    }
    if path == "/sys/module/pcie_aspm/parameters/policy" && value == "performance" {
        for link in matching(machine, |path| path.ends_with("_aspm")) {
            machine.edit(&format!("{link}: 0"));
        }
    }
    if let Some(irq) = path.strip_suffix("/smp_affinity_list") {
        // Effective with the next interrupt; one of the CPUs is chosen.
        set_if_there(machine, &format!("{irq}/effective_affinity_list"), value);
    }
    if let Some(events) = path.strip_suffix("/events/enable") {
        set_if_there(machine, &format!("{events}/set_event"), "");
    }
}

const ONLINE: &str = "/sys/devices/system/cpu/online";
const PRESENT: &str = "/sys/devices/system/cpu/present";

/// Switches a CPU on or off.
fn switch(machine: &mut Machine, cpu: &str, value: &str) -> Result<(), String> {
    let number: u32 = cpu.parse().map_err(|_| format!("no CPU {cpu}"))?;
    if number == 0 || value != "0" {
        return Err(format!("CPU {cpu} has no switch"));
    }
    let one: CpuSet = [Cpu(number)].into_iter().collect();
    let present = text(machine, PRESENT);
    for path in matching(machine, |path| path == ONLINE || path.ends_with("_siblings_list")) {
        let cpus = text(machine, &path).and_then(|list| parse_cpus(&list).ok()).unwrap_or_default();
        machine.edit(&format!("{path}: {}", cpus.without(&one)));
    }
    // An offline CPU is still present.
    if let Some(present) = present {
        machine.edit(&format!("{PRESENT}: {present}"));
    }
    for path in matching(machine, |path| path.starts_with(&format!("/sys/devices/system/cpu/cpu{cpu}/"))) {
        machine.edit(&format!("{path} absent"));
    }
    Ok(())
}

pub fn matching(machine: &Machine, is: impl Fn(&str) -> bool) -> Vec<String> {
    let files = machine.answers.iter().filter(|(_, seen)| matches!(seen, Access::File(_)));
    files.map(|(path, _)| path.clone()).filter(|path| is(path)).collect()
}

/// The text of a file of choices with another word selected; none if the word is not offered.
fn choose(text: &str, chosen: &str, value: &str) -> Option<String> {
    let (open, close) = if chosen.starts_with('[') { ('[', ']') } else { ('(', ')') };
    let bare = |word: &str| word.trim_matches([open, close]).to_owned();
    let words: Vec<String> = text.split_whitespace().map(bare).collect();
    let mark = |word: &String| if word == value { format!("{open}{word}{close}") } else { word.clone() };
    words.iter().any(|word| word == value).then(|| words.iter().map(mark).collect::<Vec<_>>().join(" "))
}

/// Applies the effect of a word at the next boot.
fn booted_with(machine: &mut Machine, word: &str) {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    if let Some((module, parameter)) = name.split_once('.') {
        let path = format!("/sys/module/{module}/parameters/{parameter}");
        if let Some(was) = text(machine, &path) {
            let flag = matches!(was.as_str(), "Y" | "N");
            let value = if flag { ["N", "Y"][usize::from(kbool(value, None) != Some(false))] } else { value };
            let _ = write(machine, &path, value);
        }
    }
    match name {
        "printk.devkmsg" => machine.edit(&format!("/proc/sys/kernel/printk_devkmsg: {value}")),
        "psi" => machine.edit("/proc/pressure absent"),
        "isolcpus" => isolate(machine, value),
        "nohz_full" => machine.edit(&format!("/sys/devices/system/cpu/nohz_full: {value}")),
        "nosmt" => {
            let siblings = |path: &str| path.ends_with("/thread_siblings_list");
            let lists = matching(machine, siblings);
            let cores = lists.iter().filter_map(|path| parse_cpus(&text(machine, path)?).ok());
            let seconds: CpuSet = cores.flat_map(|core| core.iter().skip(1).collect::<Vec<_>>()).collect();
            for cpu in seconds.iter() {
                let _ = switch(machine, &cpu.to_string(), "0");
            }
        }
        "intel_idle.max_cstate" | "processor.max_cstate" => {
            for path in matching(machine, |path| path.contains("/cpuidle/state")) {
                let state = path.split("/state").nth(1).and_then(|rest| rest.split('/').next());
                if state.and_then(|state| state.parse().ok()).is_some_and(|state: u32| state > 1) {
                    machine.edit(&format!("{path} absent"));
                }
            }
        }
        "preempt" => {
            let _ = write(machine, "/sys/kernel/debug/sched/preempt", value);
        }
        "nowatchdog" => {
            let _ = write(machine, "/proc/sys/kernel/watchdog", "0");
        }
        _ => {}
    }
}

/// Sets the list of isolated CPUs, and moves managed interrupts off those that are named.
fn isolate(machine: &mut Machine, value: &str) {
    let digits = value.find(|c: char| c.is_ascii_digit()).unwrap_or(value.len());
    let (flags, list) = value.split_at(digits);
    let is_balanced = !flags.is_empty() && !flags.contains("domain");
    machine.edit(&format!("/sys/devices/system/cpu/isolated: {}", if is_balanced { "" } else { list }));
    let isolated = parse_cpus(list).unwrap_or_default();
    if !flags.contains("managed_irq") {
        return;
    }
    for path in matching(machine, |path| path.ends_with("/effective_affinity_list")) {
        let allowed = path.replace("effective_affinity_list", "smp_affinity_list");
        let allowed = text(machine, &allowed).and_then(|list| parse_cpus(&list).ok()).unwrap_or_default();
        let others = allowed.without(&isolated);
        if !others.is_empty() {
            machine.edit(&format!("{path}: {others}"));
        }
    }
}

/// Applies the effect of removing a word at the next boot.
fn booted_without(machine: &mut Machine, word: &str) {
    match word.split_once('=') {
        _ if word == "nohz_full" => machine.edit("/sys/devices/system/cpu/nohz_full: (null)"),
        Some(("console", value)) => {
            let name = value.split(',').next().unwrap_or_default();
            let active = "/sys/class/tty/console/active";
            let rest = text(machine, active).unwrap_or_default().replace(name, "");
            let rest = if rest.trim().is_empty() { "tty0" } else { rest.trim() };
            machine.edit(&format!("{active}: {rest}"));
        }
        _ if matches!(word, "mce=off" | "nomce") => machine.edit(
            "/sys/devices/system/machinecheck/machinecheck0/check_interval: 300
             /sys/devices/system/machinecheck/machinecheck0/ignore_ce: 0",
        ),
        _ => {}
    }
}

/// Applies the effect of building a kernel with or without an option.
fn built(machine: &mut Machine, option: &str, value: &str) {
    machine.edit(&format!("CONFIG_{option}={value}"));
    const LOCKDEP: [&str; 4] = ["PROVE_LOCKING", "LOCK_STAT", "DEBUG_LOCK_ALLOC", "DEBUG_WW_MUTEX_SLOWPATH"];
    match (option, value) {
        ("PROVE_LOCKING", "n") => machine.edit("/proc/sys/kernel/prove_locking absent"),
        ("LOCK_STAT", "n") => machine.edit("/proc/sys/kernel/lock_stat absent"),
        ("OSNOISE_TRACER" | "TIMERLAT_TRACER" | "HWLAT_TRACER", "y") => {
            let path = "/sys/kernel/tracing/available_tracers";
            let name = option.trim_end_matches("_TRACER").to_lowercase();
            if let Some(all) = text(machine, path) {
                machine.edit(&format!("{path}: {name} {all}"));
            }
        }
        ("IRQSOFF_TRACER", "n") => tracer(machine, "irqsoff"),
        ("PREEMPT_TRACER", "n") => tracer(machine, "preemptoff"),
        ("NO_HZ_FULL", "y") => {
            machine.edit("/sys/devices/system/cpu/nohz_full: (null)\nCONFIG_RCU_NOCB_CPU=y")
        }
        _ => {}
    }
    // Each of them selects it.
    if LOCKDEP.contains(&option) && value == "n" {
        machine.edit("CONFIG_LOCKDEP=n");
    }
}

/// Removes a tracer from the available ones.
fn tracer(machine: &mut Machine, name: &str) {
    let path = "/sys/kernel/tracing/available_tracers";
    if let Some(all) = text(machine, path) {
        let rest: Vec<&str> = all.split_whitespace().filter(|other| *other != name).collect();
        machine.edit(&format!("{path}: {}", rest.join(" ")));
    }
}
