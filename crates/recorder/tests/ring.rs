//! The ring on the running kernel, compared with threads that measure their latencies. If this
//! process may not trace, the refusal has to name what is missing.

#![allow(clippy::disallowed_methods)] // These tests start threads of their own.
#![allow(clippy::unwrap_used)] // Clippy knows unit tests as tests, not helpers of integration tests.

mod usable_cpu;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard};
use std::thread::JoinHandle;

use host::clock::{TimerFd, futex_until, futex_word, monotonic, nanosleep_until};
use host::rt::{self, SignalTimer};
use host::tracefs::Tracing;
use model::error::Exit;
use model::units::Nanos;
use model::vocabulary::Policy;
use model::watch::{WatchRow, WatchSeries};
use recorder::{DrainedEpoch, Options, Reading, RingRecorder};

const STEP: i64 = 500_000;

/// Serializes the tests: a process has one instance.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The ring; `None` after a refusal that gives its reason.
fn armed(ring_kib: Option<u64>) -> Option<RingRecorder> {
    usable_cpu::look();
    match RingRecorder::arm(&Options { ring_kib, chosen_limit: 4, ..Options::default() }) {
        Ok(recorder) => {
            assert_eq!((recorder.about().reading, &*recorder.about().unlearned), (Reading::Ring, &[][..]));
            Some(recorder)
        }
        Err(failure) => {
            assert!(!failure.message.contains('\n') && failure.message.len() > 20, "{failure}");
            assert!(matches!(failure.exit, Exit::NotPermitted | Exit::NotSupported), "{failure}");
            None
        }
    }
}

/// True if a thread of this process may have a real-time policy on a CPU whose switches are shown.
fn real_time() -> bool {
    std::thread::spawn(|| rt::set_policy(Policy::Fifo, 80).is_ok() && usable_cpu::pin()).join().unwrap()
}

/// The rows of a chosen thread in a series.
fn rows_of(drained: &DrainedEpoch, tid: u32, series: WatchSeries) -> Vec<&WatchRow> {
    let rows = drained.series.iter().filter(|rows| rows.series == series).flat_map(|rows| &rows.threads);
    rows.filter(|row| row.thread.as_ref().and_then(|task| task.tid) == Some(tid as i32)).collect()
}

/// A thread that sleeps once in a given way at each request, and sends its lateness.
fn sleeper() -> (u32, Sender<usize>, Receiver<i64>, JoinHandle<()>) {
    let (sender, receiver) = channel();
    let (go, goes) = channel();
    let (late, lates) = channel();
    let handle = std::thread::spawn(move || {
        rt::set_policy(Policy::Fifo, 80).unwrap();
        assert!(usable_cpu::pin());
        sender.send(rt::thread_id() as u32).unwrap();
        let (timer, signal, word) = (TimerFd::new().unwrap(), SignalTimer::new().unwrap(), futex_word());
        for way in goes {
            let at = Nanos(monotonic().0 + STEP);
            match way {
                0 => _ = nanosleep_until(at),
                1 => _ = futex_until(&word, at),
                2 => _ = timer.sleep_until(at),
                _ => _ = signal.sleep_until(at),
            }
            late.send(monotonic().0 - at.0).unwrap();
        }
    });
    (receiver.recv().unwrap(), go, lates, handle)
}

#[test]
fn a_thread_is_never_earlier_than_was_recorded() {
    const COUNT: usize = 40;
    let _one = alone();
    let Some(mut recorder) = armed(None).filter(|_| real_time()) else { return };
    let (tid, go, lates, handle) = sleeper();
    recorder.choose(tid).unwrap();
    let mut all = 0;
    for way in 0..4 {
        let mut timed = 0;
        for _ in 0..COUNT {
            go.send(way).unwrap();
            let own = lates.recv().unwrap();
            let drained = recorder.take();
            let both = rows_of(&drained, tid, WatchSeries::TimerWakeup);
            let Some(row) = both.first() else { continue };
            assert_eq!(row.n, 1, "{way}");
            assert!(row.sum_ns.0 > 0 && row.sum_ns.0 <= own, "{way}: {own} {row:?}");
            let worst = drained.worst.iter().find(|worst| worst.wakeup.victim.tid == Some(tid as i32));
            if let Some(worst) = worst {
                assert_eq!(worst.wakeup.victim.priority(), Some(80));
                assert_eq!(worst.wakeup.victim.pid, i32::try_from(std::process::id()).ok());
                assert!(!worst.wakeup.previous.comm.is_empty() && worst.switch.is_empty(), "{worst:?}");
            }
            timed += 1;
        }
        all += timed;
    }
    assert!(all * 10 >= 4 * COUNT * 9, "T of {all} in {}", 4 * COUNT);
    drop(go);
    handle.join().unwrap();
}

