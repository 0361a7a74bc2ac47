//! `onbeat-farm enrol`: codes with which boards enrol, and the end of a board's token.

use std::io::Write;

use model::error::{Exit, Failure, Result};
use model::text::several;
use serde::Serialize;

use crate::board_settings::lab_tag;
use crate::cli::flags::store_flag::StoreFlag;
use crate::cli::output::document_flags::DocumentFlags;
use crate::cli::{FarmEnvironment, check_name, note};
use crate::ingest::board_key::board_of;
use crate::ingest::environment::hex;
use crate::store::FarmStore;
use crate::wall_clock::{DAY, now};
use crate::web::login::sender::digest_of;

/// Validity of a code, in seconds.
const GOOD_FOR_S: i64 = DAY;

/// Create one-time enrolment codes, valid for 24 hours
///
/// A board sends its code and its name to /v1/enrol and gets its own token. The store keeps only
/// digests: replace a lost code or token by a new one.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  onbeat-farm enrol --count 10 --lab west\n  onbeat-farm enrol --name \
     press-3\n  onbeat-farm enrol --revoke press-3")]
pub struct Args {
    /// Number of codes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser =
        clap::value_parser!(u16).range(1..=1000))]
    count: u16,
    /// Location of the boards that enrol with them: each gets the tag lab=NAME. Refused for a known
    /// board, which keeps its tags
    #[arg(long, value_name = "NAME", conflicts_with = "revoke")]
    lab: Option<String>,
    /// Print a code for this board only. It may be a known board that was revoked, or whose runs
    /// were imported: it keeps its runs, rows and tags
    #[arg(long, value_name = "BOARD", conflicts_with_all = ["count", "revoke"])]
    name: Option<String>,
    /// Revoke the tokens of this board instead
    #[arg(long, value_name = "BOARD", conflicts_with = "count")]
    revoke: Option<String>,
    #[command(flatten)]
    store: StoreFlag,
    #[command(flatten)]
    output: DocumentFlags,
}

/// Codes that were created, or the board that was revoked.
#[derive(Default, Serialize)]
struct EnrolDocument<'a> {
    schema: &'static str,
    codes: Vec<String>,
    /// Validity, in seconds.
    good_for_s: i64,
    /// The board that they are for; `None` for any new one.
    board: Option<String>,
    /// Tags of the boards that enrol with them.
    tags: Vec<String>,
    /// The board whose tokens were revoked.
    revoked: Option<&'a str>,
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    args.output.check()?;
    args.check()?;
    let place = args.store.place(environment)?;
    let store = if args.revoke.is_some() { place.open_existing().await? } else { place.open_told().await? };
    let mut document = EnrolDocument { schema: "onbeat.farm-enrol/1", ..EnrolDocument::default() };
    if let Some(board) = &args.revoke {
        revoke(&store, board).await?;
        document.revoked = Some(board);
        args.output.write(&document)?;
        return Ok(Exit::Ok);
    }
    document.board = args.board();
    document.codes = made(&store, args).await?;
    for code in document.codes.iter().filter(|_| args.output.prints()) {
        // A code that could not be printed is of no use.
        writeln!(std::io::stdout(), "{code}")
            .map_err(|error| Failure::internal(format!("cannot print the code ({error}): try again")))?;
    }
    document.good_for_s = GOOD_FOR_S;
    document.tags = args.tags()?;
    args.output.write(&document)?;
    let each = if args.count == 1 { "this code is" } else { "each code is" };
    args.output.remark(&format!(
        "{each} for one board, valid once within 24 hours: run `onbeat-push enrol URL CODE` there"
    ));
    Ok(Exit::Ok)
}

impl Args {
    /// Looks at the flags before anything is opened.
    fn check(&self) -> Result<()> {
        check_name("--name", "board", self.name.as_ref(), "give one")?;
        check_name("--lab", "lab", self.lab.as_ref(), "give one, or omit --lab")?;
        self.tags().map(drop)
    }

    /// Tags of the boards that enrol with the codes.
    fn tags(&self) -> Result<Vec<String>> {
        let tags = lab_tag(self.lab.as_deref().unwrap_or_default());
        tags.map_err(|why| Failure::usage(format!("--lab: {why}")))
    }

    /// The only board that may use the code.
    fn board(&self) -> Option<String> {
        Some(board_of(self.name.as_deref()?.trim()).0)
    }
}

