//! Load during a measurement: its flags, its start, its samples, its end.

use std::path::Path;

use super::flags::cpu_list;
use crate::measure::integrity::entry;
use ::load::running::{RunningLoads, plan};
use ::load::spec;
use host::work::cpus_beside_partition;
use host::{clock, is_dir};
use model::error::{Failure, Result};
use model::run::Run;
use model::units::CpuSet;
use model::vocabulary::IntegrityKind;

/// Loads that run during the measurement.
#[derive(clap::Args, Debug, Default)]
pub struct LoadFlags {
    /// Load to run during the measurement, like `mem:2x1G,cpu`; `onbeat load` lists them
    #[arg(long = "load", value_name = "SPEC", help_heading = "Load")]
    pub loads: Vec<String>,
    /// CPUs for the loads; by default those that are not measured
    #[arg(long, value_name = "CPUS", help_heading = "Load", requires = "loads")]
    pub load_cpus: Option<String>,
}

impl LoadFlags {
    /// CPUs given for the load.
    pub fn cpus(&self) -> Result<Option<CpuSet>> {
        self.load_cpus.as_deref().map(|text| cpu_list("--load-cpus", text)).transpose()
    }

    /// Starts the loads: by default on those of `permitted` that are not `measured`, or on the CPUs
    /// outside of the partition if this process is in an isolated one.
    pub fn start(&self, permitted: &CpuSet, measured: &CpuSet, runs: &Path) -> Result<Option<RunningLoads>> {
        if self.loads.is_empty() {
            return Ok(None);
        }
        let specs = spec::parse(&self.loads).map_err(|what| Failure::usage(format!("--load: {what}")))?;
        let others = || cpus_beside_partition().unwrap_or_else(|| permitted.clone()).without(measured);
        let cpus = self.cpus()?.unwrap_or_else(others);
        if cpus.is_empty() {
            return Err(Failure::usage(
                "all CPUs are measured, so no CPU is left for the load: give CPUs with --load-cpus, or \
                 measure fewer with -a",
            ));
        }
        RunningLoads::start(plan(specs, &cpus, &existing(runs))?, &cpus).map(Some)
    }
}

/// Folder for the loads' unnamed files: that of the runs, or its nearest existing parent.
pub fn existing(runs: &Path) -> std::path::PathBuf {
    runs.ancestors().find(|folder| is_dir(folder).unwrap_or(false)).unwrap_or(Path::new("/")).to_owned()
}

/// Ends the loads, and adds their results to the run.
pub fn end(loads: Option<RunningLoads>, run: &mut Run) {
    let Some(loads) = loads else { return };
    run.loads = loads.finish(clock::monotonic());
    let idle = run.loads.iter().filter(|load| !load.held);
    run.integrity
        .extend(idle.map(|load| entry(IntegrityKind::Load, None, true, report::load::sentence(load))));
    let late = report::load::kept_off(run);
    run.integrity.extend(late.map(|late| entry(IntegrityKind::Housekeeping, None, false, late.to_string())));
}
