//! Purpose of a machine: the profile, and the audited CPUs.

use serde::Serialize;

use super::isolation::isolated_cpus;
use facts::survey::Survey;
use model::keyword::Keyword;
use model::units::CpuSet;

/// Kind of real-time work; a setting can be right for one kind and wrong for another.
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
                "Threads that sleep until their next period or event, and leave CPU time to others"
            }
            Profile::BusyPoll => "One thread per CPU that never sleeps: packet processing, market data",
            Profile::Audio => "Sound: periods of milliseconds on a desktop kernel",
            Profile::Guest => "Real time inside a virtual machine, whose host is tuned elsewhere",
            Profile::KvmHost => "The host of virtual machines with real-time work inside",
        }
    }
}

/// Purpose that a machine is judged for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intent {
    /// Kind of work.
    pub profile: Profile,
    /// The audited CPUs; empty if the CPUs of the machine are not known.
    pub cpus: CpuSet,
    /// Origin of the audited CPUs: `--cpus`, `isolated`, or `all`.
    pub chosen: CpuSelection,
}

/// Origin of the audited CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuSelection {
    /// Requested by the user.
    Asked,
    /// Isolated by the machine.
    Isolated,
    /// All online CPUs: none is isolated.
    #[default]
    All,
    /// All online CPUs, because the isolated ones could not be read.
    Unknown,
}

/// The requested CPUs, else those that the machine isolates, else all.
pub fn intent(survey: &Survey, profile: Profile, asked: Option<&CpuSet>) -> Result<Intent, String> {
    let online = survey.facts.online.known().cloned().unwrap_or_default();
    let read = survey.facts.online.known().is_some();
    let (cpus, chosen) = match asked {
        Some(asked) if asked.is_empty() => {
            return Err("invalid --cpus: expected a list such as 2-3".to_owned());
        }
        Some(asked) => {
            let missing = asked.without(&online);
            if !missing.is_empty() && !online.is_empty() {
                return Err(format!("invalid --cpus: CPU {missing} is not online; choose among {online}"));
            }
            (asked.clone(), CpuSelection::Asked)
        }
        None => match isolated_cpus(survey) {
            // If the online CPUs could not be read, neither are the audited ones known.
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

    /// Checks the audited CPUs after some edits to the well-set machine, and their origin.
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
