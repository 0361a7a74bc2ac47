//! Follows the advice of rules on made-up machines, and asks again: what it asks for has to make them pass, must not
//! be so already, and must not make another rule fail.

use super::audit::{Finding, finding};
use super::change::Change;
use super::fixture::Machine;
use super::intent::Intent;
use super::judgement::Verdict;
use super::knobs::ALL;
use super::parameters;
use super::remedy::{Remedy, Way};
use crate::host::record::Seen;

/// Each complaint about the advice of the rules on a machine, with what was tried.
pub fn complaints(machine: &Machine) -> (usize, Vec<String>) {
    let (survey, intent) = machine.survey();
    let before: Vec<Finding> = ALL.iter().map(|knob| finding(knob, &survey, &intent)).collect();
    let (mut tried, mut found) = (0, Vec::new());
    for failing in before.iter().filter(|finding| finding.verdict == Verdict::Fail) {
        for ways in combinations(&failing.remedy) {
            if ways.iter().flat_map(|way| &way.now).any(|change| matches!(change, Change::Advice { .. })) {
                continue;
            }
            tried += 1;
            let complain = |what: String| format!("{}: {what}\n    {}", failing.rule, failing.fix);
            found.extend(follow_all(machine, &intent, &before, failing, &ways).into_iter().map(complain));
        }
    }
    (tried, found)
}

/// Each way of each part, with the first of the others.
fn combinations(remedy: &Remedy) -> Vec<Vec<Way>> {
    let first = || remedy.parts.iter().map(|part| part.ways[0].clone()).collect::<Vec<Way>>();
    let mut all = vec![first()];
    for (at, part) in remedy.parts.iter().enumerate() {
        for way in &part.ways[1..] {
            let mut other = first();
            other[at] = way.clone();
            all.push(other);
        }
    }
    all
}

fn follow_all(
    machine: &Machine,
    intent: &Intent,
    before: &[Finding],
    failing: &Finding,
    ways: &[Way],
) -> Vec<String> {
    let (mut changed, mut found) = (machine.clone(), Vec::new());
    let now = ways.iter().flat_map(|way| &way.now);
    for change in now {
        found.extend(make(&mut changed, change).err());
    }
    found.extend(asked_again(&changed, intent, before, failing, "done"));
    // As after the next boot: what keeps it is there as well.
    for change in ways.iter().flat_map(|way| &way.keep) {
        found.extend(make(&mut changed, change).err());
    }
    if found.is_empty() {
        found.extend(asked_again(&changed, intent, before, failing, "kept"));
    }
    found
}

fn asked_again(
    machine: &Machine,
    intent: &Intent,
    before: &[Finding],
    failing: &Finding,
    when: &str,
) -> Vec<String> {
    let survey = machine.read();
    let mut found = Vec::new();
    for (knob, was) in ALL.iter().zip(before) {
        let is = finding(knob, &survey, intent);
        let own = knob.id == failing.rule;
        let fine = match is.verdict {
            Verdict::Pass | Verdict::NotApplicable => true,
            Verdict::Fail => !own && was.verdict == Verdict::Fail,
            Verdict::Unknown => !own && was.verdict != Verdict::Pass,
        };
        if !fine {
            let said = if is.value.is_empty() { &is.why } else { &is.value };
            found.push(format!(
                "{when}, {} turns from {} to {}: {said}",
                knob.id,
                was.verdict.name(),
                is.verdict.name()
            ));
        }
    }
    found
}

const CMDLINE: &str = "/proc/cmdline";

fn text(machine: &Machine, path: &str) -> Option<String> {
    match machine.answers.get(path)? {
        Seen::File(bytes) => Some(String::from_utf8_lossy(bytes).trim_end().to_owned()),
        _ => None,
    }
}

/// Makes a change, with what a kernel makes of it at once or at the next boot; complains where it changes nothing.
pub fn make(machine: &mut Machine, change: &Change) -> Result<(), String> {
    let unchanged = machine.answers.clone();
    for (path, value) in change.writes() {
        write(machine, &path, value)?;
    }
    match change {
        Change::Boot { word } => {
            let line = text(machine, CMDLINE).ok_or("there is no command line")?;
            machine.edit(&format!("{CMDLINE}: {}", parameters::with(&line, word)));
            booted_with(machine, word);
        }
        Change::BootWithout { word } => {
            let line = text(machine, CMDLINE).ok_or("there is no command line")?;
            machine.edit(&format!("{CMDLINE}: {}", parameters::without(&line, word)));
        }
        Change::Config { option, value } => machine.edit(&format!("CONFIG_{option}={value}")),
        Change::Disable { program, .. } => machine.stop(program),
        Change::Sysctl { .. } | Change::Write { .. } | Change::Advice { .. } => {}
    }
    if unchanged == machine.answers { Err(format!("{change:?} is so already")) } else { Ok(()) }
}

/// What the kernel makes of a value that is written to a file of its own.
fn write(machine: &mut Machine, path: &str, value: &str) -> Result<(), String> {
    let was = text(machine, path).ok_or(format!("{path} is not there"))?;
    let is = match was.split_whitespace().find(|word| word.starts_with(['[', '('])) {
        Some(chosen) => choose(&was, chosen, value).ok_or(format!("{path} does not offer {value}: {was}"))?,
        // Of this one number is written, and the others stay (`Documentation/admin-guide/sysctl/kernel.rst`).
        None if path == "/proc/sys/kernel/printk" => {
            let others: Vec<&str> = was.split_whitespace().skip(1).collect();
            format!("{value} {}", others.join(" "))
        }
        None => value.to_owned(),
    };
    machine.edit(&format!("{path}: {is}"));
    Ok(())
}

/// A file of choices after another was made.
fn choose(text: &str, chosen: &str, value: &str) -> Option<String> {
    let (open, close) = if chosen.starts_with('[') { ('[', ']') } else { ('(', ')') };
    let bare = |word: &str| word.trim_matches([open, close]).to_owned();
    let words: Vec<String> = text.split_whitespace().map(bare).collect();
    let mark = |word: &String| if word == value { format!("{open}{word}{close}") } else { word.clone() };
    words.iter().any(|word| word == value).then(|| words.iter().map(mark).collect::<Vec<_>>().join(" "))
}

/// What a kernel shows that was booted with a word.
fn booted_with(machine: &mut Machine, word: &str) {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    if let Some((module, parameter)) = name.split_once('.') {
        let path = format!("/sys/module/{module}/parameters/{parameter}");
        if text(machine, &path).is_some() {
            let _ = write(machine, &path, value);
        }
    }
    if word == "psi=0" {
        machine.edit("/proc/pressure absent");
    }
}
