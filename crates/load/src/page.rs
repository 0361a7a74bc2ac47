//! Page of all loads as Markdown, from their records.

use crate::load::Load;
use crate::loads::{LOADS, MIXES};
use model::size;

/// Text for all loads: their names, proofs and cages.
const COMMON: &str = include_str!("common.md");

/// Complete page.
pub fn markdown() -> String {
    let mut page = String::from(COMMON);
    page.push_str("\n## The loads\n");
    LOADS.iter().for_each(|load| section(load, &mut page));
    page.push_str("\n## Mixes\n\n");
    for (name, mix) in MIXES {
        page.push_str(&format!("- `{name}`: `{mix}`\n"));
    }
    page
}

fn section(load: &Load, page: &mut String) {
    let doc = load.doc.replace(". ", ".\n");
    page.push_str(&format!("\n### {}: {}\n\n{doc}\n\n", load.name, load.title));
    let count = match load.count.default {
        _ if load.count.what.is_empty() => None,
        None => Some(format!("COUNT: {}, one for each CPU of the load by default", load.count.what)),
        Some(default) => Some(format!("COUNT: {}, {default} by default", load.count.what)),
    };
    let size = load.size.map(|size| {
        let [least, most, default] = [size.least, size.most, size.default].map(size::text);
        format!("SIZE: {}, {least} to {most}, {default} by default", size.what)
    });
    let keys = load.keys.iter().map(|key| match key.values {
        [] => format!("`{}=`: {}", key.name, key.what),
        values => format!("`{}=`: {}, {}", key.name, key.what, values.join(" or ")),
    });
    let unit = if load.unit.is_empty() { "none" } else { load.unit };
    let rate = if load.paced { "; takes a rate" } else { "" };
    let window = load.window.0 / 1_000_000_000;
    let proof =
        format!("counts: {unit}{rate}; the kernel's count: {}; windows of {window} s", load.figure.words());
    for line in count.into_iter().chain(size).chain(keys).chain([proof]) {
        page.push_str(&format!("- {line}\n"));
    }
}
