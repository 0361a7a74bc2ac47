//! Parts of a remedy that last from boot to boot, and their files.

use std::collections::BTreeSet;

use facts::cmdline::{Cmdline, same_name};
use model::plan::{LeftOut, PlannedChange};
use model::setting::{Key, Setting};
use rules::audit::Finding;
use rules::change::{AdviceReason, Change};
use rules::judgement::AuditVerdict;
use rules::parameters::{has_one_value, other_values};
use rules::remedy::{Alternative, Part};

use super::ExportInput;

/// Value that is written at boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootLine {
    pub rule: String,
    pub why: String,
    pub setting: Setting,
}

/// Word of the kernel's command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CmdlineWord {
    pub rule: String,
    pub why: String,
    pub word: String,
    /// True to add it, false to remove it.
    pub added: bool,
    /// The remark on the remedy, such as its condition; `""` for none.
    pub note: String,
}

/// Option of the kernel's configuration, without `CONFIG_`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelOption {
    pub rule: String,
    pub why: String,
    pub option: String,
    /// `y`, `n`, or a number.
    pub value: String,
}

/// Lasting parts of the remedies of all failing rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lasting {
    /// Sysctls, in the order in which they must be set.
    pub sysctls: Vec<BootLine>,
    /// Files of sysfs and procfs, in that order.
    pub files: Vec<BootLine>,
    pub words: Vec<CmdlineWord>,
    pub options: Vec<KernelOption>,
    pub left_out: Vec<LeftOut>,
}

impl Lasting {
    pub fn of(input: &ExportInput) -> Lasting {
        let mut lasting = Lasting::default();
        let mut unkept: Vec<(&str, String)> = Vec::new();
        let planned: BTreeSet<&Key> = input.plan.changes.iter().map(|change| &change.setting.key).collect();
        let in_force = input.in_force.iter().filter(|change| !planned.contains(&change.setting.key));
        for change in in_force.chain(&input.plan.changes) {
            if let Err(why) = lasting.keep(change) {
                unkept.push((&change.rule, why));
            }
        }
        for finding in &input.audit.findings {
            if finding.verdict == AuditVerdict::Fail && is_asked_for(input, finding) {
                lasting.take(input, finding, &unkept);
            }
        }
        // Values without a failing rule: requested explicitly, or in force.
        for (rule, why) in &unkept {
            let known = |left: &LeftOut| left.rule == *rule;
            let judged = input.audit.findings.iter().any(|found| {
                found.rule == *rule && found.verdict == AuditVerdict::Fail && is_asked_for(input, found)
            });
            if !judged && !lasting.left_out.iter().any(known) {
                let left = LeftOut { rule: (*rule).to_owned(), why: why.clone(), instead: String::new() };
                lasting.left_out.push(left);
            }
        }
        lasting.leave_out_servers(input.booted);
        lasting.keep_a_console(input.booted);
        lasting
    }

