//! Good answers and bad ones: a score that passes everything is worth nothing.

use super::super::names;
use super::super::table::{FAULTS, NAMED_LOCK};
use super::*;

const MS: i64 = 1_000_000;

fn fault(word: &str) -> &'static Fault {
    FAULTS.iter().find(|fault| fault.word == word).unwrap()
}

fn record(fault: &str, kind: &str, seq: u64, start: i64, length: i64) -> LogRecord {
    let (start, end) = (start * MS, (start + length) * MS);
    LogRecord { seq, fault: fault.into(), kind: kind.into(), cpu: 1, start, end }
}

fn slice(kind: &str, ns: i64, function: &str) -> FoundSlice {
    let who = [String::new(), function.into(), String::new()];
    FoundSlice { kind: kind.into(), ns, who, pid: 60, ..FoundSlice::default() }
}

/// A spike that begins half a millisecond into a fault of 20 ms and outlasts it by as much.
fn spike(start: i64, mut slices: Vec<FoundSlice>) -> FoundSpike {
    let latency = 20 * MS;
    let explained: i64 = slices.iter().map(|slice| slice.ns).sum();
    let mut classes: Vec<String> = slices.iter().map(|slice| slice.kind.clone()).collect();
    classes.dedup();
    let expected = start * MS + MS / 2;
    let mut at = expected;
    for slice in &mut slices {
        slice.start = at;
        at += slice.ns;
    }
    FoundSpike {
        cpu: 1,
        expected,
        actual: expected + latency,
        latency,
        slices,
        unexplained: latency - explained,
        classes,
        victim: 50,
        ..FoundSpike::default()
    }
}

/// Forty faults, a second apart, and a spike for each.
fn series(of: impl Fn(i64) -> FoundSpike) -> (Vec<LogRecord>, Answer) {
    let log = (0..40).map(|at| record("irqs-off", "irqs-off", at as u64, at * 1000, 20)).collect();
    let spikes = (0..40).map(|at| of(at * 1000)).collect();
    (log, Answer { spikes, cost: MS / 5, ..Answer::default() })
}

fn right(start: i64) -> FoundSpike {
    let mut spike = spike(
        start,
        vec![
            slice("irqs-off", 19 * MS + MS / 2, "fault_irqs_off [onbeat_fault]"),
            slice("switch", MS / 4, ""),
        ],
    );
    spike.classes = vec!["irqs-off".into()];
    spike
}

fn judged(of: impl Fn(i64) -> FoundSpike) -> (Score, Result<(), String>) {
    let (log, answer) = series(of);
    let score = super::of(fault("irqs-off"), &log, &answer, &[]);
    let verdict = score.verdict(fault("irqs-off"), &FULL);
    (score, verdict)
}

/// All answers as given, but each of the first `n` changed.
fn with(n: i64, change: impl Fn(&mut FoundSpike)) -> Result<(), String> {
    judged(|start| {
        let mut spike = right(start);
        if start < n * 1000 {
            change(&mut spike);
        }
        spike
    })
    .1
}

#[test]
fn a_right_answer_passes() {
    let (score, verdict) = judged(right);
    assert_eq!(verdict, Ok(()));
    assert_eq!((score.injected, score.seen, score.spikes, score.strays), (40, 40, 40, 0));
    assert!(score.share_error < 0.001 && score.unexplained < 0.02, "{score:?}");
}

#[test]
fn silence_fails() {
    let log: Vec<LogRecord> =
        (0..40).map(|at| record("irqs-off", "irqs-off", at, at as i64 * 1000, 20)).collect();
    for log in [log, Vec::new()] {
        let score = super::of(fault("irqs-off"), &log, &Answer::default(), &[]);
        assert!(score.verdict(fault("irqs-off"), &FULL).unwrap_err().contains("saw 0"));
    }
}

#[test]
fn a_wrong_class_fails_from_the_third_of_forty_on() {
    let wrong = |spike: &mut FoundSpike| spike.classes.insert(0, "thread".into());
    assert_eq!(with(2, wrong), Ok(()));
    assert!(with(3, wrong).unwrap_err().contains("class right in 92.5 %"));
}

#[test]
fn a_wrong_name_fails_from_the_fifth_of_forty_on() {
    for other in ["", "fault_irqs", "fault_irqs_off_x", "x [fault_irqs_off]", "_raw_spin_unlock"] {
        let wrong = |spike: &mut FoundSpike| spike.slices[0].who[1] = other.into();
        assert_eq!(with(4, wrong), Ok(()), "{other}");
        assert!(with(5, wrong).unwrap_err().contains("named in 87.5 %"), "{other}");
    }
}

