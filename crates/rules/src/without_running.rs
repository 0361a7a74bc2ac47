//! Compares the judgements of a stopped kernel with those of the same kernel while it runs: each
//! machine of the corpus, by its configuration and its command line alone.

#[cfg(test)]
mod tests {
    use crate::audit::{Finding, audit, finding};
    use crate::corpus::tests::{machine, machines};
    use crate::fixture::Machine;
    use crate::intent::{Profile, intent};
    use crate::judgement::AuditVerdict;
    use crate::{find, knobs, survey_request};
    use facts::Fact;
    use facts::boot_texts::BootTexts;
    use facts::cmdline::{Cmdline, parse_cmdline};
    use facts::kconfig_file::read_kconfig_file;
    use facts::survey::{Survey, survey_with};
    use host::MachineFiles;
    use model::keyword::Keyword;
    use model::units::CpuSet;

    fn stopped(texts: &BootTexts) -> Survey {
        survey_with(texts, &MachineFiles::stopped(None), &survey_request())
    }

    fn findings(survey: &Survey, profile: Profile) -> Vec<Finding> {
        audit(survey, &intent(survey, profile, None).unwrap()).findings
    }

    /// Rules about the initial state of a kernel, which programs change later.
    const SET_LATER: [&str; 2] = ["cpufreq-governor", "other-governors"];

    /// Rules that do not apply to guests, or to machines without EFI: a configuration is judged for
    /// a machine that its kernel drives itself.
    const ON_METAL: [&str; 2] = ["efi-runtime", "idle-tick"];

    /// Rules that need more of a machine: the number of its CPUs, the governor.
    const SAYS_MORE: [&str; 2] = ["idle-tick", "skew-tick"];

    /// Parameters that override the built-in default, and the rules about it.
    const BY_WORD: [(&str, &str); 2] = [("nohz", "idle-tick"), ("psi", "pressure-stall-accounting")];

    /// Rules whose decision by the texts differs from that by the machine.
    fn contradictions(running: &Survey, texts: &BootTexts, profile: Profile) -> Vec<(Finding, Finding)> {
        let (alone, whole) = (findings(&stopped(texts), profile), findings(running, profile));
        let differs = alone.into_iter().zip(whole).filter(|(alone, whole)| match alone.verdict {
            AuditVerdict::Pass => whole.verdict == AuditVerdict::Fail,
            AuditVerdict::Fail if SAYS_MORE.contains(&alone.rule) => {
                whole.verdict != AuditVerdict::Fail || !whole.value.starts_with(&alone.value)
            }
            AuditVerdict::Fail => (whole.verdict, &whole.value) != (AuditVerdict::Fail, &alone.value),
            // A text that can be parsed leaves nothing unknown.
            AuditVerdict::Unknown => true,
            AuditVerdict::NotApplicable => false,
        });
        differs.collect()
    }

    fn texts_of(machine: &Survey) -> Option<BootTexts> {
        let kconfig = machine.facts.kconfig.known().cloned()?;
        Some(BootTexts { kconfig: Some(kconfig), cmdline: machine.facts.cmdline.clone() })
    }

