//! The kernel's preemption model: decided from several sources, never guessed.
//!
//! Source: `kernel/Kconfig.preempt`, `preempt=` in Documentation/admin-guide/kernel-parameters.txt,
//! and `sched_dynamic_mode()` in `kernel/sched/core.c` for what `debug/sched/preempt` shows.

use super::cmdline::Cmdline;
use super::kconfig::{Kconfig, OptionValue};
use super::line::excerpt;
use super::uname::{Flag, preemption_flag, series};
use model::vocabulary::Preempt;

/// Evidence for a model; `None` for what is not known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence<'a> {
    /// `uname -r`
    pub release: Option<&'a str>,
    /// `uname -v`
    pub version: Option<&'a str>,
    /// `/sys/kernel/realtime`, which exists on PREEMPT_RT only.
    pub realtime: Option<i64>,
    /// [`parse_selected`] of `/sys/kernel/debug/sched/preempt`.
    pub selected: Option<Preempt>,
    pub cmdline: Option<&'a Cmdline>,
    /// The configuration, if it may be this kernel's.
    pub kconfig: Option<&'a Kconfig>,
    /// True if that is the running kernel's `/proc/config.gz`, rather than a file for its release.
    pub own_kconfig: bool,
}

/// Parses `/sys/kernel/debug/sched/preempt`: `none voluntary (full) lazy`, with the current model
/// in parentheses.
///
/// On PREEMPT_RT it offers the rest (full, lazy), so it shows nothing about RT.
pub fn parse_selected(text: &str) -> Result<Preempt, String> {
    let selected = text.split_whitespace().find_map(|word| word.strip_prefix('(')?.strip_suffix(')'));
    selected
        .and_then(model_named)
        .ok_or_else(|| format!("expected (MODEL) among models, found '{}'", excerpt(text)))
}

/// Reason why a configuration cannot be that of the running kernel, whose build string names its
/// preemption flag; none if the two agree or the configuration names no model.
///
/// Another build of the same release installs its file under the same name.
pub fn contradiction(version: &str, config: &Kconfig) -> Option<String> {
    let (flag, model) = (preemption_flag(version), configured(config));
    let dynamic = config.get("PREEMPT_DYNAMIC");
    let agrees = match (flag, model) {
        (_, Preempt::Unknown) => true,
        (Flag::Rt, model) => model == Preempt::Rt,
        (_, Preempt::Rt) => false,
        (Flag::Dynamic, _) => dynamic != OptionValue::No,
        (Flag::Preempt, Preempt::Voluntary | Preempt::None) => dynamic == OptionValue::Yes,
        (Flag::Plain, model) => matches!(model, Preempt::Voluntary | Preempt::None),
        (Flag::Preempt, _) => true,
    };
    let named = match flag {
        Flag::Rt => "PREEMPT_RT",
        Flag::Dynamic => "PREEMPT_DYNAMIC",
        Flag::Preempt => "PREEMPT",
        Flag::Plain => "no PREEMPT flag",
    };
    let model = model.name();
    (!agrees).then(|| {
        format!(
            "it belongs to another build: its model is {model}, but the running kernel's build string \
                 has {named}"
        )
    })
}

/// Judges the evidence; the first source that shows the model decides.
pub fn judge(evidence: &Evidence) -> Preempt {
    weigh(&own(evidence))
}

/// True for PREEMPT_RT, if that is known: also of a kernel whose model is not.
///
/// Each PREEMPT_RT kernel has the flag in its build string, except for patched ones with the lazy
/// model before 6.13, whose flag replaces it.
pub fn is_realtime(evidence: &Evidence) -> Option<bool> {
    let own = own(evidence);
    let silent = |version: &&str| !version.split_whitespace().any(|word| word == "PREEMPT_AUTO");
    match weigh(&own) {
        Preempt::Unknown if contradicts_itself(&own) => None,
        Preempt::Unknown => {
            evidence.version.filter(silent).map(|version| preemption_flag(version) == Flag::Rt)
        }
        model => Some(model == Preempt::Rt),
    }
}