#[test]
fn a_name_on_a_slice_of_another_kind_is_none() {
    let wrong = |spike: &mut FoundSpike| {
        spike.slices[1].who[1] = std::mem::take(&mut spike.slices[0].who[1]);
    };
    assert!(with(40, wrong).unwrap_err().contains("named in 0.0 %"));
}

#[test]
fn the_list_of_culprits_names_as_many_as_it_says() {
    let (log, mut answer) = series(|start| {
        let mut spike = right(start);
        spike.slices[0].who[1] = "_raw_spin_unlock_irqrestore".into();
        spike
    });
    let culprit = |kind: &str, spikes| FoundCulprit {
        kind: kind.into(),
        spikes,
        share: 0.9,
        took: None,
        names: vec!["fault_irqs_off [onbeat_fault]".into()],
    };
    for (listed, named) in
        [(culprit("irqs-off", 39), 39), (culprit("irqs-off", 500), 40), (culprit("thread", 40), 0)]
    {
        answer.culprits = vec![listed];
        assert_eq!(super::of(fault("irqs-off"), &log, &answer, &[]).named, named);
    }
}

#[test]
fn time_given_to_another_fails() {
    let half = |spike: &mut FoundSpike| {
        spike.slices[0].ns -= 5 * MS;
        spike.slices[1].ns += 5 * MS;
    };
    assert!(with(40, half).unwrap_err().contains("share of time off by 25"));
    let unsaid = |spike: &mut FoundSpike| {
        spike.slices[0].ns -= 2 * MS;
        spike.unexplained += 2 * MS;
    };
    let why = with(40, unsaid).unwrap_err();
    assert!(why.contains("10.3 % unexplained") && !why.contains("add up"), "{why}");
}

#[test]
fn only_what_was_injected_must_be_explained() {
    // The emulator held everything up for another 15 ms after the fault.
    let longer = |spike: &mut FoundSpike| {
        spike.latency += 15 * MS;
        spike.actual += 15 * MS;
        spike.unexplained += 15 * MS;
        spike.classes.push("unexplained".into());
    };
    assert_eq!(with(40, longer), Ok(()));
    // The same time attributed within the fault.
    let within = |spike: &mut FoundSpike| {
        longer(spike);
        spike.slices.iter_mut().for_each(|slice| slice.start += 15 * MS);
    };
    assert!(with(40, within).unwrap_err().contains("% unexplained"));
}

#[test]
fn one_nanosecond_too_many_in_one_spike_fails() {
    assert!(with(1, |spike| spike.unexplained += 1).unwrap_err().contains("1 spikes do not add up"));
    // Also in one that is on no injection.
    let (log, mut answer) = series(right);
    answer.spikes.push(FoundSpike { latency: 1, ..spike(500, Vec::new()) });
    let score = super::of(fault("irqs-off"), &log, &answer, &[]);
    assert_eq!((score.strays, score.wrong_sums), (1, 1));
}

#[test]
fn spikes_of_the_emulators_own_are_counted_and_left_out() {
    let (log, mut answer) = series(right);
    answer.spikes.push(spike(500, vec![slice("thread", 19 * MS, "other")]));
    // Nine of its twenty milliseconds lie on an injection.
    answer.spikes.push(spike(1011, vec![slice("thread", 19 * MS, "other")]));
    // On the other CPU.
    answer.spikes.push(FoundSpike { cpu: 0, ..right(3000) });
    let score = super::of(fault("irqs-off"), &log, &answer, &[]);
    assert_eq!((score.spikes, score.strays, score.verdict(fault("irqs-off"), &FULL)), (40, 3, Ok(())));
}

#[test]
fn spikes_during_which_the_emulator_waited_are_left_out() {
    let (log, answer) = series(right);
    let first = &answer.spikes[0];
    let stall = [first.expected, first.expected + 5 * MS, 3 * MS];
    let score = super::of(fault("irqs-off"), &log, &answer, &[stall]);
    assert_eq!((score.spikes, score.seen, score.spoilt), (39, 39, 1));
}

#[test]
fn spikes_that_were_not_reported_fail() {
    let (log, mut answer) = series(right);
    answer.spikes.truncate(29);
    let why = super::of(fault("irqs-off"), &log, &answer, &[]).verdict(fault("irqs-off"), &FULL).unwrap_err();
    assert_eq!(why, "saw 29 of 40 injections, 0 spoilt");
    // One injection seen twice counts once.
    let (_, mut answer) = series(right);
    answer.spikes = vec![right(0); 40];
    assert_eq!(super::of(fault("irqs-off"), &log, &answer, &[]).seen, 1);
}

