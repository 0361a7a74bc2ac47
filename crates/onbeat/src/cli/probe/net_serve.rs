//! `onbeat probe net --serve`.

use super::probe_flags::ProbeFlags;
use crate::cli::flags::positive_span;
use crate::cli::outputs::remark;
use crate::plan::{CpuChoice, DEFAULT_PRIORITY};
use crate::probe::net::{LOOK, Served, serve as answer_packets};
use host::net::{UdpEnd, resolve};
use host::{clock, rt};
use model::error::{Exit, Failure, Result, reason};
use model::text::{quoted_value, several};
use model::units::Bare;
use model::vocabulary::Policy;

/// Port of `--serve` and `--peer`.
pub const DEFAULT_PORT: u16 = 17_077;

/// Answers packets until a signal, or for the duration if one was given.
pub fn serve(flags: &ProbeFlags, address: &str, duration: Option<&str>) -> Result<Exit> {
    let named = quoted_value(address);
    let at = resolve(address, DEFAULT_PORT).map_err(|error| {
        Failure::usage(format!("invalid --serve {named} ({error}): expected ADDRESS or ADDRESS:PORT"))
    })?;
    let failed = |error: std::io::Error| {
        let remedy = "choose another address or port";
        Failure::of_call(format!("cannot answer at {named}"), &error, Exit::NotSupported, remedy)
    };
    let socket = UdpEnd::bound(at).map_err(failed)?;
    socket.set_time_limit(LOOK).map_err(failed)?;
    let length = duration.map(|span| positive_span("-D", span, Bare::Seconds)).transpose()?;
    let until = length.map(|length| clock::monotonic() + length);
    let policy = take_policy(flags)?;
    rt::block_signals().map_err(failed)?;
    remark(&format!("onbeat: answering at {} {policy}; end with Ctrl-C", socket.address().map_err(failed)?));
    let ends = || rt::stop_pending() || until.is_some_and(|until| clock::monotonic() >= until);
    let Served { answered, foreign } = answer_packets(&socket, ends)?;
    let others = several(foreign, "other packet was", "other packets were");
    remark(&format!("onbeat: {} answered; {others} not", several(answered, "packet was", "packets were")));
    Ok(if rt::stop_pending() { Exit::Interrupted } else { Exit::Ok })
}

/// Sets CPUs, policy and priority of the answering thread; returns the policy in words.
fn take_policy(flags: &ProbeFlags) -> Result<String> {
    if let CpuChoice::Only(cpus) = flags.threads.cpu_choice()? {
        rt::pin(&cpus).map_err(|error| {
            Failure::of_call("cannot choose its CPUs", &error, Exit::Usage, "choose others with -a")
        })?;
    }
    flags.threads.no_reservation("--serve")?;
    let explicit = flags.threads.priority().is_some() || flags.threads.policy()?.is_some();
    let priority = flags.threads.priority().unwrap_or(DEFAULT_PRIORITY);
    let policy = flags.threads.policy()?.unwrap_or(if priority == 0 { Policy::Other } else { Policy::Fifo });
    if policy == Policy::Other {
        return Ok("under SCHED_OTHER".to_owned());
    }
    let words = format!("SCHED_{} with priority {priority}", policy.name().to_uppercase());
    match rt::set_policy(policy, priority) {
        Ok(()) => Ok(format!("under {words}")),
        Err(error) if explicit => Err(Failure::not_permitted(format!(
            "cannot set {words} ({}): run as root, or with -p 0",
            reason(&error)
        ))),
        Err(error) => Ok(format!("under SCHED_OTHER ({words}: {})", reason(&error))),
    }
}
