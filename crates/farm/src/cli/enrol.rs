//! `onbeat-farm enrol`: codes with which boards enrol, and the end of a board's token.

use std::io::Write;

use model::error::{Exit, Failure, Result};
use model::text::clean;

use super::store_flag::StorePlace;
use super::{FarmEnvironment, say};
use crate::board_settings::lab_tag;
use crate::ingest::environment::hex;
use crate::ingest::find::board_key;
use crate::web::sender::{digest_of, now};

/// How long a code is good.
const GOOD_FOR_S: i64 = 86_400;

/// Print codes with which boards enrol, each good once and for a day
///
/// A board sends its code and its name to /v1/enrol, and gets a token of its own. The store keeps
/// digests alone: a lost code or token is replaced by a new one.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  onbeat-farm enrol --count 10 --lab west\n  onbeat-farm enrol --name \
     press-3\n  onbeat-farm enrol --revoke press-3")]
pub struct Args {
    /// How many codes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser =
        clap::value_parser!(u16).range(1..=1000))]
    count: u16,
    /// Where the boards that enrol with them are: each gets the tag lab=NAME
    #[arg(long, value_name = "NAME", conflicts_with = "revoke")]
    lab: Option<String>,
    /// Print a code for this board alone, which may be one that is there: it was revoked, or its
    /// runs were imported. It keeps its runs, rows and tags
    #[arg(long, value_name = "BOARD", conflicts_with_all = ["count", "revoke"])]
    name: Option<String>,
    /// Make the tokens of this board void instead
    #[arg(long, value_name = "BOARD", conflicts_with = "count")]
    revoke: Option<String>,
    /// The store, sqlite:PATH or postgres://.. [default: onbeat/farm.db in the state folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    let store = StorePlace::of(args.store.as_deref(), environment)?.open().await?;
    if let Some(board) = &args.revoke {
        return match store.revoke(board, now()).await? {
            0 => {
                Err(Failure::usage("--revoke: no board of this name has a token: look at the list of boards"))
            }
            _ => Ok(Exit::Ok),
        };
    }
    let tags = lab_tag(args.lab.as_deref().unwrap_or_default());
    let tags = tags.map_err(|why| Failure::usage(format!("--lab: {why}")))?;
    let board = args.name.as_deref().map(key_of).transpose()?;
    for _ in 0..args.count {
        let secret = host::secret().map_err(|error| {
            Failure::internal(format!("the kernel gives no random numbers ({error}): try again"))
        })?;
        let code = hex(&secret[..16]);
        let (digest, until) = (digest_of(&code), now() + GOOD_FOR_S);
        match &board {
            None => store.add_code(&digest, until, &tags).await?,
            Some(board) => {
                let made = store.add_code_for(board, &digest, until, &tags).await?;
                if !made {
                    return Err(Failure::usage(format!(
                        "--name: {board} has a token: revoke it first (onbeat-farm enrol --revoke {board})"
                    )));
                }
            }
        }
        // A code that could not be printed is of no use.
        writeln!(std::io::stdout(), "{code}")
            .map_err(|error| Failure::internal(format!("cannot print the code ({error}): try again")))?;
    }
    let each = if args.count == 1 { "this code is" } else { "each code is" };
    say(&format!(
        "onbeat-farm: {each} for one board, once and for a day: run `onbeat-push enrol URL CODE` there"
    ));
    Ok(Exit::Ok)
}

/// A board's name as it is in addresses.
fn key_of(name: &str) -> Result<String> {
    match clean(name.trim()) {
        name if name.is_empty() => Err(Failure::usage("--name: a board has a name: give it")),
        name => Ok(board_key(&name)),
    }
}
