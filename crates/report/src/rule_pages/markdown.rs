//! Rules as Markdown, for `docs/rules`.

use std::fmt::Write;

use super::sheet::{Body, sheet};
use crate::words::filled;
use model::keyword::Keyword;
use rules::{Rule, checks, culprits, knobs};

/// Page of a rule, as Markdown.
pub fn page(rule: Rule) -> String {
    let sheet = sheet(rule);
    let mut page = format!("# {}\n\n{}\n\n", sheet.id, sheet.lead);
    for (heading, words) in &sheet.sections {
        let _ = writeln!(page, "## {heading}\n");
        match words {
            Body::Text(text) => filled(&mut page, "", text, 0, 100),
            Body::Points(points) => points.iter().for_each(|point| {
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

/// Pages below `docs/rules`, by name, including the index.
pub fn pages() -> Vec<(String, String)> {
    let mut index = String::from(
        "# The rules\n\nMade by `cargo xtask docs` from the records in `crates/rules/src/knobs`, `crates/rules/src/culprits` and `crates/rules/src/checks`; \
         change them there.\n\n## Knobs: settings that can be judged\n\n| rule | severity | what it is about |\n|---|---|---|\n",
    );
    for knob in knobs::ALL {
        let _ = writeln!(index, "| [{0}]({0}.md) | {1} | {2} |", knob.id, knob.severity.name(), knob.title);
    }
    index.push_str("\n## Culprits: what takes the time\n\n| rule | what it is |\n|---|---|\n");
    for culprit in culprits::ALL {
        let _ = writeln!(index, "| [{0}]({0}.md) | {1} |", culprit.id, culprit.title);
    }
    index.push_str(
        "\n## Checks: mistakes in a program\n\n| rule | severity | what it is about |\n|---|---|---|\n",
    );
    for check in checks::ALL {
        let _ =
            writeln!(index, "| [{0}]({0}.md) | {1} | {2} |", check.id, check.severity.name(), check.title);
    }
    let one = |rule: Rule| (format!("{}.md", rule.id()), page(rule));
    std::iter::once(("README.md".to_owned(), index)).chain(Rule::all().into_iter().map(one)).collect()
}
