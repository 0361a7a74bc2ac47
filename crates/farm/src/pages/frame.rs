//! Frame of each page: navigation, and refusals.

use maud::{DOCTYPE, Markup, html};
use report::words::capitalised;

/// Section of the farm that a page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    Boards,
    Runs,
    Changes,
    Culprits,
    Kernels,
    Compare,
    /// Account of the visitor.
    Account,
}

const SECTIONS: [(Section, &str, &str); 7] = [
    (Section::Boards, "/", "Boards"),
    (Section::Runs, "/runs", "Runs"),
    (Section::Changes, "/changes", "Changes"),
    (Section::Culprits, "/culprits", "Culprits"),
    (Section::Kernels, "/kernels", "Kernels"),
    (Section::Compare, "/compare", "Compare"),
    (Section::Account, "/login", "Account"),
];

/// The rules that all pages are laid out by.
pub fn style_sheet() -> String {
    report::html::styles() + include_str!("farm.css")
}

/// A page with this heading.
pub fn page(here: Option<Section>, heading: &str, body: Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                link rel="icon" href="data:,";
                link rel="stylesheet" href="/assets/farm.css";
                title { (heading) " - onbeat farm" }
            }
            body {
                nav.farm aria-label="The farm" {
                    span.brand { "onbeat farm" }
                    @for (section, address, name) in SECTIONS {
                        a href=(address) aria-current=[(here == Some(section)).then_some("page")] { (name) }
                    }
                }
                main {
                    h1 { (heading) }
                    (body)
                }
            }
        }
    }
    .into_string()
}

/// The page of a request that is refused.
pub fn refusal(status: u16, detail: &str) -> String {
    let heading = match status {
        404 => "Not found",
        400 | 422 => "This cannot be shown",
        401 | 403 => "Not permitted",
        429 => "Too many requests",
        refused if refused < 500 => "Request refused",
        _ => "Internal error",
    };
    page(None, heading, html! { p.lead { (as_sentence(detail)) } p { a href="/" { "All boards" } } })
}

/// A reason with a capital letter, unless it begins with a possible name, which stays unchanged.
pub fn as_sentence(reason: &str) -> String {
    let first = reason.split(' ').next().unwrap_or_default();
    if first.bytes().all(|byte| byte.is_ascii_lowercase()) { capitalised(reason) } else { reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_the_farms_own_fault_is_its_failure_and_names_stay_as_they_are() {
        for (status, heading) in [(404, "Not found"), (409, "Request refused"), (413, "Request refused")] {
            let text = refusal(status, "too much: send less");
            assert!(text.contains(heading) && text.contains("Too much") && !text.contains("Internal"));
        }
        assert!(refusal(503, "s3://x is away").contains("Internal error"));
        for name in ["s3://x is away", "press-3 has a token", "--store: none", ""] {
            assert_eq!(as_sentence(name), name);
        }
    }

    #[test]
    fn a_page_needs_no_script_and_names_no_other_address() {
        let text = page(Some(Section::Culprits), "<b>x</b>", html! { p { "y" } });
        assert!(text.contains("&lt;b&gt;x") && !text.contains("<script") && !text.contains("://"));
        assert!(text.contains(r#"href="/culprits" aria-current="page""#));
        assert!(!style_sheet().contains("://") && !style_sheet().contains("@import"));
        let edges = "background-attachment:local,local,scroll,scroll";
        assert!(style_sheet().contains(edges), "a table that scrolls sideways shows that it does");
        assert!(refusal(404, "no board of this name: look at the list").contains("Not found"));
    }
}