#[test]
fn faults_before_the_run_and_of_other_kinds_are_none_of_its() {
    let (mut log, mut answer) = series(right);
    log.push(record("fifo", "thread", 99, 500, 20));
    answer.t0 = 10_000 * MS - 1;
    let score = super::of(fault("irqs-off"), &log, &answer, &[]);
    assert_eq!((score.injected, score.seen, score.strays), (30, 30, 10));
}

/// Both of two causes are required, each with its name and its time.
#[test]
fn one_of_two_causes_is_not_enough() {
    let log: Vec<LogRecord> = (0..30)
        .flat_map(|at| {
            [
                record("double", "irqs-off", at, at as i64 * 1000, 10),
                record("double", "thread", at, at as i64 * 1000 + 10, 11),
            ]
        })
        .collect();
    let score = |slices: Vec<FoundSlice>| {
        let spikes = (0..30).map(|at| spike(at * 1000, slices.clone())).collect();
        super::of(fault("double"), &log, &Answer { spikes, cost: MS / 5, ..Answer::default() }, &[])
            .verdict(fault("double"), &FULL)
    };
    let off = |ns| slice("irqs-off", ns, "fault_then_above [onbeat_fault]");
    let above = |ns| FoundSlice {
        kind: "thread".into(),
        ns,
        who: ["fault_above".into(), String::new(), String::new()],
        ..FoundSlice::default()
    };
    assert_eq!(score(vec![off(9 * MS + MS / 2), above(10 * MS + MS / 2)]), Ok(()));
    assert!(score(vec![above(20 * MS)]).unwrap_err().contains("class right in 0.0 %"));
    assert!(score(vec![off(20 * MS)]).unwrap_err().contains("named in 0.0 %"));
    assert!(score(vec![off(3 * MS), above(17 * MS)]).unwrap_err().contains("share of time"));
}

/// Forty spikes of a fault whose single cause has the given slice, and the verdict.
fn single(word: &str, told: FoundSlice) -> Result<(), String> {
    let fault = fault(word);
    let logged = fault.parts[0].logged;
    let log: Vec<LogRecord> = (0..40).map(|at| record(word, logged, at, at as i64 * 1000, 20)).collect();
    let spikes = (0..40).map(|at| spike(at * 1000, vec![told.clone()])).collect();
    super::of(fault, &log, &Answer { spikes, cost: MS / 5, ..Answer::default() }, &[]).verdict(fault, &FULL)
}

const MOST: i64 = 19 * MS + MS / 2;

fn who(comm: &str, function: &str) -> [String; 3] {
    [comm.into(), function.into(), String::new()]
}

#[test]
fn work_with_preemption_off_is_no_workqueues() {
    let function = "fault_work_preempt_off [onbeat_fault]";
    assert_eq!(single("work-preempt-off", slice("preempt-off", MOST, function)), Ok(()));
    assert!(single("work-preempt-off", slice("workqueue", MOST, function)).unwrap_err().contains("class"));
    let bare = FoundSlice { who: who("kworker/1:0", ""), ..slice("preempt-off", MOST, "") };
    assert!(single("work-preempt-off", bare).unwrap_err().contains("named in 0.0 %"));
}

#[test]
fn a_kernel_thread_is_named_by_its_function() {
    let told =
        |function: &str| FoundSlice { who: who("fault_hog_function", function), ..slice("thread", MOST, "") };
    assert_eq!(single("kthread-hog", told("fault_hog_function [onbeat_fault]")), Ok(()));
    assert!(single("kthread-hog", told("")).unwrap_err().contains("named in 0.0 %"));
}

#[test]
fn a_rendezvous_has_one_who_asked() {
    let told = |said: &str| FoundSlice {
        who: who("migration/1", "multi_cpu_stop"),
        said: format!("stop-machine migration/1 multi_cpu_stop {said}"),
        ..slice("stop-machine", MOST, "")
    };
    assert_eq!(single("stop-machine", told("asked for by fault_stopper/77 on CPU 0")), Ok(()));
    assert!(single("stop-machine", told("")).unwrap_err().contains("named in 0.0 %"));
}

#[test]
fn a_lock_that_another_holds_is_not_the_waiters_doing() {
    let told = |kind: &str, comm: &str, function: &str| {
        single("lock", FoundSlice { who: who(comm, function), ..slice(kind, MOST, "") })
    };
    assert_eq!(told("lock-contention", "", ""), Ok(()));
    assert_eq!(told("lock-contention", "fault_holder", "fault_lock_hold"), Ok(()));
    assert!(told("lock-contention", "fault_waiter", "fault_lock_wait").unwrap_err().contains("named"));
    assert!(told("irqs-off", "fault_waiter", "fault_lock_wait").unwrap_err().contains("class"));
}