    /// Adds a change of a running kernel to its file.
    fn keep(&mut self, change: &PlannedChange) -> Result<(), String> {
        let setting = &change.setting;
        if let Some(why) = not_at_boot(setting) {
            return Err(why.to_owned());
        }
        let line = BootLine { rule: change.rule.clone(), why: change.why.clone(), setting: setting.clone() };
        let is_there = |lines: &[BootLine]| lines.iter().any(|other| other.setting.key == setting.key);
        match setting.key {
            Key::Sysctl(_) if !is_there(&self.sysctls) => self.sysctls.push(line),
            Key::Sysctl(_) => {}
            _ if !is_there(&self.files) => {
                self.precede(&change.rule);
                self.files.push(line);
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds the sysctls that must be set before the files of a rule to tmpfiles.d as well: there is
    /// no order between sysctl.d and tmpfiles.d.
    fn precede(&mut self, rule: &str) {
        let Some(knob) = rules::find(rule) else { return };
        let before: Vec<BootLine> = self
            .sysctls
            .iter()
            .filter(|line| line.rule == rule || knob.after.contains(&line.rule.as_str()))
            .filter(|line| !self.files.iter().any(|other| other.setting.key == line.setting.key))
            .cloned()
            .collect();
        self.files.extend(before);
    }

    /// Adds the lasting parts of a failing rule beyond the files of the running kernel.
    fn take(&mut self, input: &ExportInput, finding: &Finding, unkept: &[(&str, String)]) {
        let named = |line: &&BootLine| is_of(&line.rule, finding.rule);
        let mut is_covered = self.sysctls.iter().chain(&self.files).any(|line| named(&line));
        // Their words are for the rule's own value.
        let with_value =
            input.request.rules.iter().any(|request| request.rule == finding.rule && request.value.is_some());
        let mut missing = None;
        for part in finding.remedy.parts.iter().filter(|_| !with_value) {
            match lasting_way(part, &self.sysctls, &self.files) {
                Some(way) => {
                    self.take_way(input.booted, finding, way);
                    is_covered = true;
                }
                None => missing = missing.or_else(|| part.alternatives.first()),
            }
        }
        let unplanned = input.plan.left_out.iter().find(|left| left.rule == finding.rule);
        let why = match (missing, unkept.iter().find(|(rule, _)| *rule == finding.rule)) {
            (_, Some((_, why))) if missing.is_some() || !is_covered => why.clone(),
            (Some(way), _) if why_not(way).is_some() => why_not(way).unwrap_or_default().to_owned(),
            (None, _) if is_covered => return,
            _ => unplanned.map_or_else(
                || "the remedy depends on the machine and is not a setting".to_owned(),
                |left| left.why.clone(),
            ),
        };
        let why = if is_covered { format!("only in part: {why}") } else { why };
        let left = LeftOut { rule: finding.rule.to_owned(), why, instead: finding.fix.clone() };
        self.left_out.push(left);
    }

    /// Adds the words and options of one alternative; shares lines with other rules.
    fn take_way(&mut self, booted: &Cmdline, finding: &Finding, way: &Alternative) {
        let paths: BTreeSet<String> =
            way.changes.iter().flat_map(Change::writes).map(|(path, _)| path).collect();
        for line in self.sysctls.iter_mut().chain(&mut self.files) {
            if paths.contains(&line.setting.key.path()) {
                share(&mut line.rule, finding.rule);
                line.why = with_note(std::mem::take(&mut line.why), &way.note);
            }
        }
        // A line of sysctl.d keeps the value that one of these words would keep as well.
        let is_kept = !way.changes.is_empty() && way.changes.iter().all(|change| self.is_in_sysctl_d(change));
        // Any one of the words keeps the value; words to remove must go in any case.
        let mut is_covered = is_kept;
        let persist = way.persist.iter().filter(|change| match change {
            Change::CmdlineAdd { .. } => !std::mem::replace(&mut is_covered, true),
            _ => true,
        });
        for change in way.changes.iter().chain(persist) {
            match change {
                Change::CmdlineAdd { word } => self.add_word(booted, finding, word, &way.note),
                Change::CmdlineRemove { word } => {
                    let written = rules::parameters::as_written(booted, word);
                    written.iter().for_each(|word| self.remove_word(finding, word, &way.note));
                }
                Change::Kconfig { option, value } => self.set_option(finding, option, value, &way.note),
                _ => {}
            }
        }
    }

    fn is_in_sysctl_d(&self, change: &Change) -> bool {
        let writes = change.writes();
        let is_there = |path: &str| {
            Key::of_path(path).is_some_and(|key| self.sysctls.iter().any(|line| line.setting.key == key))
        };
        !writes.is_empty() && writes.iter().all(|(path, _)| is_there(path))
    }

    fn add_word(&mut self, booted: &Cmdline, finding: &Finding, word: &str, note: &str) {
        let name = name_of(word);
        // Of these the kernel uses the first, and refuses the second.
        let one_value = has_one_value(name) || matches!(name, "isolcpus" | "nohz_full");
        let mut same =
            self.words.iter_mut().filter(|other| other.added && same_name(name_of(&other.word), name));
        match same.find(|other| other.word == word || one_value) {
            Some(other) if other.word == word => share(&mut other.rule, finding.rule),
            Some(other) => {
                let why = format!("it asks for {word}, and {} for {}", other.rule, other.word);
                self.left_out.push(undecided(finding, why));
            }
            None => {
                other_values(booted, word).iter().for_each(|other| self.remove_word(finding, other, ""));
                self.words.push(of_finding(finding, word, true, note));
            }
        }
    }

    fn remove_word(&mut self, finding: &Finding, word: &str, note: &str) {
        match self.words.iter_mut().find(|other| !other.added && other.word == word) {
            Some(other) => share(&mut other.rule, finding.rule),
            None => self.words.push(of_finding(finding, word, false, note)),
        }
    }

    fn set_option(&mut self, finding: &Finding, option: &str, value: &str, note: &str) {
        match self.options.iter_mut().find(|other| other.option == option) {
            Some(other) if other.value == value => share(&mut other.rule, finding.rule),
            Some(other) => {
                let theirs = &other.value;
                let why = format!("it asks for CONFIG_{option}={value}, and {} for {theirs}", other.rule);
                self.left_out.push(undecided(finding, why));
            }
            None => self.options.push(KernelOption {
                rule: finding.rule.to_owned(),
                why: with_note(finding.reason.clone(), note),
                option: option.to_owned(),
                value: value.to_owned(),
            }),
        }
    }
}

fn of_finding(finding: &Finding, word: &str, added: bool, note: &str) -> CmdlineWord {
    let (rule, why) = (finding.rule.to_owned(), with_note(finding.reason.clone(), note));
    CmdlineWord { rule, why, word: word.to_owned(), added, note: note.to_owned() }
}

fn with_note(why: String, note: &str) -> String {
    if note.is_empty() { why } else { format!("{why}; {note}") }
}

fn undecided(finding: &Finding, why: String) -> LeftOut {
    let instead = "decide which of the two the machine needs".to_owned();
    LeftOut { rule: finding.rule.to_owned(), why, instead }
}

/// Adds a rule to the names of those that request the same.
fn share(rules: &mut String, rule: &str) {
    if !rules.split(", ").any(|other| other == rule) {
        *rules += ", ";
        *rules += rule;
    }
}

/// True if a rule is among those names.
pub(super) fn is_of(rules: &str, rule: &str) -> bool {
    rules.split(", ").any(|other| other == rule)
}

fn is_asked_for(input: &ExportInput, finding: &Finding) -> bool {
    let request = input.request;
    let named = request.rules.is_empty() || request.rules.iter().any(|named| named.rule == finding.rule);
    named && !request.without.iter().any(|rule| rule == finding.rule)
}

fn name_of(word: &str) -> &str {
    word.split_once('=').map_or(word, |(name, _)| name)
}

/// First alternative of which every change lasts.
fn lasting_way<'a>(part: &'a Part, sysctls: &[BootLine], files: &[BootLine]) -> Option<&'a Alternative> {
    let lines: BTreeSet<String> = sysctls.iter().chain(files).map(|line| line.setting.key.path()).collect();
    let lasts = |change: &Change| match change {
        Change::CmdlineAdd { .. } | Change::CmdlineRemove { .. } | Change::Kconfig { .. } => true,
        Change::Sysctl { .. } | Change::Write { .. } => {
            let writes = change.writes();
            !writes.is_empty() && writes.iter().all(|(path, _)| lines.contains(path))
        }
        Change::Affinity { .. } | Change::Policy { .. } | Change::Partition { .. } => false,
        Change::Disable { .. } | Change::Advice { .. } => false,
    };
    let is_kept =
        |way: &Alternative| way.persist.iter().any(|change| matches!(change, Change::CmdlineAdd { .. }));
    let runs = |change: &Change| matches!(change, Change::Sysctl { .. } | Change::Write { .. });
    let mut ways = part.alternatives.iter();
    ways.find(|way| way.changes.iter().all(|change| lasts(change) || (runs(change) && is_kept(way))))
}

/// Reason for which no file keeps a setting over a boot.
fn not_at_boot(setting: &Setting) -> Option<&'static str> {
    const PARTITION: &str = "a partition has to be created after each boot: by `onbeat isolate create`, or \
                             from systemd 261 on by CPUSetPartition= in a slice";
    const LATE: &str = "the device appears with its driver, which can be after tmpfiles.d is read";
    const TRACING: &str = "it is off after each boot, unless a program switches it on";
    match &setting.key {
        Key::Irq(_) | Key::IrqEffective(_) => Some("interrupt numbers can change with each boot"),
        Key::Task { .. } => Some("thread numbers change with each boot"),
        Key::Group(_) | Key::GroupFile(_) => Some(PARTITION),
        Key::Hold(_) => Some("it is active as long as a program holds it"),
        Key::Sysfs(file) if TRACES.iter().any(|start| file.starts_with(start)) => Some(TRACING),
        Key::Sysfs(file) if LATE_FILES.iter().any(|start| file.starts_with(start)) => Some(LATE),
        _ if setting.wanted.is_empty() => Some("an empty value has no line in such a file"),
        _ if setting.wanted.contains(['\n', '\0']) => Some("its value has several lines"),
        _ => None,
    }
}

/// Paths below `/sys`.
const TRACES: &[&str] = &["kernel/tracing/", "kernel/debug/tracing/"];
const LATE_FILES: &[&str] = &["class/", "block/", "bus/usb/", "bus/scsi/", "devices/platform/"];

/// Reason for which an alternative without settings does not last.
fn why_not(way: &Alternative) -> Option<&'static str> {
    let of = |change: &Change| match change {
        Change::Disable { .. } => Some("a service is disabled by the service manager, not by a file"),
        Change::Advice { reason, .. } => Some(match reason {
            AdviceReason::Machine => "it is the machine itself, its firmware, or its host",
            AdviceReason::Kernel => "it is another kernel, which the distribution names",
            AdviceReason::Program => "it is the configuration of another program",
            AdviceReason::Threads => "it concerns threads, whose numbers change with each boot",
            AdviceReason::NotNow => "it must not be set in the present state of the machine",
            AdviceReason::Choice => "you have to choose a value first",
        }),
        _ => None,
    };
    way.changes.iter().find_map(of)
}
