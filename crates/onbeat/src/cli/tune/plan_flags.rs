//! Selection of changes: the flags that `plan`, `apply` and `export` share.

use crate::cli::flags::{cpu_list, keyword};
use model::error::Result;
use model::units::named_cpus;
use rules::intent::Profile;
use study::audit::MachineSource;
use study::tuning::{PlannedTuning, plan_tuning};
use tune::plan::{PlanRequest, RuleRequest};

#[derive(clap::Args, Debug, Default)]
pub struct PlanFlags {
    /// Rules to satisfy, optionally with another value; by default all that fail
    #[arg(value_name = "RULE[=VALUE]")]
    rules: Vec<String>,
    /// Purpose of the machine
    #[arg(long, value_name = "NAME", default_value = "control-loop", value_parser = keyword::<Profile>())]
    profile: Profile,
    /// CPUs to tune; by default the isolated CPUs, or all if none is isolated
    #[arg(short = 'a', long, value_name = "LIST")]
    cpus: Option<String>,
    /// Skip a rule; may be given several times
    #[arg(long, value_name = "RULE")]
    without: Vec<String>,
    /// Also change settings that a running tuned, irqbalance or similar service manages
    #[arg(long)]
    take_over: bool,
}

impl PlanFlags {
    /// Plan for the flags; nothing is written.
    pub fn plan(&self, machine: MachineSource) -> Result<PlannedTuning> {
        let request = self.request()?;
        let cpus = self.cpus.as_deref().map(|text| cpu_list("--cpus", text)).transpose()?;
        plan_tuning(machine, self.profile, cpus.as_ref(), &request, self.take_over)
    }

    /// Rules that the plan is to satisfy.
    pub fn request(&self) -> Result<PlanRequest> {
        let rules = self.rules.iter().map(|text| RuleRequest::parse(text)).collect::<Result<_>>()?;
        Ok(PlanRequest { rules, without: self.without.clone() })
    }
}

/// Description of a plan's CPUs and profile.
pub fn about(planned: &PlannedTuning) -> String {
    let cpus = planned.intent.cpus.to_string();
    let cpus = if cpus.is_empty() { "unknown CPUs".to_owned() } else { named_cpus(cpus) };
    format!("{cpus} as {}", planned.audit.profile)
}
