//! The clocksource watchdog: a timer, or an interrupt from CPU to CPU, that checks the TSC.

use super::sources::{PARAMETERS, TSC_C};
use super::unsettable;
use crate::change::Change;
use crate::change::Persistence;
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_absent;
use crate::view::MachineView;
use crate::words::{truncate, truncate_words};
use facts::Fact;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "tsc-watchdog",
    title: "clocksource watchdog",
    description: "On x86 the kernel compares the TSC with another clock twice a second, on one CPU after the \
                  other, isolated ones included. From 5.16 on it omits this if the hardware shows writes to \
                  the TSC (constant_tsc, nonstop_tsc and tsc_adjust, on up to four sockets). tsc=watchdog \
                  enables the check anyway: from 6.3 on for other clocks against the TSC, unless \
                  tsc=nowatchdog is given too; from 7.2 on also for the TSC, regardless of the processor and \
                  tsc=reliable, unless tsc=nowatchdog comes later. In addition, if the processor has \
                  tsc_adjust a timer checks that register every ten minutes, on one CPU after the other; \
                  only tsc=reliable ends that.",
    rationale: "a timer interrupt visits each CPU in turn and reads the slow clock there, isolated or not; \
                from 7.2 on each half second one CPU in turn gets an interrupt from another CPU, and both \
                spin with interrupts off for up to 50 us",
    detection: "tsc=reliable, tsc=nowatchdog and tsc=watchdog on the command line, by the kernel's release, \
                or the features of the processor. Before 6.12 memory nodes were counted instead of sockets, \
                up to two and from 6.6 on up to four: with more, it is not known whether the kernel has a \
                backport of the later change. Of the kernels before 5.16 those from 5.4.164, 5.10.84 and \
                5.15.7 on have it, if the configuration states that number. Values that the kernel does not \
                know, such as tsc=perfect, have no effect.",
    side_effects: "A faulty TSC, written by firmware or drifting between sockets, is no longer detected: \
                   time then jumps between CPUs. tsc=reliable also skips the checks at boot; tsc=nowatchdog \
                   keeps those.",
    wanted: "off: by the features of the processor, or by tsc=nowatchdog if the TSC is known to be good",
    fix: || Remedy::from(Change::cmdline_add(NO_WATCHDOG)).note(IF_GOOD),
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Boot,
    unsettable: unsettable::BOOT,
    sources: &[
        Source { title: "kernel: command line, tsc=", url: PARAMETERS },
        Source { title: "kernel source: arch/x86/kernel/tsc.c, check_system_tsc_reliable()", url: TSC_C },
    ],
    cures: &[SliceKind::TimerIrq, SliceKind::TimerSoftirq],
    after: &["clocksource"],
    reads: &[PACKAGES, NODES],
    facts: &[
        "/boot/config-RELEASE",
        "/proc/cmdline",
        "/proc/cpuinfo",
        "/proc/sys/kernel/arch",
        "/proc/sys/kernel/osrelease",
        "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    ],
    judge,
    examples: Examples {
        fires: "/proc/sys/kernel/arch: x86_64
                /sys/devices/system/clocksource/clocksource0/available_clocksource: tsc hpet acpi_pm
                cmdline - tsc=nowatchdog
                cmdline - tsc=reliable
                /proc/cpuinfo:
                | flags : fpu tsc constant_tsc nonstop_tsc",
        silent: "/proc/sys/kernel/arch: x86_64
                 /sys/devices/system/clocksource/clocksource0/available_clocksource: tsc hpet acpi_pm
                 cmdline + tsc=nowatchdog",
        unknown: "/proc/sys/kernel/arch: x86_64
                  /sys/devices/system/clocksource/clocksource0/available_clocksource: tsc hpet acpi_pm
                  cmdline - tsc=nowatchdog
                  cmdline - tsc=reliable
                  /proc/cpuinfo refused",
    },
    ..Knob::DEFAULT
};

const PACKAGES: &str = "/sys/devices/system/cpu/cpu#/topology/physical_package_id";
const NODES: &str = "/sys/devices/system/node/online";
const NO_WATCHDOG: &str = "tsc=nowatchdog";

