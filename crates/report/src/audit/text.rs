//! Audit as text: the failed rules, worst first, then the unknown ones, then the count.

use std::fmt::Write;

use super::gains::{HuntGains, failing};
use super::order::worst_first;
use crate::palette::{BOLD, Palette, RED, YELLOW};
use crate::words::{clean, filled, several, wrapped};
use model::keyword::Keyword;
use model::plan::CopyBlock;
use model::units::named_cpus;
use rules::audit::{Audit, Finding, JudgedTexts};
use rules::intent::CpuSelection;
use rules::judgement::{AuditVerdict, Severity};

/// Audit as text of up to this number of columns, with ANSI colours if `color` is set; `verbose`
/// adds rules that pass or do not apply, and the details of minor failures.
pub fn render(audit: &Audit, gains: Option<&HuntGains>, width: usize, color: bool, verbose: bool) -> String {
    let palette = Palette(color);
    let mut page = String::new();
    wrapped(&mut page, &conditions(audit), width);
    if let Some(gains) = gains {
        wrapped(&mut page, &gains.sentence(audit), width);
    }
    let gain = |found: &Finding| gains.and_then(|gains| gains.of_rule(found.rule)).unwrap_or_default();
    let (grave, slight): (Vec<_>, Vec<_>) = failing(audit, gains)
        .into_iter()
        .partition(|found| verbose || found.severity >= Severity::Medium || !gain(found).is_empty());
    for found in grave {
        let style = if found.severity >= Severity::High { RED } else { YELLOW };
        let severity = palette.paint(style, &format!("{:<6}", found.severity.name()));
        let _ = write!(page, "\n{severity}  {}\n", palette.paint(BOLD, found.rule));
        fields(&mut page, found, &gain(found), width);
    }
    if !slight.is_empty() {
        let _ = writeln!(page, "\n{}", palette.paint(BOLD, "less severe (details: -v)"));
    }
    in_a_line(&mut page, slight, width);
    let unknown = worst_first(audit, AuditVerdict::Unknown);
    if !unknown.is_empty() {
        let _ = writeln!(page, "\n{}", palette.paint(BOLD, "unknown"));
        for found in unknown {
            wrapped(
                &mut page,
                &format!("  {} ({}): {}", found.rule, found.severity.name(), clean(&found.reason)),
                width,
            );
        }
    }
    if verbose {
        rest(&mut page, audit, AuditVerdict::Pass, &palette.paint(BOLD, "passing rules"), width);
        rest(&mut page, audit, AuditVerdict::NotApplicable, &palette.paint(BOLD, "does not apply"), width);
    }
    page
}

/// Each failed rule in a line, the worst first, without reasons and remedies.
pub fn brief(audit: &Audit, gains: Option<&HuntGains>, width: usize) -> String {
    let mut page = String::new();
    in_a_line(&mut page, failing(audit, gains), width);
    page
}

fn in_a_line(page: &mut String, failed: Vec<&Finding>, width: usize) {
    for found in failed {
        let text = format!("{}: {}, should be {}", found.rule, clean(&found.value), clean(&found.wanted));
        filled(page, &format!("  {:<6} ", found.severity.name()), &text, 11, width);
    }
}

/// Sentence on the judged machine, the profile and the CPUs.
pub fn conditions(audit: &Audit) -> String {
    if let Some(texts) = &audit.texts {
        return without_running(audit, texts);
    }
    let host = &audit.host;
    let or = |text: &str, otherwise: &str| if text.is_empty() { otherwise.to_owned() } else { clean(text) };
    let machine = match host.virtualization.as_str() {
        "" => "virtualization unknown".to_owned(),
        "none" => "on bare metal".to_owned(),
        name => format!("in a virtual machine ({})", clean(name)),
    };
    let chosen = match audit.chosen {
        CpuSelection::Asked => "as requested",
        CpuSelection::Isolated if audit.cpus.is_empty() => {
            "the isolated ones are offline: choose with --cpus"
        }
        CpuSelection::Isolated => "the isolated ones",
        CpuSelection::All => "all online",
        CpuSelection::Unknown if audit.cpus.is_empty() => {
            "the online CPUs could not be read: choose with --cpus"
        }
        CpuSelection::Unknown => "all online, because the isolated CPUs are unknown",
    };
    format!(
        "Linux {} {}, preemption {}, {machine}; judged as {} for {} ({chosen}).",
        or(&host.release, "of unknown release"),
        or(&host.machine, "of unknown architecture"),
        host.preempt,
        audit.profile,
        match (audit.cpus.as_str(), audit.chosen) {
            ("", CpuSelection::Isolated) => "no CPU".to_owned(),
            ("", _) => "unknown CPUs".to_owned(),
            (cpus, _) => named_cpus(clean(cpus)),
        },
    )
}

