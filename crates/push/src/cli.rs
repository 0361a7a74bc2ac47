//! Command line of onbeat-push.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use host::MachineFiles;
use model::error::{Exit, Failure, Result};
use model::size;
use model::text::{clean, quoted};
use model::units::Nanos;

use super::address::FarmAddress;
use super::arguments::refused;
use super::backoff::Backoff;
use super::document::{PushDocument, PushWords, say};
use super::enrolment::{Enrolment, OpenEnrolment, PushFolder, is_token};
use super::link::{HttpLink, LinkFault};
use super::named_folders::nothing_in;
use super::quiet::is_measuring;
use super::round::{PushSources, run_round};
use super::sent::{SentLog, UntoldWords};
use super::session::{FarmComparison, PushAllowance, PushRound, RoundEnd, RoundOutcome};
use super::spool::hold;
use super::stop::{StopFlag, until_stopped};

/// Wait between two rounds.
const EVERY: Nanos = Nanos(60 * Nanos::SECOND.0);
/// Limit of unfinished rounds with `--once`.
const TRIES: u32 = 5;

/// Environment of the process; no other variables are read.
#[derive(Clone, Debug, Default)]
pub struct PushEnvironment {
    /// `$XDG_STATE_HOME`.
    pub state_home: Option<OsString>,
    /// `$HOME`.
    pub home: Option<OsString>,
}

/// Sends runs and records of this board to a farm
///
/// Runs and records are sent from their folders without a copy, and never again once the farm has
/// acknowledged them. Nothing is sent while onbeat measures on this machine. Captures of `onbeat
/// capture` are not sent: copy them to the machine that judges them.
#[derive(Parser)]
#[command(
    name = "onbeat-push",
    version,
    after_help = "Exit codes: 0 success, 1 internal error, 2 wrong usage, 4 the farm refuses the token, 6 \
                  interrupted, with all acknowledgements recorded, 7 something was not sent."
)]
struct PushCli {
    #[command(subcommand)]
    command: Option<PushCommand>,
    /// Send everything once, then end
    #[arg(long)]
    once: bool,
    /// Send continuously; this is the default
    #[arg(long, conflicts_with = "once")]
    follow: bool,
    /// A folder of runs, or of folders of runs; may be given several times [default: onbeat/runs
    /// and onbeat/suites in the state folder]
    #[arg(long, value_name = "DIR")]
    runs: Vec<PathBuf>,
    /// A record of `onbeat watch`; may be given several times [default: onbeat/watch there]
    #[arg(long, value_name = "DIR")]
    record: Vec<PathBuf>,
    /// Select when to send
    #[arg(long, value_enum, default_value_t = PushTime::AfterRun)]
    when: PushTime,
    /// Limit the size of the runs in these folders, like 64MiB: removes those that the farm has
    /// first, then the oldest unsent ones with a remark; phases of suites stay [default: nothing is
    /// removed]
    #[arg(long, value_name = "BYTES")]
    spool: Option<String>,
    /// Folder of the token and of acknowledgements [default: onbeat/push there]
    #[arg(long, value_name = "DIR", global = true)]
    state: Option<PathBuf>,
    #[command(flatten)]
    words: PushWords,
}

