//! Scripts of pages: plain files joined as they are, so that building the crate builds the page. A
//! browser runs one only because the page's policy has its digest.

use std::sync::LazyLock;

use maud::{Markup, PreEscaped, html};

use crate::digest::sha256_base64;

/// Files in the order of their dependencies.
const FILES: [&str; 5] = [
    include_str!("words.js"),
    include_str!("state.js"),
    include_str!("timeline.js"),
    include_str!("spike.js"),
    include_str!("ask.js"),
];

/// Scripts by their effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageScript {
    /// Makes the pictures of a hunt's spikes interactive.
    Ask,
    /// Copies blocks, and turns sources into links.
    Copy,
}

static ASK: LazyLock<String> = LazyLock::new(|| joined(&FILES));
static COPY: LazyLock<String> = LazyLock::new(|| joined(&[include_str!("copy.js")]));

/// Joins the files without comments and indentation, in a function scope.
fn joined(files: &[&str]) -> String {
    let code = |line: &&str| !line.is_empty() && !line.starts_with("//") && !line.starts_with("/**");
    let lines: Vec<&str> = files.iter().flat_map(|file| file.lines()).map(str::trim).filter(code).collect();
    format!("(()=>{{'use strict';\n{}\n}})();", lines.join("\n"))
}

/// Policy that allows no requests and no scripts, even if escaping had a hole.
pub const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

impl PageScript {
    fn text(self) -> &'static str {
        match self {
            PageScript::Ask => ASK.as_str(),
            PageScript::Copy => COPY.as_str(),
        }
    }

    /// Policy of a page with the script: allows this script and inline styles, and no request.
    pub fn policy(self) -> String {
        format!("{POLICY}; {}", self.source())
    }

    /// Part of a policy that names this script.
    pub fn source(self) -> String {
        format!("script-src 'sha256-{}'", sha256_base64(self.text()))
    }

    /// Script as the last part of a page.
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

    /// A rule of the page that removes strokes from words would remove this one as well: it is
    /// stronger than the attribute.
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
