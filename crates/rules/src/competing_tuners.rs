//! Programs that change the settings that rules judge: what each of them controls, and which are
//! installed.
//!
//! A finding about a setting that such a program controls names it, or the next profile switch
//! undoes the advice. The area of a rule follows from the paths that it reads, so a rule does not
//! declare it.

use super::judgement::Judgement;
use crate::change::Persistence;
use crate::knob::Knob;
use crate::unknown::unknown_from;
use facts::Fact;
use facts::survey::Survey;
use model::error::run_with;

/// Area of settings that a program may control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The words are below.
pub enum TunedArea {
    Governor,
    Idle,
    Interrupts,
    Sysctls,
    Watchdog,
    Writeback,
    Tasks,
    Workqueues,
    HugePages,
    SamePages,
    Devices,
    Heat,
}

impl TunedArea {
    /// All areas, in the order in which findings name them.
    pub const ALL: [TunedArea; 12] = [
        TunedArea::Governor,
        TunedArea::Idle,
        TunedArea::Interrupts,
        TunedArea::Tasks,
        TunedArea::Workqueues,
        TunedArea::Sysctls,
        TunedArea::Watchdog,
        TunedArea::Writeback,
        TunedArea::HugePages,
        TunedArea::SamePages,
        TunedArea::Devices,
        TunedArea::Heat,
    ];

    /// Name in a list: `frequency governor`.
    pub fn words(self) -> &'static str {
        match self {
            TunedArea::Governor => "frequency governor",
            TunedArea::Idle => "idle states",
            TunedArea::Interrupts => "interrupt affinity",
            TunedArea::Sysctls => "sysctls",
            TunedArea::Watchdog => "watchdogs",
            TunedArea::Writeback => "writeback",
            TunedArea::Tasks => "CPUs and priorities of tasks",
            TunedArea::Workqueues => "workqueue masks",
            TunedArea::HugePages => "huge pages",
            TunedArea::SamePages => "samepage merging",
            TunedArea::Devices => "power saving of devices",
            TunedArea::Heat => "frequency limits when it is hot",
        }
    }
}

/// A program that controls settings.
pub struct Tuner {
    /// Name of the program, and of its systemd unit without `.service`.
    pub name: &'static str,
    /// Names of its processes, as truncated by the kernel.
    pub programs: &'static [&'static str],
    /// Link by which systemd starts it at boot, if it makes its settings once and ends.
    pub enabled: Option<&'static str>,
    pub areas: &'static [TunedArea],
}

/// Links of the programs that end after making their settings.
pub const TLP: &str = "/etc/systemd/system/multi-user.target.wants/tlp.service@";
pub const CPUPOWER: &str = "/etc/systemd/system/multi-user.target.wants/cpupower.service@";
/// The same for ondemand; Ubuntu up to 20.04.
pub const ONDEMAND: &str = "/etc/systemd/system/multi-user.target.wants/ondemand.service@";

/// The known programs, the most far-reaching first.
pub static TUNERS: &[Tuner] = &[
    Tuner {
        name: "tuned",
        programs: &["tuned"],
        enabled: None,
        areas: &[
            TunedArea::Governor,
            TunedArea::Idle,
            TunedArea::Interrupts,
            TunedArea::Tasks,
            TunedArea::Workqueues,
            TunedArea::Sysctls,
            TunedArea::Watchdog,
            TunedArea::Writeback,
            TunedArea::HugePages,
            TunedArea::Devices,
        ],
    },
    Tuner {
        name: "tlp",
        programs: &["tlp-pd"],
        enabled: Some(TLP),
        areas: &[TunedArea::Governor, TunedArea::Watchdog, TunedArea::Writeback, TunedArea::Devices],
    },
    Tuner {
        name: "power-profiles-daemon",
        programs: &["power-profiles-"],
        enabled: None,
        areas: &[TunedArea::Governor],
    },
    Tuner { name: "auto-cpufreq", programs: &["auto-cpufreq"], enabled: None, areas: &[TunedArea::Governor] },
    Tuner {
        name: "system76-power",
        programs: &["system76-power"],
        enabled: None,
        areas: &[TunedArea::Governor, TunedArea::Devices],
    },
    Tuner { name: "gamemoded", programs: &["gamemoded"], enabled: None, areas: &[TunedArea::Governor] },
    Tuner { name: "cpupower", programs: &[], enabled: Some(CPUPOWER), areas: &[TunedArea::Governor] },
    Tuner { name: "ondemand", programs: &[], enabled: Some(ONDEMAND), areas: &[TunedArea::Governor] },
    Tuner { name: "irqbalance", programs: &["irqbalance"], enabled: None, areas: &[TunedArea::Interrupts] },
    Tuner { name: "numad", programs: &["numad"], enabled: None, areas: &[TunedArea::Tasks] },
    Tuner {
        name: "ananicy",
        programs: &["ananicy", "ananicy-cpp"],
        enabled: None,
        areas: &[TunedArea::Tasks],
    },
    Tuner { name: "ksmtuned", programs: &["ksmtuned"], enabled: None, areas: &[TunedArea::SamePages] },
    Tuner { name: "thermald", programs: &["thermald"], enabled: None, areas: &[TunedArea::Heat] },
];

