//! Drivers of graphics hardware that shares the processors' cache and memory.

use super::sources::{RT_CONFIG, RT_HARDWARE};
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::{truncate, truncate_list};
use facts::line::parse_word;
use model::slice::SliceKind;
use std::collections::BTreeSet;

pub static KNOB: Knob = Knob {
    id: "graphics-drivers",
    title: "graphics drivers",
    description: "A graphics processor that is busy while real-time tasks run takes memory bandwidth from \
                  them, and one on the same chip also uses the last-level cache.",
    rationale: "a task waits for memory while the graphics processor uses the bus, and its cache lines are \
                evicted",
    detection: "The drivers of the cards in /sys/class/drm. Those that only show a frame buffer, or a \
                virtual card, are not counted. Whether the graphics processor is busy is not known, nor what \
                it shares.",
    side_effects: "Without a driver the screen shows at most a plain console.",
    wanted: "no graphics driver, or tested under graphics load",
    fix: || {
        Remedy::advice(
            AdviceReason::Machine,
            "in a product without a screen, do not load the driver: modprobe.blacklist=DRIVER on the \
             kernel's command line if it is a module, or a kernel without it if it is built in; otherwise \
             run `onbeat measure` with a load such as glmark2, and reserve cache ways with resctrl",
        )
    },
    severity: Severity::Info,
    evidence: EvidenceKind::Documented,
    disputed: "the cost differs by orders of magnitude between chips: `onbeat measure` with and without \
               graphics load, and `onbeat compare` the two",
    persistence: Persistence::Boot,
    unsettable: "onbeat does not unload drivers: the screen depends on it",
    sources: &[
        Source { title: "kernel: real-time kernel configuration, CONFIG_DRM", url: RT_CONFIG },
        Source { title: "kernel: considering hardware, system memory and cache", url: RT_HARDWARE },
    ],
    cures: &[SliceKind::Unexplained],
    reads: &[DRIVERS],
    facts: &["/sys/devices/system/cpu/online"],
    judge,
    examples: Examples {
        fires: "/sys/class/drm/card0/device/driver -> i915",
        silent: "/sys/class/drm/card0/device/driver -> simple-framebuffer",
        unknown: "/sys/class/drm/card0/device/driver refused",
    },
    ..Knob::DEFAULT
};

pub const DRIVERS: &str = "/sys/class/drm/card#/device/driver@";

/// A plain frame buffer, a server's management controller, or a card that a hypervisor pretends.
pub const PLAIN: &[&str] = &[
    "simple-framebuffer",
    "simpledrm",
    "efi-framebuffer",
    "efidrm",
    "vesa-framebuffer",
    "vesadrm",
    "ofdrm",
    "ast",
    "mgag200",
    "bochs-drm",
    "cirrus",
    "qxl",
    "virtio_gpu",
    "virtio-pci",
    "vboxvideo",
    "hyperv_drm",
    "vmwgfx",
];

fn judge(machine: &MachineView) -> Judged {
    // That there are no cards counts only where the rest of sysfs can be seen.
    machine.known(&machine.facts().online, "/sys/devices/system/cpu/online")?;
    let drivers = machine.texts(DRIVERS)?.iter().filter_map(|text| text.content.known());
    let drivers: BTreeSet<&str> = drivers.map(|name| name.trim()).collect();
    let named = |plain: bool| {
        truncate_list(drivers.iter().filter(|name| PLAIN.contains(*name) == plain).map(|name| truncate(name)))
    };
    // One that is known to share is enough.
    let sharing = named(false);
    if !sharing.is_empty() {
        return Ok(Judgement::fail(sharing));
    }
    machine.each(DRIVERS, parse_word)?;
    let plain = named(true);
    Ok(Judgement::pass(if plain.is_empty() { "none".to_owned() } else { plain }))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn drivers_that_share_memory_are_named() {
        check(&KNOB, "", "pass none");
        let card = |n: u32, driver: &str| format!("/sys/class/drm/card{n}/device/driver -> {driver}\n");
        check(&KNOB, &card(0, "amdgpu"), "fail info amdgpu");
        check(&KNOB, &card(0, "ast"), "pass ast");
        check(&KNOB, &(card(0, "ast") + &card(1, "i915") + &card(2, "i915")), "fail info i915");
        // A connector is no card.
        check(&KNOB, "/sys/class/drm/card0-HDMI-A-1/device/driver -> i915", "pass none");
    }

    #[test]
    fn what_cannot_be_read_is_no_pass() {
        let hidden = "/sys/class/drm/card0/device/driver refused";
        check(&KNOB, hidden, "unknown");
        check(&KNOB, &format!("{hidden}\n/sys/class/drm/card1/device/driver -> i915"), "fail info i915");
        check(&KNOB, "/sys/devices/system/cpu/online refused", "unknown");
    }
}
