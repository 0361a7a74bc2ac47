//! `probe net`: round trips of UDP packets.
//!
//! In each slot the measuring thread sends a packet and waits for its answer, from a thread in
//! another network namespace, over the loopback device, or from `--serve` on another machine. A
//! sample is the time from before the call that sends to after the one that receives. The kernel's
//! time stamps divide it: up to the driver, from there to the receiving stack, from there to the
//! thread. A packet without an answer is counted, and the next one is sent at once.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::{Arc, Mutex, OnceLock};

use super::packet::{Answered, LONGEST, PacketAnswer, PacketSender, is_ours};
use super::packet_counts::{PacketCounts, count};
use super::pair::{Partner, Turns};
use crate::measure::shared::Shared;
use crate::measure::task::{MeasuringTask, ThreadBody, ThreadEnd};
use crate::measure::wake::{Sleep, Wake};
use host::clock;
use host::net::{ReceivedPacket, StampSource, UdpEnd};
use model::error::{Exit, Failure};
use model::run::Packets;
use model::units::Nanos;

/// Number of packets in sequence without an answer after which the run ends.
pub const UNANSWERED: u64 = 20;

/// Longest wait of the answering thread before it looks whether it has to end.
pub const LOOK: Nanos = Nanos(100_000_000);

/// Sockets of a measuring thread: its own, and that of the answering thread if it is of this
/// process.
pub struct Ends {
    pub sending: UdpEnd,
    pub answering: Option<UdpEnd>,
}

/// Packets to be sent, and the time limit of their answers.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    pub run: u64,
    pub size: usize,
    pub time_limit: Nanos,
    /// Source of the time stamps, if there are any.
    pub stamps: Option<StampSource>,
}

/// Threads that send packets.
pub struct RoundTrips {
    ends: Vec<Mutex<Option<Ends>>>,
    counts: Vec<PacketCounts>,
    sending: Sending,
    /// True once a thread had no answers; the run ends.
    unanswered: AtomicBool,
    failed: OnceLock<i32>,
}

impl RoundTrips {
    /// A thread for each of the sockets, in the order of the plan.
    pub fn new(ends: Vec<Ends>, sending: Sending) -> RoundTrips {
        let counts = ends.iter().map(|_| PacketCounts::default()).collect();
        let ends = ends.into_iter().map(|ends| Mutex::new(Some(ends))).collect();
        RoundTrips { ends, counts, sending, unanswered: AtomicBool::new(false), failed: OnceLock::new() }
    }

    /// Results of a thread.
    pub fn packets(&self, index: usize) -> Packets {
        self.counts.get(index).map(PacketCounts::read).unwrap_or_default()
    }

    /// True if the run ended because nothing was answered any more.
    pub fn is_unanswered(&self) -> bool {
        self.unanswered.load(Acquire)
    }

    /// Error number of a call that ended the run.
    pub fn failed(&self) -> Option<i32> {
        self.failed.get().copied()
    }
}

impl ThreadBody for RoundTrips {
    fn run(&self, task: MeasuringTask) -> ThreadEnd {
        let own = self.ends[task.index].lock().map(|mut ends| ends.take()).unwrap_or_default();
        let Some(Ends { sending, answering }) = own else {
            return task.refuse(Failure::internal("a socket is missing: report this"));
        };
        let cpu = task.own().cpu;
        let from = task.plan.probe.as_ref().and_then(|probe| probe.from.get(task.index).copied());
        let turns: Arc<Turns> = Arc::default();
        let partner = answering.map(|socket| {
            let body = move |turns: &Turns| answer(&socket, turns);
            Partner::start(task.plan, cpu, from.unwrap_or(cpu), &turns, body, || ())
        });
        match partner.transpose() {
            Ok(partner) => task.run_with_schedule(RoundTrip {
                all: self,
                counts: &self.counts[task.index],
                warming: PacketCounts::default(),
                shared: task.shared,
                sender: PacketSender { run: self.sending.run, thread: task.index as u64 },
                socket: sending,
                partner,
                answered: Answered::default(),
                first: None,
                packet: vec![0; self.sending.size],
                buffer: vec![0; LONGEST + 1],
                in_row: 0,
                began: Nanos(0),
                ended: Nanos(0),
            }),
            Err(failure) => task.refuse(failure),
        }
    }
}

/// Body of the answering thread.
fn answer(socket: &UdpEnd, turns: &Turns) {
    let mut buffer = vec![0; LONGEST + 1];
    turns.set_ready();
    while !turns.over() {
        match socket.answer(&mut buffer, is_ours) {
            Err(error) if !is_passing(error.kind()) => return turns.fail(&error),
            _ => {}
        }
    }
}

/// True for the end of a wait without a packet, and for a refusal by the peer's machine.
pub fn is_passing(kind: ErrorKind) -> bool {
    use ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    matches!(kind, WouldBlock | TimedOut | Interrupted | ConnectionRefused)
}

