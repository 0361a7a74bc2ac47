//! Build options of the kernel that explaining latencies needs.

use super::sources::RT_CONFIG;
use super::unsettable;
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use facts::kconfig::Kconfig;
use facts::line::parse_words;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "kernel-tracing-support",
    title: "support for tracing",
    description: "EVENT_TRACING lets `onbeat hunt` record what ran when a task was late; the tracers \
                  osnoise, timerlat and hwlat measure kernel and hardware noise inside the kernel (osnoise \
                  and timerlat from 5.14 on). They cost almost nothing while they are not active.",
    rationale: "the cause of a late wake-up without a trace can only be guessed",
    detection: "The kernel's configuration, or else the list of tracers in tracefs.",
    side_effects: "The kernel is some megabytes larger, and root can inspect everything with them.",
    wanted: "EVENT_TRACING, OSNOISE_TRACER, TIMERLAT_TRACER and HWLAT_TRACER built in",
    fix: || Remedy::of(NEEDED.iter().map(|(option, _)| Change::kconfig(option, "y"))),
    severity: Severity::Info,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Build,
    unsettable: unsettable::BUILT,
    sources: &[Source { title: "kernel: real-time kernel configuration, CONFIG_TRACING", url: RT_CONFIG }],
    cures: &[SliceKind::Unexplained],
    reads: &[AVAILABLE],
    facts: &["/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "/sys/kernel/tracing/available_tracers: osnoise hwlat function nop",
        silent: "",
        unknown: "/boot refused
                  /sys/kernel/tracing refused",
    },
    ..Knob::DEFAULT
};

const AVAILABLE: &str = "/sys/kernel/tracing/available_tracers";

/// Options, with tracers in tracefs that prove them.
const NEEDED: &[(&str, &str)] = &[
    ("EVENT_TRACING", "nop"),
    ("OSNOISE_TRACER", "osnoise"),
    ("TIMERLAT_TRACER", "timerlat"),
    ("HWLAT_TRACER", "hwlat"),
];

fn judge(machine: &MachineView) -> Judged {
    // The list of the running kernel cannot be another's, unlike a configuration.
    let listed = machine.parsed(AVAILABLE, parse_words).ok().flatten().filter(|all| !all.is_empty());
    let missing = match listed {
        Some(listed) => {
            let lacks = |(_, tracer): &&(&str, &'static str)| !listed.iter().any(|name| name == tracer);
            NEEDED.iter().filter(lacks).map(|(option, _)| *option).collect()
        }
        None => missing_in(machine.kconfig()?),
    };
    if missing.is_empty() {
        return Ok(Judgement::pass("all built in"));
    }
    Ok(Judgement::fail(format!("without {}", missing.join(", ")))
        .fix(Remedy::of(missing.iter().map(|option| Change::kconfig(option, "y")))))
}

fn missing_in(config: &Kconfig) -> Vec<&'static str> {
    NEEDED.iter().map(|(option, _)| *option).filter(|option| !config.is_yes(option)).collect()
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn what_is_missing_is_named() {
        check(&KNOB, "", "pass all built in");
        let distribution = "CONFIG_OSNOISE_TRACER=n\nCONFIG_TIMERLAT_TRACER=n\n\
                            CONFIG_HWLAT_TRACER=n";
        let unlisted = format!("{distribution}\n/sys/kernel/tracing refused");
        check(&KNOB, &unlisted, "fail info without OSNOISE_TRACER, TIMERLAT_TRACER, HWLAT_TRACER");
        check(&KNOB, distribution, "pass all built in");
        let listed = "/boot refused\n/sys/kernel/tracing/available_tracers:";
        check(&KNOB, &format!("{listed} timerlat osnoise hwlat function nop"), "pass all built in");
        check(
            &KNOB,
            &format!("{listed} function nop"),
            "fail info without OSNOISE_TRACER, TIMERLAT_TRACER, HWLAT_TRACER",
        );
        check(&KNOB, listed, "unknown");
    }
}
