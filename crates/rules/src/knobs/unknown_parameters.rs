//! Parameters on the command line without effect: from recipes for other kernels, and misspelt.

use super::sources::PARAMETERS;
use super::unsettable;
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::{truncate, truncate_words};
use facts::cmdline::{Cmdline, Param};
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "unknown-parameters",
    title: "kernel parameters that do nothing",
    description: "The kernel hands words that it does not know to init and goes on. Recipes carry \
                  some that no mainline kernel ever knew, such as kthread_cpus=, some that lack \
                  their module's name, and spelling mistakes.",
    rationale: "a word that does nothing leaves undone what it was put there for",
    detection: "A short list of words known from recipes, and words that differ by one letter \
                from one that sets up a real-time machine. Some vendors' kernels do know \
                kthread_cpus=. From 5.14 on the kernel's log names all words that it did not know.",
    side_effects: "Nothing but a boot; what the right word does comes with it.",
    wanted: "only words that this kernel knows",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "correct the word or take it out; dmesg | grep -i unknown shows what the kernel said \
             of it",
        )
    },
    severity: Severity::Info,
    evidence: EvidenceKind::Source,
    persistence: Persistence::Boot,
    unsettable: unsettable::BOOT,
    sources: &[Source { title: "kernel: command line", url: PARAMETERS }],
    cures: &[SliceKind::Thread, SliceKind::TimerIrq, SliceKind::Irq],
    facts: &["/proc/cmdline"],
    judge,
    examples: Examples {
        fires: "cmdline + kthread_cpus=0-1",
        silent: "cmdline - kthread_cpus=0-1",
        unknown: "/proc/cmdline refused",
    },
    ..Knob::DEFAULT
};

/// Words of recipes, and what to know of them; a name of a parameter, or one with its value.
const STRAY: &[(&str, &str, Severity)] = &[
    (
        "kthread_cpus",
        "not in mainline: kernel threads follow isolcpus=domain, nohz_full= or a cpuset partition",
        Severity::Info,
    ),
    ("rcu_expedited", "spelt rcupdate.rcu_expedited, and better left out", Severity::Low),
    ("rcu_normal", "spelt rcupdate.rcu_normal", Severity::Low),
    ("rcu_normal_after_boot", "spelt rcupdate.rcu_normal_after_boot", Severity::Low),
    ("rcu_boost", "a build option: CONFIG_RCU_BOOST", Severity::Low),
    ("max_cstate", "spelt processor.max_cstate or intel_idle.max_cstate", Severity::Medium),
    ("tsc=perfect", "reliable and nowatchdog are the words for tsc=", Severity::Low),
    ("idle=mwait", "gone: cap the idle states instead", Severity::Low),
];

/// Parameters whose spelling is checked.
const SPELLING: &[&str] = &[
    "clocksource",
    "cpufreq.default_governor",
    "intel_idle.max_cstate",
    "irqaffinity",
    "isolcpus",
    "mitigations",
    "nmi_watchdog",
    "nohz_full",
    "nosoftlockup",
    "nowatchdog",
    "processor.max_cstate",
    "rcu_nocb_poll",
    "rcu_nocbs",
    "rcupdate.rcu_normal_after_boot",
    "skew_tick",
    "threadirqs",
    "transparent_hugepage",
    "workqueue.unbound_cpus",
];

fn judge(machine: &MachineView) -> Judged {
    let found = found(machine.cmdline()?);
    let Some(worst) = found.iter().map(|(_, _, severity)| *severity).max() else {
        return Ok(Judgement::pass("none known to do nothing"));
    };
    let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
    let advice: Vec<String> =
        found.iter().take(4).map(|(name, advice, _)| format!("{name}: {advice}")).collect();
    Ok(Judgement::fail(truncate_words(&names))
        .severity(worst)
        .fix(Remedy::advice(AdviceReason::Choice, advice.join("; "))))
}

/// Name, advice and severity of each word, the worst first, each once.
fn found(cmdline: &Cmdline) -> Vec<(String, String, Severity)> {
    let mut found: Vec<(String, String, Severity)> = Vec::new();
    for param in &cmdline.params {
        if let Some(one) = stray(param).or_else(|| misspelt(param)) {
            if !found.contains(&one) && found.len() < 64 {
                found.push(one);
            }
        }
    }
    found.sort_by_key(|(_, _, severity)| std::cmp::Reverse(*severity));
    found
}