/// Sends packets before the run; true if one was answered.
///
/// # Errors
/// A packet cannot be sent.
pub fn is_reached(socket: &UdpEnd, sending: &Sending, packets: u64) -> std::io::Result<bool> {
    // A number of thread that no measuring thread has.
    let sender = PacketSender { run: sending.run, thread: u64::MAX };
    let (mut packet, mut buffer) = (vec![0; sending.size], vec![0; LONGEST + 1]);
    for number in 0..packets {
        sender.write(number, &mut packet);
        match socket.send(&packet).and_then(|()| socket.receive(&mut buffer)) {
            Ok(received) if sender.number_in(&buffer[..received.length]).is_some() => return Ok(true),
            Err(error) if !is_passing(error.kind()) => return Err(error),
            // The peer's machine refuses at once.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => clock::sleep_for(LOOK),
            _ => {}
        }
    }
    Ok(false)
}

/// The measuring thread.
struct RoundTrip<'a> {
    all: &'a RoundTrips,
    counts: &'a PacketCounts,
    /// Counts of the warm-up, which no document has.
    warming: PacketCounts,
    shared: &'a Shared,
    sender: PacketSender,
    socket: UdpEnd,
    /// The answering thread, if it is of this process.
    partner: Option<Partner>,
    answered: Answered,
    /// Number of the first packet of the run.
    first: Option<u64>,
    packet: Vec<u8>,
    buffer: Vec<u8>,
    /// Packets in sequence without an answer.
    in_row: u64,
    began: Nanos,
    ended: Nanos,
}

/// End of the wait for an answer.
enum Waited {
    Answer(ReceivedPacket),
    OverTime,
    Stopped,
    Failed(i32),
}

impl RoundTrip<'_> {
    /// Counts of the run, or of the warm-up.
    fn counts(&self) -> &PacketCounts {
        if self.shared.start_at.load(Relaxed) != 0 { self.counts } else { &self.warming }
    }

    #[cold]
    fn end(&self) -> Sleep {
        self.shared.stop.store(true, Relaxed);
        Sleep::Interrupted
    }

    /// Waits for the answer to the packet that was sent last.
    fn wait(&mut self) -> Waited {
        let latest = self.began + self.all.sending.time_limit;
        loop {
            let received = match self.socket.receive(&mut self.buffer) {
                Ok(received) => received,
                Err(error) if !is_passing(error.kind()) => {
                    return Waited::Failed(error.raw_os_error().unwrap_or(libc::EIO));
                }
                Err(_) if self.shared.stop.load(Relaxed) => return Waited::Stopped,
                Err(error) if error.kind() != ErrorKind::Interrupted => return Waited::OverTime,
                Err(_) => continue,
            };
            self.ended = clock::monotonic();
            let number = self.sender.number_in(&self.buffer[..received.length]);
            let meaning = number.map_or(PacketAnswer::Foreign, |number| self.answered.take(number));
            let of = self.counts();
            match meaning {
                PacketAnswer::InTime => return Waited::Answer(received),
                PacketAnswer::Duplicate => count(&of.duplicates),
                PacketAnswer::Foreign => count(&of.foreign),
                // To a packet of the warm-up.
                PacketAnswer::Late { .. } if number < self.first => count(&of.foreign),
                PacketAnswer::Late { reordered } => {
                    count(&of.late);
                    of.reordered.fetch_add(u64::from(reordered), AcqRel);
                }
            }
            if clock::monotonic() >= latest {
                return Waited::OverTime;
            }
        }
    }

    /// Divides a round trip by the time stamps; `wall` is CLOCK_REALTIME minus CLOCK_MONOTONIC.
    fn divide(&self, number: u64, received: &ReceivedPacket, wall: Nanos) {
        let Some(source) = self.all.sending.stamps else { return };
        let sent = self.socket.sent_stamp(number as u32);
        let of = self.counts();
        let Some((sent, arrived)) = sent.zip(received.stamp).filter(|(sent, arrived)| sent <= arrived) else {
            return count(&of.unstamped);
        };
        if source == StampSource::Hardware {
            // The card's clock has no relation to those of the kernel.
            return of.path.add(arrived - sent);
        }
        let (began, ended) = (self.began + wall, self.ended + wall);
        // The clock was set in between.
        if sent < began || ended < arrived {
            return count(&of.unstamped);
        }
        of.send.add(sent - began);
        of.path.add(arrived - sent);
        of.receive.add(ended - arrived);
    }
}

