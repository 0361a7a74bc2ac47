//! Programs that own settings: a change that a running one would overwrite is omitted.
//!
//! `rules::competing_tuners` knows the programs, how to detect them, and their areas; this module
//! has the keys of an area that a program sets, and when it sets them.

use std::collections::BTreeMap;

use facts::survey::Survey;
use host::MachineFiles;
use model::plan::{LeftOut, PlanDocument};
use model::setting::Key;
use rules::competing_tuners::{TunedArea, active_tuners, area_of_path, running_programs};

use crate::import::{ImportTarget, owned};

/// Behaviour of a program with the settings of its areas.
struct RivalHabit {
    /// Its name in `rules::competing_tuners`.
    name: &'static str,
    /// Text on when it sets them.
    does: &'static str,
    /// Remedy to make it leave them alone.
    instead: &'static str,
    /// Paths in its areas that it does not set.
    spares: &'static [&'static str],
}

/// Behaviours by each program's documentation; a program without one sets all its areas.
const HABITS: &[RivalHabit] = &[
    RivalHabit {
        name: "tuned",
        does: "sets it when its profile is activated",
        instead: "set it in tuned's profile (`onbeat tune import` shows its settings), or stop tuned",
        spares: &[],
    },
    RivalHabit {
        name: "irqbalance",
        // irqbalance(1): every ten seconds, and not the default mask.
        does: "moves interrupts every 10 s, except banned interrupts and CPUs",
        instead: "set the CPUs as IRQBALANCE_BANNED_CPULIST, or stop it",
        spares: &["/proc/irq/default_smp_affinity"],
    },
    RivalHabit {
        name: "tlp",
        does: "sets it at boot and when the power supply changes",
        instead: "set it in /etc/tlp.conf, or disable tlp.service",
        spares: &[],
    },
    RivalHabit {
        name: "power-profiles-daemon",
        does: "sets it when its profile changes",
        instead: "powerprofilesctl set performance, or stop it",
        spares: &[],
    },
    RivalHabit {
        name: "auto-cpufreq",
        does: "sets it every few seconds",
        instead: "set it in /etc/auto-cpufreq.conf, or stop it",
        spares: &[],
    },
];

/// Programs that start containers and virtual machines, with the groups that they write to.
const MANAGERS: &[(&str, &[&str])] = &[
    ("containerd", &["docker", "kubepods", "system.slice/containerd", "system.slice/docker-"]),
    ("crio", &["kubepods", "crio"]),
    ("dockerd", &["docker", "system.slice/docker-"]),
    ("incusd", &["incus", "lxc"]),
    ("kubelet", &["kubepods"]),
    ("libvirtd", &["machine.slice", "machine"]),
    ("lxd", &["lxc", "lxd"]),
    ("virtqemud", &["machine.slice", "machine"]),
];

const MANAGER_PROGRAMS: &[&str] =
    &["containerd", "crio", "dockerd", "incusd", "kubelet", "libvirtd", "lxd", "virtqemud"];

/// Program that sets a key, when it does, and the remedy.
struct Owner {
    name: String,
    does: String,
    instead: String,
}

/// Omits settings of running programs, unless they are to be taken over. For tuned these are the
/// settings of its active profile, if that is readable.
pub fn leave_out(survey: &Survey, machine: &MachineFiles, plan: &mut PlanDocument, take_over: bool) {
    if take_over {
        return;
    }
    let rivals = Rivals::of(survey, machine);
    // A rule is listed once per program, with the number of its settings.
    let mut left: BTreeMap<(String, String), (u64, Owner, String)> = BTreeMap::new();
    plan.changes.retain(|change| {
        let Some(owner) = rivals.owner_of(&change.setting.key) else { return true };
        let rule = if change.rule.is_empty() { change.setting.key.to_string() } else { change.rule.clone() };
        let key = change.setting.key.to_string();
        left.entry((rule, owner.name.clone())).or_insert((0, owner, key)).0 += 1;
        false
    });
    for ((rule, _), (number, owner, key)) in left {
        let more = match number {
            1 => String::new(),
            _ => format!(" and {} more", number - 1),
        };
        plan.left_out.push(LeftOut {
            rule,
            why: format!("{} runs and owns {key}{more}: it {}", owner.name, owner.does),
            instead: format!("{}; or --take-over", owner.instead),
        });
    }
}

