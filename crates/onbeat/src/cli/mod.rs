//! Command line: one file per subcommand, each of which gathers, calls and prints.

use model::vocabulary::Ended;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use bundle::foreign;
use model::error::{Exit, Failure, Result};
use model::run::Run;

use on_call::OnCall;
use outputs::remark;

mod audit;
mod bounds;
mod capture;
mod check;
mod child_run;
mod command_groups;
mod compare;
mod completions;
mod condition_flags;
mod cure;
mod doctor;
mod explain;
pub(crate) mod farm;
mod flags;
mod foreign_flags;
mod help;
mod hunt;
mod hunt_source;
mod import;
mod irqs;
mod isolate;
pub(crate) mod journal;
mod live;
mod load;
mod load_flags;
mod man;
mod measure;
mod measure_flags;
mod named_run;
mod newest;
mod on_call;
mod open_page;
mod outputs;
pub(crate) mod probe;
mod program;
mod progress_line;
mod prove;
mod read_flags;
mod recovery;
mod refusals;
mod report;
mod rules;
mod run_flags;
mod run_text;
mod running;
mod step_settings;
mod suite;
mod target;
mod threads;
mod top;
mod top_own;
mod top_recorder;
mod top_view;
mod tracer_files;
mod tune;
mod watch;
mod watch_way;

/// Variables and arguments of the process; nothing else of its environment is read.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// `$XDG_STATE_HOME`.
    pub state_home: Option<OsString>,
    /// `$HOME`.
    pub home: Option<OsString>,
    /// True if `$TERM` is a terminal without cursor control (`dumb`).
    pub dumb: bool,
    /// Command and its arguments, joined with blanks, for the formats that contain it.
    pub command_line: String,
    /// `$COLUMNS`, if it is a number.
    pub columns: Option<usize>,
    /// `$LINES`, if it is a number.
    pub lines: Option<usize>,
    /// True if `$SSH_CONNECTION` shows a login over the network.
    pub over_ssh: bool,
    /// True if `$DISPLAY` or `$WAYLAND_DISPLAY` shows that there is a screen to open a page on.
    pub display: bool,
    /// Caller of sudo or doas (`$SUDO_USER`, `$DOAS_USER`).
    pub invoked_by: Option<Caller>,
    /// True if `$NO_COLOR` asks for no colours (no-color.org).
    pub no_color: bool,
}

/// User who called this program through another that changes users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub user: String,
    /// That other program: `sudo` or `doas`.
    pub by: &'static str,
}

impl Environment {
    /// Words that call onbeat so that it reads this path: with sudo what sudo wrote into root's
    /// folder, where the caller neither looks nor may read.
    fn program(&self, path: &Path) -> &'static str {
        let is_kept = self.runs().parent().is_some_and(|state| path.starts_with(state));
        match self.invoked_by.as_ref().filter(|caller| is_kept && caller.user != "root") {
            Some(Caller { by: "doas", .. }) => "doas onbeat",
            Some(_) => "sudo onbeat",
            None => "onbeat",
        }
    }

    /// Default folder of runs.
    fn runs(&self) -> PathBuf {
        host::state_folder(self.state_home.as_deref(), self.home.as_deref()).join("runs")
    }

    /// True if output to this stream may be coloured.
    fn color(&self, stream: &impl IsTerminal) -> bool {
        stream.is_terminal() && !self.no_color && !self.dumb
    }

    /// Width of text: `$COLUMNS`, or that of the terminal of a standard stream, as the output of a
    /// pager is read on it too; 80 without a terminal.
    fn columns(&self) -> usize {
        let terminals = || {
            let found = host::columns_of(io::stdout()).or_else(|| host::columns_of(io::stderr()));
            found.or_else(|| host::columns_of(io::stdin()))
        };
        self.columns.filter(|&columns| columns > 0).or_else(terminals).map_or(80, |n| n.clamp(40, 200))
    }

    /// Rows of the screen: `$LINES`, or those of the terminal; none if the output is not for one.
    fn rows(&self) -> Option<usize> {
        let terminal = || io::stdout().is_terminal().then(host::terminal_size).flatten();
        self.lines.filter(|&lines| lines > 0).or_else(|| terminal().map(|(_, rows)| rows))
    }
}