/// The evidence without a configuration that may be another kernel's.
fn own<'a>(evidence: &Evidence<'a>) -> Evidence<'a> {
    // Nothing but the build string ties a file in /boot to the running kernel: any build of the
    // release has that name.
    let is_its = |config: &&Kconfig| match evidence.version {
        Some(version) => contradiction(version, config).is_none(),
        None => evidence.own_kconfig,
    };
    Evidence { kconfig: evidence.kconfig.filter(is_its), ..*evidence }
}

/// True if two sources of the running kernel contradict each other.
fn contradicts_itself(evidence: &Evidence) -> bool {
    let flag = evidence.version.map(preemption_flag);
    let realtime = match (flag, evidence.realtime) {
        // The file exists in patched kernels only.
        (Some(flag), Some(realtime)) => (flag == Flag::Rt) != (realtime == 1),
        _ => false,
    };
    // The file of models exists if one can be chosen, and PREEMPT_RT offers only full and lazy.
    let rt = flag == Some(Flag::Rt) || evidence.realtime == Some(1);
    let selected = match (evidence.selected, flag) {
        (Some(selected), _) if rt => matches!(selected, Preempt::Voluntary | Preempt::None),
        (Some(_), Some(Flag::Plain | Flag::Preempt)) => !was_silently_dynamic(evidence),
        (Some(Preempt::Voluntary | Preempt::None), None) => {
            evidence.kconfig.map(configured) == Some(Preempt::Rt)
        }
        _ => false,
    };
    let configured = evidence.kconfig.map(configured);
    let built = evidence.realtime == Some(1) && configured.is_some_and(|model| model != Preempt::Rt);
    realtime || selected || built
}

/// True from 5.12 to 5.17: such kernels were dynamic already, without a flag in their build string.
fn was_silently_dynamic(evidence: &Evidence) -> bool {
    series_of(evidence).is_some_and(|series| ((5, 12)..(5, 18)).contains(&series))
}

fn weigh(evidence: &Evidence) -> Preempt {
    if contradicts_itself(evidence) {
        return Preempt::Unknown;
    }
    let flag = evidence.version.map(preemption_flag);
    if flag == Some(Flag::Rt) || evidence.realtime == Some(1) {
        return Preempt::Rt;
    }
    let configured = evidence.kconfig.map(configured);
    if let Some(selected) = evidence.selected {
        return match (flag, configured, selected) {
            // On PREEMPT_RT the same file shows full or lazy: without the build string it needs the
            // configuration.
            (None, Some(Preempt::Rt), _) => Preempt::Rt,
            (None, None, Preempt::Full | Preempt::Lazy) => Preempt::Unknown,
            _ => selected,
        };
    }
    // Without the kernel's statement its configuration decides: no parameter switches away from
    // PREEMPT_RT, which can be dynamic too since 6.13.
    if (flag, configured) == (None, Some(Preempt::Rt)) {
        return Preempt::Rt;
    }
    match (is_dynamic(flag, evidence), evidence.cmdline) {
        (Some(true), Some(cmdline)) => chosen_at_boot(cmdline, evidence).or(configured).unwrap_or_default(),
        (Some(true), None) => Preempt::Unknown,
        (Some(false), _) => built_as(flag, configured, evidence),
        // Up to 5.15 a dynamic kernel is full unless `preempt=` selects another model.
        (None, Some(cmdline)) if series_of(evidence) < Some((5, 16)) && !cmdline.has("preempt") => {
            Preempt::Full
        }
        (None, _) => Preempt::Unknown,
    }
}

fn series_of(evidence: &Evidence) -> Option<(u32, u32)> {
    evidence.release.and_then(series)
}

/// True if the model is chosen at boot; any other kernel ignores `preempt=`.
fn is_dynamic(flag: Option<Flag>, evidence: &Evidence) -> Option<bool> {
    let configured = evidence.kconfig.map(|config| config.is_yes("PREEMPT_DYNAMIC"));
    match flag {
        Some(Flag::Dynamic) => Some(true),
        Some(Flag::Preempt) if was_silently_dynamic(evidence) => configured,
        Some(_) => Some(false),
        None => Some(configured.unwrap_or(false)),
    }
}