#[test]
fn where_locks_have_queues_the_holder_must_be_named() {
    let told = |comm: &str| {
        let found = FoundSlice { who: who(comm, ""), ..slice("lock-contention", MOST, "") };
        is_right(&NAMED_LOCK.parts[0], &found)
    };
    assert!(told("fault_holder") && !told("") && !told("fault_waiter"));
}

#[test]
fn kernels_may_say_it_in_other_words() {
    let offline = names::FAULTS.iter().find(|fault| fault.word == "cpu-offline").unwrap();
    let told = |words: &str| {
        let said = format!("CPU 1 went off line: takedown_cpu ran, the rest is in no event; {words}");
        let named = who("migration/0", "multi_cpu_stop");
        is_right(&offline.parts[0], &FoundSlice { who: named, said, ..slice("stop-machine", MOST, "") })
    };
    assert!(told("in the work item work_for_cpu_fn") && told("asked for by fault_offliner/2 on CPU 0"));
    assert!(!told("asked for by another/2 on CPU 0"));
}

#[test]
fn an_inherited_priority_is_said_and_is_not_the_fair_servers() {
    let told = |kind: &str, said: &str| {
        single(
            "inherited",
            FoundSlice { who: who("inh_low", ""), said: said.into(), ..slice(kind, MOST, "") },
        )
    };
    assert_eq!(told("thread", "it had inherited the priority 90"), Ok(()));
    assert!(told("thread", "it ran").unwrap_err().contains("named in 0.0 %"));
    assert!(told("fair-server", "it had inherited the priority 90").unwrap_err().contains("class"));
}

#[test]
fn the_own_path_is_no_culprit() {
    let own = |spike: &mut FoundSpike| spike.slices[0].pid = spike.victim;
    assert!(with(1, own).unwrap_err().contains("1 times onbeat's own path: irqs-off"));
    // Also in a spike on no injection; an unnamed path of the slow emulator does not count there.
    let (log, mut answer) = series(right);
    answer.spikes.push(spike(500, vec![slice("timer-irq", MOST, "")]));
    assert!(super::of(fault("irqs-off"), &log, &answer, &[]).own.is_empty());
    own(answer.spikes.last_mut().unwrap());
    assert_eq!(super::of(fault("irqs-off"), &log, &answer, &[]).own.len(), 1);
    // The emulator waited at that time.
    let (log, mut answer) = series(right);
    own(&mut answer.spikes[0]);
    let stall = [answer.spikes[0].expected, answer.spikes[0].actual, 10 * MS];
    assert!(super::of(fault("irqs-off"), &log, &answer, &[stall]).own.is_empty());
}

#[test]
fn who_records_stays_off_the_victims_cpu() {
    let hog = FoundSlice { who: who("own_hog", ""), ..slice("thread", MOST, "") };
    let log: Vec<LogRecord> =
        (0..40).map(|at| record("victim-own", "thread", at, at as i64 * 1000, 20)).collect();
    let answer = |housekeeping: u64, slices: Vec<FoundSlice>| {
        let spikes = (0..40).map(|at| spike(at * 1000, slices.clone())).collect();
        let answer = Answer { spikes, housekeeping: vec![housekeeping], ..Answer::default() };
        super::of(fault("victim-own"), &log, &answer, &[]).verdict(fault("victim-own"), &FULL)
    };
    assert_eq!(answer(0, vec![hog.clone()]), Ok(()));
    assert!(answer(1, vec![hog.clone()]).unwrap_err().contains("it records on CPU 1"));
    let onbeat = FoundSlice { who: who("onbeat", ""), ..slice("thread", 1000, "") };
    assert!(answer(0, vec![hog, onbeat]).unwrap_err().contains("40 times onbeat's own path"));
}

#[test]
fn the_time_taken_counts_each_nanosecond_of_the_windows_once() {
    let (log, mut answer) = series(right);
    let ours = |took| FoundCulprit {
        kind: "irqs-off".into(),
        spikes: 40,
        share: 0.9,
        took,
        names: vec!["fault_irqs_off".into()],
    };
    let error = |answer: &Answer| super::of(fault("irqs-off"), &log, answer, &[]).taken_error;
    assert_eq!(error(&answer), None);
    answer.culprits = vec![ours(Some(40 * 20 * MS)), ours(None)];
    // Another late wake-up within the same injections adds no time.
    let within = answer.spikes.iter().map(|spike| FoundSpike {
        expected: spike.expected + MS,
        latency: spike.latency - MS,
        ..spike.clone()
    });
    let within: Vec<FoundSpike> = within.collect();
    answer.spikes.extend(within);
    let exact = error(&answer).unwrap();
    assert!(exact < 0.03, "{exact}");
    answer.culprits = vec![ours(Some(2 * 40 * 20 * MS))];
    assert!(error(&answer).unwrap() > 0.9);
}