#[derive(Subcommand)]
enum PushCommand {
    /// Get a token from a farm with a code that `onbeat-farm enrol` printed
    Enrol {
        /// Its address: https, or http on this machine
        url: String,
        /// The code that the farm printed for this board, valid once within 24 hours
        code: String,
        /// The board's name there [default: this machine's]
        #[arg(long)]
        name: Option<String>,
        /// Accept certificates of these authorities only
        #[arg(long, value_name = "FILE")]
        ca: Option<PathBuf>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PushTime {
    /// Nothing is sent while onbeat measures
    AfterRun,
    /// Rows are sent at any time, runs when nothing measures
    BetweenRows,
    /// Everything is sent at any time
    Always,
}

impl PushTime {
    fn allowance(self, measuring: bool) -> PushAllowance {
        match (self, measuring) {
            (PushTime::AfterRun, true) => PushAllowance::Nothing,
            (PushTime::BetweenRows, true) => PushAllowance::Rows,
            _ => PushAllowance::All,
        }
    }
}

/// Command-line definition for completion scripts and manual pages, which the farm's program prints
/// so that this one stays small.
pub fn command() -> clap::Command {
    PushCli::command()
}

/// Runs the command; returns the exit code.
pub fn run(args: impl Iterator<Item = OsString>, environment: &PushEnvironment) -> u8 {
    let cli = match PushCli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return refused(&error, say),
    };
    let folder = PushFolder(cli.state.clone().unwrap_or_else(|| state(environment).join("push")));
    let outcome = if let Some(PushCommand::Enrol { url, code, name, ca }) = cli.command {
        let outcome = until_stopped(move |_| enrol(&folder, &url, &code, name.as_deref(), ca.as_deref()));
        if matches!(outcome, Ok(Exit::Interrupted)) {
            say("interrupted: repeat the command with the same code");
        }
        outcome
    } else {
        let environment = environment.clone();
        until_stopped(move |stop| push(&cli, &folder, &environment, stop))
    };
    match outcome {
        Ok(exit) => exit as u8,
        Err(failure) => {
            say(&failure.message);
            failure.exit as u8
        }
    }
}

/// State folder of onbeat.
fn state(environment: &PushEnvironment) -> PathBuf {
    host::state_folder(environment.state_home.as_deref(), environment.home.as_deref())
}

fn enrol(
    folder: &PushFolder,
    url: &str,
    code: &str,
    name: Option<&str>,
    ca: Option<&std::path::Path>,
) -> Result<Exit> {
    let address = FarmAddress::parse(url)?;
    let authorities = ca.map(host::whole_path).transpose().map_err(|error| {
        Failure::of_call("--ca: cannot find it", &error, Exit::Usage, "name a file of certificates")
    })?;
    let link = HttpLink::new(&address, "", authorities.as_deref())?;
    folder.check()?;
    let name = name.map_or_else(host::node_name, str::to_owned);
    let open = OpenEnrolment::begin(folder, &address.base, code.trim())?;
    let answer = link.enrol(code.trim(), &name, &open.secret).map_err(failure)?;
    let text = |field: &str| clean(answer.body[field].as_str().unwrap_or_default());
    let status = answer.status;
    if status != 201 {
        let exit = if status == 403 { Exit::NotPermitted } else { Exit::Usage };
        // The whole detail is shown: its remedy is at the end.
        let why = Some(text("detail")).filter(|said| !said.is_empty()).unwrap_or_else(|| answer.detail());
        let message = format!("the farm does not enrol this board ({status}): {why}");
        return Err(Failure { exit, message });
    }
    // An answer that is not a farm's must not replace the present token.
    if !is_token(&text("token")) || text("board").is_empty() {
        return Err(failure(LinkFault::no_farm()));
    }
    let enrolment = Enrolment {
        farm: address.base.clone(),
        board: text("board"),
        token: text("token"),
        authorities: authorities.map(|file| file.to_string_lossy().into_owned()).unwrap_or_default(),
    };
    // An unreadable file names no previous board.
    let before = Enrolment::read(folder).ok();
    enrolment.write(folder)?;
    OpenEnrolment::end(folder);
    if let Some(before) = before {
        said_of_other(&before, &enrolment).iter().for_each(|line| say(line));
    }
    say(&format!("this board is {} at {}", enrolment.board, enrolment.farm));
    Ok(Exit::Ok)
}

/// Remark on the board's previous enrolment; none if board and farm are the same.
fn said_of_other(before: &Enrolment, now: &Enrolment) -> Option<String> {
    let is_same = (&before.farm, &before.board) == (&now.farm, &now.board);
    (!is_same).then(|| {
        format!(
            "it was {0} at {1}: what it sent stays with that board, and its token stays valid until \
             `onbeat-farm enrol --revoke {0}` there",
            before.board, before.farm
        )
    })
}

fn failure(fault: LinkFault) -> Failure {
    match fault {
        LinkFault::Later { detail, .. } | LinkFault::Source(detail) => {
            Failure { exit: Exit::Inconclusive, message: detail }
        }
        LinkFault::Token(detail) => Failure::not_permitted(detail),
    }
}

fn push(cli: &PushCli, folder: &PushFolder, environment: &PushEnvironment, stop: &StopFlag) -> Result<Exit> {
    cli.words.check()?;
    let enrolment = Enrolment::read(folder)?;
    let address = FarmAddress::parse(&enrolment.farm)?;
    let authorities =
        Some(PathBuf::from(&enrolment.authorities)).filter(|_| !enrolment.authorities.is_empty());
    let mut link = HttpLink::new(&address, &enrolment.token, authorities.as_deref())?;
    let sources = sources(cli, environment);
    empty(cli, &sources).iter().chain(&SentLog::trouble(folder)).for_each(|line| cli.words.remark(line));
    let spool = cli.spool.as_deref().map(size::parse).transpose();
    let spool = spool.map_err(|why| Failure::usage(format!("--spool: {why}")))?;
    let machine = MachineFiles::live();
    let mut round = PushRound {
        link: &mut link,
        folder,
        log: SentLog::read(folder, &enrolment.farm, &enrolment.board),
        allowed: &|| cli.when.allowance(cli.when != PushTime::Always && is_measuring(&machine)),
        stop: stop.clone(),
        measuring: &|| is_measuring(&machine),
        passed_over: BTreeMap::new(),
        known: None,
        comparison: FarmComparison::Due,
        outcome: RoundOutcome::default(),
    };
    let mut document = PushDocument::default();
    let exit = rounds(cli, &mut round, &sources, spool, &mut document)?;
    cli.words.write(&document)?;
    Ok(exit)
}

/// Runs one round after the other: with `--once` until all is sent, else until a signal.
fn rounds(
    cli: &PushCli,
    round: &mut PushRound<'_>,
    sources: &PushSources,
    spool: Option<u64>,
    document: &mut PushDocument,
) -> Result<Exit> {
    let (mut backoff, mut said, mut tries) = (Backoff::default(), String::new(), 0);
    let mut remarked = Vec::new();
    tell_untold(cli, round, document)?;
    loop {
        let end = run_round(round, sources);
        // Needed most while the farm is unreachable: runs accumulate.
        if let Some(most) = spool.filter(|_| !round.stop.is_set()) {
            hold(round, &sources.runs, most);
        }
        cli.words.tell(&round.outcome, &remarked);
        remarked.clone_from(&round.outcome.remarks);
        document.add(&round.outcome);
        keep(round)?;
        let (news, wait) = match end {
            Ok(()) if cli.once => {
                return Ok(if document.is_short() { Exit::Inconclusive } else { Exit::Ok });
            }
            Ok(()) => {
                backoff.reset();
                (String::new(), EVERY)
            }
            Err(RoundEnd::Quiet) => {
                ("onbeat measures on this machine: sending waits until it ends".to_owned(), EVERY)
            }
            Err(RoundEnd::Stopped) => {
                document.leave();
                return Ok(Exit::Interrupted);
            }
            Err(RoundEnd::Failed(failure)) => return Err(failure),
            Err(RoundEnd::Fault(LinkFault::Token(detail))) => return Err(Failure::not_permitted(detail)),
            Err(RoundEnd::Fault(LinkFault::Later { detail, after_s })) => {
                (detail, backoff.failed(after_s, host::random_u64()))
            }
            Err(RoundEnd::Fault(LinkFault::Source(detail))) => {
                (detail, backoff.failed(None, host::random_u64()))
            }
        };
        // A repeated failure is reported once.
        if !news.is_empty() && news != said {
            cli.words.remark(&news);
        }
        said = news;
        tries += 1;
        if cli.once && tries >= TRIES {
            document.leave();
            return Ok(Exit::Inconclusive);
        }
        if round.stop.sleep(wait) {
            document.leave();
            return Ok(Exit::Interrupted);
        }
    }
}

/// Reports results that a killed process had logged and not yet reported.
fn tell_untold(cli: &PushCli, round: &mut PushRound<'_>, document: &mut PushDocument) -> Result<()> {
    let before = RoundOutcome::from(round.log.untold.clone());
    cli.words.tell(&before, &[]);
    document.add(&before);
    keep(round)
}

/// Writes losses to the log, so that a restart does not hide them, and clears what was reported.
fn keep(round: &mut PushRound<'_>) -> Result<()> {
    let untold = std::mem::take(&mut round.log.untold);
    if round.outcome.lost + round.outcome.dropped > 0 || untold != UntoldWords::default() {
        round.log.write(round.folder)
    } else {
        Ok(())
    }
}

fn sources(cli: &PushCli, environment: &PushEnvironment) -> PushSources {
    let state = state(environment);
    let whole = |folder: &PathBuf, flag: &str| {
        // The record may be created later.
        host::whole_path(folder).unwrap_or_else(|error| {
            cli.words.remark(&format!("{flag}: {} cannot be read yet ({error})", quoted(folder)));
            folder.clone()
        })
    };
    let named = |given: &[PathBuf], flag: &str, usual: &[&str]| -> Vec<PathBuf> {
        if given.is_empty() {
            usual.iter().map(|name| state.join(name)).collect()
        } else {
            given.iter().map(|folder| whole(folder, flag)).collect()
        }
    };
    PushSources {
        runs: named(&cli.runs, "--runs", &["runs", "suites"]),
        records: named(&cli.record, "--record", &["watch"]),
    }
}

/// Remarks on folders named by flags that hold nothing to send.
fn empty(cli: &PushCli, sources: &PushSources) -> Vec<String> {
    let runs: &[PathBuf] = if cli.runs.is_empty() { &[] } else { &sources.runs };
    let records: &[PathBuf] = if cli.record.is_empty() { &[] } else { &sources.records };
    nothing_in(runs, records)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make folders of their own.
mod tests {
    use super::*;
    use crate::round::fake_farm::{FakeFarm, Trouble};
    use std::fs;

    #[test]
    fn a_board_that_becomes_another_one_is_told_what_stays_of_the_first() {
        let of = |board: &str, farm: &str| Enrolment {
            farm: farm.to_owned(),
            board: board.to_owned(),
            token: String::new(),
            authorities: String::new(),
        };
        let first = of("press-1", "https://farm");
        assert_eq!(said_of_other(&first, &of("press-1", "https://farm")), None);
        for other in [of("press-2", "https://farm"), of("press-1", "https://other")] {
            let said = said_of_other(&first, &other).unwrap();
            assert!(said.contains("press-1 at https://farm") && said.contains("--revoke press-1"), "{said}");
        }
    }

    #[test]
    fn runs_suites_and_the_record_of_the_state_folder_are_sent_unless_others_are_named() {
        let of = |words: &[&str], home: &str| {
            let environment = PushEnvironment { state_home: None, home: Some(home.into()) };
            let cli = PushCli::try_parse_from(["onbeat-push"].iter().chain(words)).unwrap();
            let sources = sources(&cli, &environment);
            (empty(&cli, &sources), sources)
        };
        let (said, usual) = of(&[], "/board");
        let state = std::path::Path::new("/board/.local/state/onbeat");
        assert_eq!(usual.runs, [state.join("runs"), state.join("suites")]);
        assert_eq!((usual.records, said.len()), (vec![state.join("watch")], 0));
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name).display().to_string();
        fs::create_dir_all(at("suites/enea/phases/none-cpu")).unwrap();
        let (suites, later) = (at("suites"), at("later"));
        let words = ["--runs", suites.as_str(), "--record", suites.as_str(), "--runs", later.as_str()];
        let (said, named) = of(&words, "/board");
        assert_eq!((named.runs.len(), named.records.len(), said.len()), (2, 1, 2), "{said:?}");
        assert!(said[0].starts_with("--runs: ") && said[0].contains("holds no run"), "{said:?}");
        assert!(said[1].starts_with("--record: ") && said[1].contains("no record"), "{said:?}");
        fs::write(place.path().join("suites/enea/phases/none-cpu/run.json"), "{}").unwrap();
        assert_eq!(of(&["--runs", suites.as_str()], "/board").0, [""; 0]);
    }
    fn allowed() -> PushAllowance {
        PushAllowance::All
    }

    fn measuring() -> bool {
        false
    }

    /// Round of a process that has just started.
    fn started<'a>(farm: &'a mut FakeFarm, folder: &'a PushFolder) -> PushRound<'a> {
        PushRound {
            link: farm,
            folder,
            log: SentLog::read(folder, "farm", "board"),
            allowed: &allowed,
            stop: StopFlag::default(),
            measuring: &measuring,
            passed_over: BTreeMap::new(),
            known: None,
            comparison: FarmComparison::Done(host::clock::monotonic()),
            outcome: RoundOutcome::default(),
        }
    }

    #[test]
    fn what_was_noted_and_not_said_before_a_kill_is_said_at_the_next_start() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir_all(at("push")).unwrap();
        let (folder, mut farm) = (PushFolder(at("push")), FakeFarm::default());
        // More remarks than the log holds.
        for number in 0..70 {
            let id = format!("r{number}");
            fs::create_dir_all(at("runs").join(&id)).unwrap();
            let document = format!("{{\"id\":\"{id}\",\"complete\":true}}");
            fs::write(at("runs").join(&id).join("run.json"), document).unwrap();
            farm.removed.insert(id);
        }
        let sources = PushSources { runs: vec![at("runs")], records: Vec::new() };
        {
            let mut killed = started(&mut farm, &folder);
            run_round(&mut killed, &sources).unwrap();
            assert_eq!(killed.outcome.refused, 70);
        }
        let cli = PushCli::try_parse_from(["onbeat-push", "--once", "-q"]).unwrap();
        for (wanted, is_said) in [(Exit::Inconclusive, true), (Exit::Ok, false)] {
            let mut document = PushDocument::default();
            let mut round = started(&mut farm, &folder);
            let exit = rounds(&cli, &mut round, &sources, None, &mut document).unwrap();
            let said = format!("{document:?}");
            assert_eq!((exit, said.contains("is skipped: it was removed")), (wanted, is_said), "{said}");
            assert_eq!(said.contains("refused: 70") && said.contains("6 more remarks"), is_said, "{said}");
        }
    }

