//! Rules as pages: for the terminal, for `docs/rules`, and as JSON. The words are the rule's own.

use std::fmt::Write;

use serde::Serialize;

use super::words::filled;
use crate::error::{Outcome, json_pretty};
use crate::rules::culprits::{self, Culprit};
use crate::rules::{Evidence, Knob, Lasts, Rule, Source, knobs};

/// The name and version of the JSON.
pub const SCHEMA: &str = "onbeat.rules/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'a str,
    rules: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    id: &'a str,
    kind: &'a str,
    title: &'a str,
    doc: String,
    sources: Vec<&'a str>,
    /// What the setting takes away: kinds of slices, and the culprits that it cures.
    cures: Vec<String>,
    /// The knobs that cure the culprit.
    cured_by: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    severity: Option<&'a str>,
    evidence: Evidence,
    #[serde(skip_serializing_if = "Option::is_none")]
    lasts: Option<Lasts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reads: Option<Vec<&'a str>>,
    /// The kinds of slices that the culprit's may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    kinds: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provoke: Option<&'a str>,
}

/// The rules as JSON, one document with a newline at its end.
pub fn json(rules: &[Rule]) -> Outcome<String> {
    let entry = |rule: &Rule| match rule {
        Rule::Knob(knob) => of_knob(knob),
        Rule::Culprit(culprit) => of_culprit(culprit),
    };
    let document = Document { schema: SCHEMA, rules: rules.iter().map(entry).collect() };
    json_pretty(&document)
}

