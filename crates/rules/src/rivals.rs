//! Programs that set for themselves what rules are about: what each decides, and which of them are there.
//!
//! A finding whose setting such a program decides names it, or the next profile switch undoes the advice. What a
//! rule is about follows from the paths that it reads, so a rule need not say it.

use super::case::unread;
use super::judgement::Judgement;
use super::{Knob, Lasts};
use facts::Fact;
use facts::survey::Survey;
use model::error::run_with;

/// What a program may decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The words are below.
pub enum Owns {
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

impl Owns {
    /// All, in the order in which findings name them.
    pub const ALL: [Owns; 12] = [
        Owns::Governor,
        Owns::Idle,
        Owns::Interrupts,
        Owns::Tasks,
        Owns::Workqueues,
        Owns::Sysctls,
        Owns::Watchdog,
        Owns::Writeback,
        Owns::HugePages,
        Owns::SamePages,
        Owns::Devices,
        Owns::Heat,
    ];

    /// What it is, in a list: `frequency governor`.
    pub fn words(self) -> &'static str {
        match self {
            Owns::Governor => "frequency governor",
            Owns::Idle => "idle states",
            Owns::Interrupts => "interrupt affinity",
            Owns::Sysctls => "sysctls",
            Owns::Watchdog => "watchdogs",
            Owns::Writeback => "writeback",
            Owns::Tasks => "CPUs and priorities of tasks",
            Owns::Workqueues => "workqueue masks",
            Owns::HugePages => "huge pages",
            Owns::SamePages => "samepage merging",
            Owns::Devices => "power saving of devices",
            Owns::Heat => "frequency limits when it is hot",
        }
    }
}

/// A program that decides settings.
pub struct Rival {
    /// What it is called, and systemd's unit without `.service`.
    pub name: &'static str,
    /// The names of its processes, as the kernel cuts them.
    pub programs: &'static [&'static str],
    /// The link by which systemd starts it at boot, where it sets things once and ends.
    pub enabled: Option<&'static str>,
    /// What it decides.
    pub owns: &'static [Owns],
}

/// The links of those that end once they have set things.
pub const TLP: &str = "/etc/systemd/system/multi-user.target.wants/tlp.service@";
/// The same.
pub const CPUPOWER: &str = "/etc/systemd/system/multi-user.target.wants/cpupower.service@";
/// The same; Ubuntu up to 20.04.
pub const ONDEMAND: &str = "/etc/systemd/system/multi-user.target.wants/ondemand.service@";

/// Those that are known, the most far-reaching first.
pub static RIVALS: &[Rival] = &[
    Rival {
        name: "tuned",
        programs: &["tuned"],
        enabled: None,
        owns: &[
            Owns::Governor,
            Owns::Idle,
            Owns::Interrupts,
            Owns::Tasks,
            Owns::Workqueues,
            Owns::Sysctls,
            Owns::Watchdog,
            Owns::Writeback,
            Owns::HugePages,
            Owns::Devices,
        ],
    },
    Rival {
        name: "tlp",
        programs: &["tlp-pd"],
        enabled: Some(TLP),
        owns: &[Owns::Governor, Owns::Watchdog, Owns::Writeback, Owns::Devices],
    },
    Rival {
        name: "power-profiles-daemon",
        programs: &["power-profiles-"],
        enabled: None,
        owns: &[Owns::Governor],
    },
    Rival { name: "auto-cpufreq", programs: &["auto-cpufreq"], enabled: None, owns: &[Owns::Governor] },
    Rival {
        name: "system76-power",
        programs: &["system76-power"],
        enabled: None,
        owns: &[Owns::Governor, Owns::Devices],
    },
    Rival { name: "gamemoded", programs: &["gamemoded"], enabled: None, owns: &[Owns::Governor] },
    Rival { name: "cpupower", programs: &[], enabled: Some(CPUPOWER), owns: &[Owns::Governor] },
    Rival { name: "ondemand", programs: &[], enabled: Some(ONDEMAND), owns: &[Owns::Governor] },
    Rival { name: "irqbalance", programs: &["irqbalance"], enabled: None, owns: &[Owns::Interrupts] },
    Rival { name: "numad", programs: &["numad"], enabled: None, owns: &[Owns::Tasks] },
    Rival { name: "ananicy", programs: &["ananicy", "ananicy-cpp"], enabled: None, owns: &[Owns::Tasks] },
    Rival { name: "ksmtuned", programs: &["ksmtuned"], enabled: None, owns: &[Owns::SamePages] },
    Rival { name: "thermald", programs: &["thermald"], enabled: None, owns: &[Owns::Heat] },
];

/// The processes of all of them.
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

/// What was found of something, and why there may be more of it.
pub struct Found<T> {
    /// What is there.
    pub found: Vec<T>,
    hidden: Option<Judgement>,
}

impl<T> Found<T> {
    /// Goes on only if there can be no more of it.
    pub fn and_no_more(&self) -> Result<(), Judgement> {
        self.hidden.clone().map_or(Ok(()), Err)
    }
}

/// Which of these programs run. The rule, or another, has to declare them.
pub fn running(survey: &Survey, names: &'static [&'static str]) -> Found<&'static str> {
    let threads = match &survey.threads {
        Fact::Known(threads) => threads,
        other => return Found { found: Vec::new(), hidden: Some(unread("/proc", other)) },
    };
    // A machine always has threads of the kernel: where none shows, processes are hidden.
    let hidden = (threads.kernel.is_empty() || !threads.complete).then(|| {
        Judgement::unknown(format!("not every process shows in /proc: {}", run_with("CAP_SYS_PTRACE")))
    });
    let unasked = names.iter().find(|name| threads.unasked.contains(**name));
    let unasked = unasked.map(|name| {
        Judgement::unknown(format!("whether {name} runs is not in this capture: take a new one"))
    });
    let hidden = hidden.or(unasked);
    Found { found: names.iter().copied().filter(|name| threads.programs.contains(*name)).collect(), hidden }
}

