//! The scripts of pages: plain files joined as they are, so that building the crate makes the page.
//! A browser runs one because the page's policy names its digest, and nothing else.

use std::sync::LazyLock;

use maud::{Markup, PreEscaped, html};

use crate::digest::sha256_base64;

/// In the order in which they use each other.
const FILES: [&str; 5] = [
    include_str!("words.js"),
    include_str!("state.js"),
    include_str!("timeline.js"),
    include_str!("spike.js"),
    include_str!("ask.js"),
];

/// What a page's script does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageScript {
    /// Answers what is asked of a hunt's spikes.
    Ask,
    /// Copies blocks, and makes links of sources.
    Copy,
}

static ASK: LazyLock<String> = LazyLock::new(|| joined(&FILES));
static COPY: LazyLock<String> = LazyLock::new(|| joined(&[include_str!("copy.js")]));

/// The files without their comments and indentation, with names of their own.
fn joined(files: &[&str]) -> String {
    let code = |line: &&str| !line.is_empty() && !line.starts_with("//") && !line.starts_with("/**");
    let lines: Vec<&str> = files.iter().flat_map(|file| file.lines()).map(str::trim).filter(code).collect();
    format!("(()=>{{'use strict';\n{}\n}})();", lines.join("\n"))
}

/// Nothing may be loaded and nothing executed, even if escaping had a hole.
pub const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

impl PageScript {
    fn text(self) -> &'static str {
        match self {
            PageScript::Ask => ASK.as_str(),
            PageScript::Copy => COPY.as_str(),
        }
    }

    /// What a page with the script allows: this script and its own styles, and no request to
    /// anywhere.
    pub fn policy(self) -> String {
        format!("{POLICY}; {}", self.source())
    }

    /// The part of a policy that names this script.
    pub fn source(self) -> String {
        format!("script-src 'sha256-{}'", sha256_base64(self.text()))
    }

    /// The script as the last part of a page.
    pub fn element(self) -> Markup {
        html! { script { (PreEscaped(self.text())) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_small_and_stays_within_its_element() {
        assert!(ASK.len() < 25 << 10 && COPY.len() < 2 << 10, "{} {}", ASK.len(), COPY.len());
        for end in ["</script", "<!--", "innerHTML", "eval(", "fetch(", "import(", "XMLHttpRequest", "://"] {
            assert!(!ASK.contains(end) && !COPY.contains(end), "{end}");
        }
        let policy = PageScript::Ask.policy();
        assert!(policy.contains("default-src 'none'") && policy.contains("'sha256-"));
        assert_ne!(policy, PageScript::Copy.policy());
    }

    /// A rule of the page that takes strokes from words would take this one, too: it is stronger
    /// than the attribute.
    #[test]
    fn words_over_a_hatch_have_its_colour_around_them() {
        assert!(ASK.contains("...halo(part.kind)") && ASK.contains("look.hatch ? { stroke: look.fill"));
        let css = crate::html::styles();
        let rules = css.split('}').filter(|rule| rule.contains("stroke:none") && rule.contains("text"));
        let rules: Vec<&str> = rules.collect();
        assert!(rules.iter().all(|rule| rule.contains("text:not([stroke])")), "{rules:?}");
    }

    #[test]
    fn files_open_with_their_purpose_and_are_short() {
        for file in FILES.into_iter().chain([include_str!("copy.js")]) {
            assert!(file.starts_with("// ") && file.lines().count() < 300);
        }
    }
}
