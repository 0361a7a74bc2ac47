//! Subjects of commits: `area: imperative`, at most 72 characters, no full stop.

use std::io::Write;

use super::tree::git;

/// The last commit before the rule.
const BASE: &str = "b35b325fb32e6b9dff25537204de653756cfa9d6";
const COLUMNS: usize = 72;
/// Articles, pronouns and the like, with which no imperative begins.
const NO_VERBS: &[&str] = &[
    "a", "all", "an", "another", "each", "every", "he", "his", "how", "it", "its", "no", "nothing", "one",
    "our", "she", "some", "that", "the", "their", "there", "these", "they", "this", "those", "we", "what",
    "when", "where", "whether", "which", "who", "why", "you", "your",
];
/// Imperatives that end as other forms do, besides those in -eed, -ss and -us.
const VERBS: &[&str] = &[
    "alias", "bias", "bring", "canvas", "embed", "ping", "ring", "shed", "shred", "sing", "sling", "spring",
    "string", "swing", "wring",
];

/// The fault of a subject.
fn fault(subject: &str) -> Option<String> {
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c))
    };
    let (area, rest) = subject.split_once(": ").unwrap_or_default();
    if area.split(' ').count() > 2 || !area.split(' ').all(is_word) {
        return Some("begin with the area, one or two lower-case words, and a colon".into());
    }
    let columns = subject.chars().count();
    if columns > COLUMNS {
        return Some(format!("write at most {COLUMNS} characters, not {columns}"));
    }
    if subject.ends_with('.') {
        return Some("leave out the full stop".into());
    }
    let first = rest.split(' ').next().unwrap_or_default().to_lowercase();
    let is_form = ["ed", "ing", "s"].iter().any(|ending| first.ends_with(ending))
        && !["eed", "ss", "us"].iter().any(|ending| first.ends_with(ending))
        && !VERBS.contains(&&*first);
    let is_verb = !first.is_empty() && !is_form && !NO_VERBS.contains(&&*first);
    (!is_verb).then(|| format!("follow the colon with an imperative, not `{first}`"))
}

/// Hashes and subjects since the rule, merges apart; an error without git, its history or the base.
fn subjects() -> std::io::Result<String> {
    git(&["merge-base", "--is-ancestor", BASE, "HEAD"])?;
    git(&["log", "--no-merges", "--no-show-signature", "--format=%h %s", &format!("{BASE}..HEAD")])
}

#[test]
fn subjects_name_an_area_and_an_imperative() {
    match subjects() {
        Ok(log) => super::expect_none(log.lines().filter_map(|line| {
            let (hash, subject) = line.split_once(' ').unwrap_or((line, ""));
            fault(subject).map(|fault| format!("{hash} `{subject}`: {fault}"))
        })),
        // Written past the capture of the test's output, to be seen although the test passes.
        Err(error) => writeln!(
            std::io::stderr(),
            "subjects of commits were not checked: no history since {BASE} ({error})"
        )
        .unwrap(),
    }
}

#[test]
fn wrong_subjects_are_found() {
    for subject in [
        "Add a flag",
        "farm: ",
        "farm:add a flag",
        "Farm: add a flag",
        "farm prune runs: add a flag",
        ": add a flag",
        "farm: add a flag.",
        "farm: The flag is added",
        "farm: added a flag",
        "farm: adds a flag",
        "farm: adding a flag",
        &format!("farm: add {}", "a".repeat(63)),
    ] {
        assert!(fault(subject).is_some(), "{subject}");
    }
    for subject in [
        "farm: add a flag",
        "farm prune: pass the age of a run",
        "tune: need root",
        "report: focus the strip: one spike",
        "fuzz-targets: string.c, embed it",
        &format!("farm: add {}", "a".repeat(62)),
    ] {
        assert_eq!(fault(subject), None, "{subject}");
    }
}