/// Which rivals are there.
pub fn rivals(survey: &Survey) -> Found<&'static Rival> {
    let running = running(survey, PROGRAMS);
    let mut hidden = running.hidden.clone();
    let mut is_there = |rival: &Rival| {
        let enabled = rival.enabled.is_some_and(|link| match survey.texts.one(link) {
            Fact::Known(_) => true,
            Fact::Absent => false,
            other => {
                hidden.get_or_insert_with(|| unread(link.trim_end_matches('@'), &other));
                false
            }
        });
        enabled || rival.programs.iter().any(|name| running.found.contains(name))
    };
    let found = RIVALS.iter().filter(|rival| is_there(rival)).collect();
    Found { found, hidden }
}

/// Where settings are that programs decide: the first part of a path that is found in it counts.
const PLACES: &[(&str, Owns)] = &[
    ("/proc/sys/kernel/nmi_watchdog", Owns::Watchdog),
    ("/proc/sys/kernel/watchdog", Owns::Watchdog),
    ("/proc/sys/vm/dirty_", Owns::Writeback),
    ("/proc/sys/vm/laptop_mode", Owns::Writeback),
    ("/proc/sys/", Owns::Sysctls),
    ("/cpufreq/", Owns::Governor),
    ("/intel_pstate/", Owns::Governor),
    ("/energy_perf_bias", Owns::Governor),
    ("/cpuidle/", Owns::Idle),
    ("/proc/irq/", Owns::Interrupts),
    ("/workqueue/", Owns::Workqueues),
    ("/transparent_hugepage/", Owns::HugePages),
    ("/mm/ksm/", Owns::SamePages),
    ("/pcie_aspm/", Owns::Devices),
    ("/power/control", Owns::Devices),
    ("/link_power_management_policy", Owns::Devices),
    ("/snd_hda_intel/", Owns::Devices),
];

/// What nobody sets.
const FIXED: &[&str] = &["/proc/sys/kernel/osrelease", "/proc/sys/kernel/version", "/proc/sys/kernel/arch"];

/// What a rule is about, of all that programs decide; nothing where the setting is not changed at run time.
pub fn about(knob: &Knob) -> Vec<Owns> {
    if knob.lasts != Lasts::Runtime {
        return Vec::new();
    }
    let paths = knob.reads.iter().chain(knob.facts).filter(|path| !FIXED.contains(path));
    paths.filter_map(|path| PLACES.iter().find(|place| path.contains(place.0))).map(|place| place.1).collect()
}

/// The names of those that are there and decide one of these.
pub fn owners(survey: &Survey, owns: &[Owns]) -> Vec<&'static str> {
    let decides = |rival: &&&Rival| rival.owns.iter().any(|one| owns.contains(one));
    rivals(survey).found.iter().filter(decides).map(|rival| rival.name).collect()
}

/// What has to be added to the advice of a rule where a program may undo it; else nothing.
pub fn warning(knob: &Knob, survey: &Survey) -> String {
    let names = owners(survey, &about(knob));
    if names.is_empty() {
        return String::new();
    }
    let (are, it) = if names.len() == 1 { ("is", "it") } else { ("are", "them") };
    format!("; {} {are} active and may set it again: set it there, or stop {it}", names.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Machine;
    use crate::knobs::ALL;
    use std::collections::BTreeSet;

    #[test]
    fn the_programs_are_those_of_the_table() {
        let table: BTreeSet<&str> = RIVALS.iter().flat_map(|rival| rival.programs).copied().collect();
        assert_eq!(table.into_iter().collect::<Vec<_>>(), PROGRAMS);
        assert!(RIVALS.iter().flat_map(|rival| rival.owns).all(|owns| Owns::ALL.contains(owns)));
    }

    /// The names of those who decide what a rule of this id is about, after some edits.
    fn check(edits: &str, id: &str, expected: &str) {
        let mut machine = Machine::base();
        machine.edit(edits);
        let (survey, _) = machine.survey();
        let knob = ALL.iter().find(|knob| knob.id == id).unwrap();
        assert_eq!(warning(knob, &survey), expected, "{edits}");
    }

    #[test]
    fn advice_names_who_would_undo_it() {
        const ALONE: &str = "; tuned is active and may set it again: set it there, or stop it";
        check("", "zone-reclaim", "");
        check("program + tuned\nprogram + thermald", "zone-reclaim", ALONE);
        check("program + tuned", "preemption-model", "");
        check("program + irqbalance", "zone-reclaim", "");
        check("program + ksmtuned", "kernel-samepage-merging", &ALONE.replace("tuned", "ksmtuned"));
        check(
            "program + tuned\n/etc/systemd/system/multi-user.target.wants/tlp.service -> tlp.service",
            "writeback-interval",
            "; tuned and tlp are active and may set it again: set it there, or stop them",
        );
        check("/proc refused", "zone-reclaim", "");
    }

    #[test]
    fn a_finding_that_fails_carries_it() {
        let mut machine = Machine::base();
        machine.edit("program + tuned\n/proc/sys/vm/zone_reclaim_mode: 1");
        let found = machine.finding(crate::find("zone-reclaim").unwrap());
        assert!(found.fix.ends_with("tuned is active and may set it again: set it there, or stop it"));
    }
}
