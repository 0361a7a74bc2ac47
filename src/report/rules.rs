//! Rules as pages: for the terminal, for `docs/rules`, and as JSON. The words are the rule's own.

use std::fmt::Write;

use serde::Serialize;

use super::words::filled;
use crate::rules::{Evidence, Knob, Lasts, knobs};

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
    /// The kinds of slices that the setting takes away.
    cures: Vec<String>,
    cured_by: Vec<&'a str>,
    severity: &'a str,
    evidence: Evidence,
    lasts: Lasts,
    reads: Vec<&'a str>,
}

/// The rules as JSON, one document with a newline at its end.
pub fn json(rules: &[&'static Knob]) -> Vec<u8> {
    let entry = |knob: &&'static Knob| Entry {
        id: knob.id,
        kind: "knob",
        title: knob.title,
        doc: page(knob),
        sources: knob.sources.iter().map(|source| source.url).collect(),
        cures: knob.cures.iter().map(|slice| slice.name()).collect(),
        cured_by: Vec::new(),
        severity: knob.severity.name(),
        evidence: knob.evidence,
        lasts: knob.lasts,
        reads: reads(knob),
    };
    let document = Document { schema: SCHEMA, rules: rules.iter().map(entry).collect() };
    let mut bytes = serde_json::to_vec_pretty(&document).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

fn reads(knob: &'static Knob) -> Vec<&'static str> {
    knob.reads.iter().chain(knob.facts).copied().collect()
}

/// The rules as a list for the terminal.
pub fn list(rules: &[&'static Knob], width: usize) -> String {
    let widest = rules.iter().map(|knob| knob.id.len()).max().unwrap_or(0);
    let mut text = String::new();
    for knob in rules {
        let line = format!("{:<widest$}  knob  {:<6}  {}", knob.id, knob.severity.name(), knob.title);
        let _ = writeln!(text, "{}", line.chars().take(width).collect::<String>());
    }
    text
}

/// All about a rule, as Markdown that reads well as text.
pub fn page(knob: &'static Knob) -> String {
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
    let _ = writeln!(page, "## Tried with\n\n```text");
    for (name, edits) in
        [("fails", knob.examples.fires), ("passes", knob.examples.silent), ("unknown", knob.examples.unknown)]
    {
        let lines: Vec<&str> = edits.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let lines =
            if lines.is_empty() { "a well-set machine".to_owned() } else { lines.join("\n         ") };
        let _ = writeln!(page, "{name:<7}  {lines}");
    }
    let _ = writeln!(page, "```\n\n## Sources ({})\n", evidence(knob.evidence));
    for source in knob.sources {
        let _ = writeln!(page, "- [{}]({})", source.title, source.url);
    }
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
    lines.push(format!("- takes away {}", list(knob.cures.iter().map(|slice| slice.name()).collect())));
    let related = |ids: &[&str]| list(ids.iter().map(|id| format!("[{id}]({id}.md)")).collect());
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
        "# The rules\n\nMade by `cargo xtask docs` from the records in `src/rules/knobs`; change them there.\n\n\
         | rule | severity | what it is about |\n|---|---|---|\n",
    );
    for knob in knobs::ALL {
        let _ = writeln!(index, "| [{0}]({0}.md) | {1} | {2} |", knob.id, knob.severity.name(), knob.title);
    }
    let one = |knob: &&'static Knob| (format!("{}.md", knob.id), page(knob));
    std::iter::once(("README.md".to_owned(), index)).chain(knobs::ALL.iter().map(one)).collect()
}
