//! What a machine is for: the profile, and the CPUs that matter.

use serde::Serialize;

use crate::facts::Fact;
use crate::facts::groups::Partition;
use crate::facts::survey::Survey;
use crate::units::CpuSet;

/// What the machine is for; the same setting can be right for one and wrong for another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, clap::ValueEnum)]
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

impl Profile {
    /// The word in flags and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Profile::ControlLoop => "control-loop",
            Profile::BusyPoll => "busy-poll",
            Profile::Audio => "audio",
            Profile::Guest => "guest",
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
            Some(isolated) if isolated.is_empty() => (online, Chosen::All),
            Some(isolated) => (isolated.and(&online), Chosen::Isolated),
            None => (online, Chosen::Unknown),
        },
    };
    Ok(Intent { profile, cpus, chosen })
}

/// The CPUs that the machine keeps for something: by `isolcpus=`, `nohz_full=` or an isolated partition.
///
/// None where neither of the first two could be read; a kernel without `nohz_full` has no such file. Up to 6.18 the
/// list of isolated CPUs does not show partitions.
pub fn isolated(survey: &Survey) -> Option<CpuSet> {
    let lists = [&survey.facts.isolated, &survey.facts.nohz_full];
    let known: Vec<&CpuSet> = lists.into_iter().filter_map(|list| list.known()).collect();
    if known.is_empty() {
        return None;
    }
    let groups = survey.groups.known();
    let listed = groups.and_then(|groups| groups.isolated.known());
    let partitions = groups.into_iter().flat_map(|groups| &groups.groups);
    let partitions = partitions.filter(|group| group.partition == Fact::Known(Partition::Isolated));
    let partitions = partitions.filter_map(|group| group.effective.known());
    Some(known.into_iter().chain(listed).chain(partitions).fold(CpuSet::default(), |all, list| all.or(list)))
}
