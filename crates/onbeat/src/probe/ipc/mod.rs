//! `probe ipc`: the time from a release by one thread to its acquisition by another.
//!
//! Thread B sleeps to its slot, gives A its turn, and waits. A reads the clock and releases; B
//! acquires, and reads the clock. Both directions use the measured kind, as in rt-tests' programs:
//! B has just begun to wait, its CPU is not in a deep idle state, and the kernel's code was used
//! just before.

mod eventfd;
mod futex;
mod mqueue;
mod pi_mutex;
mod pipe;
mod semaphore;
mod signal;
mod socket;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::pair::{Partner, Turns};
use crate::measure::shared::Shared;
use crate::measure::task::{MeasuringTask, ThreadBody, ThreadEnd};
use crate::measure::wake::{Sleep, Wake};
use host::{clock, rt};
use model::error::{Exit, Failure, Result, meaning_of};
use model::units::{Cpu, Nanos};

/// All kinds, in the order of the help.
pub const ALL: &[&IpcKind] = &[
    &futex::KIND,
    &pi_mutex::KIND,
    &mqueue::KIND,
    &semaphore::KIND,
    &signal::KIND,
    &pipe::KIND,
    &eventfd::KIND,
    &socket::KIND,
];

/// Kind of hand-over.
pub struct IpcKind {
    pub name: &'static str,
    /// Other names: synonyms, and rt-tests' program that measures it.
    pub aliases: &'static [&'static str],
    /// Calls between the two timestamps.
    pub doc: &'static str,
    /// Creates one direction between two threads. Nothing of it may outlast the process.
    pub open: fn(&IpcSetup) -> io::Result<Box<dyn Handover>>,
}

/// Parameters for the creation of a kind.
#[derive(Clone, Copy, Debug)]
pub struct IpcSetup {
    /// True if the process has a private namespace for System V semaphores and queues.
    pub own_namespace: bool,
}

/// Hand-over in one direction. `release` and `acquire` are in the measured path.
pub trait Handover: Send + Sync {
    /// Prepares the releasing thread; called first there.
    fn attach_releaser(&self, _thread: u32) -> io::Result<()> {
        Ok(())
    }

    /// Prepares the acquiring thread; called first there.
    fn attach_acquirer(&self, _thread: u32) -> io::Result<()> {
        Ok(())
    }

    /// Takes the object on the releasing thread, so that the other has to wait.
    fn hold(&self) -> io::Result<()> {
        Ok(())
    }

    /// Releases the object.
    fn release(&self) -> io::Result<()>;

    /// Waits for the object; an error of the kind `Interrupted` if a signal comes first.
    fn acquire(&self) -> io::Result<()>;

    /// Returns the object on the thread that has acquired it.
    fn done(&self) -> io::Result<()> {
        Ok(())
    }
}

impl IpcKind {
    /// The kind of that name.
    pub fn named(name: &str) -> Result<&'static IpcKind> {
        let known = |kind: &&&IpcKind| {
            kind.name.eq_ignore_ascii_case(name)
                || kind.aliases.iter().any(|also| also.eq_ignore_ascii_case(name))
        };
        ALL.iter().find(known).copied().ok_or_else(|| {
            let names: Vec<&str> = ALL.iter().map(|kind| kind.name).collect();
            Failure::usage(format!(
                "invalid mechanism '{}': choose from {}",
                model::text::clean(name),
                names.join(", ")
            ))
        })
    }

    /// Creates both directions for this number of pairs.
    pub fn make(&self, setup: &IpcSetup, pairs: usize) -> Result<Vec<BothWays>> {
        let way = || (self.open)(setup).map(Arc::from);
        let made: io::Result<Vec<_>> =
            (0..pairs).map(|_| Ok(BothWays { turn: way()?, measured: way()? })).collect();
        made.map_err(|error| {
            let what = format!("cannot create a {} to measure", self.name);
            let offered = meaning_of(&error).is_some_and(|(exit, _)| exit == Exit::NotSupported);
            let remedy = "raise the limits of queues and semaphores (ulimit -q, kernel.sem)";
            if offered {
                Failure::not_supported(format!(
                    "this kernel, or a system call filter, does not allow {} ({error}): choose other \
                     mechanisms",
                    self.name
                ))
            } else {
                Failure::of_call(what, &error, Exit::Internal, remedy)
            }
        })
    }
}

