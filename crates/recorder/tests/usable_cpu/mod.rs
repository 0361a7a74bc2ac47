//! CPUs whose switches this kernel shows at all.
//!
//! A guest of a hypervisor was seen to give no event for any switch from the idle thread of one
//! CPU, and for few from the threads of one process: no reader can find these. The kernel's text
//! output shows which CPU is usable.

use std::sync::OnceLock;

use host::clock::{monotonic, nanosleep_until};
use host::rt;
use host::tracefs::{Instance, Tracing};
use model::units::{Cpu, CpuSet, Nanos};
use model::vocabulary::Policy;

const SLEEPS: usize = 20;
const STEP: i64 = 500_000;

/// Looks for a usable CPU, once; before a test creates its instance, as a process has one.
pub fn look() {
    first_cpu();
}

/// Binds the calling thread to a CPU whose switches are shown; without one, says so on standard
/// error and returns false. If events cannot be read as text, the thread stays where it is.
pub fn pin() -> bool {
    match first_cpu() {
        None => true,
        Some(Some(cpu)) => rt::pin(&CpuSet::from_iter([cpu])).is_ok(),
        Some(None) => {
            eprintln!("left out: switches of this kernel (no CPU shows those from its idle thread)");
            false
        }
    }
}

/// The first CPU that shows them, if they can be read.
fn first_cpu() -> Option<Option<Cpu>> {
    static CPU: OnceLock<Option<Option<Cpu>>> = OnceLock::new();
    *CPU.get_or_init(|| std::thread::spawn(ask).join().unwrap())
}

fn ask() -> Option<Option<Cpu>> {
    let instance = Tracing::open().ok()?.instance().ok()?;
    rt::set_policy(Policy::Fifo, 80).ok()?;
    let own = format!("next_pid == {}", rt::thread_id());
    instance.write("events/sched/sched_switch/filter", &own).ok()?;
    instance.write("events/sched/sched_switch/enable", "1").ok()?;
    let is_usable =
        |cpu: &Cpu| rt::pin(&CpuSet::from_iter([*cpu])).is_ok() && arrivals(&instance) * 10 >= SLEEPS * 9;
    Some(rt::affinity().ok()?.iter().find(is_usable))
}

/// Number of sleeps of this thread that end with a switch in the kernel's text output.
fn arrivals(instance: &Instance) -> usize {
    let lines = || instance.read("trace").unwrap().lines().filter(|line| !line.starts_with('#')).count();
    let before = lines();
    (0..SLEEPS).for_each(|_| _ = nanosleep_until(Nanos(monotonic().0 + STEP)));
    lines() - before
}
