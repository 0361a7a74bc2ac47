//! Bounds that a run supports, as a section of the page: counting first, then the extrapolation or
//! the reason for its refusal.

use maud::{Markup, html};

use super::sentences::{beyond, beyond_heading, counting, headline, mark, not_covered, verdict};
use crate::html::scroll;
use crate::prose::prose;
use stats::bounds::Bounds;

pub fn section(title: &str, bounds: &Bounds) -> Markup {
    let structure = &bounds.structure.sentences;
    html! {
        h2 { "What this run supports" }
        @if let Some(claim) = &bounds.claim { p { strong { (verdict(bounds, claim)) } } }
        p class="muted" { (headline(title, bounds)) "." }
        h3 { "By counting alone" }
        (list(&counting(bounds)))
        h3 { (beyond_heading(&bounds.extrapolation)) }
        (list(&beyond(bounds)))
        @if !structure.is_empty() {
            h3 { "When the spikes came" }
            (list(structure))
        }
        @if let Some(sentence) = not_covered(bounds) { p { (sentence) } }
        (gates(bounds))
    }
}

fn list(sentences: &[String]) -> Markup {
    html! { ul { @for sentence in sentences { li { (prose(sentence)) } } } }
}

fn gates(bounds: &Bounds) -> Markup {
    let refused = bounds.gates.iter().filter(|gate| mark(gate) == "REFUSED").count();
    html! {
        details {
            summary { "Basis of an extrapolation: " (bounds.gates.len()) " checks, " (refused) " refused" }
            (scroll("The checks of the extrapolation", html! {
                table {
                    thead { tr { td {} th class="left" { "check" } th class="left" { "said" } th class="left" { "saw" } } }
                    tbody { @for gate in &bounds.gates {
                        tr {
                            th { (gate.id) } td class="left" { (gate.name) }
                            td class="left" { @if gate.passed { (mark(gate)) } @else { strong { (mark(gate)) } } }
                            td class="wrap" { (prose(&gate.detail)) }
                        }
                    } }
                }
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use model::units::Nanos;

    #[test]
    fn the_section_has_the_sentences_of_the_text() {
        let mut sample = fixture::quiet();
        sample.ask(Some(Nanos(1_000_000)));
        let bounds = sample.bounds.as_ref().unwrap();
        let text = section("<b>", bounds).into_string();
        for sentence in counting(bounds).iter().chain(&beyond(bounds)) {
            assert!(text.contains(&html! { (sentence) }.into_string()), "{sentence}");
        }
        assert!(text.contains("Inconclusive") && text.contains("Not covered") && !text.contains("<b>"));
        assert_eq!(text.matches("<tr>").count(), 1 + bounds.gates.len());
    }
}