/// Both directions between a pair of threads.
#[derive(Clone)]
pub struct BothWays {
    /// Direction from the measuring thread to its partner.
    turn: Arc<dyn Handover>,
    /// Direction from the partner back.
    measured: Arc<dyn Handover>,
}

/// One pair per measured CPU.
pub struct Ipc {
    pairs: Vec<Pair>,
}

/// Pair of threads and their shared state.
struct Pair {
    from: Cpu,
    turns: Arc<Turns>,
    ways: BothWays,
}

impl Ipc {
    /// Pairs for the plan's CPUs, in that order: the two directions, and the CPU of the thread that
    /// releases.
    pub fn new(ways: Vec<BothWays>, from: &[Cpu]) -> Ipc {
        let pair = |(ways, &from): (BothWays, &Cpu)| Pair { from, turns: Arc::default(), ways };
        Ipc { pairs: ways.into_iter().zip(from).map(pair).collect() }
    }

    /// Error of a pair that stopped measuring, if there is one.
    pub fn failed(&self) -> Option<io::Error> {
        self.pairs.iter().find_map(|pair| pair.turns.failed())
    }
}

impl ThreadBody for Ipc {
    fn run(&self, task: MeasuringTask) -> ThreadEnd {
        let Pair { from, turns, ways } = &self.pairs[task.index];
        let (own, acquirer) = (task.own().cpu, rt::thread_id());
        let (its, last) = (ways.clone(), ways.turn.clone());
        let body = move |turns: &Turns| {
            if let Err(error) = release_in_turn(turns, &its) {
                turns.fail(&error);
                // It may wait for a release that will not come.
                rt::interrupt_sleep(acquirer);
            }
        };
        let end = move || drop(last.release());
        let attached = attach(ways, acquirer as u32).map_err(|error| {
            Failure::of_call(
                "cannot prepare a thread",
                &error,
                Exit::Internal,
                "report this, with the kernel version",
            )
        });
        match attached.and_then(|()| Partner::start(task.plan, own, *from, turns, body, end)) {
            Ok(partner) => task.run_with_schedule(Acquire {
                turns,
                ways,
                partner,
                shared: task.shared,
                acquired: Nanos(0),
            }),
            Err(failure) => task.refuse(failure),
        }
    }
}

/// Prepares the measuring thread, which holds the partner's turn at first.
fn attach(ways: &BothWays, thread: u32) -> io::Result<()> {
    ways.measured.attach_acquirer(thread)?;
    ways.turn.attach_releaser(thread)?;
    ways.turn.hold()
}

/// Body of the thread that releases.
fn release_in_turn(turns: &Turns, ways: &BothWays) -> io::Result<()> {
    let BothWays { turn, measured } = ways;
    let thread = rt::thread_id() as u32;
    turn.attach_acquirer(thread)?;
    measured.attach_releaser(thread)?;
    loop {
        measured.hold()?;
        turns.set_ready();
        while let Err(error) = turn.acquire() {
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        if turns.over() {
            return Ok(());
        }
        turn.done()?;
        turns.begin();
        measured.release()?;
    }
}

/// Poll interval and time limit for a partner that is not ready for its next turn.
const READY_POLL: Nanos = Nanos(20_000);
const READY_LIMIT: Nanos = Nanos(2_000_000_000);

/// The thread that acquires.
struct Acquire<'a> {
    turns: &'a Turns,
    ways: &'a BothWays,
    partner: Partner,
    shared: &'a Shared,
    acquired: Nanos,
}

