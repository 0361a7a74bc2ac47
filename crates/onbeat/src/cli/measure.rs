//! `onbeat measure`: flags to intent, machine to plan, run, table.

use std::io;
use std::path::PathBuf;

use super::course::Course;
use super::running::{Begun, Desk, begin, exit_of, unless_stopped};
use super::{Environment, print, write_output};
use crate::measure::start;
use bundle::foreign;
use bundle::write::Writer;
use host::rt;
use model::error::{Exit, Outcome, json};
use model::run::Run;
use model::text::quoted;
use model::vocabulary::Command;
use report::run::next_steps::outlook;
use report::run::table;
use report::words::wrapped;

/// Measure the wake-up latency of each CPU
///
/// One pinned real-time thread per CPU sleeps to the slots of an absolute schedule and counts how
/// late it wakes. Slots that pass while a thread is held up are counted as missed, never skipped in
/// silence. Nothing is traced and no setting outlasts the run. The run is kept as a bundle, which
/// `onbeat report` draws. Flags have cyclictest's letters and meaning where it has them.
///
/// Spans take a unit: ns us ms s m h d.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat measure -D 10s                        every CPU, 1 ms, SCHED_FIFO 80\n  onbeat measure -a 2-3 -i 200 -D 12h -q       a night's run of two CPUs\n  onbeat measure -D 5m -b 100us                exit code 3 if a wake-up is 100 us late\n  onbeat measure -D 1m --wake timerfd          as a task behind a timerfd sees it"
)]
pub struct Args {
    #[command(flatten)]
    course: Course,
    /// Write cyclictest's JSON, for scripts that read it
    #[arg(long, value_name = "FILE")]
    rt_tests_json: Option<PathBuf>,
    /// Write cyclictest's histogram text, as its -H gives it
    #[arg(long, value_name = "FILE")]
    hist: Option<PathBuf>,
}

/// Measures.
pub fn run(args: &Args, environment: &Environment) -> Outcome<Exit> {
    super::check_outputs(&args.outputs())?;
    let Begun { plan, run, core_types, before, mut desk, .. } =
        begin(&args.course, Command::Measure, environment)?;
    let measured = start::measure(plan, run, &core_types, &mut desk, None);
    rt::release_code_pages(); // that of the measuring
    let Desk { writer, live } = desk;
    drop(live);
    let mut run = match measured {
        Ok(run) => run,
        Err(trouble) => {
            writer.discard();
            return Err(trouble);
        }
    };
    run.integrity.extend(before.changes(&run));
    finish(args, environment, &run, writer)
}

/// Tells, writes and ends: the table even where writing fails, so that nothing measured is lost.
fn finish(args: &Args, environment: &Environment, run: &Run, writer: Writer) -> Outcome<Exit> {
    rt::release_code_pages(); // what looked at the machine again
    let path = writer.path().to_owned();
    let kept = writer.finish(run, &run.spikes);
    // What was measured is safe: Ctrl-C may end whatever takes too long from here on.
    rt::unblock_signals();
    if !args.outputs().iter().any(|path| path.as_deref() == Some("-".as_ref())) {
        let (columns, color) = (environment.columns(), environment.color(&io::stdout()));
        let mut text = match args.course.quiet {
            true => table::brief(run, columns, color),
            false => table::render(run, columns, color),
        };
        for line in outlook(run).iter().filter(|_| !args.course.quiet) {
            wrapped(&mut text, line, columns);
        }
        if kept.is_ok() {
            text.push_str(&format!(
                "kept in {0}; draw it: onbeat report {0} -o latency.html\n",
                quoted(&path)
            ));
        }
        print(text.as_bytes())?;
    }
    let mut first = kept.err();
    let context = super::context_of(run, environment, &host::node_name());
    let run_json = || Ok(json(run)? + "\n");
    let rt_tests_json = || foreign::cyclictest_json::write(run, &context);
    let hist = || Ok(foreign::cyclictest_hist::write(run));
    let writers: [&dyn Fn() -> Outcome<String>; 3] = [&run_json, &rt_tests_json, &hist];
    for (path, bytes) in args.outputs().into_iter().zip(writers) {
        if let Some(path) = path {
            first = first.or(bytes().and_then(|bytes| write_output(path, bytes.as_bytes())).err());
        }
    }
    unless_stopped(exit_of(run, first))
}

impl Args {
    fn outputs(&self) -> [&Option<PathBuf>; 3] {
        [&self.course.json, &self.rt_tests_json, &self.hist]
    }
}
