//! irqbalance: a program that moves interrupts about every ten seconds.

use std::collections::BTreeMap;

use super::unsettable;
use crate::change::{AdviceReason, Change, Persistence};
use crate::competing_tuners;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_from;
use crate::view::MachineView;
use crate::words::{cpu_list, truncate};
use facts::Fact;
use facts::irqbalance::{Banned, UnitEnvironment, parse_banned};
use facts::texts::Text;
use model::slice::SliceKind;
use model::units::CpuSet;

pub static KNOB: Knob = Knob {
    id: "irqbalance",
    title: "irqbalance",
    description: "A program that spreads interrupts over CPUs and moves them again every 10 s. It does not \
                  use the CPUs of isolcpus= and nohz_full=, or, instead of these, the CPUs that are banned \
                  in its environment.",
    rationale: "it moves interrupts back to CPUs from which they were removed, unless these CPUs are banned",
    detection: "Whether it runs, the kernel's lists that it reads, and its environment: from the systemd \
                unit and its drop-ins, /etc/default or /etc/sysconfig, and the shipped defaults. Settings \
                through its socket, and single banned interrupts, are not seen. The lists that it reads do \
                not include CPUs of cpuset partitions.",
    side_effects: "When it is stopped, interrupts stay where the kernel put them, by default on few CPUs: \
                   distribute them yourself, or the machine loses some throughput.",
    wanted: "not running, or all audited CPUs are banned",
    fix: Remedy::default,
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Boot,
    unsettable: unsettable::PROGRAM,
    sources: &[
        Source {
            title: "irqbalance(1), IRQBALANCE_BANNED_CPULIST",
            url: "https://manpages.debian.org/unstable/irqbalance/irqbalance.1.en.html",
        },
        Source {
            title: "irqbalance: versions differ in the meaning of an empty list",
            url: "https://github.com/Irqbalance/irqbalance/pull/356",
        },
    ],
    cures: &[SliceKind::Irq],
    reads: &[
        SHIPPED,
        DEFAULT,
        SYSCONFIG,
        ETC,
        UNITS[0],
        UNITS[1],
        UNITS[2],
        DROP_INS[0],
        DROP_INS[1],
        DROP_INS[2],
    ],
    facts: &["/proc/PID/stat", ISOLATED, NOHZ_FULL],
    programs: PROGRAMS,
    judge,
    examples: Examples {
        fires: "program + irqbalance\n/etc/default/irqbalance: IRQBALANCE_BANNED_CPULIST=2\n\
                --cpus 2-3",
        silent: "program + irqbalance\n/etc/default/irqbalance: IRQBALANCE_BANNED_CPULIST=2-3\n\
                 --cpus 2-3",
        unknown: "program + irqbalance\n/etc/default/irqbalance refused\n--cpus 2-3",
    },
    ..Knob::DEFAULT
};

const PROGRAMS: &[&str] = &["irqbalance"];
/// File of the distribution, which the files below override.
const SHIPPED: &str = "/usr/lib/irqbalance/defaults.env";
const DEFAULT: &str = "/etc/default/irqbalance";
const SYSCONFIG: &str = "/etc/sysconfig/irqbalance";
/// File of Arch Linux.
const ETC: &str = "/etc/irqbalance.env";
/// Paths of the unit; the first that exists counts.
const UNITS: [&str; 3] = [
    "/etc/systemd/system/irqbalance.service",
    "/run/systemd/system/irqbalance.service",
    "/usr/lib/systemd/system/irqbalance.service",
];
const DROP_INS: [&str; 3] = [
    "/etc/systemd/system/irqbalance.service.d/*.conf",
    "/run/systemd/system/irqbalance.service.d/*.conf",
    "/usr/lib/systemd/system/irqbalance.service.d/*.conf",
];
const ISOLATED: &str = "/sys/devices/system/cpu/isolated";
const NOHZ_FULL: &str = "/sys/devices/system/cpu/nohz_full";

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    let running = competing_tuners::running_programs(machine.survey, PROGRAMS);
    if running.found.is_empty() {
        running.and_no_more()?;
        return Ok(Judgement::pass("not running"));
    }
    // The banned CPUs depend on the version if old and new settings are combined.
    let ways = ways(machine, &settings(machine)?)?;
    let left: Vec<CpuSet> = ways.iter().map(|banned| machine.cpus().without(banned)).collect();
    let worst = left.iter().max_by_key(|cpus| cpus.len()).cloned().unwrap_or_default();
    if worst.is_empty() {
        return Ok(Judgement::pass(format!("running, {} banned", cpu_list(machine.cpus()))));
    }
    if left.iter().any(CpuSet::is_empty) {
        return Err(Judgement::unknown(format!(
            "whether it bans CPU {worst} depends on its version: set only IRQBALANCE_BANNED_CPULIST={}",
            machine.cpus()
        )));
    }
    Ok(Judgement::fail(format!("running, {} not banned", cpu_list(&worst))).fix(
        Remedy::from(Change::Disable { unit: "irqbalance".to_owned(), program: "irqbalance".to_owned() }).or(
            Remedy::advice(
                AdviceReason::Program,
                format!(
                    "IRQBALANCE_BANNED_CPULIST={} in {DEFAULT} or {SYSCONFIG} and restart it: the list \
                     replaces the isolated CPUs that it detects itself",
                    machine.cpus().or(&automatic(machine).unwrap_or_default())
                ),
            ),
        ),
    ))
}

