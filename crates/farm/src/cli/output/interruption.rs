//! SIGINT and SIGTERM while a command works: it is given up, and the program ends with 6.

use std::mem::ManuallyDrop;
use std::time::Duration;

use model::error::{Exit, Failure, Result};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot::{self, error::RecvError};

/// Time for a cancelled command to remove its partial results.
const GRACE: Duration = Duration::from_secs(2);
/// Stack size, as usual for the main thread.
const STACK: usize = 8 << 20;

/// Both signals that ask a program to end.
struct EndSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl EndSignals {
    fn listen() -> std::io::Result<EndSignals> {
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(EndSignals { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Runs the command in a thread until it ends or a signal arrives: then it is dropped, which
/// removes its partial results, and `words` describe what stays. A command that is reading or
/// copying a file cannot be dropped: it is abandoned after a while, or at a second signal.
pub fn until_interrupted<F: Future<Output = Result<Exit>> + 'static>(
    runtime: Runtime,
    words: &'static str,
    command: impl FnOnce() -> F + Send + 'static,
) -> Result<Exit> {
    let listening = {
        let _inside = runtime.enter();
        EndSignals::listen()
    };
    let mut signals = listening
        .map_err(|error| Failure::internal(format!("cannot listen for signals ({error}): try again")))?;
    let (tell, told) = oneshot::channel::<()>();
    let (done, mut ended) = oneshot::channel();
    let handle = runtime.handle().clone();
    let work = move || {
        let outcome = handle.block_on(async {
            tokio::select! {
                biased;
                outcome = command() => Some(outcome),
                _ = told => None,
            }
        });
        let _ = done.send(outcome);
    };
    let started = std::thread::Builder::new().name("farm/command".to_owned()).stack_size(STACK).spawn(work);
    started.map_err(|error| {
        let remedy = "raise its limit (ulimit -u)";
        Failure::of_call("cannot start a thread", &error, Exit::Internal, remedy)
    })?;
    let (outcome, is_over) = runtime.block_on(async move {
        tokio::select! {
            outcome = &mut ended => return (outcome_of(outcome, words), true),
            () = signals.next() => {}
        }
        let _ = tell.send(());
        tokio::select! {
            outcome = &mut ended => (outcome_of(outcome, words), true),
            () = signals.next() => (Err(interrupted(words)), false),
            () = tokio::time::sleep(GRACE) => (Err(interrupted(words)), false),
        }
    });
    if is_over {
        // A thread that reads a large bundle is not awaited.
        runtime.shutdown_background();
    } else {
        // The thread uses it until the process ends.
        let _left = ManuallyDrop::new(runtime);
    }
    outcome
}

/// Last result of the thread; `None` is a command that was dropped.
fn outcome_of(ended: Result<Option<Result<Exit>>, RecvError>, words: &str) -> Result<Exit> {
    match ended {
        Ok(Some(outcome)) => outcome,
        Ok(None) => Err(interrupted(words)),
        Err(_) => Err(Failure::internal("the command failed: report this, with the lines above")),
    }
}

fn interrupted(words: &str) -> Failure {
    Failure { exit: Exit::Interrupted, message: format!("interrupted: {words}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_came_to_is_the_outcome_and_a_panic_is_a_failure() {
        let of = |command: fn() -> Result<Exit>| {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
            until_interrupted(runtime, "all stays", move || async move { command() })
        };
        assert_eq!(of(|| Ok(Exit::Limit)).unwrap(), Exit::Limit);
        assert_eq!(of(|| Err(Failure::usage("no"))).unwrap_err().exit, Exit::Usage);
        assert_eq!(of(|| panic!("made here")).unwrap_err().exit, Exit::Internal);
        let dropped = outcome_of(Ok(None), "all stays").unwrap_err();
        assert_eq!((dropped.exit, dropped.message.as_str()), (Exit::Interrupted, "interrupted: all stays"));
    }
}
