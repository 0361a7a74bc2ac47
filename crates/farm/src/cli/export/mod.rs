//! `onbeat-farm export`: maxima and histograms for other programs.

pub mod parquet;
pub mod results;
pub mod slots;

use std::io::{self, BufWriter, Write};

use model::error::{Exit, Failure, Result};

use crate::cli::export::results::ResultFlags;
use crate::cli::export::slots::next_slots;
use crate::cli::flags::store_flag::StoreFlag;
use crate::cli::output::printed_output::PrintedOutput;
use crate::cli::output::progress::CommandProgress;
use crate::cli::{FarmEnvironment, say};
use crate::records::{FarmBoard, SeriesOfBoard, Tier};
use crate::store::{FarmStore, TimeStretch};
use crate::wall_clock::DAY;
use crate::web::answers::data::{HistogramDocument, cell, csv_head, csv_row};

/// Time span of one query.
const STRETCH: i64 = 7 * DAY;
const MOST: i64 = 1 << 20;

/// Print 5-minute maxima as CSV, histograms as lines of JSON, or runs as test results
///
/// The formats are those of the server's API, of all boards or of one, in order of time.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat-farm export > maxima.csv\n  onbeat-farm export --histograms 1d --board \
     press-3 > days.jsonl\n  onbeat-farm export --kcidb my_lab --limit 100us > report.json\n  onbeat-farm \
     export --lava --limit 100us --board press-3\n  onbeat-farm export --parquet maxima"
)]
pub struct Args {
    /// Export this board only
    #[arg(long, value_name = "BOARD")]
    board: Option<String>,
    /// Export histograms of 5m, 1h or 1d instead
    #[arg(long, value_name = "TIER")]
    histograms: Option<String>,
    #[command(flatten)]
    results: ResultFlags,
    /// Write maxima as Parquet files to this new folder instead: board=NAME/year=YYYY/month=MM
    #[arg(long, value_name = "DIR", conflicts_with_all = ["histograms", "kcidb", "lava"])]
    parquet: Option<std::path::PathBuf>,
    /// Begin at this second since 1970
    #[arg(long, value_name = "SECOND", default_value_t = 0)]
    from: i64,
    /// End before this second since 1970
    #[arg(long, value_name = "SECOND", default_value_t = i64::MAX)]
    to: i64,
    #[command(flatten)]
    store: StoreFlag,
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    let tier = match args.histograms.as_deref().map(Tier::of_name) {
        None => None,
        Some(Some(tier)) => Some(tier),
        Some(None) => return Err(Failure::usage("invalid --histograms: expected 5m, 1h or 1d")),
    };
    args.results.check()?;
    let store = args.store.place(environment)?.open_existing().await?;
    let boards = store.boards_of(args.board.as_deref()).await?;
    if args.from >= args.to {
        return Err(Failure::usage("invalid --from: expected a time before --to"));
    }
    if boards.is_empty() && args.board.is_some() {
        return Err(Failure::usage("--board: no board has this name: see the list of boards"));
    }
    if let Some(dir) = &args.parquet {
        let within = TimeStretch { from: args.from, to: args.to };
        let progress = CommandProgress::begin(!environment.dumb);
        return crate::cli::export::parquet::export(&store, &boards, within, dir, &progress).await;
    }
    let mut out = BufWriter::new(PrintedOutput::new(io::stdout().lock()));
    let outcome = print(args, &store, &boards, tier, &mut out).await;
    out.get_ref().ended(outcome)
}

async fn print(
    args: &Args,
    store: &FarmStore,
    boards: &[FarmBoard],
    tier: Option<Tier>,
    out: &mut impl Write,
) -> Result<Exit> {
    let failed = |error: io::Error| Failure::internal(format!("cannot print it ({error}): try again"));
    if args.results.is_given() {
        args.results.print(store, boards, args.from..args.to, out).await?;
        out.flush().map_err(failed)?;
        return Ok(Exit::Ok);
    }
    if tier.is_none() {
        writeln!(out, "board,series,plan,{}", csv_head()).map_err(failed)?;
    }
    let mut left_out = 0;
    for board in boards {
        for series in store.series(&board.board).await? {
            left_out += export(store, board, &series, tier, args, out).await?;
        }
    }
    out.flush().map_err(failed)?;
    Ok(if left_out > 0 { Exit::Inconclusive } else { Exit::Ok })
}

/// Prints a series; returns the number of time spans that could not be read.
async fn export(
    store: &FarmStore,
    board: &FarmBoard,
    series: &SeriesOfBoard,
    tier: Option<Tier>,
    args: &Args,
    out: &mut impl Write,
) -> Result<u64> {
    let failed = |error: io::Error| Failure::internal(format!("cannot print it ({error}): try again"));
    let key = &series.key;
    // Senders may choose any name for a series.
    let (series, plan) = (cell(&key.series), cell(&key.plan));
    let Some((first, last)) = store.extent(&board.board, key).await? else { return Ok(0) };
    let mut left_out = 0;
    let (mut from, to) = (args.from.max(first), args.to.min(last.saturating_add(1)));
    while from < to {
        let within = TimeStretch { from, to: to.min(from.saturating_add(STRETCH)) };
        let mut end = within.to;
        if let Some(tier) = tier {
            let rows = store.tiers(&board.board, key, tier, within).await;
            let is_damaged = rows.is_err() && store.answers().await;
            // Damage is limited to one board: all others are exported.
            if let (Err(failure), true) = (&rows, is_damaged) {
                let (board, to) = (&board.board, within.to);
                say(&format!("onbeat-farm: {board}: {from} to {to} skipped: {failure}"));
                left_out += 1;
            }
            let rows = if is_damaged { Vec::new() } else { rows? };
            for row in rows {
                let document = HistogramDocument::of(row, None);
                let line = serde_json::json!({
                    "board": board.board, "series": key.series, "plan": key.plan, "histogram": document,
                });
                writeln!(out, "{line}").map_err(failed)?;
            }
        } else {
            let (slots, next) = next_slots(store, &board.board, key, within, MOST).await?;
            end = next;
            for slot in slots {
                let row = csv_row(&slot);
                writeln!(out, "{},{series},{plan},{row}", board.board).map_err(failed)?;
            }
        }
        from = end;
    }
    Ok(left_out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{block_on, named_rows};

    #[test]
    fn a_series_is_a_cell_whatever_it_is_called() {
        block_on(async {
            let store = FarmStore::in_memory().await.unwrap();
            store.board_for("a", "a").await.unwrap();
            let mut batch = named_rows::batch(0, 2, "x", "");
            for part in batch.rows.iter_mut().flat_map(|row| &mut row.parts) {
                part.key.series = "=a,b".into();
            }
            store.put_rows(&[batch]).await.unwrap();
            let board = store.boards().await.unwrap().remove(0);
            let series = store.series("a").await.unwrap().remove(0);
            let args = Args {
                board: None,
                histograms: None,
                results: ResultFlags::default(),
                parquet: None,
                from: 0,
                to: i64::MAX,
                store: StoreFlag::default(),
            };
            let mut out = Vec::new();
            assert_eq!(export(&store, &board, &series, None, &args, &mut out).await.unwrap(), 0);
            let text = String::from_utf8(out).unwrap();
            assert_eq!(text.lines().count(), 2, "{text}");
            assert!(text.lines().all(|line| line.starts_with("a,\"'=a,b\",")), "{text}");
        });
    }
}
