//! A machine as a rule sees it: typed access to the facts, and the conditions that rules share.
//!
//! Each accessor returns early with `unknown` if a text was refused, malformed or, unless the rule
//! asks otherwise, absent; with `?` a rule cannot treat missing data as a pass.

use std::cell::{Cell, OnceCell};

use super::intent::{CpuSelection, Intent, Profile};
use super::isolation::isolated_cpus;
use super::judgement::{AuditVerdict, Judged, Judgement, UnknownCause};
use super::releases::is_outside;
use super::unknown::{KCONFIG, unknown_absent, unknown_from};
use facts::boot_texts::built_in_words;
use facts::cmdline::Cmdline;
use facts::kbool::kbool;
use facts::kconfig::Kconfig;
use facts::line::{parse_cpus, parse_i64, parse_line};
use facts::survey::Survey;
use facts::texts::Text;
use facts::uname::series;
use facts::{Fact, Facts};
use model::units::CpuSet;
use model::vocabulary::Preempt;

/// The machine that a rule judges.
pub struct MachineView<'a> {
    pub survey: &'a Survey,
    /// Purpose of the machine.
    pub intent: &'a Intent,
    /// Patterns that the rule declares.
    pub reads: &'static [&'static str],
    /// True if the rule used the audited CPUs.
    asked_cpus: Cell<bool>,
    /// True if the rule used the kernel's configuration.
    asked_kconfig: Cell<bool>,
    /// True if things that only a running kernel has count as absent.
    as_absent: bool,
    /// Words that are built into the kernel.
    built_in: OnceCell<Cmdline>,
}

