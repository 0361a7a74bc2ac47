//! What is said of a kernel that does not run, held against what is said of the same kernel while
//! it runs: each machine of the corpus, its configuration and command line alone.

#[cfg(test)]
mod tests {
    use crate::audit::{Finding, audit};
    use crate::corpus::tests::{machine, machines};
    use crate::intent::{Profile, intent};
    use crate::judgement::AuditVerdict;
    use crate::survey_request;
    use facts::Fact;
    use facts::boot_texts::BootTexts;
    use facts::survey::{Survey, survey_with};
    use host::MachineFiles;

    fn stopped(texts: &BootTexts) -> Survey {
        survey_with(texts, &MachineFiles::stopped(None), &survey_request())
    }

    fn findings(survey: &Survey) -> Vec<Finding> {
        audit(survey, &intent(survey, Profile::ControlLoop, None).unwrap()).findings
    }

    #[test]
    fn texts_alone_say_what_the_running_kernel_says() {
        let (mut tried, mut wrong) = (0, Vec::new());
        for dir in machines() {
            let running = machine(&dir).read();
            let Fact::Known(config) = &running.facts.kconfig else { continue };
            tried += 1;
            let texts = BootTexts { kconfig: Some(config.clone()), cmdline: running.facts.cmdline.clone() };
            for (alone, whole) in findings(&stopped(&texts)).iter().zip(&findings(&running)) {
                let decided = matches!(alone.verdict, AuditVerdict::Pass | AuditVerdict::Fail);
                if decided && alone.verdict != whole.verdict {
                    wrong.push(format!(
                        "{}: {}: {:?} {} / {:?} {} {}",
                        dir.file_name().unwrap().to_string_lossy(),
                        alone.rule,
                        alone.verdict,
                        alone.value,
                        whole.verdict,
                        whole.value,
                        whole.reason
                    ));
                }
                if alone.verdict == AuditVerdict::Unknown {
                    wrong.push(format!("{} unknown {}", alone.rule, alone.reason));
                }
            }
        }
        assert!(tried > 8, "{tried} machines");
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