#[test]
fn nothing_is_lost_by_reading() {
    let _one = alone();
    let Some(mut recorder) = armed(None).filter(|_| real_time()) else { return };
    let (end, ends) = channel::<()>();
    let (sender, receiver) = channel();
    let (done, is_done) = channel();
    let (go, goes) = channel();
    let handle = std::thread::spawn(move || {
        rt::set_policy(Policy::Fifo, 80).unwrap();
        assert!(usable_cpu::pin());
        sender.send(rt::thread_id() as u32).unwrap();
        goes.recv().unwrap();
        // From now on each time: an absolute time in the past is no sleep.
        (1..500).for_each(|_| _ = nanosleep_until(Nanos(monotonic().0 + STEP)));
        done.send(()).unwrap();
        let _ = ends.recv();
    });
    let tid = receiver.recv().unwrap();
    recorder.choose(tid).unwrap();
    // It sleeps when the count of its recorded wake-ups begins.
    recorder.take();
    go.send(()).unwrap();
    let (mut rows, mut recorded, mut voluntary, mut apart) = (0, 0, 0, 0);
    for nth in 0..5 {
        if nth == 4 {
            // The last is taken during a long sleep.
            is_done.recv().unwrap();
        }
        let drained = recorder.take();
        rows += rows_of(&drained, tid, WatchSeries::Wakeup).iter().map(|row| row.n).sum::<u64>();
        let own = drained.threads.iter().find(|thread| thread.tid == tid);
        recorded += own.map_or(0, |own| own.recorded);
        voluntary += own.and_then(|own| own.voluntary).unwrap_or(0);
        apart += drained.counts.preempted + drained.counts.unwoken + drained.coverage.woken_before_sleep;
        apart += drained.counts.lost_events + drained.counts.lost_spans;
    }
    drop(end);
    handle.join().unwrap();
    // Unrecorded wake-ups are counted, of all threads; and a look may fall into the middle of a
    // wake-up.
    assert!(recorded > 400 && rows.abs_diff(recorded) <= apart + 1, "{rows} {recorded} {apart}");
    assert!(recorded.abs_diff(voluntary) <= apart + 2, "{recorded} {voluntary} {apart}");
}

/// Two threads on one CPU hand over to each other from the time sent through `goes`, and then sleep
/// until it is dropped; returns their ids, and the longest time of two round trips. A wait can
/// reach into the next time: reading frees room, for which the writer of that message is woken
/// (`unix_write_space`, net/unix/af_unix.c). The last such wait ends with the yield.
fn hand_over(count: usize, goes: Receiver<i64>) -> (Receiver<i32>, Receiver<i64>, JoinHandle<()>) {
    let (sender, receiver) = channel();
    let (long, longest) = channel();
    let (mut a, mut b) = UnixStream::pair().unwrap();
    let settle = move |sender: &Sender<i32>| {
        assert!(usable_cpu::pin());
        rt::set_policy(Policy::Fifo, 80).unwrap();
        sender.send(rt::thread_id()).unwrap();
    };
    let also = sender.clone();
    std::thread::spawn(move || {
        settle(&also);
        let mut byte = [0];
        while b.read(&mut byte).is_ok_and(|read| read == 1) && b.write_all(&byte).is_ok() {}
    });
    let handle = std::thread::spawn(move || {
        settle(&sender);
        let tid = goes.recv().unwrap();
        let (mut byte, mut longest, mut begins) = ([0], 0, [tid, tid]);
        for nth in 0..count {
            a.write_all(&byte).unwrap();
            a.read_exact(&mut byte).unwrap();
            if nth + 1 == count {
                std::thread::yield_now();
            }
            let now = monotonic().0;
            longest = longest.max(now - begins[0]);
            begins = [begins[1], now];
        }
        long.send(longest).unwrap();
        let _ = goes.recv();
    });
    (receiver, longest, handle)
}

#[test]
fn what_finds_no_room_is_counted_and_no_latency_spans_it() {
    let _one = alone();
    let Some(mut recorder) = armed(Some(8)).filter(|_| real_time()) else { return };
    // Megabytes of events, through two pages that are looked at after 20 ms at the earliest.
    let (go, goes) = channel();
    let (receiver, longest, handle) = hand_over(20_000, goes);
    let tids: Vec<i32> = receiver.iter().take(2).collect();
    recorder.take();
    go.send(monotonic().0).unwrap();
    let longest = longest.recv().unwrap();
    let drained = recorder.take();
    drop(go);
    handle.join().unwrap();
    assert!(drained.counts.lost_events > 1_000, "{:?}", drained.counts);
    assert_eq!(drained.coverage.skipped, Some(drained.counts.lost_events));
    let ours =
        drained.worst.iter().filter(|worst| worst.wakeup.victim.tid.is_some_and(|tid| tids.contains(&tid)));
    for wait in ours.filter_map(|worst| worst.wakeup.wakeup_ns) {
        assert!(wait.0 <= longest, "{wait} {longest}");
    }
}

#[test]
fn nothing_is_left_behind() {
    let _one = alone();
    let own = format!("onbeat-{}-", std::process::id());
    let left = || {
        let others = Tracing::open().map(|tracing| tracing.others().instances).unwrap_or_default();
        others.iter().filter(|name| name.starts_with(&own)).count()
    };
    if let Some(mut recorder) = armed(None) {
        assert_eq!(left(), 1);
        recorder.disarm();
        recorder.take();
        drop(recorder);
    }
    assert_eq!(left(), 0);
}