    #[test]
    fn texts_alone_say_what_is_said_of_the_running_kernel() {
        let (mut tried, mut wrong) = (0, Vec::new());
        for running in machines().iter().map(|dir| machine(dir).read()) {
            let Some(texts) = texts_of(&running) else { continue };
            tried += 1;
            let kconfig = BootTexts { cmdline: Fact::NotRunning, ..texts.clone() };
            let cmdline = running.facts.cmdline.known();
            let is_by_word = |rule: &str| {
                let has = |name: &str| cmdline.is_some_and(|cmdline| cmdline.has(name));
                BY_WORD.iter().any(|(name, of)| *of == rule && has(name))
            };
            for profile in Profile::ALL {
                wrong.extend(contradictions(&running, &texts, *profile));
                let by_kconfig = contradictions(&running, &kconfig, *profile);
                wrong.extend(by_kconfig.into_iter().filter(|(alone, _)| !is_by_word(alone.rule)));
            }
        }
        wrong.retain(|(alone, whole)| {
            let is_elsewhere = whole.verdict == AuditVerdict::NotApplicable && ON_METAL.contains(&alone.rule);
            !is_elsewhere && !SET_LATER.contains(&alone.rule)
        });
        let wrong: Vec<String> =
            wrong.iter().map(|(alone, whole)| format!("{alone:?}\n  {whole:?}")).collect();
        assert!(tried > 8, "{tried} machines");
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn a_list_of_the_command_line_offloads_callbacks_of_the_next_boot() {
        for (words, expected) in [
            ("quiet", AuditVerdict::Pass),
            ("nohz_full=2-3", AuditVerdict::Fail),
            ("rcu_nocbs=2-3", AuditVerdict::Fail),
        ] {
            let text = "# Linux/x86 6.12.30 Kernel Configuration\nCONFIG_SMP=y\nCONFIG_PREEMPT_RT=y\n\
                        CONFIG_RCU_LAZY=y\nCONFIG_NO_HZ_FULL=y\n";
            let kconfig = read_kconfig_file(text.as_bytes()).unwrap().config;
            let cmdline = Fact::Known(parse_cmdline(words).unwrap());
            let survey = stopped(&BootTexts { kconfig: Some(kconfig), cmdline });
            let all = findings(&survey, Profile::ControlLoop);
            let lazy = all.iter().find(|found| found.rule == "rcu-lazy").unwrap();
            assert_eq!(lazy.verdict, expected, "{words}: {lazy:?}");
        }
    }

    /// Verdicts that the two texts prove need no running kernel.
    #[test]
    fn plain_words_need_no_running_kernel() {
        const KFENCE: &str = "CONFIG_KFENCE=y\nCONFIG_KFENCE_SAMPLE_INTERVAL=100\n";
        const DAMON: &str = "CONFIG_DAMON=y\nCONFIG_DAMON_STAT=y\nCONFIG_DAMON_STAT_ENABLED_DEFAULT=y\n\
                             CONFIG_DAMON_RECLAIM=y\n";
        let text = "# Linux/x86 6.12.30 Kernel Configuration\nCONFIG_SMP=y\nCONFIG_CPU_ISOLATION=y\n\
                    CONFIG_RCU_NOCB_CPU=y\nCONFIG_RPS=y\nCONFIG_PREEMPT_VOLUNTARY=y\n";
        let of = |options: &str, words: &str, rule: &str| {
            let kconfig = read_kconfig_file(format!("{text}{options}").as_bytes()).unwrap().config;
            let cmdline = Fact::Known(parse_cmdline(words).unwrap());
            let survey = stopped(&BootTexts { kconfig: Some(kconfig), cmdline });
            let found = findings(&survey, Profile::ControlLoop);
            let found = found.into_iter().find(|found| found.rule == rule).unwrap();
            let description = if found.value.is_empty() { found.reason } else { found.value };
            format!("{} {description}", found.verdict.name())
        };
        let lists = "isolcpus=managed_irq,domain,2-3 rcu_nocbs=2-3 irqaffinity=0-1";
        for (options, words, rule, expected) in [
            ("", lists, "isolation-lists", "pass isolcpus, rcu_nocbs, irqaffinity agree"),
            ("", lists, "parameter-conflicts", "pass none"),
            (
                "",
                "isolcpus=2-3 irqaffinity=2",
                "isolation-lists",
                "fail irqaffinity= includes the isolated CPU 2",
            ),
            ("", "isolcpus=2-N", "isolation-lists", "not-applicable needs the running kernel"),
            ("", "nohz_full=2-3", "isolation-lists", "fail nohz_full= has no effect without CONFIG_NO_HZ"),
            ("CONFIG_NO_HZ_FULL=y\n", "nohz_full=2-3", "isolation-lists", "pass nohz_full agree"),
            ("CONFIG_NR_CPUS=4\n", "isolcpus=2-5", "isolation-lists", "fail isolcpus= names CPUs 4-5, not"),
            ("", "isolcpus=2 isolcpus=3", "parameter-conflicts", "fail isolcpus=2 overrides isolcpus=3"),
            ("", "isolcpus=2-N", "parameter-conflicts", "not-applicable needs the running kernel"),
            ("CONFIG_PREEMPT_DYNAMIC=y\n", "preempt=full", "unknown-parameters", "pass none known"),
            ("CONFIG_PREEMPT=y\n", "preempt=full", "unknown-parameters", "fail preempt=full"),
            ("CONFIG_PREEMPT_RT=y\n", "preempt=none", "unknown-parameters", "fail preempt=none"),
            ("CONFIG_RCU_LAZY=y\n", "quiet", "rcu-lazy", "pass on, but no CPU offloads its callbacks"),
            ("CONFIG_NO_HZ_COMMON=y\n", "isolcpus=2-3", "idle-tick", "fail it stops"),
            ("CONFIG_NO_HZ_COMMON=y\n", "isolcpus=nohz,2-3", "idle-tick", "not-applicable needs the running"),
            (KFENCE, "quiet", "kfence", "fail every 100 ms"),
            (KFENCE, "kfence.sample_interval=0", "kfence", "pass off"),
            ("", "quiet", "kfence", "not-applicable the kernel has no KFENCE"),
            (DAMON, "quiet", "damon-monitoring", "fail damon_stat"),
            (DAMON, "damon_stat.enabled=N", "damon-monitoring", "pass off"),
            (DAMON, "damon_stat.enabled=N damon_reclaim.enabled=Y", "damon-monitoring", "fail damon_reclaim"),
            ("", "quiet", "damon-monitoring", "pass not built in"),
            ("CONFIG_PREEMPT_RT=y\n", "", "transparent-hugepages", "not-applicable PREEMPT_RT kernels do"),
            ("CONFIG_PREEMPT_RT=y\n", "", "numa-balancing", "not-applicable PREEMPT_RT kernels do"),
        ] {
            let verdict = of(options, words, rule);
            assert!(verdict.starts_with(expected), "{rule} with {options:?} and {words:?}: {verdict}");
        }
        // 7.0 refuses lists that leave no CPU, and which there are is not known.
        let newer = |words: &str| {
            let text = format!("{text}CONFIG_NO_HZ_FULL=y\n").replace("6.12.30", "7.3.4");
            let kconfig = Some(read_kconfig_file(text.as_bytes()).unwrap().config);
            let cmdline = Fact::Known(parse_cmdline(words).unwrap());
            let found = findings(&stopped(&BootTexts { kconfig, cmdline }), Profile::ControlLoop);
            found.iter().find(|found| found.rule == "parameter-conflicts").unwrap().verdict
        };
        assert_eq!(newer("isolcpus=2-3 nohz_full=2-3"), AuditVerdict::Pass);
        assert_eq!(newer("isolcpus=0-1 nohz_full=2-3"), AuditVerdict::NotApplicable);
    }

    /// The line isolates CPUs, and a program may do so later.
    #[test]
    fn a_line_isolates_cpus() {
        for (words, expected) in [
            ("isolcpus=managed_irq,domain,2-3", AuditVerdict::Pass),
            ("isolcpus=managed_irq,2-3", AuditVerdict::NotApplicable),
            ("isolcpus=2-N", AuditVerdict::NotApplicable),
            ("isolcpus=3", AuditVerdict::NotApplicable),
            ("quiet", AuditVerdict::NotApplicable),
        ] {
            let text = "# Linux/x86 6.12.30 Kernel Configuration\nCONFIG_PREEMPT=y\nCONFIG_CPU_ISOLATION=y\n";
            let kconfig = Some(read_kconfig_file(text.as_bytes()).unwrap().config);
            let cmdline = Fact::Known(parse_cmdline(words).unwrap());
            let survey = stopped(&BootTexts { kconfig, cmdline });
            let intent = intent(&survey, Profile::ControlLoop, Some(&CpuSet::parse("2-3").unwrap())).unwrap();
            let found = finding(find("cpu-isolation").unwrap(), &survey, &intent);
            assert_eq!(found.verdict, expected, "{words}: {found:?}");
        }
    }

    #[test]
    fn efi_is_judged_unless_the_boot_loader_shows_another_start() {
        for (is_without_efi, expected) in [(false, AuditVerdict::Fail), (true, AuditVerdict::NotApplicable)] {
            let text = "# Linux/arm64 6.12.30 Kernel Configuration\nCONFIG_EFI=y\nCONFIG_PREEMPT=y\n";
            let kconfig = Some(read_kconfig_file(text.as_bytes()).unwrap().config);
            let cmdline = Fact::Known(Cmdline { is_without_efi, ..parse_cmdline("quiet").unwrap() });
            let found = findings(&stopped(&BootTexts { kconfig, cmdline }), Profile::ControlLoop);
            let efi = found.into_iter().find(|found| found.rule == "efi-runtime").unwrap();
            assert_eq!(efi.verdict, expected, "{efi:?}");
        }
    }

    #[test]
    fn an_option_that_mainline_lacks_takes_patches() {
        let fix = |arch: &str, series: &str, option: &str| {
            let text =
                format!("# Linux/{arch} {series}.1 Kernel Configuration\nCONFIG_PREEMPT=y\n{option}=y\n");
            let kconfig = Some(read_kconfig_file(text.as_bytes()).unwrap().config);
            let survey = stopped(&BootTexts { kconfig, cmdline: Fact::NotRunning });
            let found = findings(&survey, Profile::ControlLoop);
            found.into_iter().find(|found| found.rule == "preemption-model").unwrap().fix
        };
        let plain = "boot a kernel built with CONFIG_PREEMPT_RT";
        assert_eq!(fix("x86", "6.12", "CONFIG_64BIT"), plain);
        assert_eq!(fix("arm", "7.3", "CONFIG_CPU_V7"), plain);
        for (arch, series, option) in [("arm", "6.12", "CONFIG_CPU_V7"), ("x86", "6.1", "CONFIG_64BIT")] {
            let fix = fix(arch, series, option);
            assert!(fix.contains("need the -rt patches"), "{arch} {series}: {fix}");
        }
    }

    /// Failures that the two texts cause are found from them alone.
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
        assert!(missed.is_empty(), "{missed:?}");
    }

