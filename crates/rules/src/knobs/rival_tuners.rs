//! Rival tuners: programs that change each other's settings.

use super::unsettable;
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::competing_tuners::{CPUPOWER, ONDEMAND, PROGRAMS, TLP, TunedArea, Tuner, active_tuners};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "rival-tuners",
    title: "rival tuners",
    description: "Programs that change settings of the machine: TuneD, also under OpenShift's Node Tuning \
                  Operator, TLP, power-profiles-daemon, auto-cpufreq, system76-power, cpupower, gamemoded, \
                  numad, ananicy, ksmtuned, thermald.",
    rationale: "if two programs change the same setting the last one wins, and a profile switch at run time \
                invalidates measurements",
    detection: "Running programs by name, TuneD's profile in /etc/tuned/active_profile, and for TLP, \
                cpupower and ondemand, which run once, the systemd link that starts them at boot. Their \
                effect depends on their configuration, which is not read; custom scripts and those of other \
                init systems are not seen.",
    side_effects: "A stopped program no longer applies its settings (thermal protection, for thermald): \
                   apply those that you need yourself.",
    wanted: "at most one program for each setting, and none that saves power",
    fix: Remedy::default,
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Boot,
    unsettable: unsettable::PROGRAM,
    sources: &[
        Source {
            title: "TuneD: incompatible with cpupower and power-profiles-daemon",
            url: "https://github.com/redhat-performance/tuned",
        },
        Source {
            title: "TLP and power-profiles-daemon exclude each other",
            url: "https://github.com/linrunner/TLP/issues/564",
        },
    ],
    cures: &[SliceKind::Frequency, SliceKind::IdleExit, SliceKind::Irq, SliceKind::Thread],
    reads: &[PROFILE, TLP, CPUPOWER, ONDEMAND],
    facts: &["/proc/PID/stat"],
    programs: PROGRAMS,
    judge,
    examples: Examples {
        fires: "program + tuned\nprogram + power-profiles-\n/etc/tuned/active_profile: realtime",
        silent: "program + tuned\n/etc/tuned/active_profile: realtime",
        unknown: "/proc refused",
    },
    ..Knob::DEFAULT
};

const PROFILE: &str = "/etc/tuned/active_profile";

/// Profiles of TuneD that save power.
const SAVING: &[&str] = &[
    "balanced",
    "balanced-battery",
    "default",
    "desktop",
    "desktop-powersave",
    "laptop-ac-powersave",
    "laptop-battery-powersave",
    "powersave",
    "server-powersave",
    "spindown-disk",
];

fn judge(machine: &MachineView) -> Judged {
    let there = active_tuners(machine.survey);
    // irqbalance has a separate rule, and a list of CPUs that it must not use.
    let found: Vec<&Tuner> = there.found.iter().copied().filter(|rival| rival.name != "irqbalance").collect();
    let tuned = found.iter().any(|rival| rival.name == "tuned");
    let profile = if tuned { profile(machine) } else { Err(Judgement::not_applicable("tuned does not run")) };
    let complete = there.and_no_more().map(|()| Judgement::pass(described(&found)));
    Judgement::all([Ok(contest(&found).unwrap_or_else(|| Judgement::pass(""))), profile, complete])
}

/// Settings that more than one program controls.
fn contest(found: &[&Tuner]) -> Option<Judgement> {
    let names = |areas: TunedArea| {
        found.iter().filter(move |rival| rival.areas.contains(&areas)).map(|rival| rival.name)
    };
    let fought = TunedArea::ALL.into_iter().filter(|areas| names(*areas).count() > 1);
    let areas_text: Vec<String> = fought
        .map(|areas| format!("{}: {}", areas.words(), names(areas).collect::<Vec<_>>().join(" and ")))
        .collect();
    (!areas_text.is_empty()).then(|| {
        let more = if areas_text.len() > SHOWN {
            format!("; and {} more", areas_text.len() - SHOWN)
        } else {
            String::new()
        };
        Judgement::fail(areas_text.into_iter().take(SHOWN).collect::<Vec<_>>().join("; ") + &more).fix(
            Remedy::advice(
                AdviceReason::Program,
                "keep one of them, and systemctl disable --now the others; configure the remaining one \
                 according to the other findings",
            ),
        )
    })
}

/// Limit of contested settings that are named; the rest is counted.
const SHOWN: usize = 3;

