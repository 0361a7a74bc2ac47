//! A second kernel next to Linux: Xenomai, EVL, and the interrupt pipeline below them.

use crate::change::{AdviceReason, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::{truncate, truncate_list};
use facts::Fact;
use facts::line::parse_line;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "co-kernel",
    title: "a co-kernel next to Linux",
    description: "Xenomai (Cobalt) and EVL run separate threads ahead of Linux, on an interrupt pipeline: \
                  Dovetail, whose kernels have IRQPIPE in their version, or the older I-pipe. A kernel with \
                  the pipeline cannot be PREEMPT_RT.",
    rationale: "the rules about real-time threads, priorities, throttling, interrupt threads and the \
                preemption model apply to the Linux side (in-band): threads of the co-kernel (out-of-band) \
                run before all of that, and tools on the Linux side do not measure their latency",
    detection: "/proc/xenomai/version, the class evl in sysfs, IRQPIPE in the kernel's version, and EVL, \
                XENOMAI, DOVETAIL and IPIPE in its configuration. Settings of the co-kernel are not read.",
    side_effects: "Rules about the hardware apply to both sides: idle states, frequencies, firmware, shared \
                   caches and cores, links that sleep; the same is true of keeping the rest of Linux off a \
                   CPU.",
    wanted: "the rules are understood to apply to the Linux side",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "measure the co-kernel with its own tools (latmus of EVL, latency of Xenomai), whose results \
             `onbeat import` does not read; use measure and hunt for in-band work",
        )
    },
    severity: Severity::Info,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Build,
    unsettable: "the kernel is chosen when it is built and booted",
    sources: &[
        Source {
            title: "EVL: the interrupt pipeline of Dovetail",
            url: "https://v4.xenomai.org/dovetail/pipeline/index.html",
        },
        Source {
            title: "EVL: overview, in-band and out-of-band",
            url: "https://v4.xenomai.org/overview/index.html",
        },
        Source { title: "Xenomai 3: documentation", url: "https://doc.xenomai.org/v3/html/README.INSTALL/" },
    ],
    cures: &[SliceKind::Stopped, SliceKind::Unexplained],
    reads: &[XENOMAI, EVL],
    facts: &["/proc/sys/kernel/version", "/boot/config-RELEASE", "/proc/cmdline"],
    judge,
    examples: Examples {
        fires: "/proc/sys/kernel/version: #1 SMP PREEMPT IRQPIPE Tue Mar 4 10:00:00 UTC 2025",
        silent: "/proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC Debian 6.12.9-1",
        unknown: "/proc/sys/kernel/version refused
                  /boot refused",
    },
    ..Knob::DEFAULT
};

const XENOMAI: &str = "/proc/xenomai/version";
const EVL: &str = "/sys/class/evl/";

/// Options, with the name of each and the parameter that disables it at boot.
const OPTIONS: [(&str, &str, &str); 4] = [
    ("EVL", "EVL", "evl.state"),
    ("XENOMAI", "Xenomai", "xenomai.state"),
    ("DOVETAIL", "Dovetail", ""),
    ("IPIPE", "I-pipe", ""),
];

fn judge(machine: &MachineView) -> Judged {
    let mut found: Vec<String> = Vec::new();
    if let Ok(Some(version)) = machine.parsed(XENOMAI, parse_line) {
        found.push(format!("Xenomai {}", truncate(&version)));
    }
    if matches!(machine.parsed(EVL, |names| Ok(!names.trim().is_empty())), Ok(Some(true))) {
        found.push("EVL".to_owned());
    }
    let config = machine.kconfig();
    let cmdline = machine.facts().cmdline.known();
    for (option, name, state) in OPTIONS {
        let built = config.as_ref().is_ok_and(|config| config.is_yes(option));
        if !built || found.iter().any(|entry| entry.starts_with(name)) {
            continue;
        }
        let off = cmdline.and_then(|words| words.value(state)) == Some("disabled");
        found.push(if off { format!("{name} ({state}=disabled)") } else { name.to_owned() });
    }
    let version = &machine.facts().version;
    let piped =
        version.known().is_some_and(|version| version.split_whitespace().any(|word| word == "IRQPIPE"));
    if piped {
        found.push("IRQPIPE in the kernel's version".to_owned());
    }
    if !found.is_empty() {
        return Ok(Judgement::fail(truncate_list(found)));
    }
    match (version, config) {
        (Fact::Known(_), _) | (_, Ok(_)) => Ok(Judgement::pass("none")),
        (_, Err(unknown)) => Err(unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const PIPED: &str = "/proc/sys/kernel/version: #1 SMP PREEMPT IRQPIPE\nCONFIG_PREEMPT_RT=n";

    #[test]
    fn each_trace_of_one_is_named() {
        check(&KNOB, "", "pass none");
        check(&KNOB, PIPED, "fail info IRQPIPE in the kernel's version");
        let evl = format!("{PIPED}\nCONFIG_EVL=y\nCONFIG_DOVETAIL=y");
        check(&KNOB, &evl, "fail info EVL, Dovetail, IRQPIPE in the kernel's version");
        check(&KNOB, "/proc/xenomai/version: 3.2.4", "fail info Xenomai 3.2.4");
        check(&KNOB, "/sys/class/evl/control/abi: 35", "fail info EVL");
        let off = "CONFIG_XENOMAI=y\ncmdline + xenomai.state=disabled";
        check(&KNOB, off, "fail info Xenomai (xenomai.state=disabled)");
        check(&KNOB, "/boot/config-6.12.9-rt-amd64 absent", "pass none");
    }
}