/// Model of a kernel that is not dynamic.
fn built_as(flag: Option<Flag>, configured: Option<Preempt>, evidence: &Evidence) -> Preempt {
    match (flag, configured) {
        // The build string is the running kernel's own: a configuration that contradicts it belongs
        // to another kernel.
        (Some(Flag::Preempt), Some(model @ (Preempt::Full | Preempt::Lazy))) => model,
        (Some(Flag::Plain), Some(model @ (Preempt::Voluntary | Preempt::None))) => model,
        (None, Some(model)) => model,
        // Since 6.13 the same flag covers the lazy model too.
        (Some(Flag::Preempt), None) if series_of(evidence).is_some_and(|s| s < (6, 13)) => Preempt::Full,
        _ => Preempt::Unknown,
    }
}

/// Model that the kernel was built to start with.
pub(super) fn configured(config: &Kconfig) -> Preempt {
    // The choice names the default even of a dynamic kernel; its `*_BUILD` variants only state what
    // code is included.
    let models = [
        ("PREEMPT_RT", Preempt::Rt),
        ("PREEMPT_RT_FULL", Preempt::Rt), // patched kernels before 5.4
        // Before lazy: patched kernels up to 6.11 have an option of that name that is not a model.
        ("PREEMPT", Preempt::Full),
        ("PREEMPT_LAZY", Preempt::Lazy),
        ("PREEMPT_VOLUNTARY", Preempt::Voluntary),
        ("PREEMPT_NONE", Preempt::None),
    ];
    models.into_iter().find(|(option, _)| config.is_yes(option)).map_or(Preempt::Unknown, |(_, model)| model)
}

/// Model chosen by `preempt=`: the last one that the kernel accepts, since it ignores the others.
fn chosen_at_boot(cmdline: &Cmdline, evidence: &Evidence) -> Option<Preempt> {
    for model in cmdline.values("preempt").rev().filter_map(model_named) {
        match is_offered(model, evidence) {
            Some(true) => return Some(model),
            Some(false) => {}
            None => return Some(Preempt::Unknown),
        }
    }
    None
}

/// True if this kernel accepts the model for `preempt=`.
fn is_offered(model: Preempt, evidence: &Evidence) -> Option<bool> {
    let lazy = evidence.kconfig.map(|config| config.is_yes("ARCH_HAS_PREEMPT_LAZY"));
    let series = series_of(evidence);
    match model {
        Preempt::Lazy => lazy.or(series.map(|s| s >= (6, 13))),
        // Linux 7.0 dropped these two on architectures that have the lazy model.
        Preempt::None | Preempt::Voluntary if series? >= (7, 0) => lazy.map(|lazy| !lazy),
        _ => Some(true),
    }
}

