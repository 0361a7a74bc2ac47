//! Result of a cure: printed, written, and turned into an exit code.

use std::path::Path;

use super::Args;
use crate::cli::outputs::Outputs;
use experiment::cure::{CureEnd, is_late, remaining};
use model::cure::CureRun;
use model::error::{Exit, Result};
use report::curing::{markdown, text};

/// Prints and writes the record up to now.
pub fn print_answer(outputs: &mut Outputs, args: &Args, folder: &Path, record: &mut CureRun) -> Result<()> {
    record.remaining = remaining(record);
    outputs.json_pretty(&args.output.json, &*record);
    outputs.write(&args.markdown, || Ok(markdown::render(record)));
    outputs.write(&args.page, || study::curing::page(folder, record));
    let screen = outputs.screen;
    outputs.print(&text::render(record, screen.columns, screen.color));
    Ok(())
}

/// Exit code of a cure; the limit only counts as exceeded if the last run shows it.
pub fn exit(end: CureEnd, record: &CureRun) -> Exit {
    match end {
        CureEnd::Held => Exit::Ok,
        CureEnd::Signal => Exit::Interrupted,
        _ if is_late(record) => Exit::Limit,
        _ => Exit::Inconclusive,
    }
}