impl Wake for RoundTrip<'_> {
    const COUNTS_MISSED: bool = false;

    fn sleep_until(&mut self, instant: Nanos) -> Sleep {
        if !clock::nanosleep_until(instant) {
            return Sleep::Interrupted;
        }
        loop {
            let wall = clock::wall_offset();
            let number = self.answered.send();
            if self.first.is_none() && self.shared.start_at.load(Relaxed) != 0 {
                self.first = Some(number);
            }
            self.sender.write(number, &mut self.packet);
            self.began = clock::monotonic();
            let sent = self.socket.send(&self.packet);
            let waited = match sent {
                Err(error) if !is_passing(error.kind()) => {
                    Waited::Failed(error.raw_os_error().unwrap_or(libc::EIO))
                }
                _ => self.wait(),
            };
            match waited {
                Waited::Answer(received) => {
                    self.in_row = 0;
                    count(&self.counts().answered);
                    self.divide(number, &received, wall);
                    return Sleep::Full;
                }
                Waited::OverTime => {
                    self.in_row += 1;
                    count(&self.counts().over_time);
                    if self.in_row >= UNANSWERED {
                        self.all.unanswered.store(true, Release);
                        return self.end();
                    }
                }
                // Neither answered nor lost: the run ended before.
                Waited::Stopped => return Sleep::Interrupted,
                Waited::Failed(number) => {
                    let _ = self.all.failed.set(number);
                    return self.end();
                }
            }
        }
    }

    fn now(&self, _expected: Nanos) -> Nanos {
        self.ended
    }

    fn latency(&self, _expected: Nanos, now: Nanos) -> Nanos {
        now - self.began
    }

    fn used(&self) -> Nanos {
        let partner = self.partner.as_ref().map_or(Nanos(0), Partner::used);
        clock::thread_cpu().unwrap_or_default() + partner
    }
}

/// Counts of `--serve`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    pub answered: u64,
    /// Packets that are not of `probe net`.
    pub foreign: u64,
}

/// Answers packets until `ends` is true, which is asked at least every 100 ms.
///
/// # Errors
/// A packet cannot be received.
pub fn serve(socket: &UdpEnd, mut ends: impl FnMut() -> bool) -> Result<Served, Failure> {
    let (mut buffer, mut served) = (vec![0; LONGEST + 1], Served::default());
    while !ends() {
        match socket.answer(&mut buffer, is_ours) {
            Ok(true) => served.answered += 1,
            Ok(false) => served.foreign += 1,
            Err(error) if is_passing(error.kind()) => {}
            Err(error) => {
                let remedy = "choose another address with --serve";
                return Err(Failure::of_call("cannot receive packets", &error, Exit::Internal, remedy));
            }
        }
    }
    Ok(served)
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::net::loopback_pairs;

    fn sending(time_limit: i64) -> Sending {
        Sending { run: 5, size: 64, time_limit: Nanos(time_limit), stamps: Some(StampSource::Kernel) }
    }

    #[test]
    fn a_round_trip_is_divided_and_a_silent_peer_ends_the_run() {
        let (mut client, server) = loopback_pairs(1).unwrap().remove(0);
        client.set_time_limit(Nanos(2_000_000)).unwrap();
        server.set_time_limit(LOOK).unwrap();
        let stamped = client.stamp(StampSource::Kernel).is_ok();
        let all = RoundTrips::new(vec![Ends { sending: client, answering: None }], sending(2_000_000));
        let socket = all.ends[0].lock().unwrap().take().unwrap().sending;
        let shared = Shared::new(&crate::plan::tests::any_plan(), 0, 0);
        shared.start_at.store(1, Release);
        let mut trip = RoundTrip {
            all: &all,
            counts: &all.counts[0],
            warming: PacketCounts::default(),
            shared: &shared,
            sender: PacketSender { run: 5, thread: 0 },
            socket,
            partner: None,
            answered: Answered::default(),
            first: None,
            packet: vec![0; 64],
            buffer: vec![0; LONGEST + 1],
            in_row: 0,
            began: Nanos(0),
            ended: Nanos(0),
        };
        std::thread::scope(|scope| {
            let answers = scope.spawn(|| {
                let mut left = 3;
                serve(&server, || {
                    left -= 1;
                    left == 0
                })
            });
            // On a busy machine an answer may be late: it is counted then.
            assert_eq!(trip.sleep_until(Nanos(0)), Sleep::Full);
            assert!(trip.latency(Nanos(0), trip.now(Nanos(0))).0 > 0);
            assert_eq!(answers.join().unwrap().map(|served| served.foreign).ok(), Some(0));
        });
        let of = all.packets(0);
        assert_eq!((of.answered, of.sent), (1, 1 + of.lost + of.late));
        assert_eq!(of.path_mean_ns.is_some(), stamped && of.unstamped == 0);
        assert_eq!(trip.sleep_until(Nanos(0)), Sleep::Interrupted);
        assert!(all.is_unanswered() && shared.stop.load(Relaxed));
        let of = all.packets(0);
        assert_eq!(of.sent, of.answered + of.lost + of.late);
    }

    #[test]
    fn a_peer_is_reached_or_not() {
        let (client, server) = loopback_pairs(1).unwrap().remove(0);
        client.set_time_limit(Nanos(1_000_000)).unwrap();
        assert!(!is_reached(&client, &sending(1_000_000), 2).unwrap());
        drop(server);
        assert!(!is_reached(&client, &sending(1_000_000), 2).unwrap());
    }
}
