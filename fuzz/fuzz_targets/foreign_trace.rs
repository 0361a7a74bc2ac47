//! A trace of another tool: refused in one line, or explained with parts that add up.
#![cfg_attr(fuzzing, no_main)]

use entry::fuzz_target;
use study::traced::{TraceQuestion, explain_trace};
use trace::late_wakeups::{WantedThreads, WantedWakeups};

fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("onbeat-fuzz-trace-{}", std::process::id()));
    std::fs::write(&path, bytes).expect("written");
    let question = TraceQuestion { threads: WantedThreads::RealTime, wakeups: WantedWakeups::Largest };
    match explain_trace(&path, &question, |_| ()) {
        Ok(explained) => {
            assert_eq!(explained.run.check(), Ok(()));
            for spike in &explained.run.spikes {
                let parts: i64 = spike.slices.iter().map(|slice| slice.ns.0).sum();
                assert_eq!(parts + spike.unexplained_ns.0, spike.latency_ns.0);
            }
        }
        Err(failure) => assert!(!failure.message.contains('\n')),
    }
});
