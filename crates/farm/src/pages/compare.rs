//! Runs against runs: the form, and the answer of `onbeat compare` below it.

use maud::{Markup, html};
use report::html::PageParts;

use super::{Section, page};

/// What is asked: ids of runs, and names of boards for their last runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComparisonForm {
    pub a: Vec<String>,
    pub b: Vec<String>,
    pub limit: String,
}

/// The form alone, or with why there is no answer.
pub fn form_page(form: &ComparisonForm, refused: Option<&str>) -> String {
    let body = html! {
        @if let Some(reason) = refused { p.banner { (reason) } }
        p.lead { "Is B better than A?" }
        (form_of(form))
    };
    page(Some(Section::Compare), "Compare", body)
}

/// The answer, and the form to ask again.
pub fn answer(form: &ComparisonForm, parts: PageParts) -> String {
    let body = html! {
        (parts.body)
        h2 { "Ask again" }
        (form_of(form))
    };
    page(Some(Section::Compare), &parts.heading, body)
}

fn form_of(form: &ComparisonForm) -> Markup {
    let side = |name: &'static str, title: &str, lines: &[String]| {
        html! { p { label { (title) br; textarea name=(name) rows="4" { (lines.join("\n")) } } } }
    };
    html! {
        form action="/compare" method="get" {
            p { "Name runs by their id, one a line; the name of a board stands for its last ten runs. The \
             run is the unit: several of each, made in turns, carry a verdict." }
            (side("a", "A", &form.a))
            (side("b", "B", &form.b))
            p { label { "Limit " input name="limit" value=(form.limit) placeholder="100us" maxlength="20"; } }
            p { button type="submit" { "Compare" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_stays_in_the_form_as_text() {
        let form =
            ComparisonForm { a: vec!["</textarea><b>".into()], b: vec!["r2".into()], limit: "\"x".into() };
        let text = form_page(&form, Some("no run of this id: <b>"));
        assert!(!text.contains("<b>") && text.contains("r2") && text.contains("&quot;x"));
    }
}
