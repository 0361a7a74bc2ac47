//! docs/formats.md, made from the formats' records.

use super::{FORMATS, ForeignFormat, Reader};

const INTRODUCTION: &str = "\
# Formats of other tools

Made by `cargo xtask docs`; change the record of the format in `crates/bundle/src/foreign/`.

`onbeat import FILE` recognises a format by what the file says of itself: heading, footer, command line,
columns, units.
Rows without their heading are refused, and read with `--as FORMAT`.
Results within a longer log are found; each becomes a bundle, `--block N` chooses one.
Prefixes of logs are stripped where all lines of a result have them.
Lines of the kernel's log between are passed over, with their number in a remark.
A result that is cut is omitted where others are whole, and refused where it is alone.
What a format does not carry is null in the run.

";

/// The page as Markdown.
pub fn markdown() -> String {
    let (read, refused): (Vec<&ForeignFormat>, Vec<&ForeignFormat>) =
        FORMATS.iter().copied().partition(|format| matches!(format.reader, Reader::Run(_)));
    let mut page = INTRODUCTION.to_owned();
    page += "| tool | `--as` | versions tried | seen |\n|---|---|---|---|\n";
    for format in &read {
        let ForeignFormat { tool, id, versions, origin, .. } = format;
        page += &format!("| {tool} | `{id}` | {versions} | {origin} |\n");
    }
    for format in &read {
        page += &format!("\n## {}\n\n- carries: {}\n", format.tool, format.carries);
        if !format.hides.is_empty() {
            page += &format!("- does not tell: {}\n", format.hides);
        }
    }
    if !refused.is_empty() {
        page += "\n## Recognised and refused\n\n| tool | instead |\n|---|---|\n";
    }
    for format in &refused {
        if let Reader::Refused(instead) = format.reader {
            page += &format!("| {} | {instead} |\n", format.tool);
        }
    }
    page
}
