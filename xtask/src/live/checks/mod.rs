//! The checks: a script for the guest, and a judge for its results.

mod answers;
mod captured;
mod disturbance;
mod ending;
mod found;
mod interrupts;
mod measuring;
mod probing;
mod refusals;
mod sources;
mod stall;
mod untouched;
mod watching;

use super::frames::Reply;
use super::judge::CheckResult;
use super::machine::Machine;

/// The judge of a check.
pub type Judge = Box<dyn Fn(&Reply, &Machine) -> CheckResult>;

/// A requirement on a real kernel.
pub struct Check {
    /// Also the name of its script and its folder in the guest.
    pub name: String,
    /// Script of the guest, with the functions of `guest/helpers.sh`.
    pub script: String,
    /// Judge of the results.
    pub judge: Judge,
    /// Kernel modules that its script loads.
    pub modules: &'static [&'static str],
}

impl Check {
    /// A check by its name, script and judge.
    pub fn new(name: &str, script: &str, judge: impl Fn(&Reply, &Machine) -> CheckResult + 'static) -> Check {
        Check { name: name.to_string(), script: script.to_string(), judge: Box::new(judge), modules: &[] }
    }

    /// The same check, for whose script these modules are in `/lab/modules`, in the order of
    /// `/lab/modules.order`; `nvme` is with a disk.
    pub fn with_modules(self, modules: &'static [&'static str]) -> Check {
        Check { modules, ..self }
    }
}

/// The checks of a machine, in the order of their runs: the check of the findings has to be last.
pub fn of(machine: &Machine, all: bool) -> Vec<Check> {
    let mut checks = measuring::checks();
    checks.extend(captured::checks());
    if !machine.measure_only && (all || !machine.brief) {
        checks.extend(stall::checks());
        checks.extend(ending::checks());
        checks.extend(disturbance::checks());
        checks.extend(probing::checks());
        checks.extend(interrupts::checks());
        checks.extend(sources::checks());
        if machine.brief {
            checks.extend(probing::long_checks());
            checks.extend(interrupts::long_checks());
        }
        checks.extend(watching::checks());
        checks.extend(refusals::checks());
        checks.extend(answers::checks());
        checks.extend(untouched::checks(all));
    }
    checks.extend(found::checks());
    checks
}

#[cfg(test)]
mod tests {
    use super::super::machine::MACHINES;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_fit_a_file_name() {
        let checks = of(&MACHINES[0], false);
        let names: BTreeSet<&str> = checks.iter().map(|check| check.name.as_str()).collect();
        assert_eq!(names.len(), checks.len());
        let fits = |name: &str| {
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        };
        assert!(names.iter().all(|name| fits(name)));
    }

    #[test]
    fn a_landing_boots_one_machine_whole_and_one_in_brief() {
        let count = |machine: &Machine, all| of(machine, all).len();
        let (whole, brief): (Vec<&Machine>, Vec<&Machine>) =
            MACHINES.iter().filter(|machine| machine.first || machine.brief).partition(|m| m.first);
        assert_eq!((whole.len(), brief.len()), (1, 1));
        assert_eq!(count(whole[0], false), count(whole[0], true));
        assert!(count(brief[0], false) * 2 < count(brief[0], true));
    }

    #[test]
    fn no_judge_is_content_with_silence() {
        for machine in MACHINES {
            for check in of(machine, true) {
                assert!((check.judge)(&Reply::default(), machine).is_err(), "{} accepts nothing", check.name);
            }
        }
    }
}
