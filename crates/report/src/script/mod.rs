//! The script of a hunt's page: plain files joined as they are, so that building the crate makes
//! the page. A browser runs it because the page's policy names its digest, and nothing else.

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

/// The files without their comments and indentation, with names of their own.
static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    let code = |line: &&str| !line.is_empty() && !line.starts_with("//") && !line.starts_with("/**");
    let lines: Vec<&str> = FILES.iter().flat_map(|file| file.lines()).map(str::trim).filter(code).collect();
    format!("(()=>{{'use strict';\n{}\n}})();", lines.join("\n"))
});

/// Nothing may be loaded and nothing executed, even if escaping had a hole.
pub const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// What a page with the script allows: this script and its own styles, and no request to anywhere.
pub fn policy() -> String {
    format!("{POLICY}; script-src 'sha256-{}'", sha256_base64(&SCRIPT))
}

/// The script as the last part of a page.
pub fn element() -> Markup {
    html! { script { (PreEscaped(SCRIPT.as_str())) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_small_and_stays_within_its_element() {
        assert!(SCRIPT.len() < 25_000, "{}", SCRIPT.len());
        for end in ["</script", "<!--", "innerHTML", "eval(", "fetch(", "import(", "XMLHttpRequest", "://"] {
            assert!(!SCRIPT.contains(end), "{end}");
        }
        assert!(policy().contains("default-src 'none'") && policy().contains("'sha256-"));
    }

    #[test]
    fn files_open_with_their_purpose_and_are_short() {
        for file in FILES {
            assert!(file.starts_with("// ") && file.lines().count() < 300);
        }
    }
}
