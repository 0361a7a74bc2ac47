//! Table of Xenomai's `latency`: rows per second, a total, and a histogram of `-h`.

use super::cobalt::read;
use super::cobalt_find::{TableMaker, find};
use super::format::{ForeignFormat, Reader};

pub(super) const FORMAT: ForeignFormat = ForeignFormat {
    id: "xenomai",
    tool: "Xenomai's latency",
    versions: "2.6.3, 3.0.5, 3.1",
    origin: "public results",
    carries: "least, mean and largest latency, overruns, time, period, priority; with -h a histogram",
    hides: "the CPU; the number of samples without -h or -s; the last bucket holds all longer ones, and \
            early ones have no sign; the mean averages those of each second",
    find: |source| find(source, TableMaker::Xenomai),
    reader: Reader::Run(|source, finding, _| read(source, finding, "Xenomai latency")),
};

#[cfg(test)]
mod tests {
    use crate::foreign::testing::import_one;
    use crate::foreign::{ImportOptions, import};
    use model::run::{CpuRun, Run};
    use model::units::Nanos;
    use model::vocabulary::Quantity;
    use proptest::prelude::*;

    macro_rules! log {
        ($name:literal) => {
            include_str!(concat!("../../../../tests/fixtures/foreign/xenomai/", $name))
        };
    }

    fn refusal(text: &str) -> String {
        let error = import(text.as_bytes(), &ImportOptions::default()).unwrap_err().0;
        assert!(!error.contains('\n'), "{error}");
        error
    }

    fn extremes(cpu: &CpuRun) -> [Option<i64>; 3] {
        [cpu.min_ns, cpu.mean_ns, cpu.max_ns].map(|ns| ns.map(|ns| ns.0))
    }

    fn only(run: &Run) -> &CpuRun {
        assert_eq!((run.check(), run.cpus.len(), run.cpus[0].cpu), (Ok(()), 1, None));
        &run.cpus[0]
    }

    #[test]
    fn totals_are_those_of_the_tool() {
        for (text, truth, elapsed_s, period_us) in [
            (log!("histogram-user.txt"), [Some(613), Some(1380), Some(10_709)], Some(600), 100),
            (log!("histogram-overruns.txt"), [Some(969), Some(3948), Some(457_545)], Some(601), 100),
            (log!("no-histogram-overruns.txt"), [Some(2536), Some(8940), Some(707_622)], Some(600), 100),
            (log!("beaglebone.txt"), [Some(4374), Some(6187), Some(49_833)], Some(4), 1000),
            (log!("without-end.txt"), [Some(88), None, Some(2297)], None, 100),
            (log!("in-kernel.txt"), [Some(-4250), Some(-744), Some(5167)], Some(6), 100),
        ] {
            let run = import_one(text);
            assert_eq!(extremes(only(&run)), truth);
            assert_eq!(run.elapsed_ns, elapsed_s.map(|s: i64| Nanos(s * 1_000_000_000)));
            assert_eq!((run.plan.priority, run.plan.interval_ns), (Some(99), Some(Nanos(period_us * 1000))));
            assert_eq!(only(&run).quantity(), Quantity::Wakeup.name());
        }
    }

    #[test]
    fn histograms_hold_every_sample() {
        let run = import_one(log!("histogram-user.txt"));
        assert_eq!((only(&run).cycles, only(&run).overflows), (Some(5_999_988), None));
        assert_eq!((only(&run).histogram[1].lower, only(&run).histogram[1].count), (Nanos(1000), 5_894_069));
        let run = import_one(log!("histogram-overruns.txt"));
        assert_eq!((only(&run).cycles, only(&run).overflows), (Some(5_999_885), Some(1)));
        assert_eq!(
            only(&run).overflows_from_ns,
            Some(Nanos(299_000)),
            "the last row holds all that is longer"
        );
        assert!(run.plan.notes.contains(&"94 overruns".to_owned()));
        let run = import_one(log!("no-histogram-overruns.txt"));
        assert_eq!((only(&run).cycles, only(&run).is_summary()), (Some(5_999_922), true));
        assert_eq!(only(&import_one(log!("beaglebone.txt"))).cycles, None);
    }

    #[test]
    fn an_interrupt_handler_is_another_quantity() {
        let text = log!("beaglebone.txt").replace("periodic user-mode task", "in-kernel timer handler");
        assert_eq!(import_one(&text).cpus[0].quantity(), Quantity::Irq.name());
    }