/// Settings in its environment: those of the unit and its drop-ins, overridden by those of the
/// files that they name.
fn settings(machine: &MachineView) -> Result<Banned, Judgement> {
    let mut unit = UnitEnvironment::default();
    // A unit that is not in a capture is assumed to be the distribution's.
    let mut main = None;
    for path in UNITS.iter().filter(|path| machine.is_captured(path)) {
        main = machine.parsed(path, |text| Ok(text.to_owned()))?;
        if main.is_some() {
            break;
        }
    }
    main.iter().for_each(|text| unit.read(text));
    for drop_in in drop_ins(machine)?.into_values() {
        match &drop_in.content {
            Fact::Known(text) => unit.read(text),
            other => return Err(unknown_from(&drop_in.path, other)),
        }
    }
    let mut settings = unit.banned().map_err(Judgement::unknown)?;
    if main.is_none() && !unit.is_reset {
        settings = shipped(machine)?.over(settings);
    }
    for path in &unit.files {
        let known = [SHIPPED, DEFAULT, SYSCONFIG, ETC].into_iter().find(|known| known == path);
        let known = known.ok_or_else(|| {
            Judgement::unknown(format!(
                "irqbalance.service reads {}: move its CPU settings to {DEFAULT} or {SYSCONFIG}, so that \
                 they can be judged",
                truncate(path)
            ))
        })?;
        settings = machine.parsed(known, parse_banned)?.unwrap_or_default().over(settings);
    }
    Ok(settings)
}

/// Drop-ins by name: the first folder with a name counts.
fn drop_ins<'a>(machine: &MachineView<'a>) -> Result<BTreeMap<&'a str, &'a Text>, Judgement> {
    let mut found = BTreeMap::new();
    // Older captures contain only those of the administrator.
    for pattern in DROP_INS.into_iter().filter(|path| *path == DROP_INS[0] || machine.is_captured(path)) {
        for text in machine.texts(pattern)? {
            let name = text.path.rsplit('/').next().unwrap_or_default();
            found.entry(name).or_insert(text);
        }
    }
    Ok(found)
}

/// Settings in the files that the distributions' units read.
fn shipped(machine: &MachineView) -> Result<Banned, Judgement> {
    let files = [machine.parsed(DEFAULT, parse_banned)?, machine.parsed(SYSCONFIG, parse_banned)?];
    let mut settings = files.into_iter().flatten().filter(|banned| *banned != Banned::default());
    match (settings.next(), settings.next()) {
        (Some(_), Some(_)) => Err(Judgement::unknown(format!(
            "{DEFAULT} and {SYSCONFIG} both ban CPUs: keep the one that its unit reads"
        ))),
        (first, _) => {
            Ok(first.unwrap_or_default().over(machine.parsed(SHIPPED, parse_banned)?.unwrap_or_default()))
        }
    }
}

/// CPUs that it does not use, for each interpretation of its settings by a version.
fn ways(machine: &MachineView, settings: &Banned) -> Result<Vec<CpuSet>, Judgement> {
    // Each version that has both reads the mask first, and those before 1.8 have only the mask
    // (`setup_banned_cpus()` of cputree.c).
    if let Some(mask) = &settings.mask {
        return Ok(vec![mask.clone()]);
    }
    let mut ways = Vec::new();
    match &settings.list {
        Some(list) if settings.blank => ways.extend([list.clone(), automatic(machine)?]),
        Some(list) => ways.push(list.clone()),
        None => ways.push(automatic(machine)?),
    }
    Ok(ways)
}

