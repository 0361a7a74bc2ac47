//! Interrupt lines that a sound card or its USB controller shares with other devices.

use super::sources::{MSI, RTCQS};
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::truncate_list;
use facts::irqs::Irq;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "shared-interrupts",
    title: "interrupts shared with the sound card",
    description: "Devices without message-signalled interrupts can share a line. The kernel calls the \
                  handler of each of them, and with threaded handlers the line stays masked until the last \
                  one is done.",
    rationale: "the sound card's buffer is served only after the handler of another device, or after the \
                line is unmasked",
    detection: "The handlers of each interrupt: those of sound drivers (snd_, audiodsp) and of USB \
                controllers. The device that the program waits for is not known, so this is judged only with \
                --profile audio, and an unused USB port that shares a line is reported as well.",
    side_effects: "The other device no longer works if its driver is unloaded; otherwise the machine has to \
                   be opened.",
    wanted: "separate lines for the sound card and for USB",
    fix: || {
        Remedy::advice(
            AdviceReason::Machine,
            "unload the driver of the other device with modprobe -r, or put one of the two into \
             another slot or port",
        )
    },
    severity: Severity::Low,
    evidence: EvidenceKind::Practice,
    disputed: "if the other device is idle, sharing costs nothing: `onbeat hunt` during the session names \
               its handler if it does",
    persistence: Persistence::Runtime,
    unsettable: "the wiring of the machine determines shared lines, and onbeat unloads no drivers",
    sources: &[
        Source { title: "kernel: the MSI driver guide, why use MSIs", url: MSI },
        Source { title: "rtcqs, the check of interrupts", url: RTCQS },
    ],
    cures: &[SliceKind::Irq, SliceKind::Thread],
    facts: &["/sys/kernel/irq/N/actions"],
    judge,
    examples: Examples {
        fires: "--profile audio
                /sys/kernel/irq/9/actions: snd_hda_intel:card0,i801_smbus",
        silent: "--profile audio
                 /sys/kernel/irq/9/actions: snd_hda_intel:card0
                 /sys/kernel/irq/120/actions: xhci_hcd",
        unknown: "--profile audio
                  /proc/irq refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    if !machine.has_profile(Profile::Audio) {
        return Err(Judgement::not_applicable(
            "the device that the program waits for is not known: the rule is for sound",
        ));
    }
    let irqs = machine.known(&machine.survey.irqs, "/proc/irq")?;
    let wanted: Vec<&Irq> = irqs
        .irqs
        .iter()
        .filter(|irq| irq.actions.iter().any(|name| is_sound(name) || is_usb(name)))
        .collect();
    let shared: Vec<String> = wanted.iter().filter_map(|irq| others(irq)).collect();
    if !shared.is_empty() {
        return Ok(Judgement::fail(first_three(&shared)));
    }
    if irqs.missed > 0 {
        return Err(Judgement::unknown("the handlers of some interrupts could not be read"));
    }
    match wanted.len() {
        0 => Err(Judgement::not_applicable("no interrupt of a sound card or of USB is in use")),
        _ => Ok(Judgement::pass("none")),
    }
}

fn first_three(shared: &[String]) -> String {
    let examples = shared.iter().take(3).cloned().collect::<Vec<_>>().join("; ");
    if shared.len() > 3 { format!("{examples}; {} more", shared.len() - 3) } else { examples }
}

/// Line of a sound card, or else of a USB controller, and the others on it: `17: snd_hdspm with
/// i801_smbus`. Handlers of different drivers may serve one USB controller, those of one driver
/// serve a device each.
fn others(irq: &Irq) -> Option<String> {
    let is_wanted = if irq.actions.iter().any(|name| is_sound(name)) { is_sound } else { is_usb };
    let first = irq.actions.iter().find(|name| is_wanted(name))?;
    let driver = |name: &str| name.split(':').next().unwrap_or(name).to_owned();
    let is_other = |name: &&String| match *name {
        name if name == first => false,
        name if is_sound(name) || !is_wanted(name) => true,
        name => {
            irq.actions.iter().take_while(|before| *before != name).any(|one| driver(one) == driver(name))
        }
    };
    let foreign = truncate_list(irq.actions.iter().filter(is_other));
    let own = truncate_list(irq.actions.iter().filter(|name| is_wanted(name) && !is_other(name)));
    (!foreign.is_empty()).then(|| format!("{}: {own} with {foreign}", irq.number))
}

/// True for a handler of a sound card: `snd_hda_intel:card0`.
fn is_sound(name: &str) -> bool {
    name.starts_with("snd_") || name == "audiodsp"
}

/// True for a handler of a USB controller: `xhci_hcd`, `ehci_hcd:usb1`.
fn is_usb(name: &str) -> bool {
    let driver = name.split(':').next().unwrap_or(name).trim();
    let kind = driver.strip_suffix("_hcd");
    kind.is_some_and(|kind| matches!(kind, "xhci" | "ehci" | "ohci" | "uhci"))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn another_device_on_the_line_is_named() {
        let of = |actions: &str| format!("--profile audio\n/sys/kernel/irq/9/actions: {actions}");
        check(
            &KNOB,
            &of("snd_hda_intel:card0,i801_smbus"),
            "fail low 9: snd_hda_intel:card0 with i801_smbus",
        );
        check(
            &KNOB,
            &of("acpi,ehci_hcd:usb1,snd_ice1712"),
            "fail low 9: snd_ice1712 with acpi, ehci_hcd:usb1",
        );
        check(&KNOB, &of("ehci_hcd:usb1,snd_ice1712"), "fail low 9: snd_ice1712 with ehci_hcd:usb1");
        check(&KNOB, &of("ehci_hcd:usb1,uhci_hcd:usb2"), "pass none");
        check(
            &KNOB,
            &of("ehci_hcd:usb1,uhci_hcd:usb2,ehci_hcd:usb3"),
            "fail low 9: ehci_hcd:usb1, uhci_hcd:usb2 with ehci_hcd:usb3",
        );
        check(
            &KNOB,
            &of("snd_hda_intel:card0,snd_hda_intel:card1"),
            "fail low 9: snd_hda_intel:card0 with snd_hda_intel:card1",
        );
        check(&KNOB, &of("acpi,ehci_hcd:usb1"), "fail low 9: ehci_hcd:usb1 with acpi");
        check(&KNOB, &of("xhci_hcd"), "pass none");
        check(
            &KNOB,
            &of("acpi,i801_smbus"),
            "not-applicable no interrupt of a sound card or of USB is in use",
        );
        check(&KNOB, "/sys/kernel/irq/9/actions: snd_hda_intel:card0,i801_smbus", "not-applicable");
    }

    #[test]
    fn what_cannot_be_read_is_not_judged() {
        check(&KNOB, "--profile audio\n/proc/irq absent", "unknown");
        let deaf = "--profile audio\n/sys/kernel/irq/9/actions: xhci_hcd\n\
                    /sys/kernel/irq/120/actions refused";
        check(&KNOB, deaf, "unknown the handlers of some interrupts could not be read");
    }
}
