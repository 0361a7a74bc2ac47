//! `onbeat probe net`.

use std::io;
use std::sync::Arc;

use super::net_serve::{DEFAULT_PORT, serve};
use super::probe_flags::{PairFlags, ProbeFlags};
use super::{finish_unless, measured};
use crate::cli::Environment;
use crate::cli::flags::{keyword, positive_span};
use crate::cli::outputs::Outputs;
use crate::cli::running::prepare_run;
use crate::measure::integrity::entry;
use crate::plan::{MachineCpus, MeasurePlan, ProbePlan};
use crate::probe::net::{Ends, LOOK, RoundTrips, Sending, UNANSWERED, is_reached};
use crate::probe::packet::{LONGEST, SHORTEST};
use host::net::{
    HardwareStamps, StampSource, UdpEnd, hardware_stamps, interface_of, loopback_pairs, peer_end, resolve,
    veth_pairs,
};
use host::random_u64;
use model::error::{Exit, Failure, Result, reason, run_with};
use model::run::Run;
use model::text::{quoted_value, several};
use model::units::{Bare, Cpu, Nanos};
use model::vocabulary::{Ended, IntegrityKind, Probe};

model::keywords! {
    /// Path of the packets.
    pub enum PacketPath {
        /// between two network namespaces, over a pair of virtual Ethernet devices
        Veth = "veth",
        /// over the loopback device
        Loopback = "loopback",
    }
}

model::keywords! {
    /// Time stamps of the packets.
    pub enum PacketStamps {
        /// by the kernel, when it hands a packet to the driver or takes it from there
        Software = "software",
        /// by the network card
        Hardware = "hardware",
        /// none
        None = "none",
    }
}

/// Longest time limit of an answer.
const LONGEST_LIMIT: Nanos = Nanos::SECOND;

/// Packets that are sent to a peer before the run, in search of an answer.
const SEARCH: u64 = 5;

/// Measure round trips of UDP packets: two network namespaces, or two machines
///
/// In each interval a thread on each CPU sends a packet and waits for its answer, from a thread on
/// the next CPU in another network namespace, which exists for the run only; from one over the
/// loopback device; or with --peer from `onbeat probe net --serve` on another machine. The samples
/// are the times from before the call that sends to after the one that receives. The kernel's time
/// stamps (SO_TIMESTAMPING) divide them into the way to the driver, from there to the receiving
/// stack, and from there to the thread. Lost, late, reordered and duplicate packets are counted.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        onbeat probe net -a 1                        between two namespaces, 1000 packets a second\n  \
        onbeat probe net --serve                     on one machine: answer\n  \
        onbeat probe net --peer 192.0.2.7 -a 1       on the other: measure")]
pub struct Args {
    #[command(flatten)]
    flags: ProbeFlags,
    /// Duration, by default 10s, of --serve without an end; a bare number is in seconds
    #[arg(short = 'D', long, value_name = "SPAN", allow_hyphen_values = true)]
    duration: Option<String>,
    /// Time between packets; a bare number is in us
    #[arg(short, long, value_name = "SPAN", default_value = "1000us", allow_hyphen_values = true)]
    interval: String,
    /// Machine that answers, with `--serve`; its port is 17077 by default
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with_all = ["serve", "path"])]
    peer: Option<String>,
    /// Answer packets of other machines until Ctrl-C or -D, at this address, by default [::]:17077
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "::")]
    #[arg(conflicts_with_all = ["path", "json", "output"])]
    serve: Option<String>,
    /// Path of the packets on this machine [default: veth, or loopback where that is not permitted]
    #[arg(long, value_name = "PATH", value_parser = keyword::<PacketPath>())]
    path: Option<PacketPath>,
    /// Length of a packet in bytes, without headers
    #[arg(long, value_name = "BYTES", default_value_t = 64)]
    size: usize,
    /// Time after which a packet counts as lost; a bare number is in us
    #[arg(long, value_name = "SPAN", default_value = "100ms", allow_hyphen_values = true)]
    time_limit: String,
    /// Time stamps of the packets
    #[arg(long, value_name = "SOURCE", default_value = "software", value_parser = keyword::<PacketStamps>())]
    stamps: PacketStamps,
    /// Poll the network card for this time while waiting (SO_BUSY_POLL), by default 50us; a bare
    /// number is in us
    #[arg(long, value_name = "SPAN", num_args = 0..=1, default_missing_value = "50us")]
    busy_poll: Option<String>,
    #[command(flatten)]
    pairs: PairFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    if let Some(address) = &args.serve {
        return serve(&args.flags, address, args.duration.as_deref());
    }
    let outputs = Outputs::of(&[&args.flags.run.json], environment)?;
    let sending = args.sending()?;
    let busy_poll =
        args.busy_poll.as_deref().map(|span| positive_span("--busy-poll", span, Bare::Micros)).transpose()?;
    let wanted = args.flags.wanted(
        args.flags.pair_intent(args.duration.as_deref().unwrap_or("10s"), &args.interval, &args.pairs)?,
        "packets",
    )?;
    let mut ends = Vec::new();
    let prepared = prepare_run(wanted, environment, |plan, machine, _| {
        ends = match &args.peer {
            Some(peer) => to_peer(plan, peer, &sending)?,
            None => on_this_machine(plan, machine, args.path)?,
        };
        if args.peer.is_none() && busy_poll.is_some() {
            plan.notes.push("--busy-poll has no effect without the queue of a network card".to_owned());
        }
        plan.notes.push(format!("packets of {} bytes, lost after {}", sending.size, sending.time_limit));
        set_up(&mut ends, &sending, busy_poll)
    })?;
    let body = Arc::new(RoundTrips::new(ends, sending));
    let results = body.clone();
    let kept = measured(prepared, body.clone(), None, move |run| fill(run, &results))?;
    let failure = failure(&kept.run, &body);
    finish_unless(&args.flags.run, kept, outputs, environment, failure)
}