fn stray(param: &Param) -> Option<(String, String, Severity)> {
    let name = param.name.replace('-', "_");
    let whole = format!("{name}={}", param.value.as_deref().unwrap_or_default());
    let (word, advice, severity) = STRAY.iter().find(|(word, ..)| *word == name || *word == whole)?;
    Some(((*word).to_owned(), (*advice).to_owned(), *severity))
}

/// A name that is one letter away from a checked one is no other parameter of the kernel.
fn misspelt(param: &Param) -> Option<(String, String, Severity)> {
    let name = param.name.replace('-', "_");
    if name.len() > 40 || SPELLING.contains(&name.as_str()) {
        return None;
    }
    let meant = SPELLING.iter().find(|word| one_apart(&name, word))?;
    Some((truncate(&name), format!("probably meant to be {meant}"), Severity::Medium))
}

/// Whether one letter too many, one too few or another one is all that differs, or two that changed
/// places.
fn one_apart(a: &str, b: &str) -> bool {
    let (a, b) = if a.len() <= b.len() { (a.as_bytes(), b.as_bytes()) } else { (b.as_bytes(), a.as_bytes()) };
    if b.len() - a.len() > 1 || a == b {
        return false;
    }
    let start = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[start..], &b[start..]);
    match (a, b) {
        _ if a.len() < b.len() => *a == b[1..],
        ([a1, a2, rest @ ..], [b1, b2, other @ ..]) if a1 == b2 && a2 == b1 => rest == other,
        _ => a[1..] == b[1..],
    }
}

#[cfg(test)]
mod tests {
    use super::{KNOB, one_apart};
    use crate::fixture::{Machine, check};

    #[test]
    fn words_of_recipes_are_known() {
        check(&KNOB, "", "pass none known to do nothing");
        check(&KNOB, "cmdline + kthread-cpus=0-1", "fail info kthread_cpus");
        check(&KNOB, "cmdline + tsc=perfect\ncmdline + kthread_cpus=0", "fail low tsc=perfect, kthread_cpus");
        check(&KNOB, "cmdline + rcupdate.rcu_normal=1\ncmdline + idle=poll", "pass none known to do nothing");
    }

    #[test]
    fn a_letter_too_many_is_seen() {
        check(&KNOB, "cmdline + isolcpu=2-3", "fail medium isolcpu");
        check(
            &KNOB,
            "cmdline + rcu_nocbs_poll\ncmdline + irq_affinity=0",
            "fail medium rcu_nocbs_poll, irq_affinity",
        );
        check(
            &KNOB,
            "cmdline + nohz=on\ncmdline + nosmt\ncmdline + debug\ncmdline + watchdog_thresh=0",
            "pass none known to do nothing",
        );
        let mut machine = Machine::base();
        machine.edit("cmdline + nohzfull=2-3");
        assert_eq!(machine.finding(&KNOB).fix, "nohzfull: probably meant to be nohz_full");
    }

    #[test]
    fn words_are_one_letter_apart() {
        for (a, b) in [("ab", "abc"), ("abc", "xbc"), ("abdc", "abcd"), ("bc", "abc"), ("", "a")] {
            assert!(one_apart(a, b) && one_apart(b, a), "{a} {b}");
        }
        for (a, b) in [("abc", "abc"), ("abc", "xyc"), ("a", "abc"), ("abc", "cab")] {
            assert!(!one_apart(a, b) && !one_apart(b, a), "{a} {b}");
        }
    }

    #[test]
    fn hostile_lines_stay_short() {
        let many: String =
            (0..200).map(|n| format!("cmdline + isolcpus{}=\n", (b'a' + n % 26) as char)).collect();
        check(&KNOB, &many, "fail medium");
        let mut machine = Machine::base();
        machine.edit(&many);
        let value = machine.finding(&KNOB).value;
        assert!(value.starts_with("isolcpusa, isolcpusb, ") && value.ends_with(" and 12 more"), "{value}");
    }
}
