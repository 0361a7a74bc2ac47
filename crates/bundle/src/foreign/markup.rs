//! Text within a document of XML or HTML: JUnit's `<system-out>`, a page's `<pre>`.

/// Characters of the named entities.
const ENTITIES: [(&str, char); 6] =
    [("lt", '<'), ("gt", '>'), ("amp", '&'), ("quot", '"'), ("apos", '\''), ("nbsp", ' ')];

const CDATA: &str = "<![CDATA[";

/// Text without its tags, each of which ends a line.
pub(super) fn text_within(document: &str) -> String {
    let mut text = String::with_capacity(document.len());
    let mut rest = document;
    while let Some(at) = rest.find(['<', '&']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(data) = rest.strip_prefix(CDATA) {
            let end = data.find("]]>").unwrap_or(data.len());
            text.push('\r');
            text.push_str(&data[..end]);
            rest = data.get(end + 3..).unwrap_or_default();
        } else if let Some((c, behind)) = entity(rest) {
            text.push(c);
            rest = behind;
        } else if let Some(behind) = tag(rest) {
            text.push('\r');
            rest = behind;
        } else {
            text.push_str(&rest[..1]);
            rest = &rest[1..];
        }
    }
    text.push_str(rest);
    text
}

/// Text after a tag at the start.
fn tag(text: &str) -> Option<&str> {
    let is_name = |c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?');
    let end = text.find('>').filter(|_| text[1..].starts_with(is_name))?;
    Some(&text[end + 1..])
}

/// Character of an entity at the start, and the text after it.
fn entity(text: &str) -> Option<(char, &str)> {
    let (name, behind) = text.get(1..)?.split_once(';').filter(|(name, _)| name.len() <= 8)?;
    let is_entity = text.starts_with('&');
    let named = || ENTITIES.iter().find(|entity| entity.0 == name).map(|entity| entity.1);
    let number = || {
        let number = name.strip_prefix('#')?;
        let code = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => number.parse().ok(),
        };
        code.and_then(char::from_u32)
    };
    named().or_else(number).filter(|_| is_entity).map(|c| (c, behind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::testing::{fixture, import_one};
    use proptest::prelude::*;

    #[test]
    fn results_are_read_within_a_document() {
        let text = fixture("smp-H60.txt");
        let expected = import_one(text);
        let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('#', "&#35;");
        for document in [
            format!(
                "<?xml version=\"1.0\"?>\n<testcase><system-out><![CDATA[{text}]]></system-out></testcase>\n"
            ),
            format!("<?xml version=\"1.0\"?>\n<testcase><system-out>{escaped}</system-out></testcase>\n"),
            format!("<html><body><p>Results of &quot;board&quot;</p><pre>\n{escaped}</pre></body></html>\n"),
        ] {
            assert_eq!(import_one(&document).cpus, expected.cpus);
        }
    }

    #[test]
    fn tags_end_a_line_and_entities_are_their_characters() {
        assert_eq!(
            text_within("<a>1 &lt; 2 & 3 &#x41;&#66;<br/>4<![CDATA[<5>]]></a>"),
            "\r1 < 2 & 3 AB\r4\r<5>\r"
        );
        assert_eq!(text_within("a <- b &nope; <![CDATA[open"), "a <- b &nope; \ropen");
    }

    proptest! {
        #[test]
        fn any_document_has_a_text(document in "(<|>|&|;|#|lt|<!\\[CDATA\\[|\\]\\]>|\\PC){0,40}") {
            text_within(&document);
        }
    }
}
