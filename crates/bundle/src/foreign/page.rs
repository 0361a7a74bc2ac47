//! docs/formats.md, made from the formats' records.

use super::{FORMATS, ForeignFormat, Reader};

const INTRODUCTION: &str = "\
# Formats of other tools

Made by `cargo xtask docs`; change the record of the format in `crates/bundle/src/foreign/`.

`onbeat import FILE` recognises a format by the file's heading, footer, command line, columns and units.
Rows without a heading are refused unless `--as FORMAT` names their format.
Results within a longer log are found; each becomes a bundle, `--block N` chooses one.
Prefixes of logs are stripped if all lines of a result have them.
Lines of the kernel's log within a result are skipped, with their number in a remark.
A truncated result is skipped if the file has complete ones, and refused otherwise.
Values that a format lacks are null in the run.

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
            page += &format!("- limits: {}\n", format.hides);
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
