//! Graphics devices that are switched off while nothing draws.

use std::collections::BTreeMap;

use super::graphics_drivers::{DRIVERS, PLAIN};
use super::sources::RUNTIME_PM;
use crate::change::{Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_absent;
use crate::view::MachineView;
use crate::words::{truncate, truncate_list};
use facts::line::parse_word;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "gpu-runtime-power",
    title: "runtime power management of graphics devices",
    description: "With auto in power/control the driver suspends a graphics device while nothing is drawn, \
                  and resumes it for the next frame, to poll for a screen, or for a program that reads its \
                  sensors.",
    rationale: "resuming and suspending takes the driver milliseconds, in parts with interrupts off or while \
                the CPU waits for the device and its firmware; on Tiger Lake with i915 the tick's thread was \
                1 ms late, but not with `on`",
    detection: "power/control of the PCI devices behind the cards in /sys/class/drm that have a driver. \
                Plain frame buffers and virtual cards are not counted. How often a device changes its state \
                is not known. The severity is high for drivers with a known effect (i915), and low for \
                others.",
    side_effects: "The device stays on: some watts, which matters on battery; the second graphics processor \
                   of a laptop draws more.",
    wanted: "on",
    fix: || Change::each(Vec::new(), CALLED, "", "on").into(),
    severity: Severity::Low,
    evidence: EvidenceKind::Observed,
    disputed: "a device that nothing wakes stays suspended and costs nothing: `onbeat hunt` names the driver \
               if it does",
    persistence: Persistence::Runtime,
    sets: CONTROL,
    sources: &[
        Source {
            title: "TuneD: latency of i915's power management, seen with rtla",
            url: "https://github.com/redhat-performance/tuned/issues/719",
        },
        Source { title: "kernel: runtime power management, power/control", url: RUNTIME_PM },
    ],
    cures: &[SliceKind::IrqsOff, SliceKind::PreemptOff, SliceKind::Unexplained],
    reads: &[DRIVERS, VENDOR, CONTROL],
    facts: &["/sys/devices/system/cpu/online"],
    judge,
    examples: Examples {
        fires: "/sys/class/drm/card0/device/driver -> i915
                /sys/class/drm/card0/device/vendor: 0x8086
                /sys/class/drm/card0/device/power/control: auto",
        silent: "/sys/class/drm/card0/device/driver -> i915
                 /sys/class/drm/card0/device/vendor: 0x8086
                 /sys/class/drm/card0/device/power/control: on",
        unknown: "/sys/class/drm/card0/device/driver -> i915
                  /sys/class/drm/card0/device/vendor: 0x8086
                  /sys/class/drm/card0/device/power/control refused",
    },
    ..Knob::DEFAULT
};

/// Of devices on PCI alone.
const VENDOR: &str = "/sys/class/drm/card#/device/vendor";
const CONTROL: &str = "/sys/class/drm/card#/device/power/control";
const CALLED: &str = "/sys/class/drm/cardN/device/power/control";

/// The drivers that milliseconds were seen of.
const SEEN: &[&str] = &["i915"];

fn judge(machine: &MachineView) -> Judged {
    // That there are no cards counts only where the rest of sysfs can be seen.
    machine.known(&machine.facts().online, "/sys/devices/system/cpu/online")?;
    let numbered = |names: &[String]| names.first().cloned().unwrap_or_default();
    let drivers: BTreeMap<String, String> = machine
        .each(DRIVERS, parse_word)?
        .into_iter()
        .filter(|(_, driver)| !PLAIN.contains(&driver.as_str()))
        .map(|(names, driver)| (numbered(names), driver))
        .collect();
    if drivers.is_empty() {
        return Err(Judgement::not_applicable("cards have only drivers for plain screens"));
    }
    let on_pci: Vec<String> = machine
        .texts(VENDOR)?
        .iter()
        .map(|text| numbered(&text.names))
        .filter(|n| drivers.contains_key(n))
        .collect();
    if on_pci.is_empty() {
        return Err(Judgement::not_applicable("no graphics device is on PCI"));
    }
    let controls = machine.each(CONTROL, parse_word)?;
    let auto: Vec<String> = controls
        .iter()
        .filter(|(_, control)| control == "auto")
        .map(|(names, _)| numbered(names))
        .filter(|number| on_pci.contains(number))
        .collect();
    let named = |numbers: &[String]| {
        truncate_list(numbers.iter().map(|n| format!("{} (card{n})", truncate(&drivers[n]))))
    };
    // The file comes with CONFIG_PM.
    let missing = on_pci.iter().find(|n| !controls.iter().any(|(names, _)| numbered(names) == **n));
    let has_files = machine.facts().kconfig.known().is_some_and(|config| config.is_yes("PM"));
    if let Some(n) = missing.filter(|_| auto.is_empty() && has_files) {
        return Err(unknown_absent(&CONTROL.replacen('#', n, 1)));
    }
    if auto.is_empty() {
        return Ok(Judgement::pass(format!("on: {}", named(&on_pci))));
    }
    let seen = auto.iter().any(|number| SEEN.contains(&drivers[number].as_str()));
    let paths = auto.iter().map(|number| CONTROL.replacen('#', number, 1)).collect();
    let cards = truncate_list(auto.iter().map(|number| format!("card{number}")));
    Ok(Judgement::fail(format!("auto: {}", named(&auto)))
        .severity(if seen { Severity::High } else { Severity::Low })
        .fix(Remedy::from(Change::each(paths, CALLED, &cards, "on"))))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn a_kernel_with_pm_has_the_file() {
        let card = "/sys/class/drm/card0/device";
        let pci = format!("{card}/driver -> i915\n{card}/vendor: 0x8086\nCONFIG_PM");
        let missing = format!("unknown {card}/power/control is not there");
        check(&KNOB, &format!("{pci}=y"), &missing);
        check(&KNOB, &format!("{pci}=n"), "pass on: i915 (card0)");
    }

    fn card(number: u32, driver: &str, control: &str) -> String {
        let dir = format!("/sys/class/drm/card{number}/device");
        format!("{dir}/driver -> {driver}\n{dir}/vendor: 0x1002\n{dir}/power/control: {control}\n")
    }

    #[test]
    fn each_card_with_a_driver_counts() {
        check(&KNOB, &card(0, "i915", "auto"), "fail high auto: i915 (card0)");
        check(&KNOB, &card(1, "amdgpu", "auto"), "fail low auto: amdgpu (card1)");
        let two = card(0, "i915", "on") + &card(1, "nouveau", "auto");
        check(&KNOB, &two, "fail low auto: nouveau (card1)");
        check(&KNOB, &card(0, "i915", "on"), "pass on: i915 (card0)");
        check(&KNOB, &card(0, "ast", "auto"), "not-applicable");
        check(&KNOB, "", "not-applicable cards have only drivers for plain screens");
    }

    #[test]
    fn devices_of_a_chip_are_not_on_pci() {
        let dir = "/sys/class/drm/card0/device";
        let panel = format!("{dir}/driver -> panfrost\n{dir}/power/control: auto");
        check(&KNOB, &panel, "not-applicable no graphics device is on PCI");
        check(&KNOB, &format!("{dir}/driver refused"), "unknown");
    }
}