/// Passes if the profile of TuneD is suitable for latency.
fn profile(machine: &MachineView) -> Judged {
    // Of several, later ones override earlier ones.
    let profiles = machine.line_if_present(PROFILE)?.unwrap_or_default();
    let Some(last) = profiles.split_whitespace().last() else {
        return Ok(Judgement::pass("tuned without a profile"));
    };
    let last: String = last.chars().take(60).collect();
    if !SAVING.contains(&last.as_str()) {
        return Ok(Judgement::pass(format!("tuned with profile {last}")));
    }
    // The profile realtime isolates CPUs, which takes others that are left.
    let online = machine.facts().online.known();
    let leaves_any = online.is_some_and(|online| !online.without(&machine.intent.cpus).is_empty());
    let words = if leaves_any {
        "tuned-adm profile realtime, with the audited CPUs as isolated_cores in \
         /etc/tuned/realtime-variables.conf; under OpenShift by a PerformanceProfile"
    } else {
        "tuned-adm profile latency-performance, which isolates no CPU"
    };
    Ok(Judgement::fail(format!("tuned with profile {last}, which saves power"))
        .fix(Remedy::advice(AdviceReason::Program, words)))
}

/// Settings that each controls, except TuneD, whose profile is more specific:
/// `tlp: frequency governor, writeback`.
fn described(found: &[&Tuner]) -> String {
    let one = |rival: &&Tuner| {
        let areas: Vec<&str> = rival.areas.iter().map(|areas| areas.words()).collect();
        format!("{}: {}", rival.name, areas.join(", "))
    };
    let descriptions: Vec<String> = found.iter().filter(|rival| rival.name != "tuned").map(one).collect();
    if found.is_empty() { "none".to_owned() } else { descriptions.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    const TLP: &str = "/etc/systemd/system/multi-user.target.wants/tlp.service";

    #[test]
    fn one_that_decides_is_enough() {
        check(&KNOB, "", "pass none");
        check(
            &KNOB,
            "program + tuned\n/etc/tuned/active_profile: cpu-partitioning",
            "pass tuned with profile cpu-partitioning",
        );
        check(&KNOB, "program + tuned", "pass tuned without a profile");
        check(&KNOB, "program + power-profiles-", "pass power-profiles-daemon: frequency governor");
        check(
            &KNOB,
            &format!("{TLP} -> tlp.service"),
            "pass tlp: frequency governor, watchdogs, writeback, power saving of devices",
        );
        check(&KNOB, "program + irqbalance", "pass none");
        check(&KNOB, "program + thermald", "pass thermald: frequency limits when it is hot");
    }

    #[test]
    fn two_fight() {
        check(
            &KNOB,
            &format!("program + power-profiles-\n{TLP} -> tlp.service"),
            "fail medium frequency governor: tlp and power-profiles-daemon",
        );
        check(
            &KNOB,
            "program + tuned\n/etc/tuned/active_profile: realtime\nprogram + numad\nprogram + \
             ksmtuned",
            "fail medium CPUs and priorities of tasks: tuned and numad",
        );
    }

    #[test]
    fn what_is_found_stays_short() {
        let all: Vec<String> = super::PROGRAMS.iter().map(|name| format!("program + {name}\n")).collect();
        let mut machine = Machine::base();
        machine.edit(&all.concat());
        let found = machine.finding(&KNOB);
        assert!(found.value.ends_with("more") && found.value.chars().count() <= 300, "{}", found.value);
    }

    #[test]
    fn a_power_saving_profile_fails() {
        check(
            &KNOB,
            "program + tuned\n/etc/tuned/active_profile: powersave",
            "fail medium tuned with profile powersave, which saves power",
        );
        check(
            &KNOB,
            "program + tuned\n/etc/tuned/active_profile: balanced realtime",
            "pass tuned with profile realtime",
        );
        check(&KNOB, "program + tuned\n/etc/tuned/active_profile refused", "unknown");
        // A file of a program that no longer runs.
        check(&KNOB, "/etc/tuned/active_profile: powersave", "pass none");
    }

    #[test]
    fn no_profile_isolates_all_cpus() {
        let fix = |cpus: &str| {
            let mut machine = Machine::base();
            machine.edit(&format!("program + tuned\n/etc/tuned/active_profile: powersave\n--cpus {cpus}"));
            machine.finding(&KNOB).fix
        };
        assert!(fix("2-3").contains("isolated_cores"), "{}", fix("2-3"));
        assert!(fix("0-3").starts_with("tuned-adm profile latency-performance"), "{}", fix("0-3"));
    }

    #[test]
    fn what_does_not_show_may_be_there() {
        check(&KNOB, "/proc/1/stat refused", "unknown");
        check(&KNOB, &format!("{TLP} refused"), "unknown");
        check(&KNOB, "/proc/1/stat refused\nprogram + tuned\nprogram + gamemoded", "fail medium");
    }
}
