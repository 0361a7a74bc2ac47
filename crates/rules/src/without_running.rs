//! Compares the answers for a kernel that does not run with those for the same kernel while it
//! runs: each machine of the corpus, by its configuration and its command line alone.

#[cfg(test)]
mod tests {
    use crate::audit::{Finding, audit, finding};
    use crate::corpus::tests::{machine, machines};
    use crate::fixture::Machine;
    use crate::intent::{Profile, intent};
    use crate::judgement::AuditVerdict;
    use crate::{knobs, survey_request};
    use facts::Fact;
    use facts::boot_texts::BootTexts;
    use facts::survey::{Survey, survey_with};
    use host::MachineFiles;
    use model::keyword::Keyword;

    fn stopped(texts: &BootTexts) -> Survey {
        survey_with(texts, &MachineFiles::stopped(None), &survey_request())
    }

    fn findings(survey: &Survey, profile: Profile) -> Vec<Finding> {
        audit(survey, &intent(survey, profile, None).unwrap()).findings
    }

    /// The rules that decide by the texts what they decide otherwise of the machine.
    fn contradictions(running: &Survey, texts: &BootTexts, profile: Profile) -> Vec<String> {
        let (alone, whole) = (findings(&stopped(texts), profile), findings(running, profile));
        let differs = alone.iter().zip(&whole).filter(|(alone, whole)| match alone.verdict {
            AuditVerdict::Pass => whole.verdict == AuditVerdict::Fail,
            AuditVerdict::Fail => (whole.verdict, &whole.value) != (AuditVerdict::Fail, &alone.value),
            // A text that is understood leaves nothing unknown.
            AuditVerdict::Unknown => true,
            AuditVerdict::NotApplicable => false,
        });
        differs.map(|(alone, whole)| format!("{alone:?}\n  {whole:?}")).collect()
    }

    fn texts_of(machine: &Survey) -> Option<BootTexts> {
        let kconfig = machine.facts.kconfig.known().cloned()?;
        Some(BootTexts { kconfig: Some(kconfig), cmdline: machine.facts.cmdline.clone() })
    }

    #[test]
    fn texts_alone_say_what_is_said_of_the_running_kernel() {
        let (mut tried, mut as_built, mut wrong) = (0, 0, Vec::new());
        for running in machines().iter().map(|dir| machine(dir).read()) {
            let Some(texts) = texts_of(&running) else { continue };
            tried += 1;
            let kconfig = BootTexts { cmdline: Fact::NotRunning, ..texts.clone() };
            // A parameter leads away from what was built.
            let is_as_built = running.facts.cmdline.known().is_some_and(|cmdline| !cmdline.has("psi"));
            as_built += usize::from(is_as_built);
            for profile in Profile::ALL {
                wrong.extend(contradictions(&running, &texts, *profile));
                if is_as_built {
                    wrong.extend(contradictions(&running, &kconfig, *profile));
                }
            }
        }
        assert!(tried > 8 && as_built > 4, "{tried} machines, {as_built} as built");
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Failures that the two texts cause are found by them alone.
    #[test]
    fn what_a_text_makes_fail_fails_without_a_running_kernel() {
        let (mut tried, mut missed) = (0, Vec::new());
        for knob in knobs::ALL {
            let mut lines = knob.examples.fires.lines().map(str::trim);
            if !lines.all(|line| line.starts_with("CONFIG_") || line.starts_with("cmdline ")) {
                continue;
            }
            let mut machine = Machine::base();
            machine.edit(knob.examples.fires);
            machine.edit("--cpus 2-3");
            let survey = stopped(&texts_of(&machine.read()).unwrap());
            let intent = intent(&survey, Profile::ControlLoop, machine.cpus.as_ref()).unwrap();
            let verdict = finding(knob, &survey, &intent).verdict;
            tried += 1;
            if verdict != AuditVerdict::Fail {
                missed.push(knob.id);
            }
        }
        assert!(tried > 8, "{tried} rules");
        // These two need to know which CPUs there are.
        assert_eq!(missed, ["isolation-lists", "skew-tick"]);
    }
}