fn of_knob(knob: &'static Knob) -> Entry<'static> {
    let culprits = culprits::cured_by(knob.id).into_iter().map(|culprit| culprit.id.to_owned());
    Entry {
        id: knob.id,
        kind: "knob",
        title: knob.title,
        doc: knob_page(knob),
        sources: knob.sources.iter().map(|source| source.url).collect(),
        cures: knob.cures.iter().map(|slice| slice.name().to_owned()).chain(culprits).collect(),
        cured_by: Vec::new(),
        severity: Some(knob.severity.name()),
        evidence: knob.evidence,
        lasts: Some(knob.lasts),
        reads: Some(reads(knob)),
        kinds: None,
        remedy: None,
        provoke: None,
    }
}

fn of_culprit(culprit: &'static Culprit) -> Entry<'static> {
    Entry {
        id: culprit.id,
        kind: "culprit",
        title: culprit.title,
        doc: culprit_page(culprit),
        sources: culprit.sources.iter().map(|source| source.url).collect(),
        cures: Vec::new(),
        cured_by: culprit.cured_by.to_vec(),
        severity: None,
        evidence: culprit.evidence,
        lasts: None,
        reads: None,
        kinds: Some(culprit.kinds.iter().map(|slice| slice.name().to_owned()).collect()),
        remedy: Some(culprit.remedy),
        provoke: Some(culprit.provoke),
    }
}

fn reads(knob: &'static Knob) -> Vec<&'static str> {
    knob.reads.iter().chain(knob.facts).copied().collect()
}

/// The rules as a list for the terminal.
pub fn list(rules: &[Rule], width: usize) -> String {
    let widest = rules.iter().map(|rule| rule.id().len()).max().unwrap_or(0);
    let mut text = String::new();
    for rule in rules {
        let line = match rule {
            Rule::Knob(knob) => {
                format!("{:<widest$}  knob     {:<6}  {}", knob.id, knob.severity.name(), knob.title)
            }
            Rule::Culprit(culprit) => {
                format!("{:<widest$}  culprit  {:<6}  {}", culprit.id, "", culprit.title)
            }
        };
        let _ = writeln!(text, "{}", line.chars().take(width).collect::<String>());
    }
    text
}

/// All about a rule, as Markdown that reads well as text.
pub fn page(rule: Rule) -> String {
    match rule {
        Rule::Knob(knob) => knob_page(knob),
        Rule::Culprit(culprit) => culprit_page(culprit),
    }
}

fn culprit_page(culprit: &'static Culprit) -> String {
    let mut page = format!("# {}\n\n{}: a culprit.\n\n", culprit.id, capital(culprit.title));
    section(&mut page, "What it looks like", culprit.looks);
    section(&mut page, "How onbeat tells", culprit.tell);
    section(&mut page, "What to do", &sentence(culprit.remedy));
    section(&mut page, "What provokes it", &sentence(culprit.provoke));
    let kinds: Vec<String> = culprit.kinds.iter().map(|slice| slice.name().to_owned()).collect();
    let mut lines = vec![format!("- has slices of the kinds {}", kinds.join(", "))];
    lines.push(match culprit.cured_by {
        [] => "- no setting that `onbeat audit` judges cures it".to_owned(),
        ids => format!("- cured by {}", related(ids)),
    });
    if culprit.general {
        lines.push("- goes by the kind of the slice: rules that know it by name come first".to_owned());
    }
    let _ = writeln!(page, "## Where it stands\n\n{}\n", lines.join("\n"));
    tried(&mut page, &[("fires", culprit.examples.fires), ("silent", culprit.examples.silent)]);
    sources(&mut page, culprit.evidence, culprit.sources);
    page
}

/// Ids as links between pages.
fn related(ids: &[&str]) -> String {
    ids.iter().map(|id| format!("[{id}]({id}.md)")).collect::<Vec<String>>().join(", ")
}

fn tried(page: &mut String, examples: &[(&str, &str)]) {
    let _ = writeln!(page, "## Tried with\n\n```text");
    for (name, text) in examples {
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let lines =
            if lines.is_empty() { "a well-set machine".to_owned() } else { lines.join("\n         ") };
        let _ = writeln!(page, "{name:<7}  {lines}");
    }
    let _ = writeln!(page, "```\n");
}

fn sources(page: &mut String, known: Evidence, sources: &[Source]) {
    let _ = writeln!(page, "## Sources ({})\n", evidence(known));
    for source in sources {
        let _ = writeln!(page, "- [{}]({})", source.title, source.url);
    }
}

fn knob_page(knob: &'static Knob) -> String {
    let mut page = format!("# {}\n\n", knob.id);
    let _ = writeln!(
        page,
        "{}: a knob, {} if it is wrong; a change lasts {}.\n",
        capital(knob.title),
        knob.severity.name(),
        lasts(knob.lasts)
    );
    section(&mut page, "What it is", knob.what);
    section(&mut page, "Why it matters", &sentence(knob.why));
    section(&mut page, "How onbeat tells", knob.tell);
    section(&mut page, "What it should be", knob.wanted);
    let found = "`onbeat audit` says what to type, for the CPUs and the files that it found.";
    section(&mut page, "What to do", if knob.fix.is_empty() { found } else { knob.fix });
    section(&mut page, "What a change costs", knob.cost);
    if !knob.contested.is_empty() {
        section(&mut page, "What experts disagree about", &sentence(knob.contested));
    }
    links(&mut page, knob);
    let examples = &knob.examples;
    tried(
        &mut page,
        &[("fails", examples.fires), ("passes", examples.silent), ("unknown", examples.unknown)],
    );
    sources(&mut page, knob.evidence, knob.sources);
    page
}

fn section(page: &mut String, heading: &str, text: &str) {
    let _ = writeln!(page, "## {heading}\n");
    filled(page, "", text, 0, 100);
    page.push('\n');
}

/// What it reads, what it cures, and which rules it depends on.
fn links(page: &mut String, knob: &'static Knob) {
    let list = |words: Vec<String>| words.join(", ");
    let quoted = |words: &[&str]| list(words.iter().map(|word| format!("`{word}`")).collect());
    let mut lines = vec![format!("- reads {}", quoted(&reads(knob)))];
    if !knob.programs.is_empty() {
        lines.push(format!("- looks for {}", quoted(knob.programs)));
    }
    lines.push(format!(
        "- takes away {}",
        list(knob.cures.iter().map(|slice| slice.name().to_owned()).collect())
    ));
    let culprits: Vec<&str> = culprits::cured_by(knob.id).iter().map(|culprit| culprit.id).collect();
    if !culprits.is_empty() {
        lines.push(format!("- cures {}", related(&culprits)));
    }
    if !knob.after.is_empty() {
        lines.push(format!("- is set after {}, and undone before", related(knob.after)));
    }
    if !knob.conflicts.is_empty() {
        lines.push(format!("- does not go together with {}", related(knob.conflicts)));
    }
    let _ = writeln!(page, "## Where it stands\n\n{}\n", lines.join("\n"));
}

/// How long a change lasts, in words.
pub(super) fn lasts(lasts: Lasts) -> &'static str {
    match lasts {
        Lasts::Runtime => "until the next boot",
        Lasts::Boot => "from boot to boot, on the kernel's command line",
        Lasts::Build => "until another kernel is built",
        Lasts::Firmware => "for good, as the firmware or the machine itself",
    }
}

fn evidence(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Documented => "documented by those who made it",
        Evidence::Source => "read in the source",
        Evidence::Observed => "seen on a real kernel",
        Evidence::Practice => "what practitioners do: measure before relying on it",
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn sentence(text: &str) -> String {
    format!("{}.", capital(text))
}

/// The pages below `docs/rules`, by name, the index among them.
pub fn pages() -> Vec<(String, String)> {
    let mut index = String::from(
        "# The rules\n\nMade by `cargo xtask docs` from the records in `src/rules/knobs` and `src/rules/culprits`; change them \
         there.\n\n## Knobs: settings that can be judged\n\n| rule | severity | what it is about |\n|---|---|---|\n",
    );
    for knob in knobs::ALL {
        let _ = writeln!(index, "| [{0}]({0}.md) | {1} | {2} |", knob.id, knob.severity.name(), knob.title);
    }
    index.push_str("\n## Culprits: what takes the time\n\n| rule | what it is |\n|---|---|\n");
    for culprit in culprits::ALL {
        let _ = writeln!(index, "| [{0}]({0}.md) | {1} |", culprit.id, culprit.title);
    }
    let one = |rule: Rule| (format!("{}.md", rule.id()), page(rule));
    std::iter::once(("README.md".to_owned(), index)).chain(Rule::all().into_iter().map(one)).collect()
}