/// Processes of all of them.
pub static PROGRAMS: &[&str] = &[
    "ananicy",
    "ananicy-cpp",
    "auto-cpufreq",
    "gamemoded",
    "irqbalance",
    "ksmtuned",
    "numad",
    "power-profiles-",
    "system76-power",
    "thermald",
    "tlp-pd",
    "tuned",
];

/// Things that were detected, and the reason why there may be more of them.
pub struct Detected<T> {
    pub found: Vec<T>,
    hidden: Option<Judgement>,
}

impl<T> Detected<T> {
    /// Returns early unless there can be no more of them.
    pub fn and_no_more(&self) -> Result<(), Judgement> {
        self.hidden.clone().map_or(Ok(()), Err)
    }
}

/// The programs among these that run. The rule, or another, has to declare them.
pub fn running_programs(survey: &Survey, names: &'static [&'static str]) -> Detected<&'static str> {
    let threads = match &survey.threads {
        Fact::Known(threads) => threads,
        other => return Detected { found: Vec::new(), hidden: Some(unknown_from("/proc", other)) },
    };
    // A machine always has kernel threads: if none is visible, processes are hidden.
    let hidden = (threads.kernel.is_empty() || !threads.complete).then(|| {
        Judgement::unknown(format!("/proc does not show every process: {}", run_with("CAP_SYS_PTRACE")))
    });
    let unasked = names.iter().find(|name| threads.unasked.contains(**name));
    let unasked = unasked.map(|name| {
        Judgement::unknown(format!("this capture does not record whether {name} runs: take a new one"))
    });
    let hidden = hidden.or(unasked);
    Detected {
        found: names.iter().copied().filter(|name| threads.programs.contains(*name)).collect(),
        hidden,
    }
}

/// Competing tuners on this machine.
pub fn active_tuners(survey: &Survey) -> Detected<&'static Tuner> {
    let running = running_programs(survey, PROGRAMS);
    let mut hidden = running.hidden.clone();
    let mut is_there = |rival: &Tuner| {
        let enabled = rival.enabled.is_some_and(|link| match survey.texts.one(link) {
            Fact::Known(_) => true,
            Fact::Absent => false,
            other => {
                hidden.get_or_insert_with(|| unknown_from(link.trim_end_matches('@'), &other));
                false
            }
        });
        enabled || rival.programs.iter().any(|name| running.found.contains(name))
    };
    let found = TUNERS.iter().filter(|rival| is_there(rival)).collect();
    Detected { found, hidden }
}

/// Areas by parts of paths: the first part that a path contains counts.
const AREA_OF_PATH: &[(&str, TunedArea)] = &[
    ("/proc/sys/kernel/nmi_watchdog", TunedArea::Watchdog),
    ("/proc/sys/kernel/watchdog", TunedArea::Watchdog),
    ("/proc/sys/vm/dirty_", TunedArea::Writeback),
    ("/proc/sys/vm/laptop_mode", TunedArea::Writeback),
    ("/proc/sys/", TunedArea::Sysctls),
    ("/cpufreq/", TunedArea::Governor),
    ("/intel_pstate/", TunedArea::Governor),
    ("/energy_perf_bias", TunedArea::Governor),
    ("/cpuidle/", TunedArea::Idle),
    ("/proc/irq/", TunedArea::Interrupts),
    ("/workqueue/", TunedArea::Workqueues),
    ("/transparent_hugepage/", TunedArea::HugePages),
    ("/mm/ksm/", TunedArea::SamePages),
    ("/pcie_aspm/", TunedArea::Devices),
    ("/power/control", TunedArea::Devices),
    ("/link_power_management_policy", TunedArea::Devices),
    ("/snd_hda_intel/", TunedArea::Devices),
];

