//! Content of a rule's page in sections, independent of its output format.

use facts::cmdline::Cmdline;
use model::keyword::Keyword;
use rules::Rule;
use rules::change::Persistence;
use rules::checks::rule::CheckRule;
use rules::controls;
use rules::culprits;
use rules::culprits::rule::CulpritRule;
use rules::knob::{EvidenceKind, Knob, Source};

pub fn reads(knob: &'static Knob) -> Vec<&'static str> {
    knob.reads.iter().chain(knob.facts).copied().collect()
}

/// Page of a rule before it is rendered for the terminal ([`super::text`]), or as Markdown.
pub struct Sheet {
    pub id: &'static str,
    /// Summary in a sentence.
    pub lead: String,
    pub sections: Vec<(&'static str, Body)>,
    /// Machines or spikes that show its effect, for readers of the rule's source.
    pub tried: Vec<(&'static str, &'static str)>,
    pub evidence: &'static str,
    pub sources: &'static [Source],
}

/// Content below a heading.
pub enum Body {
    Text(String),
    Points(Vec<Point>),
}

/// Item of a list, with the rules that it names.
pub struct Point {
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

    /// Text of the item; `link` renders the rules that it names.
    pub fn words(&self, link: impl Fn(&str) -> String) -> String {
        let rules: Vec<String> = self.rules.iter().map(|id| link(id)).collect();
        format!("{}{}{}", self.before, rules.join(", "), self.after)
    }
}

/// Sheet of a rule.
pub fn sheet(rule: Rule) -> Sheet {
    match rule {
        Rule::Knob(knob) => knob_sheet(knob),
        Rule::Culprit(culprit) => culprit_sheet(culprit),
        Rule::Check(check) => check_sheet(check),
    }
}

fn culprit_sheet(culprit: &'static CulpritRule) -> Sheet {
    let kinds: Vec<&str> = culprit.kinds.iter().map(|slice| slice.name()).collect();
    let mut points = vec![Point::new(format!("has slices of the kinds {}", kinds.join(", ")))];
    points.push(match culprit.cured_by {
        [] => Point::new("no setting that `onbeat audit` checks cures it"),
        ids => Point::of("cured by ", ids),
    });
    if culprit.fallback {
        points.push(Point::new("matches by the kind of the slice; rules that match its name come first"));
    }
    Sheet {
        id: culprit.id,
        lead: format!("{}: a culprit.", capital(culprit.title)),
        sections: vec![
            ("Symptoms", Body::Text(culprit.signature.into())),
            ("Detection", Body::Text(culprit.detection.into())),
            ("Remedy", Body::Text(sentence(culprit.remedy))),
            ("Triggers", Body::Text(sentence(culprit.provoke))),
            ("Sources", Body::Points(points)),
        ],
        tried: vec![("fires", culprit.examples.fires), ("silent", culprit.examples.silent)],
        evidence: evidence(culprit.evidence),
        sources: culprit.sources,
    }
}

fn check_sheet(check: &'static CheckRule) -> Sheet {
    let reads: Vec<String> = check.reads.iter().map(|what| format!("`{what}`")).collect();
    let examples = &check.examples;
    let mut tried = vec![("fails", examples.fires), ("passes", examples.silent)];
    tried.extend((!examples.unknown.is_empty()).then_some(("unknown", examples.unknown)));
    Sheet {
        id: check.id,
        lead: format!(
            "{}: a check of programs, severity {} if it fails.",
            capital(check.title),
            check.severity.name()
        ),
        sections: vec![
            ("Description", Body::Text(check.description.into())),
            ("Effect", Body::Text(sentence(check.rationale))),
            ("Detection", Body::Text(check.detection.into())),
            ("Recommended", Body::Text(check.wanted.into())),
            ("Remedy", Body::Text(sentence(check.fix))),
            ("Sources", Body::Points(vec![Point::new(format!("reads {}", reads.join(", ")))])),
        ],
        tried,
        evidence: evidence(check.evidence),
        sources: check.sources,
    }
}

fn knob_sheet(knob: &'static Knob) -> Sheet {
    let (id, title, severity) = (knob.id, capital(knob.title), knob.severity.name());
    let found = "`onbeat audit` prints the commands for the CPUs and files of the machine.";
    let usual = (knob.fix)().text(&Cmdline::default());
    let fix = if usual.is_empty() { found.to_owned() } else { usual };
    let mut sections = vec![
        ("Description", Body::Text(knob.description.into())),
        ("Effect", Body::Text(sentence(knob.rationale))),
        ("Detection", Body::Text(knob.detection.into())),
        ("Recommended", Body::Text(knob.wanted.into())),
        ("Remedy", Body::Text(fix)),
        ("Cost of a change", Body::Text(knob.side_effects.into())),
    ];
    if !knob.disputed.is_empty() {
        sections.push(("Open questions", Body::Text(sentence(knob.disputed))));
    }
    sections.push(("Sources", Body::Points(links(knob))));
    let examples = &knob.examples;
    Sheet {
        id,
        lead: format!(
            "{title}: a knob, severity {severity} if it is wrong; a change lasts {}.",
            persistence(knob.persistence)
        ),
        sections,
        tried: vec![("fails", examples.fires), ("passes", examples.silent), ("unknown", examples.unknown)],
        evidence: evidence(knob.evidence),
        sources: knob.sources,
    }
}

/// Facts that it reads, culprits that it cures, and rules that it depends on.
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
    points.push(Point::new(setting(knob)));
    if !knob.after.is_empty() {
        points.push(Point { after: ", and undone before it", ..Point::of("is set after ", knob.after) });
    }
    if !knob.conflicts.is_empty() {
        points.push(Point::of("cannot be combined with ", knob.conflicts));
    }
    points
}

/// Sentence on whether `onbeat tune` sets it, and on the file that takes a given value.
fn setting(knob: &Knob) -> String {
    match (knob.unsettable, controls::of_pattern(knob.sets)) {
        ("", None) => "set by `onbeat tune`, if the machine supports it".to_owned(),
        ("", Some(control)) => format!(
            "set by `onbeat tune`, if the machine supports it; `{}=VALUE` writes {} to `{}`",
            knob.id,
            control.accepts.words(),
            knob.sets
        ),
        (why, _) => format!("not set by `onbeat tune`: {why}"),
    }
}

/// Duration of a change, in words.
pub fn persistence(persistence: Persistence) -> &'static str {
    match persistence {
        Persistence::Runtime => "until the next boot",
        Persistence::Boot => "across boots",
        Persistence::Build => "until the kernel is rebuilt",
        Persistence::Firmware => "permanently, as part of the firmware or the machine",
    }
}

fn evidence(evidence: EvidenceKind) -> &'static str {
    match evidence {
        EvidenceKind::Documented => "documented by the vendor",
        EvidenceKind::Source => "read in the source",
        EvidenceKind::Observed => "seen on a real kernel",
        EvidenceKind::Practice => "practice of users: measure before relying on it",
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn sentence(text: &str) -> String {
    format!("{}.", capital(text))
}
