//! `onbeat-farm budget`: latency budgets.

use model::error::{Exit, Failure, Result};
use model::units::{Bare, Nanos, parse_span};

use crate::board_settings::{BudgetsDocument, budget_text, check_tag};
use crate::cli::flags::store_flag::StoreFlag;
use crate::cli::output::document_flags::DocumentFlags;
use crate::cli::{FarmEnvironment, note};
use crate::records::FarmBoard;
use crate::store::FarmStore;

/// Set or print latency budgets of boards
///
/// A board's budget is its own, else the smallest of its tags, else that of all boards. The pages
/// report a day whose largest latency exceeds it as a change.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat-farm budget 200us\n  onbeat-farm budget 100us --tag arm\n  onbeat-farm \
     budget none --board press-3\n  onbeat-farm budget"
)]
pub struct Args {
    /// A latency, or `none` to remove the budget; without it, budgets are printed
    #[arg(value_name = "LATENCY")]
    limit: Option<String>,
    /// Set the budget of boards with this tag
    #[arg(long, value_name = "TAG", conflicts_with = "board")]
    tag: Option<String>,
    /// Set the budget of this board only
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
        let found = args.asked(&store).await?;
        print(&found, &args.output)?;
        args.output.write(&found)?;
        return Ok(Exit::Ok);
    };
    let limit = limit(text)?;
    let whose = match (&args.board, args.tag()?) {
        (Some(board), _) => {
            set_of_board(&store, board, limit).await?;
            board.clone()
        }
        (None, Some(tag)) => {
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

impl Args {
    /// The normalized tag.
    fn tag(&self) -> Result<Option<String>> {
        let Some(tag) = self.tag.as_ref().map(|tag| tag.to_lowercase()) else { return Ok(None) };
        check_tag(&tag).map_err(|why| Failure::usage(format!("--tag: {why}")))?;
        Ok(Some(tag))
    }

    /// All budgets, or only that of the named tag or board.
    async fn asked(&self, store: &FarmStore) -> Result<BudgetsDocument> {
        let tag = self.tag()?;
        if let Some(board) = &self.board {
            known(store, board).await?;
        }
        let mut found = store.all_budgets().await?;
        if tag.is_some() || self.board.is_some() {
            found.fleet_ns = None;
            found.tags.retain(|of| Some(&of.tag) == tag.as_ref());
            found.boards.retain(|of| Some(&of.board) == self.board.as_ref());
        }
        Ok(found)
    }
}

fn limit(text: &str) -> Result<Option<Nanos>> {
    if text == "none" {
        return Ok(None);
    }
    let span =
        parse_span(text, Bare::Micros).map_err(|why| Failure::usage(format!("invalid budget: {why}")))?;
    if span.0 > 0 {
        Ok(Some(span))
    } else {
        Err(Failure::usage("invalid budget: expected a longer latency, like 100us, or none"))
    }
}

async fn known(store: &FarmStore, board: &str) -> Result<FarmBoard> {
    let boards = store.boards_of(Some(board)).await?;
    boards
        .into_iter()
        .next()
        .ok_or_else(|| Failure::usage("--board: no board has this name: see the list of boards"))
}

async fn set_of_board(store: &FarmStore, name: &str, limit: Option<Nanos>) -> Result<()> {
    let board = known(store, name).await?;
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
    use crate::store::engines::on_each_engine;

    #[test]
    fn of_a_tag_or_a_board_its_own_budget_is_given_alone() {
        on_each_engine(async |store| {
            for board in ["b1", "b2"] {
                store.board_for(board, board).await.unwrap();
                set_of_board(&store, board, Some(Nanos(7_000))).await.unwrap();
            }
            for (tag, limit) in [("", 1_000), ("arm", 2_000), ("x86", 3_000)] {
                store.set_budget(tag, Some(Nanos(limit))).await.unwrap();
            }
            let asked = async |tag: Option<&str>, board: Option<&str>| {
                let args = Args {
                    limit: None,
                    tag: tag.map(str::to_owned),
                    board: board.map(str::to_owned),
                    store: StoreFlag::default(),
                    output: DocumentFlags::default(),
                };
                let found = args.asked(&store).await?;
                let tags: Vec<String> = found.tags.into_iter().map(|of| of.tag).collect();
                let boards: Vec<String> = found.boards.into_iter().map(|of| of.board).collect();
                Ok::<_, Failure>((found.fleet_ns, tags.join(" "), boards.join(" ")))
            };
            let said =
                |fleet: Option<Nanos>, tags: &str, boards: &str| (fleet, tags.to_owned(), boards.to_owned());
            assert_eq!(asked(None, None).await.unwrap(), said(Some(Nanos(1_000)), "arm x86", "b1 b2"));
            assert_eq!(asked(Some("ARM"), None).await.unwrap(), said(None, "arm", ""));
            assert_eq!(asked(None, Some("b1")).await.unwrap(), said(None, "", "b1"));
            assert_eq!(asked(Some("none"), None).await.unwrap(), said(None, "", ""));
            for (tag, board) in [(Some("a tag"), None), (None, Some("b3"))] {
                assert_eq!(asked(tag, board).await.unwrap_err().exit, Exit::Usage);
            }
        });
    }

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