/// Measure, explain and fix wake-up latency on real-time Linux.
#[derive(Parser)]
#[command(
    name = "onbeat",
    version,
    after_help = "Exit codes: 0 success, 1 internal error, 2 wrong usage or malformed input, 3 a limit or a gate failed, 4 not permitted, 5 not supported here, 6 interrupted, results saved, 7 inconclusive."
)]
struct Cli {
    /// For onbeat's own processes: the process that started this one, and whose end ends it.
    #[arg(long, hide = true, value_name = "PID")]
    starter: Option<u32>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Measure(OnCall<Box<measure::Args>>),
    Hunt(OnCall<Box<hunt::Args>>),
    Explain(OnCall<explain::Args>),
    Probe(OnCall<probe::Args>),
    Audit(OnCall<audit::Args>),
    Threads(OnCall<threads::Args>),
    Irqs(OnCall<irqs::Args>),
    Check(OnCall<check::Args>),
    Capture(OnCall<capture::Args>),
    Doctor(OnCall<doctor::Args>),
    Tune(OnCall<tune::Args>),
    Isolate(OnCall<isolate::Args>),
    Load(OnCall<load::Args>),
    Suite(OnCall<Box<suite::Args>>),
    Prove(OnCall<Box<prove::Args>>),
    Cure(OnCall<Box<cure::Args>>),
    Top(OnCall<top::Args>),
    Watch(OnCall<watch::Args>),
    Rules(OnCall<rules::Args>),
    Report(OnCall<report::Args>),
    Bounds(OnCall<bounds::Args>),
    Compare(OnCall<compare::Args>),
    Import(OnCall<import::Args>),
    Farm(OnCall<farm::Args>),
    Completions(OnCall<completions::Args>),
    Man(OnCall<man::Args>),
}

pub use watch::default_unit as watch_unit;

/// Reference of all commands as Markdown: all `--help` texts on one page.
pub fn reference() -> String {
    let mut page = String::from(
        "# The command line\n\nGenerated by `cargo xtask docs` from the output of `--help`; edit the help \
         texts instead.\n",
    );
    let root = command_of(96);
    let mut section = |title: &str, command: &mut clap::Command| {
        let help = command.render_long_help().to_string();
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        page.push_str(&format!("\n## {title}\n\n```text\n{}\n```\n", help.join("\n").trim_end()));
    };
    section("onbeat", &mut root.clone());
    for (name, mut command) in subcommands(&root, "onbeat") {
        section(&name, &mut command);
    }
    page
}

/// The command with all subcommands and their arguments.
pub fn whole() -> clap::Command {
    let mut root = Cli::command();
    root.build();
    root
}

/// The command with its help laid out for this number of columns.
fn command_of(columns: usize) -> clap::Command {
    let fitted = |command: clap::Command| {
        let after = command.get_after_help().map(|text| help::fitted(&text.to_string(), columns));
        let command = command.term_width(columns);
        if let Some(after) = after { command.after_help(after) } else { command }
    };
    let root = fitted(whole()).mut_subcommands(|command| fitted(command).mut_subcommands(fitted));
    let template = command_groups::template(&root, columns);
    root.help_template(template)
}

/// All visible commands, including subcommands, by their full names.
fn subcommands(command: &clap::Command, name: &str) -> Vec<(String, clap::Command)> {
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help");
    let each = shown.flat_map(|sub| {
        let name = format!("{name} {}", sub.get_name());
        let own = (name.clone(), sub.clone());
        std::iter::once(own).chain(subcommands(sub, &name))
    });
    each.collect()
}

/// Parses the arguments; builds all commands at the terminal's width only for help and errors.
fn parsed(args: Vec<OsString>, environment: &Environment) -> Result<Cli, clap::Error> {
    let mut root = Cli::command();
    let found = root.try_get_matches_from_mut(&args).and_then(|found| Cli::from_arg_matches(&found));
    found.or_else(|error| {
        if error.kind() == clap::error::ErrorKind::DisplayVersion {
            // The process ends next: to free each part of the tree is a third of this start.
            std::mem::forget(root);
            return Err(error);
        }
        let laid_out = command_of(environment.columns().min(100));
        Cli::from_arg_matches(&laid_out.try_get_matches_from(args)?)
    })
}