impl Args {
    fn sending(&self) -> Result<Sending> {
        let size = self.size;
        if !(SHORTEST..=LONGEST).contains(&size) {
            return Err(Failure::usage(format!(
                "invalid --size {size}: expected {SHORTEST} to {LONGEST} bytes"
            )));
        }
        let time_limit = positive_span("--time-limit", &self.time_limit, Bare::Micros)?;
        if time_limit > LONGEST_LIMIT {
            return Err(Failure::usage(format!(
                "invalid --time-limit {time_limit}: expected at most {LONGEST_LIMIT}"
            )));
        }
        let stamps = match self.stamps {
            PacketStamps::Software => Some(StampSource::Kernel),
            PacketStamps::Hardware => Some(StampSource::Hardware),
            PacketStamps::None => None,
        };
        if stamps == Some(StampSource::Hardware) && self.peer.is_none() {
            return Err(Failure::not_supported(
                "virtual devices have no hardware time stamps: omit --stamps, or give --peer over a network \
                 card that has them (ethtool -T)",
            ));
        }
        Ok(Sending { run: random_u64(), size, time_limit, stamps })
    }
}

/// Sockets of each thread on this machine, and the CPUs that answer.
fn on_this_machine(
    plan: &mut MeasurePlan,
    machine: &MachineCpus,
    path: Option<PacketPath>,
) -> Result<Vec<Ends>> {
    let count = plan.cpus.len();
    let virtual_pairs = || veth_pairs(count).map_err(|error| no_namespaces(&error));
    let (pairs, path) = match path {
        Some(PacketPath::Loopback) => (loopback(count)?, PacketPath::Loopback),
        Some(PacketPath::Veth) => (virtual_pairs()?, PacketPath::Veth),
        None => match virtual_pairs() {
            Ok(pairs) => (pairs, PacketPath::Veth),
            Err(failure) => {
                plan.notes.push(format!("{}; the packets go over the loopback device", failure.message));
                (loopback(count)?, PacketPath::Loopback)
            }
        },
    };
    let cpus: Vec<Cpu> = plan.cpus.iter().map(|own| own.cpu).collect();
    let usable: Vec<Cpu> = machine.online.and(&machine.permitted).iter().collect();
    let ring = if cpus.len() > 1 { &cpus } else { &usable };
    let next = |cpu: &Cpu| ring.iter().find(|other| *other > cpu).or(ring.first()).copied().unwrap_or(*cpu);
    let from = cpus.iter().map(next).collect();
    plan.probe = Some(ProbePlan { kind: path.name().to_owned(), from, ..ProbePlan::of(Probe::Net) });
    Ok(pairs.into_iter().map(|(sending, answering)| Ends { sending, answering: Some(answering) }).collect())
}

fn loopback(count: usize) -> Result<Vec<(UdpEnd, UdpEnd)>> {
    loopback_pairs(count).map_err(|error| {
        let remedy = "switch it on (ip link set lo up)";
        Failure::of_call("cannot use the loopback device", &error, Exit::NotSupported, remedy)
    })
}

/// Refusal of network namespaces in words.
pub fn no_namespaces(error: &io::Error) -> Failure {
    let (exit, remedy) = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => (Exit::NotPermitted, run_with("CAP_SYS_ADMIN")),
        Some(libc::EOPNOTSUPP) => (Exit::NotSupported, "load the kernel's module veth".to_owned()),
        _ => (Exit::NotSupported, "use a kernel with CONFIG_NET_NS and CONFIG_VETH".to_owned()),
    };
    let message =
        format!("cannot make two network namespaces ({}): {remedy}, or use --path loopback", reason(error));
    Failure { exit, message }
}

