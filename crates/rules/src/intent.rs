//! What a machine is for: the profile, and the CPUs that matter.

use serde::Serialize;

use super::balance;
use facts::Fact;
use facts::survey::Survey;
use model::keyword::Keyword;
use model::units::CpuSet;

/// What the machine is for; the same setting can be right for one and wrong for another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Threads that sleep until their next period or event, and leave the CPU some time
    #[default]
    ControlLoop,
    /// One thread per CPU that never sleeps: packet processing, market data
    BusyPoll,
    /// Sound: periods of milliseconds on a desktop's kernel
    Audio,
    /// Real time inside a virtual machine, whose host is tuned elsewhere
    Guest,
}

impl Keyword for Profile {
    const ALL: &'static [Profile] =
        &[Profile::ControlLoop, Profile::BusyPoll, Profile::Audio, Profile::Guest];

    fn name(self) -> &'static str {
        match self {
            Profile::ControlLoop => "control-loop",
            Profile::BusyPoll => "busy-poll",
            Profile::Audio => "audio",
            Profile::Guest => "guest",
        }
    }

    fn help(self) -> &'static str {
        match self {
            Profile::ControlLoop => {
                "Threads that sleep until their next period or event, and leave the CPU some time"
            }
            Profile::BusyPoll => "One thread per CPU that never sleeps: packet processing, market data",
            Profile::Audio => "Sound: periods of milliseconds on a desktop's kernel",
            Profile::Guest => "Real time inside a virtual machine, whose host is tuned elsewhere",
        }
    }
}

/// What the machine is judged for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intent {
    /// What it is for.
    pub profile: Profile,
    /// The CPUs that matter; none where it is not known which CPUs there are.
    pub cpus: CpuSet,
    /// How they were chosen: `--cpus`, `isolated`, or `all`.
    pub chosen: Chosen,
}

/// How the CPUs that matter were chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chosen {
    /// By the user.
    Asked,
    /// They are those that the machine isolates.
    Isolated,
    /// All that run: none is isolated.
    #[default]
    All,
    /// All that run, because it could not be read which are isolated.
    Unknown,
}

/// Takes the user's CPUs, or else those that the machine isolates, or else all.
pub fn intent(survey: &Survey, profile: Profile, asked: Option<&CpuSet>) -> Result<Intent, String> {
    let online = survey.facts.online.known().cloned().unwrap_or_default();
    let read = survey.facts.online.known().is_some();
    let (cpus, chosen) = match asked {
        Some(asked) if asked.is_empty() => return Err("--cpus is empty: give a list like 2-3".to_owned()),
        Some(asked) => {
            let missing = asked.without(&online);
            if !missing.is_empty() && !online.is_empty() {
                return Err(format!("cpu {missing} is not online on this machine: choose among {online}"));
            }
            (asked.clone(), Chosen::Asked)
        }
        None => match isolated(survey) {
            // Where it could not be read which CPUs run, it is not known which of them matter either.
            _ if !read => (online, Chosen::Unknown),
            Some(isolated) if isolated.is_empty() => (online, Chosen::All),
            Some(isolated) => (isolated.and(&online), Chosen::Isolated),
            None => (online, Chosen::Unknown),
        },
    };
    Ok(Intent { profile, cpus, chosen })
}

/// The CPUs that the machine keeps for something: by `isolcpus=`, `nohz_full=` or a control group.
///
/// None where none is known and one of the three could not be read. A kernel without `nohz_full` has no such file, and
/// a machine need have no control groups; the list of what is isolated is always there.
pub fn isolated(survey: &Survey) -> Option<CpuSet> {
    let facts = &survey.facts;
    let grouped = balance::set_apart(survey);
    let listed = [&facts.isolated, &facts.nohz_full].into_iter().filter_map(|list| list.known());
    let all = listed.fold(grouped, |all, list| all.or(list));
    let read = facts.isolated.known().is_some()
        && matches!(facts.nohz_full, Fact::Known(_) | Fact::Absent)
        && match &survey.groups {
            Fact::Known(groups) => balance::told(groups).is_ok(),
            groups => *groups == Fact::Absent,
        };
    (read || !all.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests {
    use crate::fixture::Machine;

    /// The CPUs that matter after some edits to the well-set machine, and how they were chosen.
    fn check(edits: &str, expected: &str) {
        let mut machine = Machine::base();
        machine.edit(edits);
        let (_, intent) = machine.survey();
        assert_eq!(format!("{} {:?}", intent.cpus, intent.chosen), expected, "{edits}");
    }

    #[test]
    fn isolated_cpus_that_are_offline_are_named() {
        let mut machine = Machine::base();
        machine.edit("/sys/devices/system/cpu/online: 0-1\n/sys/devices/system/cpu/present: 0-3");
        let found = machine.finding(crate::find("cpu-isolation").unwrap());
        assert!(found.why.contains("the isolated CPUs 2-3 are offline"), "{}", found.why);
    }

    #[test]
    fn partitions_count_as_isolated() {
        const NONE: &str = "/sys/devices/system/cpu/isolated:\n/sys/fs/cgroup/cpuset.cpus.isolated:";
        check("", "2-3 Isolated");
        check(NONE, "0-3 All");
        check(&format!("{NONE}\n/sys/fs/cgroup/cpuset.cpus.isolated: 3"), "3 Isolated");
        let partition = "/sys/fs/cgroup/rt.slice/cpuset.cpus: 1,3
                         /sys/fs/cgroup/rt.slice/cpuset.cpus.effective: 1,3
                         /sys/fs/cgroup/rt.slice/cpuset.cpus.partition: isolated";
        check(&format!("{NONE}\n{partition}"), "1,3 Isolated");
        check(&format!("{NONE}\n{partition} invalid (Parent is not a partition root)"), "0-3 All");
        check("/sys/devices/system/cpu/isolated refused", "0-3 Unknown");
        check(&format!("{NONE}\n/sys/devices/system/cpu/nohz_full: x"), "0-3 Unknown");
        check(&format!("{NONE}\n/sys/fs/cgroup/cpuset.cpus.isolated refused"), "0-3 Unknown");
        check(&format!("{NONE}\n/sys/fs/cgroup absent"), "0-3 All");
        let refused = "/sys/devices/system/cpu/isolated refused\n/sys/devices/system/cpu/nohz_full refused";
        check(refused, "0-3 Unknown");
        check(&format!("{refused}\n/sys/fs/cgroup/cpuset.cpus.isolated: 3"), "3 Isolated");
    }
}