/// Runs the command line and returns its exit status: an [`Exit`], or that of a started program if
/// that was requested.
pub fn run(args: Vec<OsString>, environment: &Environment) -> u8 {
    let outcome = foreign_flags::refuse(&args, Cli::command).and_then(|()| {
        refusals::of_empty_program(&args, whole)?;
        match parsed(compare::mark_separator(args), environment) {
            Ok(cli) => cli.starter.map_or(Ok(()), follow).and_then(|()| dispatch(cli.command, environment)),
            Err(error) => refusals::of_clap(&error).map(|exit| exit as u8),
        }
    });
    match outcome {
        Ok(exit) => exit,
        Err(failure) => {
            remark(&format!("onbeat: {}", failure.message));
            failure.exit as u8
        }
    }
}

fn follow(starter: u32) -> Result<()> {
    host::end_with(starter).map_err(|error| {
        let remedy = "--starter is for onbeat's own processes: remove it";
        Failure::of_call(
            format!("process {starter} is not waiting for this one"),
            &error,
            Exit::Usage,
            remedy,
        )
    })
}

fn dispatch(command: Command, environment: &Environment) -> Result<u8> {
    let ended = match command {
        Command::Measure(OnCall(args)) => measure::run(&args, environment),
        Command::Hunt(OnCall(args)) => return hunt::run(&args, environment),
        Command::Explain(OnCall(args)) => explain::run(&args, environment),
        Command::Probe(OnCall(args)) => probe::run(&args, environment),
        Command::Audit(OnCall(args)) => audit::run(&args, environment),
        Command::Threads(OnCall(args)) => threads::run(&args, environment),
        Command::Irqs(OnCall(args)) => irqs::run(&args, environment),
        Command::Check(OnCall(args)) => check::run(&args, environment),
        Command::Capture(OnCall(args)) => capture::run(&args, environment),
        Command::Doctor(OnCall(args)) => doctor::run(&args, environment),
        Command::Tune(OnCall(args)) => tune::run(&args, environment),
        Command::Isolate(OnCall(args)) => isolate::run(&args, environment),
        Command::Load(OnCall(args)) => load::run(&args, environment),
        Command::Suite(OnCall(args)) => suite::run(&args, environment),
        Command::Prove(OnCall(args)) => prove::run(&args, environment),
        Command::Cure(OnCall(args)) => cure::run(&args, environment),
        Command::Top(OnCall(args)) => top::run(&args, environment),
        Command::Watch(OnCall(args)) => watch::run(&args, environment),
        Command::Rules(OnCall(args)) => rules::run(&args, environment),
        Command::Report(OnCall(args)) => report::run(&args, environment),
        Command::Bounds(OnCall(args)) => bounds::run(&args, environment),
        Command::Compare(OnCall(args)) => compare::run(&args, environment),
        Command::Import(OnCall(args)) => import::run(&args, environment),
        Command::Farm(OnCall(args)) => farm::run(&args),
        Command::Completions(OnCall(args)) => completions::run(&args, whole()),
        Command::Man(OnCall(args)) => man::run(&args, whole()),
    };
    ended.map(|exit| exit as u8)
}

/// Data that cyclictest's JSON has beyond the run; the host name is written only if the user
/// requested this output.
fn context_of(run: &Run, environment: &Environment, node_name: &str) -> foreign::CyclictestContext {
    let started = humantime::parse_rfc3339_weak(&run.started).ok();
    let started = started.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let started_unix_s = started.map_or(0, |since| since.as_secs() as i64);
    foreign::CyclictestContext {
        command_line: environment.command_line.clone(),
        node_name: node_name.to_owned(),
        started_unix_s,
        ended_unix_s: started_unix_s + run.elapsed_ns.unwrap_or_default().as_secs() as i64,
        return_code: if run.ended == Ended::Limit { 3 } else { 0 },
    }
}