    #[test]
    fn what_waits_to_be_sent_again_at_a_signal_is_left() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir_all(at("push")).unwrap();
        fs::create_dir_all(at("runs/r1")).unwrap();
        fs::write(at("runs/r1/run.json"), "{\"id\":\"r1\",\"complete\":true}").unwrap();
        let (folder, stop) = (PushFolder(at("push")), StopFlag::default());
        let (mut farm, told) = (FakeFarm::default(), stop.clone());
        farm.trouble = Some(Box::new(move |_| {
            told.set();
            Trouble::Lost
        }));
        let mut round = PushRound {
            link: &mut farm,
            folder: &folder,
            log: SentLog::read(&folder, "farm", "board"),
            allowed: &|| PushAllowance::All,
            stop,
            measuring: &|| false,
            passed_over: BTreeMap::new(),
            known: None,
            comparison: FarmComparison::Done(host::clock::monotonic()),
            outcome: RoundOutcome::default(),
        };
        let cli = PushCli::try_parse_from(["onbeat-push", "--once", "-q"]).unwrap();
        let sources = PushSources { runs: vec![at("runs")], records: Vec::new() };
        let mut document = PushDocument::default();
        let exit = rounds(&cli, &mut round, &sources, None, &mut document).unwrap();
        assert_eq!(exit, Exit::Interrupted);
        assert!(document.is_short(), "{document:?}");
    }
}
