//! Rules as pages: for `docs/rules`, and as JSON; the words are the rule's own. `rules_text.rs` has the terminal's form.

use std::fmt::Write;

use serde::Serialize;

use super::words::filled;
use facts::cmdline::Cmdline;
use model::error::{Outcome, json_pretty};
use model::keyword::Keyword;
use rules::culprits::{self, Culprit};
use rules::{Evidence, Knob, Lasts, Rule, Source, knobs};

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
        doc: page(Rule::Knob(knob)),
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
        doc: page(Rule::Culprit(culprit)),
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

/// A rule's page before it has a form: for the terminal ([`super::rules_text`]), or Markdown.
pub(super) struct Sheet {
    pub id: &'static str,
    /// What it is in a sentence.
    pub lead: String,
    pub sections: Vec<(&'static str, Words)>,
    /// Machines or spikes that show what it does: for who reads the rule as source.
    pub tried: Vec<(&'static str, &'static str)>,
    pub evidence: &'static str,
    pub sources: &'static [Source],
}

/// What stands below a heading.
pub(super) enum Words {
    Text(String),
    Points(Vec<Point>),
}

/// One point of a list, with the rules that it names.
pub(super) struct Point {
    pub before: String,
    pub rules: Vec<&'static str>,
    pub after: &'static str,
}

impl Point {
    fn new(words: impl Into<String>) -> Point {
        Point { before: words.into(), rules: Vec::new(), after: "" }
    }

    fn of(before: &str, rules: &[&'static str]) -> Point {
        Point { before: before.into(), rules: rules.to_vec(), after: "" }
    }

    /// The point, each rule that it names as this makes of it.
    pub fn words(&self, link: impl Fn(&str) -> String) -> String {
        let rules: Vec<String> = self.rules.iter().map(|id| link(id)).collect();
        format!("{}{}{}", self.before, rules.join(", "), self.after)
    }
}

/// All about a rule.
pub(super) fn sheet(rule: Rule) -> Sheet {
    match rule {
        Rule::Knob(knob) => knob_sheet(knob),
        Rule::Culprit(culprit) => culprit_sheet(culprit),
    }
}

fn culprit_sheet(culprit: &'static Culprit) -> Sheet {
    let kinds: Vec<&str> = culprit.kinds.iter().map(|slice| slice.name()).collect();
    let mut points = vec![Point::new(format!("has slices of the kinds {}", kinds.join(", ")))];
    points.push(match culprit.cured_by {
        [] => Point::new("no setting that `onbeat audit` judges cures it"),
        ids => Point::of("cured by ", ids),
    });
    if culprit.general {
        points.push(Point::new("goes by the kind of the slice: rules that know it by name come first"));
    }
    Sheet {
        id: culprit.id,
        lead: format!("{}: a culprit.", capital(culprit.title)),
        sections: vec![
            ("What it looks like", Words::Text(culprit.looks.into())),
            ("How onbeat tells", Words::Text(culprit.tell.into())),
            ("What to do", Words::Text(sentence(culprit.remedy))),
            ("What provokes it", Words::Text(sentence(culprit.provoke))),
            ("Where it stands", Words::Points(points)),
        ],
        tried: vec![("fires", culprit.examples.fires), ("silent", culprit.examples.silent)],
        evidence: evidence(culprit.evidence),
        sources: culprit.sources,
    }
}

fn knob_sheet(knob: &'static Knob) -> Sheet {
    let (id, title, severity) = (knob.id, capital(knob.title), knob.severity.name());
    let found = "`onbeat audit` says what to type, for the CPUs and the files that it found.";
    let usual = (knob.fix)().said(&Cmdline::default());
    let fix = if usual.is_empty() { found.to_owned() } else { usual };
    let mut sections = vec![
        ("What it is", Words::Text(knob.what.into())),
        ("Why it matters", Words::Text(sentence(knob.why))),
        ("How onbeat tells", Words::Text(knob.tell.into())),
        ("What it should be", Words::Text(knob.wanted.into())),
        ("What to do", Words::Text(fix)),
        ("What a change costs", Words::Text(knob.cost.into())),
    ];
    if !knob.contested.is_empty() {
        sections.push(("What experts disagree about", Words::Text(sentence(knob.contested))));
    }
    sections.push(("Where it stands", Words::Points(links(knob))));
    let examples = &knob.examples;
    Sheet {
        id,
        lead: format!("{title}: a knob, {severity} if it is wrong; a change lasts {}.", lasts(knob.lasts)),
        sections,
        tried: vec![("fails", examples.fires), ("passes", examples.silent), ("unknown", examples.unknown)],
        evidence: evidence(knob.evidence),
        sources: knob.sources,
    }
}

/// What it reads, what it cures, and which rules it depends on.
fn links(knob: &'static Knob) -> Vec<Point> {
    let quoted = |words: &[&str]| -> String {
        words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
    };
    let mut points = vec![Point::new(format!("reads {}", quoted(&reads(knob))))];
    if !knob.programs.is_empty() {
        points.push(Point::new(format!("looks for {}", quoted(knob.programs))));
    }
    let kinds: Vec<&str> = knob.cures.iter().map(|slice| slice.name()).collect();
    points.push(Point::new(format!("takes away {}", kinds.join(", "))));
    let culprits: Vec<&str> = culprits::cured_by(knob.id).iter().map(|culprit| culprit.id).collect();
    if !culprits.is_empty() {
        points.push(Point::of("cures ", &culprits));
    }
    if !knob.after.is_empty() {
        points.push(Point { after: ", and undone before", ..Point::of("is set after ", knob.after) });
    }
    if !knob.conflicts.is_empty() {
        points.push(Point::of("does not go together with ", knob.conflicts));
    }
    points
}

/// All about a rule, as Markdown.
pub fn page(rule: Rule) -> String {
    let sheet = sheet(rule);
    let mut page = format!("# {}\n\n{}\n\n", sheet.id, sheet.lead);
    for (heading, words) in &sheet.sections {
        let _ = writeln!(page, "## {heading}\n");
        match words {
            Words::Text(text) => filled(&mut page, "", text, 0, 100),
            Words::Points(points) => points.iter().for_each(|point| {
                let _ = writeln!(page, "- {}", point.words(|id| format!("[{id}]({id}.md)")));
            }),
        }
        page.push('\n');
    }
    let _ = writeln!(page, "## Tried with\n\n```text");
    for (name, text) in &sheet.tried {
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let lines =
            if lines.is_empty() { "a well-set machine".to_owned() } else { lines.join("\n         ") };
        let _ = writeln!(page, "{name:<7}  {lines}");
    }
    let _ = writeln!(page, "```\n\n## Sources ({})\n", sheet.evidence);
    for source in sheet.sources {
        let _ = writeln!(page, "- [{}]({})", source.title, source.url);
    }
    page
}

/// How long a change lasts, in words.
pub(super) fn lasts(lasts: Lasts) -> &'static str {
    match lasts {
        Lasts::Runtime => "until the next boot",
        Lasts::Boot => "from boot to boot",
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
