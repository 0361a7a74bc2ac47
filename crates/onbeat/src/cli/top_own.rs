//! Source of `onbeat top --own`: the measuring threads of `measure`.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use super::Environment;
use super::running::{PreparedRun, WantedRun, prepare_run};
use super::top_view::TopSource;
use crate::measure::start::measure;
use crate::measure::task::WakeUps;
use crate::plan::intent::MeasureIntent;
use crate::top::own::{OwnInbox, sum_of_use};
use crate::top::state::TopState;
use bundle::write::BundleWriter;
use host::WakeFile;
use host::rt::{self, OwnUse, thread_use};
use model::error::{Exit, Failure, Result};
use model::labels::Labels;
use model::run::Run;
use model::text::quoted;
use model::vocabulary::{Command, Ended};

/// Run that has a plan, before its threads start.
pub struct PreparedOwn {
    prepared: PreparedRun,
    runs: PathBuf,
}

/// Running measurement.
pub struct OwnSource {
    inbox: Arc<OwnInbox>,
    housekeeper: Option<JoinHandle<Result<Run>>>,
    runs: PathBuf,
    titled: bool,
}

impl PreparedOwn {
    /// Makes a plan for this machine; nothing of it stays on the disk.
    pub fn of(intent: MeasureIntent, environment: &Environment) -> Result<PreparedOwn> {
        let wanted = WantedRun {
            intent,
            output: None,
            quiet: true,
            command: Command::Measure,
            title: None,
            load: None,
            labels: Labels::default(),
        };
        Ok(PreparedOwn {
            prepared: prepare_run(wanted, environment, |_, _, _| Ok(()))?,
            runs: environment.runs(),
        })
    }

    /// Starts the threads. The calling thread, which draws, leaves the measured CPUs.
    pub fn start(self) -> Result<OwnSource> {
        let failed = |what: &'static str, remedy: &'static str| {
            move |error: std::io::Error| Failure::of_call(what, &error, Exit::Internal, remedy)
        };
        let PreparedRun { plan, run, core_types, sink, .. } = self.prepared;
        sink.writer.discard();
        let remedy = "run without a system call filter";
        rt::pin(&plan.housekeeping).map_err(failed("cannot move the thread of the screen", remedy))?;
        let wake = WakeFile::open().map_err(failed("cannot open an event descriptor", remedy))?;
        let inbox = Arc::new(OwnInbox::new(wake));
        let shared = Arc::clone(&inbox);
        let housekeeper = Builder::new().name("onbeat-keeper".into()).spawn(move || {
            let measured = measure(plan, run, &core_types, Arc::new(WakeUps), &mut &*shared, None);
            shared.wake.wake();
            measured
        });
        let remedy = "raise the limit of processes (ulimit -u)";
        let housekeeper = Some(housekeeper.map_err(failed("cannot start a thread", remedy))?);
        Ok(OwnSource { inbox, housekeeper, runs: self.runs, titled: false })
    }
}

impl OwnSource {
    /// Ends the measurement; returns the reason if it was no key.
    pub fn end(&mut self) -> Result<Exit> {
        self.inbox.end();
        let Some(housekeeper) = self.housekeeper.take() else { return Ok(Exit::Ok) };
        let run = housekeeper.join().map_err(|_| Failure::internal("the housekeeping thread died"))??;
        Ok(if run.ended == Ended::Signal { Exit::Interrupted } else { Exit::Ok })
    }

    fn is_over(&self) -> bool {
        self.housekeeper.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl TopSource for OwnSource {
    fn wake(&self) -> Option<BorrowedFd<'_>> {
        Some(self.inbox.wake.as_fd())
    }

    fn second(&mut self, state: &mut TopState) -> Result<bool> {
        if !self.titled {
            // The policy in effect is known once the threads have started.
            if let Some(run) = self.inbox.checkpoint() {
                let (policy, priority) = (run.plan.policy.as_str(), run.plan.priority.unwrap_or(0));
                let interval = run.plan.interval_ns.unwrap_or_default();
                state.title = format!("own threads {policy} {priority}, every {interval}");
                self.titled = true;
            }
        }
        self.inbox.take().into_iter().for_each(|tick| state.take(tick));
        Ok(!self.is_over())
    }

    fn reset(&mut self) {}

    fn save(&mut self, _: &TopState) -> Result<String> {
        let run = self.inbox.checkpoint().filter(|run| run.samples().unwrap_or(0) > 0);
        let mut run = run.ok_or_else(|| Failure::usage("nothing is counted in the first ten seconds"))?;
        (run.complete, run.ended) = (true, Ended::User.into());
        let path = self.runs.join(&run.id);
        let mut writer = BundleWriter::create(&path, run.cpus.len())?;
        writer.begin(&run)?;
        let path = writer.finish(&run, &run.spikes)?;
        Ok(format!("saved: onbeat report {}", quoted(&path)))
    }

    fn spent(&self) -> OwnUse {
        sum_of_use(thread_use(), self.inbox.spent())
    }
}