/// Area of a file, if programs control it.
pub fn area_of_path(path: &str) -> Option<TunedArea> {
    AREA_OF_PATH.iter().find(|place| path.contains(place.0)).map(|place| place.1)
}

/// Files that cannot be written.
const READ_ONLY: &[&str] =
    &["/proc/sys/kernel/osrelease", "/proc/sys/kernel/version", "/proc/sys/kernel/arch"];

/// Areas of a rule that programs control; empty if the setting is not changed at run time.
pub fn areas_of(knob: &Knob) -> Vec<TunedArea> {
    if knob.persistence != Persistence::Runtime {
        return Vec::new();
    }
    let paths = knob.reads.iter().chain(knob.facts).filter(|path| !READ_ONLY.contains(path));
    paths.filter_map(|path| area_of_path(path)).collect()
}

/// Names of the active programs that control one of these areas.
pub fn tuners_of(survey: &Survey, areas: &[TunedArea]) -> Vec<&'static str> {
    let decides = |rival: &&&Tuner| rival.areas.iter().any(|one| areas.contains(one));
    active_tuners(survey).found.iter().filter(decides).map(|rival| rival.name).collect()
}

/// Addition to the advice of a rule if a program may undo it; else empty.
pub fn warning(knob: &Knob, survey: &Survey) -> String {
    let names = tuners_of(survey, &areas_of(knob));
    if names.is_empty() {
        return String::new();
    }
    let (are, it) = if names.len() == 1 { ("is", "it") } else { ("are", "them") };
    format!("; {} {are} active and may change it back: set it there, or stop {it}", names.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Machine;
    use crate::knobs::ALL;
    use std::collections::BTreeSet;

    #[test]
    fn the_programs_are_those_of_the_table() {
        let table: BTreeSet<&str> = TUNERS.iter().flat_map(|rival| rival.programs).copied().collect();
        assert_eq!(table.into_iter().collect::<Vec<_>>(), PROGRAMS);
        assert!(TUNERS.iter().flat_map(|rival| rival.areas).all(|areas| TunedArea::ALL.contains(areas)));
    }

    /// Checks the names of the programs that control the areas of a rule, after some edits.
    fn check(edits: &str, id: &str, expected: &str) {
        let mut machine = Machine::base();
        machine.edit(edits);
        let (survey, _) = machine.survey();
        let knob = ALL.iter().find(|knob| knob.id == id).unwrap();
        assert_eq!(warning(knob, &survey), expected, "{edits}");
    }

    #[test]
    fn advice_names_who_would_undo_it() {
        const ALONE: &str = "; tuned is active and may change it back: set it there, or stop it";
        check("", "zone-reclaim", "");
        check("program + tuned\nprogram + thermald", "zone-reclaim", ALONE);
        check("program + tuned", "preemption-model", "");
        check("program + irqbalance", "zone-reclaim", "");
        check("program + ksmtuned", "kernel-samepage-merging", &ALONE.replace("tuned", "ksmtuned"));
        check(
            "program + tuned\n/etc/systemd/system/multi-user.target.wants/tlp.service -> \
             tlp.service",
            "writeback-interval",
            "; tuned and tlp are active and may change it back: set it there, or stop them",
        );
        check("/proc refused", "zone-reclaim", "");
    }

    #[test]
    fn a_finding_that_fails_carries_it() {
        let mut machine = Machine::base();
        machine.edit("program + tuned\n/proc/sys/vm/zone_reclaim_mode: 1");
        let found = machine.finding(crate::find("zone-reclaim").unwrap());
        assert!(found.fix.ends_with("tuned is active and may change it back: set it there, or stop it"));
    }
}