/// Running programs.
struct Rivals {
    tuners: Vec<&'static rules::competing_tuners::Tuner>,
    managers: Vec<&'static str>,
    /// Settings of tuned, if readable.
    profile: Option<crate::import::ProfileKeys>,
}

impl Rivals {
    fn of(survey: &Survey, machine: &MachineFiles) -> Rivals {
        let tuners = active_tuners(survey).found;
        let tuned = tuners.iter().any(|tuner| tuner.name == "tuned");
        let profile = if tuned { owned(ImportTarget { files: machine, survey }) } else { None };
        Rivals { tuners, managers: running_programs(survey, MANAGER_PROGRAMS).found, profile }
    }

    fn owner_of(&self, key: &Key) -> Option<Owner> {
        match key {
            Key::GroupFile(path) | Key::Group(path) => self.manager_of(path),
            _ => self.tuner_of(key, area_of(key)?),
        }
    }

    fn tuner_of(&self, key: &Key, area: TunedArea) -> Option<Owner> {
        let path = key.path();
        let habit = |name: &str| HABITS.iter().find(|habit| habit.name == name);
        let sets = |tuner: &&&rules::competing_tuners::Tuner| match (&self.profile, tuner.name) {
            (Some(profile), "tuned") => profile.keys.contains(key) || profile.areas.contains(&area),
            _ => {
                let spared = habit(tuner.name).is_some_and(|habit| habit.spares.contains(&path.as_str()));
                tuner.areas.contains(&area) && !spared
            }
        };
        let tuner = self.tuners.iter().find(sets)?;
        let known = habit(tuner.name);
        let profile = self.profile.as_ref().filter(|_| tuner.name == "tuned");
        Some(Owner {
            name: match profile {
                Some(profile) => format!("tuned with profile {}", model::text::clean(&profile.name)),
                None => tuner.name.to_owned(),
            },
            does: known.map_or("may change it back", |habit| habit.does).to_owned(),
            instead: known.map_or_else(
                || format!("set it in {}'s configuration, or stop it", tuner.name),
                |habit| habit.instead.to_owned(),
            ),
        })
    }

    fn manager_of(&self, path: &str) -> Option<Owner> {
        let is_its = |places: &&[&str]| places.iter().any(|place| path.starts_with(place));
        let owns = |(name, places): &&(&str, &[&str])| self.managers.contains(name) && is_its(places);
        let (name, _) = MANAGERS.iter().find(owns)?;
        Some(Owner {
            name: (*name).to_owned(),
            does: "writes its groups again with each container or machine that starts".to_owned(),
            instead: format!("configure the CPUs of its containers in {name}'s configuration, or stop it"),
        })
    }
}

