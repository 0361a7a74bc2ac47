//! The common parts of every page: its frame, pictures, tables, and the data at its end.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::boundary::for_viewer;
use crate::plot::svg::{Picture, Size};
use crate::plot::theme;
use crate::prose::prose;
use crate::script::{self, PageScript};
use model::text::harmless;

/// What stands on a page, for a frame of one's own.
#[derive(Clone, Debug)]
pub struct PageParts {
    /// Text, not markup.
    pub heading: String,
    pub body: Markup,
    /// What the body needs after it, and a policy that lets it run.
    pub script: Option<PageScript>,
}

impl PageParts {
    /// As a page of its own.
    pub fn page(self) -> String {
        match self.script {
            Some(script) => page_with_script(script, &self.heading, self.body),
            None => page_of(&self.heading, self.body),
        }
    }
}

/// The rules that all pages are laid out by.
pub fn styles() -> String {
    theme::css() + include_str!("page.css")
}

/// A page with this heading.
pub fn page_of(heading: &str, body: Markup) -> String {
    page_under(script::POLICY, heading, body)
}

/// A page whose policy lets this script run, which the body ends with.
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

/// What the page shows, as JSON. Within strings, where alone they can occur, the characters that
/// could end the element or open a comment are written as escapes.
pub fn document(json: &str) -> Markup {
    data("onbeat-run", json)
}

/// The same under another name.
pub fn data(id: &str, json: &str) -> Markup {
    let safe = harmless(json).replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    html! { script type="application/json" id=(id) { (PreEscaped(safe)) } }
}

/// A picture in both sizes, of which one is shown, and what it does not draw.
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

/// A table that may be wider than the page.
pub fn scroll(name: &str, table: Markup) -> Markup {
    html! { div class="scroll" role="region" aria-label=(name) tabindex="0" { (table) } }
}

/// The same; on a telephone each row is a card, because what it says would be off the screen.
pub fn cards(name: &str, table: Markup) -> Markup {
    html! { div class="scroll cards" role="region" aria-label=(name) tabindex="0" { (table) } }
}

/// What to do next, as sentences with commands in back-ticks; nothing where there is none.
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
