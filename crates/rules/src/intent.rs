//! What a machine is for: the profile, and the audited CPUs.

use serde::Serialize;

use super::isolation::isolated_cpus;
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
    /// The host of virtual machines with real-time work inside
    KvmHost,
}

impl Keyword for Profile {
    const ALL: &'static [Profile] =
        &[Profile::ControlLoop, Profile::BusyPoll, Profile::Audio, Profile::Guest, Profile::KvmHost];

    fn name(self) -> &'static str {
        match self {
            Profile::ControlLoop => "control-loop",
            Profile::BusyPoll => "busy-poll",
            Profile::Audio => "audio",
            Profile::Guest => "guest",
            Profile::KvmHost => "kvm-host",
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
            Profile::KvmHost => "The host of virtual machines with real-time work inside",
        }
    }
}

/// What the machine is judged for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intent {
    /// What it is for.
    pub profile: Profile,
    /// The audited CPUs; none where it is not known which CPUs there are.
    pub cpus: CpuSet,
    /// How they were chosen: `--cpus`, `isolated`, or `all`.
    pub chosen: CpuSelection,
}

/// How the audited CPUs were chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuSelection {
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
        Some(asked) if asked.is_empty() => {
            return Err("--cpus is empty: give a list like 2-3".to_owned());
        }
        Some(asked) => {
            let missing = asked.without(&online);
            if !missing.is_empty() && !online.is_empty() {
                return Err(format!("cpu {missing} is not online on this machine: choose among {online}"));
            }
            (asked.clone(), CpuSelection::Asked)
        }
        None => match isolated_cpus(survey) {
            // Where the online CPUs could not be read, the audited ones are unknown either.
            _ if !read => (online, CpuSelection::Unknown),
            Some(isolated) if isolated.is_empty() => (online, CpuSelection::All),
            Some(isolated) => (isolated.and(&online), CpuSelection::Isolated),
            None => (online, CpuSelection::Unknown),
        },
    };
    Ok(Intent { profile, cpus, chosen })
}

#[cfg(test)]
mod tests {
    use crate::fixture::Machine;

    /// The audited CPUs after some edits to the well-set machine, and how they were chosen.
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
        assert!(found.reason.contains("the isolated CPUs 2-3 are offline"), "{}", found.reason);
    }

    #[test]
    fn partitions_count_as_isolated() {
        const NONE: &str = "/sys/devices/system/cpu/isolated:\n\
                            /sys/fs/cgroup/cpuset.cpus.isolated:";
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
        let refused = "/sys/devices/system/cpu/isolated refused\n\
                       /sys/devices/system/cpu/nohz_full refused";
        check(refused, "0-3 Unknown");
        check(&format!("{refused}\n/sys/fs/cgroup/cpuset.cpus.isolated: 3"), "3 Isolated");
    }
}