/// Area of a key; none if no program controls it.
fn area_of(key: &Key) -> Option<TunedArea> {
    match key {
        Key::Task { .. } => Some(TunedArea::Tasks),
        Key::Hold(_) => Some(TunedArea::Idle),
        _ => area_of_path(&key.path()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::PlannedChange;
    use model::setting::Setting;
    use rules::competing_tuners::TUNERS;
    use rules::fixture::Machine;
    use rules::knobs::ALL;

    const KEYS: &[&str] = &[
        "sysctl:vm.stat_interval",
        "sysctl:kernel.timer_migration",
        "sysfs:devices/system/cpu/cpu1/cpufreq/scaling_governor",
        "sysfs:kernel/rcu_normal",
        "irq:24",
        "irq:default",
        "task:12/34",
        "cgroup:kubepods.slice/cpuset.cpus",
        "cgroup:onbeat/rt/cpuset.cpus",
    ];

    /// Keys that stay, and the reasons for the omitted ones.
    fn after(edits: &str, take_over: bool) -> (Vec<String>, Vec<String>) {
        let mut machine = Machine::base();
        machine.edit(edits);
        let change =
            |key: &&str| PlannedChange::new(Setting::new(key.parse().unwrap(), "1"), "some-rule", "0");
        let mut plan = PlanDocument::new("", KEYS.iter().map(change).collect(), Vec::new());
        let files = MachineFiles::in_memory(machine.answers.clone());
        leave_out(&machine.read(), &files, &mut plan, take_over);
        let keys = plan.changes.iter().map(|change| change.setting.key.to_string()).collect();
        (keys, plan.left_out.into_iter().map(|left| left.why).collect())
    }

    fn without(gone: &[&str]) -> Vec<String> {
        KEYS.iter().filter(|key| !gone.contains(key)).map(ToString::to_string).collect()
    }

    #[test]
    fn each_leaves_out_what_it_sets_and_no_more() {
        assert_eq!(after("", false), (without(&[]), vec![]));
        let (keys, left) = after("program + irqbalance", false);
        assert_eq!(keys, without(&["irq:24"]));
        assert!(left[0].starts_with("irqbalance runs and owns irq:24: it moves interrupts"), "{left:?}");
        let governor = "sysfs:devices/system/cpu/cpu1/cpufreq/scaling_governor";
        assert_eq!(after("program + auto-cpufreq", false).0, without(&[governor]));
        assert_eq!(after("program + power-profiles-", false).0, without(&[governor]));
        assert_eq!(after("program + kubelet", false).0, without(&["cgroup:kubepods.slice/cpuset.cpus"]));
        assert_eq!(after("program + dockerd", false).0, without(&[]));
        assert_eq!(after("program + irqbalance\nprogram + kubelet", true).0, without(&[]));
    }

    #[test]
    fn of_tuned_its_profile_decides() {
        let profile = "program + tuned
            /etc/tuned/active_profile: mine
            /etc/tuned/mine/tuned.conf: [main]
            | include=base
            | [sysctl]
            | kernel.timer_migration=${unknown}
            /usr/lib/tuned/base/tuned.conf: [sysctl]
            | vm.stat_interval=10
            | [net]
            | channels=1";
        let (keys, left) = after(profile, false);
        assert_eq!(keys, without(&["sysctl:vm.stat_interval", "sysctl:kernel.timer_migration"]));
        assert_eq!(left.len(), 1, "{left:?}");
        let says = "tuned with profile mine runs and owns sysctl:vm.stat_interval and 1 more";
        assert!(left[0].starts_with(says), "{left:?}");
        let moving = format!("{profile}\n/usr/lib/tuned/base/tuned.conf: [scheduler]\n| isolated_cores=2");
        assert_eq!(
            after(&moving, false).0,
            without(&["sysctl:kernel.timer_migration", "irq:24", "irq:default", "task:12/34"])
        );
        // An unreadable profile may set anything that tuned can.
        let (keys, _) = after("program + tuned", false);
        assert_eq!(keys, ["sysfs:kernel/rcu_normal", "cgroup:kubepods.slice/cpuset.cpus", KEYS[8]]);
    }

    #[test]
    fn the_programs_are_those_that_the_rules_look_for() {
        for habit in HABITS {
            assert!(TUNERS.iter().any(|tuner| tuner.name == habit.name), "{}", habit.name);
        }
        let managers: Vec<&str> = MANAGERS.iter().map(|(name, _)| *name).collect();
        assert_eq!(managers, MANAGER_PROGRAMS);
        let asked = ALL.iter().find(|knob| knob.id == "container-managers").unwrap().programs;
        assert_eq!(asked, MANAGER_PROGRAMS);
    }
}
