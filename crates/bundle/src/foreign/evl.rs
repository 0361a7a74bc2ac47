//! EVL's `latmus`: rows per second, a total, and the file of `-g`.

use super::cobalt::read;
use super::cobalt_find::{TableMaker, find};
use super::format::{ForeignFormat, Reader};

pub(super) const FORMAT: ForeignFormat = ForeignFormat {
    id: "evl",
    tool: "EVL's latmus",
    versions: "libevl of 2020 and 2025",
    origin: "public results",
    carries: "least, mean and largest latency, overruns, CPU, time, period, priority, the largest of each \
              second; with -g a histogram, kernel and command line",
    hides: "the number of samples without -g; the last bucket holds all longer ones; with -I and -O the \
            response to a GPIO edge is measured, which only the context shows",
    find: |source| find(source, TableMaker::Evl),
    reader: Reader::Run(|source, finding, _| {
        let mut imported = read(source, finding, "EVL latmus")?;
        if imported.run.plan.notes.iter().any(|note| note.contains("gpio")) {
            imported.remarks.push("the latency is that of a response to a GPIO edge, not of a timer".into());
        }
        Ok(imported)
    }),
};

#[cfg(test)]
mod tests {
    use crate::foreign::testing::import_one;
    use crate::foreign::{ImportOptions, Imported, import};
    use model::units::{Cpu, Nanos};
    use model::vocabulary::{IdleStates, Quantity};

    macro_rules! log {
        ($name:literal) => {
            include_str!(concat!("../../../../tests/fixtures/foreign/evl/", $name))
        };
    }

    fn one(text: &str) -> Imported {
        let mut runs = import(text.as_bytes(), &ImportOptions::default()).unwrap();
        assert_eq!((runs.len(), runs[0].run.check()), (1, Ok(())));
        runs.remove(0)
    }

    #[test]
    fn totals_are_those_of_the_tool() {
        for (text, cpu, truth, seconds) in [
            (log!("timer.txt"), 1, [Some(1182), Some(1316), Some(3899)], 8),
            (log!("trace-session.txt"), 1, [Some(10_119), Some(27_029), Some(31_204)], 6),
            (log!("gpio.txt"), 0, [Some(26_333), None, Some(59_216)], 10),
            (log!("histogram.txt"), 1, [Some(205), Some(3097), Some(25_510)], 0),
            (log!("histogram-session.txt"), 1, [Some(205), Some(3097), Some(25_510)], 0),
        ] {
            let Imported { run, blocks, .. } = one(text);
            let thread = &run.cpus[0];
            assert_eq!((run.cpus.len(), thread.cpu), (1, Some(Cpu(cpu))));
            let found = [thread.min_ns, thread.mean_ns, thread.max_ns].map(|ns| ns.map(|ns| ns.0));
            assert_eq!(found, truth);
            assert_eq!(blocks.len(), seconds, "missing rows give none");
            assert!(blocks.iter().all(|block| block.n == 1000 && block.max_ns <= thread.max_ns));
            assert_eq!(run.plan.interval_ns, Some(Nanos::MILLI));
        }
    }

    #[test]
    fn the_file_of_a_histogram_is_read() {
        let run = import_one(log!("histogram.txt"));
        assert_eq!((run.samples(), run.elapsed_ns), (Some(71_598), Some(Nanos(72_000_000_000))));
        assert_eq!((run.plan.priority, run.plan.idle.known()), (Some(90), Some(IdleStates::Held)));
        assert_eq!((run.host.release.as_str(), run.host.clocksource.as_str()), ("5.5.0-rc7+", "tsc"));
        assert!(run.host.kernel.starts_with("#45 SMP PREEMPT IRQPIPE"));
        assert!(run.host.cmdline.starts_with("BOOT_IMAGE=(tftp)") && run.host.cmdline.contains("isolcpus=1"));
        let cut = log!("histogram.txt").replace("25 1\n", "");
        let error = import(cut.as_bytes(), &ImportOptions::default());
        // The last row may be the one that holds all longer samples.
        assert_eq!(error.unwrap()[0].run.cpus[0].overflows, Some(1));
        let cut = log!("histogram.txt").replace("0 95\n", "");
        assert!(import(cut.as_bytes(), &ImportOptions::default()).unwrap_err().0.contains("contradicts"));
    }

    #[test]
    fn a_histogram_that_ends_within_a_row_says_so() {
        let text = log!("histogram.txt").trim_end();
        for (less, remark) in [(0, "its last number may be cut"), (1, "not read"), (2, "not read")] {
            let remarks = one(&text[..text.len() - less]).remarks;
            assert!(remarks.len() == 1 && remarks[0].contains(remark), "{less}: {remarks:?}");
        }
    }

    #[test]
    fn an_answer_to_an_edge_is_another_quantity() {
        let imported = one(log!("gpio.txt"));
        assert_eq!(imported.run.cpus[0].quantity(), Quantity::Irq.name());
        assert!(imported.remarks[0].contains("GPIO edge"));
        assert_eq!(one(log!("timer.txt")).run.cpus[0].quantity(), Quantity::Wakeup.name());
    }
}