    #[test]
    fn all_latencies_may_be_before_their_time() {
        let text =
            log!("in-kernel.txt").lines().filter(|line| !line.contains("RTD")).collect::<Vec<_>>().join("\n");
        let run = import_one(&text.replace("5.167", "-0.100"));
        assert_eq!(extremes(only(&run)), [Some(-4250), Some(-744), Some(-100)]);
        assert!(run.integrity.is_empty());
    }

    #[test]
    fn the_case_is_read_and_runs_are_separated() {
        let case = "== Sampling period: 500 us\n== Test mode: periodic user-mode task\n\
            == All results in microseconds\nwarming up...\n\
            RTT|  00:00:01  (periodic user-mode task, 500 us period, priority 99)\n\
            RTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst\n\
            RTD|      1.104|      1.911|      6.250|       0|     0|      1.104|      6.250\n\
            RTD|      0.981|      1.874|      7.018|       1|     0|      0.981|      7.018\n\
            ---|-----------|-----------|-----------|--------|------|-------------------------\n\
            RTS|      0.981|      1.892|      7.018|       1|     0|    00:00:02/00:00:02\n";
        let run = import_one(case);
        assert_eq!(extremes(only(&run)), [Some(981), Some(1892), Some(7018)]);
        assert_eq!(run.elapsed_ns, Some(Nanos(2_000_000_000)));
        assert_eq!(run.plan.notes[1], "1 overrun");
        let log = format!("{case}{}\n$ again\n{}", log!("without-end.txt"), log!("in-kernel.txt"));
        let runs = import(log.as_bytes(), &ImportOptions::default()).unwrap();
        assert_eq!(runs.len(), 3);
        let rows: String =
            case.lines().filter(|line| line.starts_with("RTD")).map(|line| format!("{line}\n")).collect();
        assert!(refusal(&rows).contains("--as xenomai"));
    }

    #[test]
    fn damaged_and_cut_texts_are_refused() {
        let whole = log!("histogram-user.txt");
        for (from, to, wanted) in [
            ("RTS|      0.613", "RTS|      0.9x3", "expected a whole line of RTS|"),
            ("RTS|      0.613", "RTS|      0.999", "narrower than its rows"),
            ("HSD|    avg|   1 -  2 |  5894069", "HSD|    avg|   1 -  2 |  5894068", "the rows hold 5999987"),
            ("HSD|    avg|   0 -  1 |      208\n", "", "the rows hold"),
            (
                "All results in microseconds",
                "All results in nanoseconds",
                "line 4: expected results in micro",
            ),
            (
                "RTS|      0.613|      1.380|     10.709",
                "RTS|      0.613|      1.380|      9.709",
                "contradicts",
            ),
        ] {
            let error = refusal(&whole.replacen(from, to, 1));
            assert!(error.starts_with("line ") && error.contains(wanted), "{from}: {error}");
        }
    }

    const LINES: &[&str] = &[
        "== Sampling period: 100 us",
        "== All results in microseconds",
        "warming up...",
        "warming up on CPU1...",
        "RTT|  00:00:01  (user, 1000 us period, priority 90, CPU1)",
        "RTH|----lat min|----lat avg|",
        "RTT|  00:00:01  (periodic user-mode task, 100 us period, priority 99)",
        "---|--param|----range-|--samples",
        "RTD| 1.0| 2.0| 3.0| 0| 0| 1.0| 3.0",
        "RTD| -1.0| 2.0| 300.0| 7| -1.0| 300.0",
        "RTD| 1.0| x",
        "RTS| 1.0| 2.0| 3.0| 0| 0| 00:00:02/00:00:02",
        "RTS| -9.0| -8.0| -7.0| 0| 00:00:02/00:00:02",
        "HSD|    avg|   1 -  2 | 5",
        "HSD|    avg|   3 -  4 | 5",
        "HSS|    avg| 10| 1.0| 0.1",
        "HSS|    avg| 5| 1.0| 0.1",
        "# libevl version: evl.0",
        "# min latency: 0.2",
        "# avg latency: 1.2",
        "# max latency: 4.5",
        "0 4",
        "4 9",
        "# test started on: Fri",
        "# thread affinity: CPU1",
        "# duration (hhmmss): 00:00:02",
    ];

    proptest! {
        #[test]
        fn any_table_is_consistent_or_refused(
            lines in proptest::collection::vec(proptest::sample::select(LINES), 0..16),
        ) {
            match import(lines.join("\n").as_bytes(), &ImportOptions::default()) {
                Ok(runs) => prop_assert!(runs.iter().all(|one| one.run.check().is_ok())),
                Err(error) => prop_assert!(!error.0.contains('\n')),
            }
        }
    }
}
