//! The recorder on the running kernel, compared with threads that measure their latencies. If the
//! kernel or the permissions of this process allow no programs, the refusal has to name what is
//! missing.

#![allow(clippy::disallowed_methods)] // These tests start threads of their own.
#![allow(clippy::unwrap_used)] // Clippy knows unit tests as tests, not helpers of integration tests.

mod usable_cpu;

use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard};
use std::thread::JoinHandle;

use host::clock::{TimerFd, futex_until, futex_word, monotonic, nanosleep_until};
use host::rt::{self, SignalTimer};
use model::error::{Exit, Failure};
use model::units::Nanos;
use model::vocabulary::Policy;
use model::watch::WatchSeries;
use recorder::{DrainedEpoch, KernelRecorder, Options, Reading};
use rustix::thread::{CapabilitySet, CapabilitySets};

const READINGS: [Reading; 2] = [Reading::Types, Reading::Format];
const STEP: i64 = 500_000;

/// Serializes the tests: they attach programs to the same events, and count descriptors.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The recorder; `None` after a refusal that gives its reason.
fn armed(reading: Reading) -> Option<KernelRecorder> {
    usable_cpu::look();
    let pulse = rt::affinity().unwrap().iter().next();
    match KernelRecorder::arm(&Options { reading, chosen_limit: 4, pulse, ..Options::default() }) {
        Ok(recorder) => {
            assert_eq!((recorder.about().reading, recorder.about().pulse), (reading, pulse));
            Some(recorder)
        }
        Err(failure) => {
            is_a_refusal(&failure);
            None
        }
    }
}

fn is_a_refusal(failure: &Failure) {
    assert!(!failure.message.contains('\n') && failure.message.len() > 20, "{failure}");
    assert!(matches!(failure.exit, Exit::NotPermitted | Exit::NotSupported), "{failure}");
}

/// True if a thread of this process may have a real-time policy, which loading programs does not
/// imply, on a CPU whose switches are shown.
fn real_time() -> bool {
    std::thread::spawn(|| rt::set_policy(Policy::Fifo, 80).is_ok() && usable_cpu::pin()).join().unwrap()
}

/// Starts a real-time thread, which waits until the recorder knows it.
fn thread<T: Send + 'static>(
    recorder: &mut KernelRecorder,
    body: impl FnOnce(recorder::ThreadSums) -> T + Send + 'static,
) -> (u32, JoinHandle<T>) {
    let (sender, receiver) = channel();
    let (go, goes) = channel();
    let handle = std::thread::spawn(move || {
        rt::set_policy(Policy::Fifo, 80).unwrap();
        assert!(usable_cpu::pin());
        sender.send(rt::thread_id() as u32).unwrap();
        body(goes.recv().unwrap())
    });
    let tid = receiver.recv().unwrap();
    recorder.choose(tid).unwrap();
    go.send(recorder.sums_of(tid).unwrap()).unwrap();
    (tid, handle)
}

/// Sleeps repeatedly in one way; returns measured latency, T and W of each wake-up.
fn cycles(count: usize, sums: &recorder::ThreadSums, mut sleep: impl FnMut(Nanos)) -> Vec<(i64, i64, i64)> {
    let mut next = monotonic().0 + STEP;
    let mut before = sums.now();
    let one = |_| {
        sleep(Nanos(next));
        let now = monotonic().0;
        let after = sums.now();
        // Of a wake-up without T, or none at all, the sum of both stays.
        let part = |series: usize| after[series].0 - before[series].0;
        let seen = (now - next, part(0), if part(2) == 0 { 0 } else { part(1) });
        assert!(part(2) == 0 || part(0) + part(1) == part(2), "{seen:?}");
        before = after;
        next = (next + STEP).max(now + STEP / 2);
        seen
    };
    (0..count).map(one).collect()
}

/// Wake-ups of the chosen thread in a series.
fn of_thread(drained: &DrainedEpoch, tid: u32, series: WatchSeries) -> u64 {
    let rows = drained.series.iter().filter(|rows| rows.series == series).flat_map(|rows| &rows.threads);
    let own = rows.filter(|row| row.thread.as_ref().and_then(|task| task.tid) == Some(tid as i32));
    own.map(|row| row.n).sum()
}