/// CPUs that it finds isolated without settings.
fn automatic(machine: &MachineView) -> Result<CpuSet, Judgement> {
    let list = |fact: &Fact<CpuSet>, path| match fact {
        Fact::Known(cpus) => Ok(cpus.clone()),
        Fact::Absent => Ok(CpuSet::default()),
        other => Err(unknown_from(path, other)),
    };
    Ok(list(&machine.facts().isolated, ISOLATED)?.or(&list(&machine.facts().nohz_full, NOHZ_FULL)?))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    fn running(edits: &str, expected: &str) {
        check(&KNOB, &format!("program + irqbalance\n{edits}"), expected);
    }

    #[test]
    fn it_may_run_where_it_leaves_the_cpus_alone() {
        check(&KNOB, "", "pass not running");
        check(&KNOB, "--cpus 0-3", "not-applicable");
        running("", "pass running, CPUs 2-3 banned");
        running("--cpus 1-2", "fail high running, CPU 1 not banned");
        running("/etc/sysconfig/irqbalance: IRQBALANCE_BANNED_CPULIST=1-3\n--cpus 1-2", "pass");
        running(
            "/etc/default/irqbalance: IRQBALANCE_BANNED_CPULIST=0",
            "fail high running, CPUs 2-3 not banned",
        );
        running(
            "/etc/default/irqbalance: IRQBALANCE_BANNED_CPULIST=-",
            "fail high running, CPUs 2-3 not banned",
        );
        let shipped = "/usr/lib/irqbalance/defaults.env: IRQBALANCE_BANNED_CPULIST=0";
        running(shipped, "fail high running, CPUs 2-3 not banned");
        running(&format!("{shipped}\n/etc/default/irqbalance: IRQBALANCE_BANNED_CPULIST=2-3"), "pass");
        running("/etc/default/irqbalance: #IRQBALANCE_BANNED_CPULIST=0", "pass running, CPUs 2-3 banned");
    }

    #[test]
    fn versions_that_differ_are_not_guessed() {
        running("/etc/default/irqbalance: IRQBALANCE_BANNED_CPULIST=", "unknown");
        running("/etc/default/irqbalance: IRQBALANCE_BANNED_CPULIST=\n--cpus 1-2", "fail high");
        running("/etc/default/irqbalance: IRQBALANCE_BANNED_CPUS=1", "fail high");
        running("/etc/default/irqbalance: IRQBALANCE_BANNED_CPUS=4", "fail high running, CPU 3 not banned");
        let both = "/etc/default/irqbalance: IRQBALANCE_BANNED_CPULIST=2-3\n| IRQBALANCE_BANNED_CPUS=3";
        running(both, "fail high running, CPUs 2-3 not banned");
        running(&both.replace("CPUS=3", "CPUS=c").replace("2-3", "0"), "pass running, CPUs 2-3 banned");
        running("/etc/default/irqbalance: IRQBALANCE_BANNED_CPUS=c", "pass running, CPUs 2-3 banned");
        running("/etc/default/irqbalance: IRQBALANCE_BANNED_CPUS=1\n--cpus 1-2", "fail high");
    }

    #[test]
    fn a_unit_and_its_drop_ins_are_read_in_order() {
        const ETC: &str = "/etc/systemd/system/irqbalance.service";
        const SYSTEM: &str = "/usr/lib/systemd/system/irqbalance.service";
        let of = |path: &str, line: &str| format!("{path}:\n| [Service]\n| {line}\n");
        let list = |cpus: &str| format!("Environment=IRQBALANCE_BANNED_CPULIST={cpus}");
        let drop_in = |name: &str, line: &str| of(&format!("{ETC}.d/{name}.conf"), line);
        let (banned, none) = ("pass running, CPUs 2-3 banned", "fail high running, CPUs 2-3 not banned");
        running(&drop_in("10", "Nice=5"), banned);
        running(&drop_in("10", &list("0")), none);
        running(&(drop_in("20", &list("2-3")) + &drop_in("10", &list("0"))), banned);
        running(&(drop_in("10", &list("0")) + &of(&format!("{SYSTEM}.d/10.conf"), &list("2-3"))), none);
        running(&(drop_in("10", &list("0")) + &drop_in("20", "Environment=")), banned);
        // The settings of a file override it.
        let file = "/etc/default/irqbalance: IRQBALANCE_BANNED_CPULIST=2-3\n";
        running(&(drop_in("10", &list("0")) + file), banned);
        running(&(drop_in("10", &list("0")) + file + &drop_in("20", "EnvironmentFile=")), none);
        let unit = of(SYSTEM, "EnvironmentFile=-/etc/sysconfig/irqbalance") + file;
        running(&format!("{unit}/etc/sysconfig/irqbalance: IRQBALANCE_BANNED_CPULIST=0"), none);
        running(&(of(ETC, &list("2-3")) + &of(SYSTEM, &list("0"))), banned);
    }

    #[test]
    fn what_cannot_be_read() {
        check(&KNOB, "/proc refused", "unknown");
        check(&KNOB, "/proc/1/stat refused", "unknown");
        check(&KNOB, "/proc absent", "unknown");
        running("/proc/1/stat refused", "pass running, CPUs 2-3 banned");
        running("/etc/systemd/system/irqbalance.service refused", "unknown");
        running("/etc/default/irqbalance: IRQBALANCE_BANNED_CPULIST=two", "unknown");
        running("/sys/devices/system/cpu/isolated refused\n--cpus 2-3", "unknown");
        const LIST: &str = ": IRQBALANCE_BANNED_CPULIST=2-3";
        running(&format!("/etc/default/irqbalance{LIST}\n/etc/sysconfig/irqbalance{LIST}"), "unknown");
        const DROP_IN: &str = "/etc/systemd/system/irqbalance.service.d/10.conf";
        running(&format!("{DROP_IN} refused"), "unknown");
        running(&format!("{DROP_IN}:\n| [Service]\n| EnvironmentFile=/etc/rt/irqbalance"), "unknown");
        running("/usr/lib/irqbalance/defaults.env refused", "unknown");
    }
}
