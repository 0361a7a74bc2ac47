//! `onbeat-farm budget`: how late boards may be.

use model::error::{Exit, Failure, Result};
use model::units::{Bare, Nanos, parse_span};

use super::document_flags::DocumentFlags;
use super::store_flag::StoreFlag;
use super::{FarmEnvironment, note};
use crate::board_settings::{BudgetsDocument, budget_text, check_tag};
use crate::store::FarmStore;

/// Say how late boards may be, or print what was said
///
/// A board has its own budget, else the smallest of its tags, else that of all boards. A day whose
/// largest latency is above it is a change on the pages.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat-farm budget 200us\n  onbeat-farm budget 100us --tag arm\n  onbeat-farm \
     budget none --board press-3\n  onbeat-farm budget"
)]
pub struct Args {
    /// A latency, or `none` to take it away; without it budgets are printed
    #[arg(value_name = "LATENCY")]
    limit: Option<String>,
    /// Of boards with this tag
    #[arg(long, value_name = "TAG", conflicts_with = "board")]
    tag: Option<String>,
    /// Of this board alone
    #[arg(long, value_name = "BOARD")]
    board: Option<String>,
    #[command(flatten)]
    store: StoreFlag,
    #[command(flatten)]
    output: DocumentFlags,
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    args.output.check()?;
    let store = args.store.place(environment)?.open_existing().await?;
    let Some(text) = &args.limit else {
        let found = store.all_budgets().await?;
        print(&found, &args.output)?;
        args.output.write(&found)?;
        return Ok(Exit::Ok);
    };
    let limit = limit(text)?;
    let whose = match (&args.board, &args.tag) {
        (Some(board), _) => {
            set_of_board(&store, board, limit).await?;
            board.clone()
        }
        (None, Some(tag)) => {
            let tag = tag.to_lowercase();
            check_tag(&tag).map_err(|why| Failure::usage(format!("--tag: {why}")))?;
            store.set_budget(&tag, limit).await?;
            format!("tag {tag}")
        }
        (None, None) => {
            store.set_budget("", limit).await?;
            "all boards".to_owned()
        }
    };
    let said = limit.map_or_else(|| "none".to_owned(), budget_text);
    let what = format!("set the budget of {whose}: {said}");
    note(&store, what).await?;
    args.output.write(&store.all_budgets().await?)?;
    Ok(Exit::Ok)
}

fn limit(text: &str) -> Result<Option<Nanos>> {
    if text == "none" {
        return Ok(None);
    }
    let span = parse_span(text, Bare::Micros).map_err(|why| Failure::usage(format!("the budget: {why}")))?;
    match span.0 > 0 {
        true => Ok(Some(span)),
        false => Err(Failure::usage("the budget: no latency is so short: write it like 100us, or none")),
    }
}

async fn set_of_board(store: &FarmStore, name: &str, limit: Option<Nanos>) -> Result<()> {
    let boards = store.boards_of(Some(name)).await?;
    let Some(board) = boards.into_iter().next() else {
        return Err(Failure::usage("--board: there is no board of this name: look at the list of boards"));
    };
    let mut settings = board.settings;
    settings.own_budget = limit;
    store.set_settings(name, &board.name, &settings).await?;
    Ok(())
}

fn print(found: &BudgetsDocument, output: &DocumentFlags) -> Result<()> {
    let fleet = found.fleet_ns.map(|limit| ("all boards".to_owned(), limit));
    let tags = found.tags.iter().map(|of| (format!("tag {}", of.tag), of.budget_ns));
    let boards = found.boards.iter().map(|of| (of.board.clone(), of.budget_ns));
    for (whose, limit) in fleet.into_iter().chain(tags).chain(boards) {
        output.print(&format!("{whose}\t{}", budget_text(limit)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_latency_or_none() {
        assert_eq!((limit("none").unwrap(), limit("1.5us").unwrap()), (None, Some(Nanos(1_500))));
        assert!(limit("0").is_err() && limit("much").is_err());
        assert_eq!(
            (budget_text(Nanos(1_500)), budget_text(Nanos(100_000))),
            ("1500ns".into(), "100us".into())
        );
    }
}