#[test]
fn a_thread_is_never_earlier_than_was_recorded() {
    const COUNT: usize = 300;
    let _one = alone();
    for reading in READINGS {
        let Some(mut recorder) = armed(reading).filter(|_| real_time()) else { continue };
        assert_eq!(recorder.about().unlearned, [""; 0], "{reading:?}");
        let (done, ends) = channel::<()>();
        let (result, results) = channel();
        let (tid, handle) = thread(&mut recorder, move |sums| {
            let timer = TimerFd::new().unwrap();
            let signal = SignalTimer::new().unwrap();
            let word = futex_word();
            let all = [
                cycles(COUNT, &sums, |at| _ = nanosleep_until(at)),
                cycles(COUNT, &sums, |at| _ = futex_until(&word, at)),
                cycles(COUNT, &sums, |at| _ = timer.sleep_until(at)),
                cycles(COUNT, &sums, |at| _ = signal.sleep_until(at)),
            ];
            result.send(all).unwrap();
            // The record is taken while the thread exists.
            let _ = ends.recv();
        });
        let all = results.recv().unwrap();
        let largest = recorder.largest().unwrap().unwrap();
        let drained = recorder.take().unwrap();
        assert!(drained.worst.iter().any(|worst| worst.wakeup.total() >= largest.wakeup.total()));
        drop(done);
        handle.join().unwrap();
        let mut timed = 0;
        for (way, seen) in all.iter().enumerate() {
            let both: Vec<_> = seen.iter().filter(|(_, late, wait)| late + wait != 0).collect();
            for (own, late, wait) in &both {
                assert!(
                    *late >= 0 && *wait >= 0 && own - late - wait >= 0,
                    "{reading:?} {way}: {own} {late} {wait}"
                );
            }
            assert!(both.len() * 10 >= COUNT * 9, "{reading:?} {way}: T of {} in {COUNT}", both.len());
            timed += both.len() as u64;
        }
        assert_eq!(of_thread(&drained, tid, WatchSeries::TimerWakeup), timed);
        assert_eq!(of_thread(&drained, tid, WatchSeries::Timer), timed);
        assert!(of_thread(&drained, tid, WatchSeries::Wakeup) >= timed);
        let worst = drained.worst.iter().find(|worst| worst.wakeup.victim.tid == Some(tid as i32));
        if let Some(worst) = worst {
            assert_eq!(worst.wakeup.victim.priority(), Some(80));
            assert!(!worst.switch.is_empty() && !worst.wakeup.previous.comm.is_empty(), "{worst:?}");
        }
    }
}

/// T + W and, if S was seen, T + W + S of a cycle, with the latency measured by the thread.
type Whole = (i64, i64, Option<i64>);

fn whole_cycles(count: usize, sums: &recorder::ThreadSums) -> Vec<Whole> {
    let mut next = monotonic().0 + STEP;
    let mut before = (sums.now(), sums.switched_now().unwrap());
    let one = |_| {
        nanosleep_until(Nanos(next));
        let now = monotonic().0;
        let after = (sums.now(), sums.switched_now().unwrap());
        let both = after.0[2].0 - before.0[2].0;
        let (switch, whole) = (after.1[0].0 - before.1[0].0, after.1[1].0 - before.1[1].0);
        assert!(whole == 0 || whole == both + switch, "{both} {switch} {whole}");
        let seen = (now - next, both, Some(whole).filter(|whole| *whole != 0));
        before = after;
        next = (next + STEP).max(now + STEP / 2);
        seen
    };
    (0..count).map(one).collect()
}

#[test]
fn the_switch_is_part_of_what_a_thread_waits() {
    const COUNT: usize = 500;
    let _one = alone();
    let options = Options { chosen_limit: 4, switch: true, ..Options::default() };
    let mut recorder = match KernelRecorder::arm(&options) {
        Ok(recorder) => recorder,
        Err(failure) => return is_a_refusal(&failure),
    };
    if !real_time() {
        return;
    }
    let (done, ends) = channel::<()>();
    let (result, results) = channel();
    let (tid, handle) = thread(&mut recorder, move |sums| {
        result.send(whole_cycles(COUNT, &sums)).unwrap();
        let _ = ends.recv();
    });
    let seen = results.recv().unwrap();
    let drained = recorder.take().unwrap();
    drop(done);
    handle.join().unwrap();
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for (own, both, whole) in seen.iter().filter(|(_, both, _)| *both != 0) {
        let Some(whole) = whole else { continue };
        assert!(both < whole && whole <= own, "{own} {both} {whole}");
        with.push(own - whole);
        without.push(own - both);
    }
    assert!(with.len() * 10 >= COUNT * 9, "S of {} in {COUNT}", with.len());
    with.sort_unstable();
    without.sort_unstable();
    assert!(with[with.len() / 2] < without[without.len() / 2]);
    assert_eq!(of_thread(&drained, tid, WatchSeries::TimerWakeupSwitch), with.len() as u64);
    let (switches, waits) =
        (of_thread(&drained, tid, WatchSeries::Switch), of_thread(&drained, tid, WatchSeries::Wakeup));
    assert!(with.len() as u64 <= switches && switches <= waits, "{} {switches} {waits}", with.len());
    let of_cpus = |series: WatchSeries| -> u64 {
        let rows = drained.series.iter().filter(|rows| rows.series == series).flat_map(|rows| &rows.cpus);
        rows.map(|row| row.n).sum()
    };
    assert!(of_cpus(WatchSeries::Switch) >= switches);
    // One may be absent: a guest of a hypervisor was seen to switch without an event.
    let mut ours = drained.worst.iter().filter(|worst| worst.wakeup.victim.tid == Some(tid as i32));
    assert!(ours.clone().count() == 0 || ours.any(|worst| worst.wakeup.switch_ns.is_some()));
}

