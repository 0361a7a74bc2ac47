//! Clocks of memory and buses that follow the load, on systems on a chip.

use std::collections::BTreeMap;

use super::sources::{ABI, DEVFREQ, RT_HARDWARE};
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_from;
use crate::view::MachineView;
use crate::words::truncate_list;
use facts::Fact;
use facts::kconfig::OptionValue;
use facts::line::{parse_u64, parse_word};
use facts::texts::Text;
use model::slice::SliceKind;

const DEVICES: &str = "/sys/class/devfreq/";
const GOVERNOR: &str = "/sys/class/devfreq/*/governor";
const MIN: &str = "/sys/class/devfreq/*/min_freq";
const MAX: &str = "/sys/class/devfreq/*/max_freq";

const AVAILABLE: &str = "/sys/class/devfreq/*/available_governors";

pub static KNOB: Knob = Knob {
    id: "devfreq-governor",
    title: "memory and bus clocks",
    description: "The frequencies of devices that the kernel scales with their utilization: DDR memory and \
                  interconnects on many Arm boards. A governor keeps a frequency (performance, powersave, \
                  userspace), follows another device (passive), or follows the utilization (simple_ondemand \
                  and vendor governors).",
    rationale: "memory and buses slow down while the machine is idle, so the first accesses after a pause \
                take longer, and all accesses wait while the memory frequency changes",
    detection: "Governor and range of each device; a range of one frequency is constant. Memory and buses \
                are recognized by the names of their devices (dmc, ddr, emc, memory-controller, noc, bus, \
                cci, interconnect and the like); graphics, video and other engines affect only themselves. \
                Firmware that scales memory by itself is not detected.",
    side_effects: "Power and heat, also while the board is idle.",
    wanted: "performance, or any other constant frequency",
    fix: || {
        Remedy::advice(
            AdviceReason::Program,
            "echo performance >/sys/class/devfreq/DEVICE/governor for each; to keep it, a udev \
             rule or a unit at boot",
        )
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Practice,
    disputed: "the cost depends on the memory controller: `onbeat compare` a run with the governor and one \
               with performance, on an idle machine",
    persistence: Persistence::Runtime,
    sets: GOVERNOR,
    sources: &[
        Source { title: "kernel: device frequency scaling", url: DEVFREQ },
        Source { title: "kernel: sysfs ABI, /sys/class/devfreq", url: ABI },
        Source { title: "kernel: considering hardware, hardware buses", url: RT_HARDWARE },
    ],
    cures: &[SliceKind::Unexplained],
    reads: &[DEVICES, GOVERNOR, MIN, MAX, AVAILABLE],
    facts: &["/sys/devices/system/cpu/online", "/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "/sys/class/devfreq/dmc/governor: simple_ondemand
                /sys/class/devfreq/dmc/min_freq: 400000000
                /sys/class/devfreq/dmc/max_freq: 1600000000",
        silent: "/sys/class/devfreq/dmc/governor: performance",
        unknown: "/sys/class/devfreq/dmc/governor refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    // If the CPUs cannot be read, neither can the rest of sysfs: a missing file would mean nothing.
    machine.known(&machine.facts().online, "/sys/devices/system/cpu/online")?;
    let (least, most) = (rates(machine, MIN), rates(machine, MAX));
    let narrow =
        |device: &str| least.get(device).is_some_and(|min| *min > 0 && most.get(device) == Some(min));
    let (mut moving, mut fixed, mut untold) = (Vec::new(), 0, None);
    for text in machine.texts(GOVERNOR)? {
        let device = text.names.first().map_or("", String::as_str);
        if !is_memory_or_bus(device) {
            continue;
        }
        match text.content.clone().parse(|content| parse_word(&content)) {
            Fact::Known(governor) => match governor.as_str() {
                // A passive governor follows another of these devices, or the clock of a CPU.
                "performance" | "powersave" | "userspace" | "passive" => fixed += 1,
                _ if narrow(device) => fixed += 1,
                _ => moving.push((format!("{governor} for {device}"), text)),
            },
            other => drop(untold.get_or_insert(unknown_from(&text.path, &other))),
        }
    }
    if !moving.is_empty() {
        let paths = moving.iter().map(|(_, text)| text.path.clone()).collect();
        let devices = truncate_list(moving.iter().map(|(_, text)| text.names.join("/")));
        let lasting = Change::advice(AdviceReason::Program, "a udev rule or a unit at boot");
        let fix = if moving.iter().all(|(_, text)| has_performance(machine, &text.names)) {
            Change::each(paths, "/sys/class/devfreq/DEVICE/governor", &devices, "performance")
        } else {
            // A range of one frequency leaves no choice to any governor.
            Change::advice(
                AdviceReason::Choice,
                format!(
                    "for {devices}, write the value of max_freq to /sys/class/devfreq/DEVICE/min_freq: this \
                     kernel has no performance governor for it"
                ),
            )
        };
        return Ok(Judgement::fail(truncate_list(moving.iter().map(|(words, _)| words)))
            .fix(Remedy::from(fix).persist(lasting)));
    }
    match untold {
        Some(why) => Err(why),
        None if fixed > 0 => Ok(Judgement::pass(format!("none of {fixed} follows its use"))),
        None => none(machine),
    }
}

/// Parts of the names of memory controllers and interconnects in device trees and drivers
/// (drivers/devfreq, drivers/interconnect).
const MEMORY_OR_BUS: [&str; 14] = [
    "dmc",
    "ddr",
    "dram",
    "emc",
    "mem",
    "mif",
    "noc",
    "bus",
    "cci",
    "interconnect",
    "cpubw",
    "bwmon",
    "actmon",
    "dvfsrc",
];

/// True for a device whose clock all CPUs wait for; that of another affects only its users.
fn is_memory_or_bus(device: &str) -> bool {
    MEMORY_OR_BUS.iter().any(|part| device.contains(part))
}

/// False if the device does not offer the governor, and no module can provide it.
fn has_performance(machine: &MachineView, device: &[String]) -> bool {
    let offered = machine.texts(AVAILABLE).unwrap_or_default().iter().find(|text| text.names == device);
    let names = offered.and_then(|text| text.content.known());
    let is_built = || match machine.facts().kconfig.known() {
        Some(config) => config.get("DEVFREQ_GOV_PERFORMANCE") == OptionValue::Module,
        None => false,
    };
    names.is_none_or(|names| names.split_whitespace().any(|name| name == "performance")) || is_built()
}

/// Known rates, by device.
fn rates<'a>(machine: &MachineView<'a>, pattern: &'static str) -> BTreeMap<&'a str, u64> {
    let texts = machine.texts(pattern).unwrap_or_default();
    let rate = |text: &'a Text| Some((text.names.first()?.as_str(), parse_u64(text.content.known()?).ok()?));
    texts.iter().filter_map(rate).collect()
}

/// Judgement without a governor: not applicable only if no device is listed either.
fn none(machine: &MachineView) -> Judged {
    let listed = machine
        .parsed(DEVICES, |names| Ok(names.lines().any(|name| !name.is_empty() && is_memory_or_bus(name))))?;
    match listed {
        Some(true) => Err(Judgement::unknown("/sys/class/devfreq lists devices, but not their governors")),
        _ => Err(Judgement::not_applicable("the kernel scales no memory or bus frequency here")),
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    const DMC: &str = "/sys/class/devfreq/dmc/governor: simple_ondemand\n\
                       /sys/class/devfreq/dmc/min_freq: 400\n/sys/class/devfreq/dmc/max_freq: ";

    #[test]
    fn what_moves_fires() {
        check(&KNOB, &format!("{DMC}1600"), "fail medium simple_ondemand for dmc");
        check(&KNOB, &format!("{DMC}400"), "pass none of 1 follows its use");
        check(
            &KNOB,
            &format!("{DMC}400\n/sys/class/devfreq/dmc/min_freq refused"),
            "fail medium simple_ondemand for dmc",
        );
        check(&KNOB, "/sys/class/devfreq/bus/governor: passive", "pass none of 1 follows its use");
        check(
            &KNOB,
            "/sys/class/devfreq/bus/governor refused\n/sys/class/devfreq/dmc/governor: \
             simple_ondemand",
            "fail medium simple_ondemand for dmc",
        );
        let many: String =
            (0..9).map(|n| format!("/sys/class/devfreq/bus{}{n}/governor: mine\n", "d".repeat(90))).collect();
        let one = format!("mine for bus{}0", "d".repeat(90));
        check(&KNOB, &many, &format!("fail medium {one} and 8 more"));
    }

    #[test]
    fn a_governor_that_is_not_there_is_not_asked_for() {
        let fix = |edits: &str| {
            let mut machine = Machine::base();
            machine.edit(&format!("{DMC}1600\n{edits}"));
            machine.finding(&KNOB).fix
        };
        let offered = "/sys/class/devfreq/dmc/available_governors: userspace simple_ondemand";
        assert!(fix("").starts_with("echo performance >/sys/class/devfreq/dmc/governor"), "{}", fix(""));
        assert!(fix(&format!("{offered} performance")).contains("echo performance >"));
        assert!(fix(offered).contains("min_freq"), "{}", fix(offered));
        let module = format!("{offered}\nCONFIG_DEVFREQ_GOV_PERFORMANCE=m");
        assert!(fix(&module).contains("echo performance >"));
    }

    #[test]
    fn nothing_to_scale() {
        let none = "not-applicable the kernel scales no memory or bus frequency here";
        check(&KNOB, "", none);
        check(&KNOB, "/sys/class/devfreq/1000000.gpu/governor: simple_ondemand", none);
        // The graphics and video engines of a Jetson, and flash storage.
        for engine in ["1d84000.ufshc", "17000000.ga10b", "15340000.vic", "15480000.nvdec", "15a50000.ofa"] {
            check(&KNOB, &format!("/sys/class/devfreq/{engine}/governor: nvhost_podgov"), none);
        }
        check(&KNOB, "/sys/class/devfreq refused", "unknown");
        check(&KNOB, "/sys/devices/system/cpu/online refused\n--cpus 2-3", "unknown");
    }
}