/// Sentence for judged texts without a running kernel.
fn without_running(audit: &Audit, texts: &JudgedTexts) -> String {
    let host = &audit.host;
    let kconfig = texts.kconfig.as_ref().map(|path| {
        let machine =
            if host.machine.is_empty() { String::new() } else { format!(" for {}", clean(&host.machine)) };
        let rest = if texts.is_excerpt { " (an excerpt: missing options count as not set)" } else { "" };
        let release =
            if host.release.is_empty() { "of unknown release".into() } else { clean(&host.release) };
        format!("kernel configuration {}, {release}{machine}, preemption {}{rest}", clean(path), host.preempt)
    });
    let cmdline = texts.cmdline.as_ref().map(|path| format!("command line of {}", clean(path)));
    let judged: Vec<String> = kconfig.into_iter().chain(cmdline).collect();
    let judged = if judged.is_empty() {
        "neither a configuration nor a command line".into()
    } else {
        judged.join("; ")
    };
    let cpus = if audit.cpus.is_empty() {
        String::new()
    } else {
        format!(" for {}", named_cpus(clean(&audit.cpus)))
    };
    format!("Judged: {judged}; no running kernel; as {}{cpus}.", audit.profile)
}

fn fields(page: &mut String, found: &Finding, gain: &str, width: usize) {
    let mut field = |name: &str, text: &str| {
        if !text.is_empty() {
            filled(page, &format!("  {name:<10} "), &clean(text), 13, width);
        }
    };
    field("gain", gain);
    field("is", &found.value);
    field("should be", &found.wanted);
    field("why", &found.reason);
    field("contested", found.disputed);
    field("to do", &found.fix);
}

fn rest(page: &mut String, audit: &Audit, verdict: AuditVerdict, heading: &str, width: usize) {
    let found = worst_first(audit, verdict);
    if found.is_empty() {
        return;
    }
    let _ = writeln!(page, "\n{heading}");
    for found in found {
        let text = if found.value.is_empty() { &found.reason } else { &found.value };
        wrapped(page, &format!("  {}: {}", found.rule, clean(text)), width);
    }
}

/// Texts to copy, one block for each place.
pub fn copied(blocks: &[CopyBlock], color: bool) -> String {
    let mut page = String::new();
    for block in blocks {
        let _ = writeln!(page, "\n{}", Palette(color).paint(BOLD, &clean(&block.place)));
        // A second line without its own `#` would be copied as a setting.
        let _ = writeln!(page, "# {}", clean(&block.how));
        page.push_str(&block.text);
    }
    page
}

/// Count of each verdict, in a sentence.
pub fn count(audit: &Audit) -> String {
    let summary = &audit.summary;
    format!(
        "{} failed, {} unknown, {} passed, {} not applicable.",
        several(summary.fail as u64, "rule", "rules"),
        summary.unknown,
        summary.pass,
        summary.not_applicable
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::audit::{AuditedMachine, SCHEMA, VerdictCounts};
    use rules::change::Persistence;
    use rules::remedy::Remedy;

    #[test]
    fn each_line_of_a_block_is_a_comment_or_its_text() {
        let (place, how) = ("/etc/sysctl.d/90-onbeat.conf".to_owned(), "read at each boot, ".repeat(20));
        let page = copied(&[CopyBlock { place, how, text: "kernel.watchdog = 0\n".to_owned() }], false);
        let lines: Vec<&str> = page.lines().skip(2).collect();
        assert!(lines.len() == 2 && lines[0].starts_with("# read at"), "{page}");
        assert_eq!(lines[1], "kernel.watchdog = 0");
    }

    fn finding(rule: &'static str, verdict: AuditVerdict, severity: Severity) -> Finding {
        Finding {
            rule,
            verdict,
            severity,
            value: if verdict == AuditVerdict::Unknown { String::new() } else { "0\u{1b}[2J".into() },
            wanted: "1".into(),
            reason: "it waits".into(),
            persistence: Persistence::Runtime,
            fix: "echo 1 >/a".into(),
            remedy: Remedy::default(),
            source: "",
            disputed: "",
        }
    }

    fn audit() -> Audit {
        Audit {
            schema: SCHEMA,
            profile: "control-loop",
            cpus: "2-3".into(),
            chosen: CpuSelection::Isolated,
            host: AuditedMachine {
                release: "6.12.9".into(),
                machine: "x86_64".into(),
                preempt: "rt",
                virtualization: "none".into(),
                online: "0-3".into(),
            },
            texts: None,
            findings: vec![
                finding("a", AuditVerdict::Fail, Severity::Low),
                finding("b", AuditVerdict::Fail, Severity::Fatal),
                finding("c", AuditVerdict::Unknown, Severity::High),
                finding("d", AuditVerdict::Pass, Severity::High),
            ],
            summary: VerdictCounts { pass: 1, fail: 2, unknown: 1, not_applicable: 0 },
        }
    }

    #[test]
    fn the_worst_comes_first_and_control_characters_are_escaped() {
        assert_eq!(
            render(&audit(), None, 80, false, false),
            "Linux 6.12.9 x86_64, preemption rt, on bare metal; judged as control-loop for\n  \
             CPUs 2-3 (the isolated ones).\n\nfatal   b\n  is         0\u{fffd}[2J\n  should be  1\n  \
             why        it waits\n  \
             to do      echo 1 >/a\n\nless severe (details: -v)\n  \
             low    a: 0\u{fffd}[2J, should be 1\n\nunknown\n  c (high): it waits\n"
        );
    }

    #[test]
    fn all_of_it_on_demand() {
        let text = render(&audit(), None, 80, true, true);
        assert!(text.contains("low") && text.contains("passing rules") && text.contains("  d: 0"), "{text}");
        assert_eq!(text.matches("to do").count(), 2, "{text}");
    }
}