/// Sockets of each thread to the peer, which has to answer.
fn to_peer(plan: &mut MeasurePlan, peer: &str, sending: &Sending) -> Result<Vec<Ends>> {
    let named = quoted_value(peer);
    let address = resolve(peer, DEFAULT_PORT).map_err(|error| {
        Failure::usage(format!("invalid --peer {named} ({error}): expected HOST or HOST:PORT"))
    })?;
    let failed = |error: io::Error| {
        let remedy = "check the route to it (ip route get)";
        Failure::of_call(format!("cannot send to {named}"), &error, Exit::NotSupported, remedy)
    };
    let make = |_: &_| peer_end(address).map(|sending| Ends { sending, answering: None });
    let ends: Vec<Ends> = plan.cpus.iter().map(make).collect::<io::Result<_>>().map_err(failed)?;
    if let (Some(first), Some(StampSource::Hardware)) = (ends.first(), sending.stamps) {
        need_hardware_stamps(&first.sending)?;
    }
    if let Some(Ends { sending: socket, .. }) = ends.first() {
        socket.set_time_limit(sending.time_limit).map_err(failed)?;
        if !is_reached(socket, sending, SEARCH).map_err(failed)? {
            return Err(Failure::not_supported(format!(
                "{named} does not answer at port {}: start `onbeat probe net --serve` there, and permit UDP \
                 at that port in its firewall",
                address.port()
            )));
        }
    }
    plan.probe = Some(ProbePlan { kind: "peer".to_owned(), ..ProbePlan::of(Probe::Net) });
    Ok(ends)
}

/// Refuses hardware time stamps that the interface to the peer does not have.
fn need_hardware_stamps(socket: &UdpEnd) -> Result<()> {
    let failed = |error: io::Error| {
        let what = "cannot read the abilities of the network card";
        Failure::of_call(what, &error, Exit::NotSupported, "use --stamps software")
    };
    let address = socket.address().map_err(failed)?.ip();
    let Some(interface) = interface_of(address).map_err(failed)? else {
        return Err(Failure::not_supported(format!(
            "no network interface has the address {address} any more: measure again, or use --stamps software"
        )));
    };
    let name = quoted_value(&interface);
    match hardware_stamps(&interface).map_err(failed)? {
        HardwareStamps::On => Ok(()),
        HardwareStamps::Missing => Err(Failure::not_supported(format!(
            "the driver of {name} has no hardware time stamps: use --stamps software"
        ))),
        HardwareStamps::Off => Err(Failure::not_supported(format!(
            "the hardware time stamps of {name} are off: switch them on (hwstamp_ctl -i {name} -t 1 -r 1, \
             linuxptp), or use --stamps software"
        ))),
    }
}

/// Sets time limits, time stamps and busy polling.
fn set_up(ends: &mut [Ends], sending: &Sending, busy_poll: Option<Nanos>) -> Result<()> {
    for Ends { sending: own, answering } in ends {
        let limited = own.set_time_limit(sending.time_limit);
        let limited =
            limited.and_then(|()| answering.as_ref().map_or(Ok(()), |end| end.set_time_limit(LOOK)));
        limited.map_err(|error| {
            let remedy = "run without a system call filter";
            Failure::of_call("cannot set the time limit of a socket", &error, Exit::NotSupported, remedy)
        })?;
        if let Some(source) = sending.stamps {
            own.stamp(source).map_err(|error| {
                let what = "this kernel has no time stamps of packets (SO_TIMESTAMPING)";
                Failure::of_call(what, &error, Exit::NotSupported, "use --stamps none")
            })?;
        }
        if let Some(time) = busy_poll {
            own.busy_poll(time).map_err(|error| {
                let remedy = run_with("CAP_NET_ADMIN") + ", or omit --busy-poll";
                Failure::of_call("cannot set SO_BUSY_POLL", &error, Exit::NotSupported, &remedy)
            })?;
        }
    }
    Ok(())
}

/// Adds the counts of each thread.
fn fill(run: &mut Run, body: &RoundTrips) {
    for (index, cpu) in run.cpus.iter_mut().enumerate() {
        cpu.packets = Some(body.packets(index));
    }
    let lost: u64 = run.cpus.iter().filter_map(|cpu| cpu.packets).map(|of| of.lost + of.late).sum();
    if lost > 0 {
        // Their round trips took longer than any sample.
        let words =
            format!("{} without an answer in time: no sample has them", several(lost, "packet", "packets"));
        run.integrity.push(entry(IntegrityKind::Lost, None, false, words));
    }
    if body.is_unanswered() || body.failed().is_some() {
        run.ended = Ended::Error.into();
    }
}

/// Failure of the run.
fn failure(run: &Run, body: &RoundTrips) -> Option<Failure> {
    let inconclusive = |message: String| Some(Failure { exit: Exit::Inconclusive, message });
    if let Some(number) = body.failed() {
        let error = io::Error::from_raw_os_error(number);
        return Some(Failure::internal(format!(
            "cannot send or receive packets ({}): results up to then are stored",
            reason(&error)
        )));
    }
    if body.is_unanswered() {
        return inconclusive(format!(
            "{UNANSWERED} packets in sequence had no answer: the run was ended; check the peer, or increase \
             --time-limit"
        ));
    }
    let none = run.samples().is_none_or(|samples| samples == 0);
    if none && run.ended != Ended::Signal {
        inconclusive("no packet was answered: increase -D".to_owned())
    } else {
        None
    }
}