#[test]
fn the_switch_is_recorded_where_it_is_wanted_alone() {
    let _one = alone();
    let by_format = Options { reading: Reading::Format, switch: true, ..Options::default() };
    let refused = KernelRecorder::arm(&by_format).err().expect("events have no field that shows it");
    is_a_refusal(&refused);
    for reading in READINGS {
        let Some(mut recorder) = armed(reading) else { continue };
        let series: Vec<_> = recorder.take().unwrap().series.iter().map(|rows| rows.series).collect();
        assert_eq!(series, [WatchSeries::Timer, WatchSeries::Wakeup, WatchSeries::TimerWakeup]);
        let options = Options { chosen_limit: 4, switch: true, ..Options::default() };
        if let Ok(with) = KernelRecorder::arm(&options) {
            assert!(with.about().kernel_memory > recorder.about().kernel_memory);
        }
    }
}

#[test]
fn nothing_is_lost_by_reading() {
    let _one = alone();
    for reading in READINGS {
        let Some(mut recorder) = armed(reading).filter(|_| real_time()) else { continue };
        let (end, ends) = channel::<()>();
        let (done, is_done) = channel();
        let (tid, handle) = thread(&mut recorder, move |_| {
            let begin = monotonic().0;
            (1..500).for_each(|nth| _ = nanosleep_until(Nanos(begin + nth * STEP)));
            done.send(()).unwrap();
            let _ = ends.recv();
        });
        let (mut rows, mut recorded, mut voluntary, mut apart, mut skipped) = (0, 0, 0, 0, 0);
        for nth in 0..5 {
            if nth == 4 {
                // The last is taken during a long sleep.
                is_done.recv().unwrap();
            }
            let drained = recorder.take().unwrap();
            rows += of_thread(&drained, tid, WatchSeries::Wakeup);
            let own = drained.threads.iter().find(|thread| thread.tid == tid);
            recorded += own.map_or(0, |own| own.recorded);
            voluntary += own.and_then(|own| own.voluntary).unwrap_or(0);
            apart += drained.counts.preempted + drained.counts.unwoken + drained.coverage.woken_before_sleep;
            skipped += drained.coverage.skipped.unwrap_or(0);
        }
        drop(end);
        handle.join().unwrap();
        // It may have been chosen in the middle of a wake-up.
        assert!(recorded > 400 && rows.abs_diff(recorded) <= apart + 1, "{rows} {recorded} {apart}");
        // Wake-ups that are not recorded are counted: a guest of a hypervisor was seen to switch
        // without an event, and then the thread seems to have been woken before it slept.
        let room = apart + skipped + 1;
        assert!(recorded <= voluntary + 1 && voluntary <= recorded + room, "{recorded} {voluntary} {room}");
    }
}

/// The kernel's programs and maps among this process's descriptors.
fn count_descriptors() -> usize {
    let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    links
        .filter(|link| std::fs::read_link(link.path()).is_ok_and(|to| to.to_string_lossy().contains("bpf")))
        .count()
}

#[test]
fn nothing_is_left_behind() {
    let _one = alone();
    for reading in READINGS {
        if let Some(recorder) = armed(reading) {
            assert!(count_descriptors() >= 10);
            drop(recorder);
        }
        assert_eq!(count_descriptors(), 0);
    }
}

/// Drops all capabilities but these from the calling thread.
fn keep_only(capabilities: CapabilitySet) {
    let now = rustix::thread::capabilities(None).unwrap();
    let left = now.permitted & capabilities;
    let sets = CapabilitySets { effective: left, permitted: left, inheritable: CapabilitySet::empty() };
    rustix::thread::set_capabilities(None, sets).unwrap();
}

#[test]
fn what_is_missing_is_named() {
    let _one = alone();
    let had = rustix::thread::capabilities(None).unwrap().permitted;
    for (capabilities, missing) in [(CapabilitySet::empty(), "CAP_BPF"), (CapabilitySet::BPF, "CAP_PERFMON")]
    {
        let refused = std::thread::spawn(move || {
            keep_only(capabilities);
            KernelRecorder::arm(&Options::default()).err().expect("no recorder without capabilities")
        });
        let failure = refused.join().unwrap();
        is_a_refusal(&failure);
        let supported = failure.exit == Exit::NotPermitted;
        assert!(!supported || failure.message.contains(missing) || !had.contains(capabilities), "{failure}");
    }
}

#[test]
fn privileges_can_be_dropped_once_armed() {
    let _one = alone();
    for reading in READINGS {
        let drained = std::thread::spawn(move || {
            let mut recorder = armed(reading)?;
            keep_only(CapabilitySet::empty());
            let first = recorder.take().unwrap();
            let second = recorder.take().unwrap();
            assert_eq!(first.mono_ns + first.span_ns, second.mono_ns);
            Some(second)
        });
        if let Some(drained) = drained.join().unwrap() {
            assert_eq!(drained.counts.late_cpus, 0);
        }
    }
}