    /// A configuration, with its built-in words, decides the rules that the kernel's guide grades.
    #[test]
    fn a_configuration_alone_answers_what_the_kernels_guide_grades() {
        let verdicts = |options: &str| {
            let text = format!(
                "# Linux/x86 6.12.30 Kernel Configuration\nCONFIG_SMP=y\nCONFIG_PREEMPT_RT=y\n\
                 CONFIG_CPU_FREQ=y\nCONFIG_NO_HZ_COMMON=y\n{options}"
            );
            let kconfig = read_kconfig_file(text.as_bytes()).unwrap().config;
            let survey = stopped(&BootTexts { kconfig: Some(kconfig), cmdline: Fact::NotRunning });
            findings(&survey, Profile::ControlLoop)
        };
        let of = |options: &str, rule: &str, expected: &str| {
            let found = verdicts(options).into_iter().find(|found| found.rule == rule).unwrap();
            let verdict_text = format!("{} {}", found.verdict.name(), found.value);
            assert_eq!(verdict_text.trim(), expected, "{rule}: {options}");
        };
        let governor =
            |name: &str| format!("CONFIG_CPU_FREQ_DEFAULT_GOV_{name}=y\nCONFIG_CPU_FREQ_GOV_{name}=y\n");
        of(&governor("SCHEDUTIL"), "cpufreq-governor", "fail schedutil by default");
        of(&governor("SCHEDUTIL"), "other-governors", "fail schedutil built in");
        of(&governor("PERFORMANCE"), "cpufreq-governor", "pass performance by default");
        of(&governor("PERFORMANCE"), "other-governors", "pass none that follows the load");
        of(&governor("POWERSAVE"), "cpufreq-governor", "not-applicable");
        let named = "CONFIG_CMDLINE_BOOL=y\nCONFIG_CMDLINE=\"cpufreq.default_governor=performance\"\n";
        let without =
            format!("{}# CONFIG_CPU_FREQ_GOV_PERFORMANCE is not set\n{named}", governor("SCHEDUTIL"));
        of(&without, "cpufreq-governor", "fail schedutil by default");
        let line = "CONFIG_CMDLINE_BOOL=y\nCONFIG_CMDLINE=\"cpufreq.default_governor=schedutil\"\n";
        let named = governor("PERFORMANCE") + "CONFIG_CPU_FREQ_GOV_SCHEDUTIL=y\n" + line;
        of(&named, "cpufreq-governor", "fail schedutil by default");
        let found = verdicts(&named).into_iter().find(|found| found.rule == "cpufreq-governor").unwrap();
        let by = "cpufreq.default_governor=performance in CONFIG_CMDLINE";
        assert!(found.fix.starts_with("replace ") && found.fix.ends_with(by), "{}", found.fix);
        of("CONFIG_EFI=y\n# CONFIG_EFI_DISABLE_RUNTIME is not set\n", "efi-runtime", "fail on by default");
        of("CONFIG_EFI=y\nCONFIG_EFI_DISABLE_RUNTIME=y\n", "efi-runtime", "pass EFI_DISABLE_RUNTIME");
        of("", "efi-runtime", "not-applicable");
        of("", "idle-tick", "fail it stops");
        of("CONFIG_NO_HZ_COMMON=n\n", "idle-tick", "pass built without NO_HZ");
        // Words of an unknown command line may disable them.
        of("", "mitigations", "not-applicable");
        of("# CONFIG_CPU_MITIGATIONS is not set\n", "mitigations", "fail built without CPU_MITIGATIONS");
        of("", "skew-tick", "not-applicable");
        let line = "CONFIG_CMDLINE=\"skew_tick=1 nohz=off mitigations=off efi=runtime\"\nCONFIG_EFI=y\n";
        let built_in = format!("CONFIG_CMDLINE_BOOL=y\n{line}");
        of(&built_in, "idle-tick", "pass nohz=off");
        of(&built_in, "mitigations", "fail mitigations=off");
        of(&built_in, "skew-tick", "pass skew_tick=1");
        of(&built_in, "efi-runtime", "fail efi=runtime");
        // A default command line, used only without a boot loader's, does not count.
        of(line, "idle-tick", "fail it stops");
    }
}