async fn revoke(store: &FarmStore, board: &str) -> Result<()> {
    if store.revoke(board, now()).await? == 0 {
        return Err(Failure::usage("--revoke: no board of this name has a token: see the list of boards"));
    }
    note(store, format!("revoked the token of {board}")).await
}

/// Creates the codes and stores them.
async fn made(store: &FarmStore, args: &Args) -> Result<Vec<String>> {
    let (tags, board) = (args.tags()?, args.board());
    if let Some(board) = &board {
        look_at(store, board, &tags, &args.output).await?;
    }
    let mut codes = Vec::new();
    for _ in 0..args.count {
        let secret = host::secret().map_err(|error| {
            Failure::internal(format!("cannot get random numbers from the kernel ({error}): try again"))
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
        codes.push(code);
    }
    let whom = board.as_deref().unwrap_or("boards");
    let tag = tags.first().map(|tag| format!(", {tag}")).unwrap_or_default();
    let many = several(codes.len() as u64, "code", "codes");
    note(store, format!("created {many} to enrol {whom}{tag}")).await?;
    Ok(codes)
}

/// An enrolled board keeps its tags; an unknown one causes a remark, since its name may be
/// mistyped.
async fn look_at(store: &FarmStore, board: &str, tags: &[String], output: &DocumentFlags) -> Result<()> {
    let is_there = !store.boards_between(board, board).await?.is_empty();
    if is_there && !tags.is_empty() {
        return Err(Failure::usage(format!(
            "--lab: {board} is known and keeps its tags: omit --lab, and change them on its page"
        )));
    }
    if !is_there {
        output.remark(&format!("no board {board} exists yet: the code creates it"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::EnrolOutcome;
    use crate::store::engines::on_each_engine;

    fn asked(name: Option<&str>, lab: Option<&str>, count: u16) -> Args {
        Args {
            count,
            lab: lab.map(str::to_owned),
            name: name.map(str::to_owned),
            revoke: None,
            store: StoreFlag::default(),
            output: DocumentFlags::default(),
        }
    }

    #[test]
    fn what_was_made_and_revoked_is_noted() {
        on_each_engine(async |store| {
            assert_eq!(made(&store, &asked(None, Some("West"), 3)).await.unwrap().len(), 3);
            let codes = made(&store, &asked(Some("press 3"), Some("west"), 1)).await.unwrap();
            let (key, name) = board_of("press 3");
            let enrolled = store.enrol(&digest_of(&codes[0]), now(), &key, &name, &[1]).await;
            assert_eq!(enrolled.unwrap(), EnrolOutcome::Enrolled);
            revoke(&store, &key).await.unwrap();
            assert!(revoke(&store, &key).await.is_err());
            let noted: Vec<String> = store.audit(9).await.unwrap().into_iter().map(|one| one.what).collect();
            assert_eq!(
                noted,
                [
                    format!("revoked the token of {key}"),
                    format!("created 1 code to enrol {key}, lab=west"),
                    "created 3 codes to enrol boards, lab=west".to_owned(),
                ]
            );
        });
    }

    #[test]
    fn a_board_that_is_there_gets_no_lab_and_a_name_is_one() {
        on_each_engine(async |store| {
            let codes = made(&store, &asked(Some("press-3"), None, 1)).await.unwrap();
            store.enrol(&digest_of(&codes[0]), now(), "press-3", "press-3", &[1]).await.unwrap();
            revoke(&store, "press-3").await.unwrap();
            let checked = async |args: Args| match args.check() {
                Ok(()) => made(&store, &args).await,
                Err(refused) => Err(refused),
            };
            for (name, lab, why) in [
                ("press-3", Some("west"), "omit --lab"),
                ("", None, "invalid name of a board"),
                (" ", None, "invalid name of a board"),
                ("press-4", Some(""), "invalid name of a lab"),
                ("press-4", Some(" \t"), "invalid name of a lab"),
            ] {
                let refused = checked(asked(Some(name), lab, 1)).await.unwrap_err();
                assert!(refused.exit == Exit::Usage && refused.message.contains(why), "{name}: {refused}");
            }
            assert_eq!(store.audit(9).await.unwrap().len(), 2);
            assert_eq!(made(&store, &asked(Some("press-3"), None, 1)).await.unwrap().len(), 1);
            // Boards that differ in letters alone that no address has are two.
            let key = |name: &str| asked(Some(name), None, 1).board().unwrap();
            assert_ne!(key("\u{441}\u{442}\u{435}\u{43d}\u{434}"), key("\u{fc}"));
        });
    }
}
