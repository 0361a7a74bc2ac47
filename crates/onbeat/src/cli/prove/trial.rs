//! Trial of an experiment: a run after a switch to each arm, which determines the settling time
//! before the first pair.

use super::arm_switch::ArmSwitch;
use super::folder::keep;
use super::segments::{SegmentEnd, SegmentSetup};
use crate::cli::condition_flags::require_online;
use experiment::settling::{noted, settling_time};
use model::error::Result;
use model::experiment::{ExperimentArm, ExperimentRun, SettleRun};
use study::proving::maxima;

/// Arms in the order of the switches: A is in force before.
const ORDER: [ExperimentArm; 2] = [ExperimentArm::B, ExperimentArm::A];

impl SegmentSetup<'_> {
    /// Measures after a switch to each arm, and fixes the settling time; false if a stop signal
    /// came. An interrupted trial is repeated: the initial state of its second run is unknown.
    pub fn trial(&self, record: &mut ExperimentRun, switch: &mut ArmSwitch) -> Result<bool> {
        switch.be_patient(record.plan.segment_ns);
        let mut trial = Vec::new();
        for arm in ORDER {
            let length = record.plan.settle_trial_ns;
            if !self.switched(switch, arm)? {
                return Ok(false);
            }
            let name = format!("settling-{}", arm.name());
            let doing = format!("settling time, {}", arm.name());
            let run = SettleRun { arm, ..SettleRun::default() };
            trial.push(match self.segment(&record.plan, &name, length, &doing)? {
                SegmentEnd::Stopped => return Ok(false),
                SegmentEnd::Refused(failure) => {
                    require_online(&self.chosen.cpus, &record.plan.load_cpus)?;
                    SettleRun { why: failure.message, ..run }
                }
                SegmentEnd::Measured(measured) if !measured.valid => {
                    require_online(&self.chosen.cpus, &record.plan.load_cpus)?;
                    SettleRun { bundle: measured.bundle, why: measured.why, ..run }
                }
                SegmentEnd::Measured(measured) => {
                    let maxima = maxima(self.folder, &measured.bundle)?;
                    noted(SettleRun { bundle: measured.bundle, ..run }, &maxima)
                }
            });
        }
        record.plan.settle_ns = settling_time(&trial, record.plan.settle_trial_ns);
        record.trial = trial;
        keep(self.folder, record).map(|()| true)
    }
}