impl Acquire<'_> {
    /// Ends the run: nothing more can be measured.
    #[cold]
    fn give_up(&self, error: Option<io::Error>) -> Sleep {
        if let Some(error) = error {
            self.turns.fail(&error);
        }
        self.shared.stop.store(true, Relaxed);
        Sleep::Interrupted
    }

    /// Waits for the partner; true if it is ready for its next turn.
    #[cold]
    fn partner_gets_ready(&mut self) -> bool {
        let until = clock::monotonic() + READY_LIMIT;
        while !self.turns.ready() {
            if clock::monotonic() >= until {
                self.turns.fail(&io::Error::from_raw_os_error(libc::ETIMEDOUT));
            }
            if self.turns.failed().is_some() || self.shared.stop.load(Relaxed) {
                self.give_up(None);
                return false;
            }
            clock::sleep_for(READY_POLL);
        }
        true
    }

    /// Gives the partner its turn, and acquires what it releases.
    #[inline(always)]
    fn exchange(&mut self) -> Sleep {
        if let Err(error) = self.ways.turn.release() {
            return self.give_up(Some(error));
        }
        while let Err(error) = self.ways.measured.acquire() {
            if error.kind() != io::ErrorKind::Interrupted {
                return self.give_up(Some(error));
            }
            if self.turns.failed().is_some() {
                return self.give_up(None);
            }
        }
        self.acquired = clock::monotonic();
        // Before the partner can wait for its next turn, which it would get immediately otherwise.
        match self.ways.turn.hold().and_then(|()| self.ways.measured.done()) {
            Ok(()) => Sleep::Full,
            Err(error) => self.give_up(Some(error)),
        }
    }
}

impl Wake for Acquire<'_> {
    const COUNTS_MISSED: bool = false;

    #[inline(always)]
    fn sleep_until(&mut self, instant: Nanos) -> Sleep {
        if !clock::nanosleep_until(instant) {
            return Sleep::Interrupted;
        }
        if !self.turns.ready() && !self.partner_gets_ready() {
            return Sleep::Interrupted;
        }
        self.exchange()
    }

    #[inline(always)]
    fn now(&self, _expected: Nanos) -> Nanos {
        self.acquired
    }

    #[inline(always)]
    fn latency(&self, _expected: Nanos, now: Nanos) -> Nanos {
        now - self.turns.began()
    }

    fn used(&self) -> Nanos {
        clock::thread_cpu().unwrap_or_default() + self.partner.used()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_is_one_kind_s() {
        let all = ALL.iter().flat_map(|kind| kind.aliases.iter().chain([&kind.name]));
        let names: Vec<&str> = all.copied().collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        for kind in ALL {
            let named = |name: &&str| IpcKind::named(name).expect("known").name == kind.name;
            assert!(kind.aliases.iter().chain([&kind.name]).all(named), "{}", kind.name);
        }
        let said = IpcKind::named("fax").err().expect("unknown").message;
        assert!(ALL.iter().all(|kind| said.contains(kind.name)), "{said}");
    }

    #[test]
    fn what_is_released_is_acquired_by_every_kind() {
        for kind in ALL {
            let ways = match kind.make(&IpcSetup { own_namespace: false }, 1) {
                Ok(mut made) => made.remove(0),
                // A kernel may lack one; its refusal names it.
                Err(failure) => {
                    assert!(failure.message.contains(kind.name), "{}", failure.message);
                    continue;
                }
            };
            let (turns, its) = (Arc::new(Turns::default()), ways.clone());
            std::thread::scope(|scope| {
                let releasing = scope.spawn(|| release_in_turn(&turns, &its));
                attach(&ways, rt::thread_id() as u32).expect(kind.name);
                for _ in 0..50 {
                    while !turns.ready() {
                        std::thread::yield_now();
                    }
                    let before = clock::monotonic();
                    ways.turn.release().expect(kind.name);
                    ways.measured.acquire().expect(kind.name);
                    let acquired = clock::monotonic();
                    ways.turn.hold().and_then(|()| ways.measured.done()).expect(kind.name);
                    assert!(before <= turns.began() && turns.began() <= acquired, "{}", kind.name);
                }
                while !turns.ready() {
                    std::thread::yield_now();
                }
                turns.end();
                ways.turn.release().expect(kind.name);
                releasing.join().expect("no panic").expect(kind.name);
            });
        }
    }
}
