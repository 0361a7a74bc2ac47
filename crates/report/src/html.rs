//! Common parts of every page: its frame, pictures, tables, and the data at its end.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::boundary::for_viewer;
use crate::plot::svg::{Picture, Size};
use crate::plot::theme;
use crate::prose::prose;
use crate::script::{self, PageScript};
use model::text::harmless;

/// Parts of a page, for use in another frame.
#[derive(Clone, Debug)]
pub struct PageParts {
    /// Heading as text, not markup.
    pub heading: String,
    pub body: Markup,
    /// Script that the body needs after it; it selects the policy.
    pub script: Option<PageScript>,
}

impl PageParts {
    /// Complete page of these parts.
    pub fn page(self) -> String {
        match self.script {
            Some(script) => page_with_script(script, &self.heading, self.body),
            None => page_of(&self.heading, self.body),
        }
    }
}

/// Style sheet of all pages.
pub fn styles() -> String {
    theme::css() + include_str!("page.css")
}

/// Page with this heading.
pub fn page_of(heading: &str, body: Markup) -> String {
    page_under(script::POLICY, heading, body)
}

/// Page whose policy allows this script, with which the body ends.
pub fn page_with_script(script: PageScript, heading: &str, body: Markup) -> String {
    page_under(&script.policy(), heading, html! { (body) (script.element()) })
}

fn page_under(policy: &str, heading: &str, body: Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy);
                link rel="icon" href="data:,";
                title { (heading) }
                style { (PreEscaped(styles())) }
            }
            body {
                main {
                    h1 { (heading) }
                    (body)
                }
            }
        }
    };
    for_viewer(page.into_string())
}

/// Data of the page as JSON. In strings, the only place they can occur, the characters that could
/// end the element or open a comment are written as escapes.
pub fn document(json: &str) -> Markup {
    data("onbeat-run", json)
}

/// Like `document`, under another id.
pub fn data(id: &str, json: &str) -> Markup {
    let safe = harmless(json).replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    html! { script type="application/json" id=(id) { (PreEscaped(safe)) } }
}

/// Picture in both sizes, one of which is shown, with its caption and notes.
pub fn figure(caption: &str, draw: impl Fn(Size) -> Option<Picture>) -> Markup {
    let (Some(wide), Some(narrow)) = (draw(Size::Wide), draw(Size::Narrow)) else { return html! {} };
    html! {
        figure {
            (wide.inline("wide"))
            (narrow.inline("narrow"))
            figcaption { (caption) @for note in &wide.notes { " " (note) } }
        }
    }
}

/// Table that may be wider than the page.
pub fn scroll(name: &str, table: Markup) -> Markup {
    html! { div class="scroll" role="region" aria-label=(name) tabindex="0" { (table) } }
}

/// Table whose rows are cards on a narrow screen, which would cut its texts off.
pub fn cards(name: &str, table: Markup) -> Markup {
    html! { div class="scroll cards" role="region" aria-label=(name) tabindex="0" { (table) } }
}

/// Next steps, as sentences with commands in back-ticks; nothing if there are none.
pub fn next(steps: &[String]) -> Markup {
    html! {
        @if !steps.is_empty() {
            p class="next" {
                strong { "What to do next: " }
                @for (at, step) in steps.iter().enumerate() { @if at > 0 { " " } (prose(step)) }
            }
        }
    }
}

pub fn pairs(pairs: &[(&'static str, String)]) -> Markup {
    html! { dl { @for (name, value) in pairs { div { dt { (name) } dd { (prose(value)) } } } } }
}
