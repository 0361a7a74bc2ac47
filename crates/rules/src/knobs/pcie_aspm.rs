//! PCIe links that sleep while they are idle.

use super::sources::{PARAMETERS, RT_HARDWARE};
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_from;
use crate::view::MachineView;
use crate::words::truncate_words;
use facts::Fact;
use facts::line::{parse_i64, parse_words};
use model::slice::SliceKind;
use std::collections::BTreeSet;

const POLICY: &str = "/sys/module/pcie_aspm/parameters/policy";
const L0S: &str = "/sys/bus/pci/devices/*/link/l0s_aspm";
const L1: &str = "/sys/bus/pci/devices/*/link/l1_aspm";
const DEVICES: &str = "/sys/bus/pci/devices/";

pub static KNOB: Knob = Knob {
    id: "pcie-aspm",
    title: "PCIe link power management",
    description: "Active State Power Management puts an idle PCIe link into a low-power state (L0s, L1) \
                  until the next transfer. The policy performance switches it off, powersave and \
                  powersupersave on, and default keeps the firmware's setting of each link. On machines with \
                  a device tree the kernel enables L0s and L1 with default (from 7.2 on).",
    rationale: "a register access or an interrupt message on a sleeping link waits until it is awake, for \
                microseconds to tens of microseconds, and a reading CPU waits too",
    detection: "The policy, and the state of each link that the kernel may set. If the firmware controls \
                ASPM the links are hidden; pcie_aspm=off does not switch ASPM off, it leaves all links as \
                the firmware set them.",
    side_effects: "Some power for each link, which matters on battery and in fanless machines.",
    wanted: "off, at least for the links of devices that the task uses",
    fix: || {
        Remedy::from(Change::write(POLICY, "performance"))
            .persist(Change::cmdline_add("pcie_aspm.policy=performance"))
            .or(Remedy::advice(AdviceReason::Machine, "switch ASPM off in the firmware"))
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sets: POLICY,
    sources: &[
        Source { title: "kernel: considering hardware, hardware buses", url: RT_HARDWARE },
        Source { title: "kernel: command line, pcie_aspm", url: PARAMETERS },
    ],
    cures: &[SliceKind::Unexplained],
    reads: &[POLICY, L0S, L1, DEVICES],
    facts: &["/sys/devices/system/cpu/online"],
    judge,
    examples: Examples {
        fires: "/sys/module/pcie_aspm/parameters/policy: default performance [powersave] \
                powersupersave",
        silent: "/sys/module/pcie_aspm/parameters/policy: default [performance] powersave \
                 powersupersave",
        unknown: "/sys/module/pcie_aspm/parameters/policy refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    let policy = machine.parsed(POLICY, parse_policy);
    if let Ok(Some(policy @ ("powersave" | "powersupersave"))) = policy.as_ref().map(Option::as_deref) {
        return Ok(Judgement::fail(policy));
    }
    let (mut asleep, mut paths, mut links, mut untold) = (BTreeSet::new(), Vec::new(), 0, None);
    for text in [machine.texts(L0S)?, machine.texts(L1)?].into_iter().flatten() {
        links += 1;
        match text.content.clone().parse(|content| parse_i64(&content)) {
            Fact::Known(0) => {}
            Fact::Known(_) => {
                asleep.insert(text.names.first().map_or("", String::as_str));
                paths.push(text.path.clone());
            }
            other => drop(untold.get_or_insert(unknown_from(&text.path, &other))),
        }
    }
    if !asleep.is_empty() {
        let links = truncate_words(asleep);
        let judged = Judgement::fail(format!("on for {links}"));
        // Setting the policy that is in effect already changes no link (`pcie_aspm_set_policy()`).
        return Ok(match policy.as_ref().map(Option::as_deref) {
            Ok(Some("performance")) => {
                judged.fix(Change::each(paths, "/sys/bus/pci/devices/ADDRESS/link/*_aspm", &links, 0))
            }
            _ => judged,
        });
    }
    let Some(policy) = policy? else { return Err(without_policy(machine)) };
    match (untold, policy.as_str()) {
        (Some(why), _) => Err(why),
        (None, "performance") => Ok(Judgement::pass(policy)),
        (None, "default") if links > 0 => Ok(Judgement::pass("default, off for all links")),
        (None, "default") if !has_devices(machine)? => Err(Judgement::not_applicable(NO_DEVICE)),
        (None, "default") if machine.is_virtual()? => {
            Err(Judgement::not_applicable("the links of a guest's devices belong to its host"))
        }
        (None, "default") => Err(Judgement::unknown(
            "the policy is default and the kernel shows no link: the firmware's setting is not known (lspci \
             -vv as root shows it)",
        )),
        _ => Err(Judgement::unknown("the policy is unknown")),
    }
}

/// The policy is in brackets: `[default] performance powersave powersupersave`.
fn parse_policy(text: &str) -> Result<String, String> {
    let words = parse_words(text)?;
    let chosen = words.iter().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    chosen.map(str::to_owned).ok_or_else(|| "expected a policy in brackets, found none".to_owned())
}

const NO_DEVICE: &str = "no PCI device exists";

fn without_policy(machine: &MachineView) -> Judgement {
    match has_devices(machine) {
        Err(untold) => untold,
        Ok(true) => Judgement::unknown(
            "this kernel has no CONFIG_PCIEASPM: the firmware set the links (lspci -vv as root shows them)",
        ),
        Ok(false) => Judgement::not_applicable(NO_DEVICE),
    }
}

fn has_devices(machine: &MachineView) -> Result<bool, Judgement> {
    // If the CPUs cannot be read, neither can the rest of sysfs: a missing file would mean nothing.
    machine.known(&machine.facts().online, "/sys/devices/system/cpu/online")?;
    Ok(machine.parsed(DEVICES, |names| Ok(!names.trim().is_empty()))?.unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const DEFAULT: &str =
        "/sys/module/pcie_aspm/parameters/policy: [default] performance powersave powersupersave";

    #[test]
    fn the_policy_and_each_link() {
        check(&KNOB, "", "pass performance");
        let link = |state, value| format!("{DEFAULT}\n/sys/bus/pci/devices/nic/link/{state}_aspm: {value}");
        check(&KNOB, &link("l1", "0"), "pass default, off for all links");
        check(&KNOB, &link("l1", "1"), "fail medium on for nic");
        check(&KNOB, &link("l0s", "1"), "fail medium on for nic");
        check(&KNOB, &link("l1", "maybe"), "unknown");
        check(&KNOB, "/sys/bus/pci/devices/nic/link/l1_aspm: 1", "fail medium on for nic");
        let many: String = (0..9).map(|n| format!("/sys/bus/pci/devices/{n}/link/l1_aspm: 1\n")).collect();
        check(&KNOB, &many, "fail medium on for 0, 1, 2, 3, 4, 5, 6, 7, 8");
    }

    #[test]
    fn what_the_firmware_keeps_is_not_known() {
        let device = format!("{DEFAULT}\n/sys/bus/pci/devices/nic/class: 0x020000");
        check(&KNOB, &device, "unknown");
        check(&KNOB, DEFAULT, "not-applicable no PCI device exists");
        check(
            &KNOB,
            &format!("{device}\n/sys/hypervisor/type: xen"),
            "not-applicable the links of a guest's devices belong to its host",
        );
        check(&KNOB, "/sys/module/pcie_aspm/parameters/policy: default performance", "unknown");
        let none = "/sys/module/pcie_aspm absent";
        check(&KNOB, none, "not-applicable no PCI device exists");
        check(&KNOB, &format!("{none}\n/sys/bus/pci/devices/nic/class: 0x020000"), "unknown");
        check(&KNOB, &format!("{none}\n/sys/devices/system/cpu/online refused\n--cpus 2-3"), "unknown");
    }
}