fn judge(machine: &MachineView) -> Judged {
    machine.require_x86()?;
    let offered = machine.known(
        &machine.facts().clocksources,
        "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    )?;
    if !offered.iter().any(|name| name == "tsc" || name == "tsc-early") {
        return Err(Judgement::not_applicable("the TSC is not a clocksource here, so it is not checked"));
    }
    if let Some(taken_away) = taken_away(machine)? {
        return Ok(taken_away);
    }
    let judged = match forced(machine)? {
        Some(forced) => forced,
        None => Judgement::any([by_cmdline(machine), by_processor(machine)])?,
    };
    // Of the two words 4.19 has only this one (arch/x86/kernel/tsc.c, `tsc_setup()`).
    let reliable = || Remedy::from(Change::cmdline_add("tsc=reliable")).note(IF_GOOD);
    let judged = if machine.may_know(NO_WATCHDOG) { judged } else { judged.fix(reliable()) };
    Ok(if machine.has_profile(Profile::Audio) { judged.severity(Severity::Low) } else { judged })
}

const IF_GOOD: &str = "only if the kernel's log had no message about the TSC for weeks";

/// Judgement if tsc=watchdog forces the check, regardless of other conditions
/// (arch/x86/kernel/tsc.c: `tsc_setup()`, `tsc_clocksource_watchdog_disabled()`).
fn forced(machine: &MachineView) -> Result<Option<Judgement>, Judgement> {
    let words: Vec<&str> = machine.cmdline()?.values("tsc").collect();
    if !words.contains(&"watchdog") {
        return Ok(None);
    }
    let last = words.iter().rev().find(|word| matches!(**word, "watchdog" | "nowatchdog"));
    let is_forced = match machine.series()? {
        series if series >= (7, 2) => last == Some(&"watchdog"),
        series if series >= (6, 3) => !words.contains(&"nowatchdog"),
        _ => false,
    };
    let without = Remedy::of([Change::cmdline_remove("tsc=watchdog"), Change::cmdline_add(NO_WATCHDOG)]);
    let failed = || Judgement::fail("tsc=watchdog").fix(without);
    Ok(is_forced.then(failed))
}

/// Judgement of a word that takes the TSC away: nothing else matters then.
fn taken_away(machine: &MachineView) -> Result<Option<Judgement>, Judgement> {
    let cmdline = machine.cmdline()?;
    let word = match () {
        () if cmdline.values("tsc").any(|value| value == "unstable") => "tsc=unstable",
        () if cmdline.params.iter().any(|param| param.name == "notsc") => "notsc",
        () => return Ok(None),
    };
    let failed = Judgement::fail(format!("{word}: the TSC is not used as a clock source"));
    Ok(Some(failed.fix(Remedy::from(Change::cmdline_remove(word)))))
}

fn by_cmdline(machine: &MachineView) -> Judged {
    let mut values: Vec<&str> = machine.cmdline()?.values("tsc").collect();
    let known = |value: &str| value == "reliable" || value == "nowatchdog" && machine.may_know(NO_WATCHDOG);
    if let Some(good) = values.iter().find(|value| known(value)) {
        return Ok(Judgement::pass(format!("tsc={good}")));
    }
    values.retain(|value| !matches!(*value, "watchdog" | "noirqtime" | "recalibrate" | "unstable"));
    Ok(Judgement::fail(match values.first() {
        Some(other) => format!("tsc={}, which the kernel does not know", truncate(other)),
        None => "no tsc= parameter against it".to_owned(),
    }))
}

/// Judges by the kernel's default decision.
fn by_processor(machine: &MachineView) -> Judged {
    let flags = match &machine.facts().cpu_flags {
        Fact::Absent => return Err(Judgement::unknown("/proc/cpuinfo has no flags")),
        flags => machine.known(flags, "/proc/cpuinfo")?,
    };
    let has = |name: &str| flags.iter().any(|flag| flag == name);
    if has("tsc_reliable") {
        return Ok(Judgement::pass("tsc_reliable"));
    }
    let needed = ["constant_tsc", "nonstop_tsc", "tsc_adjust"];
    let missing: Vec<&str> = needed.into_iter().filter(|name| !has(name)).collect();
    if !missing.is_empty() {
        return Ok(Judgement::fail(format!("the processor has no {}", truncate_words(&missing))));
    }
    let mut packages: Vec<i64> =
        machine.each(PACKAGES, facts::line::parse_i64)?.into_iter().map(|(_, id)| id).collect();
    packages.sort_unstable();
    packages.dedup();
    match (packages.len(), machine.series()?) {
        (0, _) => Err(unknown_absent("/sys/devices/system/cpu/cpu0/topology/physical_package_id")),
        (count, _) if count > 4 => Ok(Judgement::fail(format!("{count} sockets"))),
        (_, series) if series < (5, 16) && !has_backport(machine) => Err(Judgement::unknown(
            "it is not known whether this kernel has the change of 5.16: kernels from 5.4.164, 5.10.84 and \
             5.15.7 on have it, by the version in their configuration",
        )),
        // check_system_tsc_reliable() of 6.1 counts memory nodes; stable kernels of it do as well.
        (_, (6, 1)) => {
            let count = nodes(machine)?;
            Ok(if count > 2 {
                Judgement::fail(format!("{count} memory nodes"))
            } else {
                Judgement::pass(format!("constant_tsc nonstop_tsc tsc_adjust, nodes: {count}"))
            })
        }
        // Up to 6.11 memory nodes were counted instead of sockets; older kernels may have adopted
        // later limits.
        (_, series) if series < (6, 12) && nodes(machine)? > if series < (6, 6) { 2 } else { 4 } => {
            Err(Judgement::unknown("it is not known how many memory nodes this kernel accepts"))
        }
        (count, _) => Ok(Judgement::pass(format!("constant_tsc nonstop_tsc tsc_adjust, sockets: {count}"))),
    }
}

/// Stable kernels that have the change of 5.16 (commit b50db7095fe0).
const BACKPORTS: [((u32, u32), u32); 3] = [((5, 4), 164), ((5, 10), 84), ((5, 15), 7)];

/// True for one of them, by the version in the configuration: in the release, distributions keep
/// the third number at 0.
fn has_backport(machine: &MachineView) -> bool {
    let (Ok(series), Ok(kconfig)) = (machine.series(), machine.kconfig()) else { return false };
    let third = kconfig.third_number();
    BACKPORTS.iter().any(|(of, least)| *of == series && third.is_some_and(|third| third >= *least))
}

/// Number of memory nodes; 1 for a kernel without nodes.
fn nodes(machine: &MachineView) -> Result<usize, Judgement> {
    Ok(machine.cpu_list_if_present(NODES)?.map_or(1, |nodes| nodes.len()))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    /// A machine without words on the command line, with these flags and this number of sockets.
    fn machine(flags: &str, sockets: usize) -> String {
        let ids = (0..4).map(|cpu| {
            format!(
                "/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id: {}\n",
                cpu % sockets.max(1)
            )
        });
        let ids: String = if sockets == 0 { String::new() } else { ids.collect() };
        format!("cmdline - tsc=nowatchdog\n/proc/cpuinfo:\n| flags : {flags}\n{ids}")
    }

    const ALL: &str = "constant_tsc nonstop_tsc tsc_adjust";

    #[test]
    fn the_processor_or_a_word_switches_it_off() {
        check(&KNOB, "", "pass tsc=nowatchdog");
        check(&KNOB, &machine(ALL, 1), "pass constant_tsc nonstop_tsc tsc_adjust, sockets: 1");
        check(&KNOB, &machine("tsc_reliable", 0), "pass tsc_reliable");
        let plain = machine("constant_tsc nonstop_tsc", 1);
        check(&KNOB, &plain, "fail medium no tsc= parameter against it; the processor has no tsc_adjust");
        let old = format!("{plain}\ncmdline + tsc=nowatchdog\n/proc/sys/kernel/osrelease: 4.19.200");
        let words = "tsc=nowatchdog, which the kernel does not know; the processor has no tsc_adjust";
        check(&KNOB, &old, &format!("fail medium {words}"));
        for (edits, word) in [(&plain, "tsc=nowatchdog"), (&old, "tsc=reliable")] {
            let mut machine = Machine::base();
            machine.edit(edits);
            let fix = machine.finding(&KNOB).fix;
            assert!(fix.starts_with(&format!("add {word} to")), "{fix}");
        }
        check(
            &KNOB,
            &format!("{plain}\ncmdline + tsc=perfect\n--profile audio"),
            "fail low tsc=perfect, which the kernel does not know; the processor has no tsc_adjust",
        );
    }

    #[test]
    fn a_forced_watchdog_fails_by_the_release() {
        let with = |release: &str, words: &[&str]| {
            let words: String = words.iter().map(|word| format!("cmdline + tsc={word}\n")).collect();
            format!("{}\n{words}/proc/sys/kernel/osrelease: {release}", machine(ALL, 1))
        };
        let failed = "fail medium tsc=watchdog";
        for (release, words, verdict) in [
            ("7.3.4+deb13-rt-amd64", &["watchdog"][..], failed),
            ("7.2.13-rt-amd64", &["nowatchdog", "watchdog"], failed),
            ("7.2.13-rt-amd64", &["reliable", "watchdog"], failed),
            ("7.2.13-rt-amd64", &["watchdog", "reliable"], failed),
            ("7.2.13-rt-amd64", &["watchdog", "nowatchdog"], "pass"),
            ("6.12.5", &["watchdog"], failed),
            ("6.12.5", &["reliable", "watchdog"], failed),
            ("6.12.5", &["nowatchdog", "watchdog"], "pass"),
            ("7.1.0", &["watchdog", "nowatchdog"], "pass"),
            ("6.1.0", &["watchdog"], "pass constant_tsc nonstop_tsc tsc_adjust, nodes: 1"),
        ] {
            check(&KNOB, &with(release, words), verdict);
        }
    }

    #[test]
    fn a_word_that_takes_the_tsc_away_is_the_one_to_remove() {
        for word in ["tsc=unstable", "notsc"] {
            let edits = format!("{}\ncmdline + {word}", machine(ALL, 1));
            check(&KNOB, &edits, &format!("fail medium {word}: the TSC is not used as a clock source"));
            let mut machine = Machine::base();
            machine.edit(&edits);
            let fix = machine.finding(&KNOB).fix;
            assert!(fix.contains(&format!("remove {word}")), "{fix}");
        }
    }

    #[test]
    fn old_kernels_are_unknown() {
        let two = machine(ALL, 2);
        check(&KNOB, &two, "pass constant_tsc nonstop_tsc tsc_adjust, sockets: 2");
        let old = format!(
            "{two}\n/proc/sys/kernel/osrelease: 6.1.0-50-amd64\n/sys/devices/system/node/online: \
             0-1"
        );
        check(&KNOB, &old, "pass constant_tsc nonstop_tsc tsc_adjust, nodes: 2");
        let four = old.replace("0-1", "0-3");
        check(&KNOB, &four, "fail medium no tsc= parameter against it; 4 memory nodes");
        check(&KNOB, &four.replace("6.1.0", "6.3.0"), "unknown");
        check(&KNOB, &four.replace("6.1.0", "6.6.0"), "pass");
        check(&KNOB, &four.replace("6.1.0", "6.8.0").replace("0-3", "0-7"), "unknown");
        check(
            &KNOB,
            &format!("{two}\n/sys/devices/system/node/online: 0-3"),
            "pass constant_tsc nonstop_tsc tsc_adjust, sockets: 2",
        );
        for (version, verdict) in
            [("5.10.209", "pass constant_tsc nonstop_tsc tsc_adjust, sockets: 1"), ("5.10.83", "unknown")]
        {
            let config = format!("| # Linux/x86 {version} Kernel Configuration\n| CONFIG_SMP=y");
            let head = "| # Automatically generated file; DO NOT EDIT.";
            let release = "5.10.0-28-amd64";
            let old = format!(
                "{}\n/proc/sys/kernel/osrelease: {release}\n/proc/sys/kernel/version: #1 SMP\n\
                 /boot/config-{release}:\n{head}\n{config}\n| # Kernel hacking",
                machine(ALL, 1)
            );
            check(&KNOB, &old, verdict);
        }
        check(&KNOB, &format!("{}\n/proc/sys/kernel/osrelease: 5.10.1", machine(ALL, 1)), "unknown");
        check(
            &KNOB,
            &format!("{}\n/sys/devices/system/cpu/cpu0/topology absent", machine(ALL, 1)),
            "pass constant_tsc nonstop_tsc tsc_adjust, sockets: 1",
        );
        check(
            &KNOB,
            &format!(
                "{}\n/sys/devices/system/cpu/cpu1/topology/physical_package_id refused",
                machine(ALL, 1)
            ),
            "unknown",
        );
    }

    #[test]
    fn it_is_about_the_tsc() {
        check(&KNOB, "/proc/sys/kernel/arch: aarch64", "not-applicable x86 only; this machine is aarch64");
        check(
            &KNOB,
            "/sys/devices/system/clocksource/clocksource0/available_clocksource: hpet acpi_pm",
            "not-applicable the TSC is not a clocksource here, so it is not checked",
        );
    }
}
