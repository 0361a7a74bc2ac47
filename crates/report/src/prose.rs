//! Sentences on a page: text in backticks becomes code, and external text is escaped. Sentences of
//! two halves, for pages and screens.

use maud::{Markup, html};

use crate::words::clean;

/// Sentence with its commands and file names set as code. An unpaired back-tick stays as it is.
pub fn prose(text: &str) -> Markup {
    let text = clean(text);
    let parts: Vec<&str> = text.split('`').collect();
    // Between back-ticks are the parts at odd places; the last of an odd number of ticks opens
    // nothing.
    let paired = parts.len() % 2 == 1;
    html! {
        @for (at, part) in parts.iter().enumerate() {
            @let last = at + 1 == parts.len();
            @if at % 2 == 1 && (paired || !last) && !part.is_empty() { (code(part)) }
            @else if at % 2 == 1 && (!paired && last) { "`" (part) }
            @else { (part) }
        }
    }
}

/// Code whose flags are not split: browsers break lines after a hyphen.
fn code(text: &str) -> Markup {
    html! {
        code {
            @for (at, word) in text.split(' ').enumerate() {
                @if at > 0 { " " }
                @if word.starts_with('-') { span class="flag" { (word) } } @else { (word) }
            }
        }
    }
}

/// A shortage and what to do about it, one behind the other or each by itself: names in them may
/// hold whatever stands between the two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortfall {
    pub what: String,
    pub remedy: String,
}

impl std::fmt::Display for Shortfall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.what, self.remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_code_and_external_text_is_escaped() {
        let page = |text: &str| prose(text).into_string();
        assert_eq!(
            page("run `onbeat hunt -D 1h` as root"),
            "run <code>onbeat hunt <span class=\"flag\">-D</span> 1h</code> as root"
        );
        assert_eq!(page("`a` and `b`"), "<code>a</code> and <code>b</code>");
        assert_eq!(page("no tick, `one left"), "no tick, `one left");
        assert_eq!(page("`a` `"), "<code>a</code> `");
        assert_eq!(page("`<b>\u{202e}`"), "<code>&lt;b&gt;\u{fffd}</code>");
        assert_eq!(page(""), "");
    }
}