impl<'a> MachineView<'a> {
    /// A machine for the judge of a rule that reads these patterns.
    pub fn new(survey: &'a Survey, intent: &'a Intent, reads: &'static [&'static str]) -> MachineView<'a> {
        MachineView {
            survey,
            intent,
            reads,
            asked_cpus: Cell::new(false),
            asked_kconfig: Cell::new(false),
            as_absent: false,
            built_in: OnceCell::new(),
        }
    }

    /// The judgement; on a stopped machine, not applicable if only a running kernel decides.
    pub fn judge(&self, judge: fn(&MachineView) -> Judged) -> Judgement {
        let judged = self.judge_known(judge);
        if !self.survey.is_stopped || judged.verdict != AuditVerdict::Unknown {
            return judged;
        }
        self.by_kconfig(judge).unwrap_or_else(|| without_running(judged))
    }

    /// The judgement of a kernel whose configuration alone decides it: one that was built without
    /// an option has none of its files.
    fn by_kconfig(&self, judge: fn(&MachineView) -> Judged) -> Option<Judgement> {
        let view = MachineView { as_absent: true, ..MachineView::new(self.survey, self.intent, self.reads) };
        let judged = view.judge_known(judge);
        (view.asked_kconfig.get() && judged.verdict != AuditVerdict::Unknown).then_some(judged)
    }

    /// The judgement, unless it is about CPUs and none is known: anything is true of no CPUs.
    fn judge_known(&self, judge: fn(&MachineView) -> Judged) -> Judgement {
        let judged = judge(self).unwrap_or_else(|early| early);
        let decided = matches!(judged.verdict, AuditVerdict::Pass | AuditVerdict::Fail);
        if decided && self.asked_cpus.get() && self.intent.cpus.is_empty() { self.no_cpus() } else { judged }
    }

    /// Facts that every run reads.
    pub fn facts(&self) -> &'a Facts {
        &self.survey.facts
    }

    /// The audited CPUs: those that `--cpus` names, else the isolated ones, else all.
    pub fn cpus(&self) -> &'a CpuSet {
        self.asked_cpus.set(true);
        &self.intent.cpus
    }

    /// True if the machine has this purpose.
    pub fn has_profile(&self, profile: Profile) -> bool {
        self.intent.profile == profile
    }

    /// Texts of a pattern that the rule declares; empty if there are none.
    pub fn texts(&self, pattern: &str) -> Result<&'a [Text], Judgement> {
        debug_assert!(self.reads.contains(&pattern), "{pattern} is not among what the rule reads");
        match self.survey.texts.all(pattern) {
            Fact::Known(texts) => Ok(texts),
            Fact::Absent => Ok(&[]),
            Fact::NotRunning if self.as_absent => Ok(&[]),
            other => Err(unknown_from(pattern, &other)),
        }
    }

    /// False if a capture lacks the texts of this pattern, because no rule read it then.
    pub fn is_captured(&self, pattern: &str) -> bool {
        match self.survey.texts.all(pattern) {
            Fact::NotCaptured => false,
            Fact::Known(texts) => texts.iter().all(|text| text.content != Fact::NotCaptured),
            _ => true,
        }
    }

    /// Each text of a pattern through a parser, with the matches of the wildcards; empty if there
    /// are none.
    ///
    /// One text that cannot be read or parsed makes the result unknown.
    pub fn each<T>(
        &self,
        pattern: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<(&'a [String], T)>, Judgement> {
        let one = |text: &'a Text| {
            let value = text.content.clone().parse(|content| parse(&content));
            match value {
                Fact::Known(value) => Ok((text.names.as_slice(), value)),
                other => Err(unknown_from(&text.path, &other)),
            }
        };
        self.texts(pattern)?.iter().map(one).collect()
    }

    /// A text through a parser; none if it is absent.
    pub fn parsed<T>(
        &self,
        path: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Judgement> {
        debug_assert!(self.reads.contains(&path), "{path} is not among what the rule reads");
        match self.survey.texts.one(path).parse(parse) {
            Fact::Known(value) => Ok(Some(value)),
            Fact::Absent => Ok(None),
            Fact::NotRunning if self.as_absent => Ok(None),
            other => Err(unknown_from(path, &other)),
        }
    }

    /// A file of one number; none if it is absent.
    pub fn number_if_present(&self, path: &str) -> Result<Option<i64>, Judgement> {
        self.parsed(path, parse_i64)
    }

    /// A file of one number; unknown if it is absent.
    pub fn number(&self, path: &str) -> Result<i64, Judgement> {
        self.number_if_present(path)?.ok_or_else(|| unknown_absent(path))
    }

    /// A file of one number that only kernels built with an option have; if the option is off, not
    /// applicable for the reason `without`.
    pub fn number_with_option(&self, path: &str, option: &str, without: &str) -> Result<i64, Judgement> {
        match self.number_if_present(path)? {
            Some(number) => Ok(number),
            None if self.shows_by_absence() && self.survey.texts.has_neighbour(path) => {
                Err(Judgement::not_applicable(without))
            }
            None if self.kconfig()?.is_yes(option) => Err(unknown_absent(path)),
            None => Err(Judgement::not_applicable(without)),
        }
    }

    /// A file of one line; none if it is absent.
    pub fn line_if_present(&self, path: &str) -> Result<Option<String>, Judgement> {
        self.parsed(path, parse_line)
    }

    /// A file of one line; unknown if it is absent.
    pub fn line(&self, path: &str) -> Result<String, Judgement> {
        self.line_if_present(path)?.ok_or_else(|| unknown_absent(path))
    }

    /// A file with a list of CPUs; none if it is absent.
    pub fn cpu_list_if_present(&self, path: &str) -> Result<Option<CpuSet>, Judgement> {
        self.parsed(path, parse_cpus)
    }

    /// A known fact, or the unknown judgement; `what` names it with its path.
    pub fn known<T>(&self, fact: &'a Fact<T>, what: &str) -> Result<&'a T, Judgement> {
        match fact {
            Fact::Known(value) => Ok(value),
            Fact::Absent => Err(unknown_absent(what)),
            other => Err(unknown_from(what, other)),
        }
    }

    /// The kernel's command line.
    pub fn cmdline(&self) -> Result<&'a Cmdline, Judgement> {
        self.known(&self.facts().cmdline, "/proc/cmdline")
    }

    /// The command line for a default that a parameter may override: for a configuration alone, the
    /// words that are built in.
    pub fn cmdline_or_built_in(&self) -> Result<&Cmdline, Judgement> {
        let config = || self.facts().kconfig.known().map(built_in_words).unwrap_or_default();
        match self.facts().cmdline {
            Fact::NotRunning => Ok(self.built_in.get_or_init(config)),
            _ => self.cmdline(),
        }
    }

    /// The CPUs of `nohz_full=`; none of a kernel without the option.
    pub fn nohz_full(&self) -> Result<Option<&'a CpuSet>, Judgement> {
        const LIST: &str = "/sys/devices/system/cpu/nohz_full";
        let has_option = || self.facts().kconfig.known().is_some_and(|config| config.is_yes("NO_HZ_FULL"));
        match &self.facts().nohz_full {
            Fact::Absent if has_option() => Err(unknown_absent(LIST)),
            Fact::Absent => Ok(None),
            list => self.known(list, LIST).map(Some),
        }
    }

    pub fn kconfig(&self) -> Result<&'a Kconfig, Judgement> {
        self.asked_kconfig.set(true);
        let config = &self.facts().kconfig;
        match config {
            Fact::Absent => Err(Judgement::unknown(
                "the kernel's configuration was not found: put it at /boot/config-RELEASE, or build with \
                 CONFIG_IKCONFIG_PROC",
            )),
            config => self.known(config, KCONFIG),
        }
    }

    /// True for PREEMPT_RT, which leaves some features out of what is built; the configuration
    /// shows it of a stopped kernel.
    pub fn is_built_for_rt(&self) -> bool {
        let is_rt = self.facts().preempt == Preempt::Rt;
        self.asked_kconfig.set(self.asked_kconfig.get() || is_rt);
        is_rt
    }

    /// Series of the kernel: (6, 12).
    pub fn series(&self) -> Result<(u32, u32), Judgement> {
        let release = self.known(&self.facts().release, "/proc/sys/kernel/osrelease")?;
        series(release).ok_or_else(|| {
            Judgement::unknown(format!(
                "the kernel release {release} does not name \
                                                                  a series"
            ))
        })
    }

    /// False if this release does not know a word of the command line, which then has no effect.
    pub fn may_know(&self, word: &str) -> bool {
        !self.series().is_ok_and(|(major, minor)| is_outside(&word.replace('-', "_"), major, minor))
    }

    /// A boolean value of the command line in this release; none if the kernel refuses it.
    pub fn truth(&self, value: &str) -> Option<bool> {
        kbool(value, self.series().ok())
    }

    /// True if a missing file of a running kernel shows that it was built without the feature,
    /// although no configuration can be read: all of /proc is visible, as its release shows.
    pub fn shows_by_absence(&self) -> bool {
        !self.survey.is_stopped && self.kconfig().is_err() && self.series().is_ok()
    }

    /// Returns early unless some CPUs are to be isolated from other work.
    pub fn require_isolation(&self) -> Result<(), Judgement> {
        // The CPUs of a machine that is not running are not known.
        if self.survey.is_stopped {
            return if self.cpus().is_empty() {
                Err(Judgement::unknown("needs the isolated CPUs: name them with --cpus LIST")
                    .cause(UnknownCause::NotRunning))
            } else {
                Ok(())
            };
        }
        let online = self.known(&self.facts().online, "/sys/devices/system/cpu/online")?;
        match self.intent.chosen {
            CpuSelection::Unknown => Err(Judgement::unknown(
                "which CPUs are isolated could not be read: name the audited CPUs with --cpus",
            )),
            _ if self.cpus().is_empty() => Err(self.no_cpus()),
            _ if online.without(self.cpus()).is_empty() => Err(Judgement::not_applicable(
                "no CPU is isolated: name the audited CPUs with --cpus, if any",
            )),
            _ => Ok(()),
        }
    }

    /// Online CPUs that are neither audited nor isolated: the remaining work of the machine runs
    /// there.
    pub fn housekeeping_cpus(&self) -> Result<CpuSet, Judgement> {
        let online = self.known(&self.facts().online, "/sys/devices/system/cpu/online")?;
        let others = online.without(self.cpus());
        let free = others.without(&isolated_cpus(self.survey).unwrap_or_default());
        Ok(if free.is_empty() { others } else { free })
    }

    /// Returns early unless the machine is x86.
    pub fn require_x86(&self) -> Result<(), Judgement> {
        let machine = self.known(&self.facts().machine, "/proc/sys/kernel/arch")?;
        match machine.as_str() {
            "x86_64" | "i386" | "i486" | "i586" | "i686" => Ok(()),
            other => Err(Judgement::not_applicable(format!("x86 only; this machine is {other}"))),
        }
    }

    /// The unknown judgement for an audit without CPUs.
    fn no_cpus(&self) -> Judgement {
        let isolated = isolated_cpus(self.survey).filter(|_| self.intent.chosen == CpuSelection::Isolated);
        let why = match isolated {
            Some(cpus) => format!("the isolated CPUs {cpus} are offline"),
            None => "the online CPUs could not be read from /sys/devices/system/cpu/online".to_owned(),
        };
        Judgement::unknown(format!("{why}: name the audited CPUs with --cpus"))
    }

    /// True for a virtual machine; unknown if nothing shows it.
    pub fn is_virtual(&self) -> Result<bool, Judgement> {
        match self.facts().virtualization.as_str() {
            // A configuration is judged for the machine that its kernel drives itself.
            "" if self.as_absent && !self.has_profile(Profile::Guest) => Ok(false),
            "" => Err(Judgement::unknown("it is not known whether this is a virtual machine")),
            name => Ok(name != "none"),
        }
    }
}

/// The judgement without a running kernel: not applicable if only such a kernel could decide; a
/// malformed text stays unknown.
fn without_running(judged: Judgement) -> Judgement {
    match (judged.verdict, judged.cause) {
        (AuditVerdict::Unknown, UnknownCause::NotRunning | UnknownCause::NotGiven) => {
            Judgement::not_applicable(judged.reason)
        }
        (AuditVerdict::Unknown, UnknownCause::Undecided) => {
            Judgement::not_applicable(format!("needs the running kernel: {}", judged.reason))
        }
        _ => judged,
    }
}