fn model_named(name: &str) -> Option<Preempt> {
    match name {
        "full" => Some(Preempt::Full),
        "lazy" => Some(Preempt::Lazy),
        "voluntary" => Some(Preempt::Voluntary),
        "none" => Some(Preempt::None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{cmdline::parse_cmdline, kconfig::parse_options};
    use super::*;
    use proptest::prelude::*;

    /// Fields of `uname -r | uname -v | debug/sched/preempt | command line | options`; empty ones
    /// are not known.
    fn check(evidence: &str, expected: Preempt) {
        let fields: Vec<&str> = evidence.split('|').map(str::trim).collect();
        let known = |n: usize| fields.get(n).copied().filter(|text| !text.is_empty());
        let cmdline = known(3).map(|text| parse_cmdline(text).unwrap());
        let kconfig = known(4).map(|names| {
            let lines: Vec<String> = names.split(' ').map(|name| format!("CONFIG_{name}=y")).collect();
            parse_options(lines.join("\n")).unwrap()
        });
        let evidence = Evidence {
            release: known(0),
            version: known(1),
            realtime: None,
            selected: known(2).and_then(|text| parse_selected(text).ok()),
            cmdline: cmdline.as_ref(),
            kconfig: kconfig.as_ref(),
            own_kconfig: false,
        };
        assert_eq!(judge(&evidence), expected, "{fields:?}");
    }

    #[test]
    fn rt_is_rt_whatever_else_is_selected() {
        check("6.12.9|#1 SMP PREEMPT_RT Debian|(full) lazy laziest|preempt=full|", Preempt::Rt);
        check("4.19.0-rt|#1 SMP PREEMPT RT Debian|||", Preempt::Rt);
        check("6.12.9||(full) lazy laziest||", Preempt::Unknown);
        check("6.12.9||none (voluntary) full||", Preempt::Voluntary);
        assert_eq!(judge(&Evidence { realtime: Some(1), ..Evidence::default() }), Preempt::Rt);
    }

    #[test]
    fn a_file_in_boot_alone_is_no_evidence_of_the_running_kernel() {
        for options in ["PREEMPT_RT", "PREEMPT", "PREEMPT_VOLUNTARY PREEMPT_DYNAMIC"] {
            check(&format!("6.12.9||||{options}"), Preempt::Unknown);
            check(&format!("6.12.9|||preempt=full|{options}"), Preempt::Unknown);
        }
        check("6.12.9||(full) lazy laziest||PREEMPT_RT PREEMPT_BUILD", Preempt::Unknown);
        // PREEMPT_RT never offers these, so the file in /boot is another build's.
        check("6.12.9||none (voluntary) full||PREEMPT_RT", Preempt::Voluntary);
    }

    #[test]
    fn the_running_kernels_own_configuration_is_evidence() {
        let config = parse_options("CONFIG_PREEMPT_RT=y".to_owned()).unwrap();
        let judged = |selected| {
            judge(&Evidence { kconfig: Some(&config), own_kconfig: true, selected, ..Evidence::default() })
        };
        assert_eq!(judged(None), Preempt::Rt);
        assert_eq!(judged(Some(Preempt::Lazy)), Preempt::Rt);
        assert_eq!(judged(Some(Preempt::Voluntary)), Preempt::Unknown);
    }

    #[test]
    fn a_dynamic_kernel_is_what_was_chosen() {
        check("6.12.9|#1 SMP PREEMPT_DYNAMIC|none voluntary full (lazy)|preempt=none|", Preempt::Lazy);
        check(
            "6.12.9|#1 SMP PREEMPT_DYNAMIC||preempt=none preempt=full preempt=x|PREEMPT_LAZY",
            Preempt::Full,
        );
        check(
            "6.1.0|#1 SMP PREEMPT_DYNAMIC||quiet|PREEMPT_VOLUNTARY PREEMPT_BUILD PREEMPT_DYNAMIC",
            Preempt::Voluntary,
        );
        check("6.1.0|#1 SMP PREEMPT_DYNAMIC|||PREEMPT_VOLUNTARY", Preempt::Unknown);
        check("6.1.0|#1 SMP PREEMPT_DYNAMIC||quiet|", Preempt::Unknown);
        check("|#1 SMP PREEMPT_DYNAMIC||preempt=none|", Preempt::Unknown);
    }

    #[test]
    fn models_that_the_kernel_does_not_offer_are_passed_over() {
        check("7.1.0|#1 SMP PREEMPT_DYNAMIC||preempt=none|", Preempt::Unknown);
        check("7.1.0|#1 SMP PREEMPT_DYNAMIC||preempt=none|PREEMPT ARCH_HAS_PREEMPT_LAZY", Preempt::Full);
        check("7.1.0|#1 SMP PREEMPT_DYNAMIC||preempt=none|PREEMPT", Preempt::None);
        check("6.1.0|#1 SMP PREEMPT_DYNAMIC||preempt=lazy|PREEMPT_VOLUNTARY", Preempt::Voluntary);
        check("6.14.0|#1 SMP PREEMPT_DYNAMIC||preempt=lazy|", Preempt::Lazy);
    }

    #[test]
    fn a_dynamic_kernel_without_a_sign_of_it() {
        check("5.15.0|#1 SMP PREEMPT||quiet|", Preempt::Full);
        check("5.15.0|#1 SMP PREEMPT||preempt=none|", Preempt::Unknown);
        check("5.15.0|#1 SMP PREEMPT||preempt=none|PREEMPT PREEMPT_DYNAMIC", Preempt::None);
        check("5.15.0|#1 SMP PREEMPT||preempt=none|PREEMPT", Preempt::Full);
        check("5.17.0|#1 SMP PREEMPT||quiet|PREEMPT_VOLUNTARY PREEMPT_DYNAMIC", Preempt::Voluntary);
        check("5.17.0|#1 SMP PREEMPT||quiet|", Preempt::Unknown);
    }

    #[test]
    fn a_fixed_kernel_is_what_it_was_built_as() {
        check("5.10.0|#1 SMP PREEMPT Thu||preempt=none|", Preempt::Full);
        check("6.14.0|#1 SMP PREEMPT Thu|||", Preempt::Unknown);
        check("6.14.0|#1 SMP PREEMPT Thu|||PREEMPT_LAZY PREEMPT_BUILD", Preempt::Lazy);
        check("5.15.0|#93-Ubuntu SMP Tue||preempt=full|PREEMPT_VOLUNTARY", Preempt::Voluntary);
        check("5.15.0|#93-Ubuntu SMP Tue|||", Preempt::Unknown);
    }

    #[test]
    fn a_kernel_that_contradicts_itself_is_unknown() {
        let judged = |version, realtime, selected| {
            let release = Some("6.12.9");
            judge(&Evidence { release, version, realtime, selected, ..Evidence::default() })
        };
        let (rt, dynamic, plain) =
            (Some("#1 SMP PREEMPT_RT"), Some("#1 SMP PREEMPT_DYNAMIC"), Some("#1 SMP"));
        assert_eq!(judged(rt, Some(1), Some(Preempt::Lazy)), Preempt::Rt);
        assert_eq!(judged(dynamic, Some(0), Some(Preempt::Full)), Preempt::Full);
        for contradicting in [
            judged(rt, Some(0), None),
            judged(dynamic, Some(1), None),
            judged(plain, Some(1), None),
            judged(rt, None, Some(Preempt::Voluntary)),
            judged(None, Some(1), Some(Preempt::None)),
            judged(plain, None, Some(Preempt::Full)),
            judged(Some("#1 SMP PREEMPT"), None, Some(Preempt::Full)),
        ] {
            assert_eq!(contradicting, Preempt::Unknown);
        }
    }

    #[test]
    fn a_build_string_shows_what_is_not_preempt_rt() {
        let of = |version, realtime| {
            is_realtime(&Evidence { version: Some(version), realtime, ..Evidence::default() })
        };
        for other in
            ["#63-Ubuntu SMP PREEMPT_DYNAMIC Tue", "#150-Ubuntu SMP", "#1 SMP PREEMPT_LAZY", "#1 SMP PREEMPT"]
        {
            assert_eq!(of(other, None), Some(false), "{other}");
            assert_eq!(of(other, Some(1)), None, "{other}");
        }
        assert_eq!(of("#1 SMP PREEMPT_RT", None), Some(true));
        assert_eq!(of("#1 SMP PREEMPT RT", None), Some(true));
        assert_eq!(of("#1 SMP PREEMPT_RT", Some(0)), None);
        assert_eq!(of("#1 SMP PREEMPT_AUTO", None), None);
        assert_eq!(is_realtime(&Evidence::default()), None);
    }

    #[test]
    fn contradictions_stay_unknown() {
        check("6.1.0|#1 SMP Debian|||PREEMPT_RT", Preempt::Unknown);
        // Another build of the same release left its configuration under this one's name.
        check("6.12.9|#1 SMP PREEMPT_DYNAMIC||quiet|PREEMPT_RT PREEMPT_DYNAMIC", Preempt::Unknown);
        check("6.14.0|#1 SMP PREEMPT||quiet|PREEMPT_RT", Preempt::Unknown);
        // Up to 6.12 the flag alone determines the model.
        check("6.12.9|#1 SMP PREEMPT||quiet|PREEMPT_RT", Preempt::Full);
        check("6.12.9|#1 SMP PREEMPT_DYNAMIC||preempt=full|PREEMPT_RT", Preempt::Full);
        check("6.12.9|#1 SMP PREEMPT_DYNAMIC|none (voluntary) full||PREEMPT_RT", Preempt::Voluntary);
        check("6.12.9|#1 SMP PREEMPT_RT|||PREEMPT_VOLUNTARY", Preempt::Rt);
        check("6.14.0|#1 SMP PREEMPT Debian|||PREEMPT_NONE", Preempt::Unknown);
        // Such a configuration belongs to another kernel, and is ignored.
        check("6.1.0|#1 SMP PREEMPT Debian|||PREEMPT_NONE", Preempt::Full);
        check("||||", Preempt::Unknown);
    }

    proptest! {
        #[test]
        fn parser_is_total(text in "[\\PC() ]{0,40}") {
            let _ = parse_selected(&text);
            judge(&Evidence { version: Some(&text), release: Some(&text), ..Evidence::default() });
        }
    }
}
