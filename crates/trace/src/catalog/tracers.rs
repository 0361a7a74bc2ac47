//! Records of the kernel's osnoise and timerlat tracers, which a hunt's recorder does not arm.
//!
//! Source: kernel/trace/trace_entries.h, include/trace/events/osnoise.h,
//! Documentation/trace/{osnoise,timerlat}-tracer.rst.

use super::EventSpec;
use crate::event::{Address, NoiseSource, TracerRecord, What};
use crate::fields::Fields;
use model::units::Nanos;

macro_rules! noise {
    ($event:literal, $source:ident) => {
        EventSpec::new("osnoise", $event, &["duration"], |f| {
            of(TracerRecord::Noise { source: NoiseSource::$source, ns: span(f, 0)? })
        })
    };
}

/// Records of the osnoise tracer: the sum of each sampling period, and its events.
pub const OSNOISE: &[EventSpec] = &[
    EventSpec::new(
        "ftrace",
        "osnoise",
        &[
            "runtime",
            "noise",
            "max_sample",
            "hw_count",
            "nmi_count",
            "irq_count",
            "softirq_count",
            "thread_count",
        ],
        |f| {
            let us = |at| Some(Nanos(span(f, at)?.0.checked_mul(Nanos::MICRO.0)?));
            let counts = [f.small(3)?, f.small(4)?, f.small(5)?, f.small(6)?, f.small(7)?];
            of(TracerRecord::NoisePeriod { runtime: us(0)?, noise: us(1)?, longest: us(2)?, counts })
        },
    ),
    EventSpec::new("osnoise", "sample_threshold", &["duration", "interference"], |f| {
        of(TracerRecord::NoiseGap { ns: span(f, 0)?, interference: f.address(1)? })
    }),
    noise!("nmi_noise", Nmi),
    noise!("irq_noise", Irq),
    noise!("softirq_noise", Softirq),
    noise!("thread_noise", Thread),
];

/// Samples of the timerlat tracer.
pub const TIMERLAT: &[EventSpec] =
    &[EventSpec::new("ftrace", "timerlat", &["seqnum", "context", "timer_latency"], |f| {
        of(TracerRecord::TimerLatency { activation: f.small(0)?, context: f.small(1)?, ns: span(f, 2)? })
    })];

fn of(record: TracerRecord) -> Option<What<Address>> {
    Some(What::Tracer { record })
}

/// Span of time; none if negative.
fn span(fields: &Fields, at: usize) -> Option<Nanos> {
    fields.int(at).filter(|&ns| ns >= 0).map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Decoder;
    use crate::event::Raw;
    use crate::fixture::Writer;
    use model::units::Cpu;
    use proptest::prelude::*;

    /// Formats of Linux 6.12 PREEMPT_RT.
    const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

    fn format(name: &str, id: u16, fields: &[(&str, usize, usize)]) -> String {
        let field = |(name, offset, size): &(&str, usize, usize)| {
            format!("\tfield:u{} {name};\toffset:{offset};\tsize:{size};\tsigned:0;\n", size * 8)
        };
        let fields: String = fields.iter().map(field).collect();
        format!("name: {name}\nID: {id}\nformat:\n{COMMON}{fields}\nprint fmt: \"\"\n")
    }

    fn decoder() -> Decoder {
        let timerlat =
            format("timerlat", 17, &[("seqnum", 8, 4), ("context", 12, 4), ("timer_latency", 16, 8)]);
        let osnoise = format(
            "osnoise",
            16,
            &[
                ("noise", 8, 8),
                ("runtime", 16, 8),
                ("max_sample", 24, 8),
                ("hw_count", 32, 4),
                ("nmi_count", 36, 4),
                ("irq_count", 40, 4),
                ("softirq_count", 44, 4),
                ("thread_count", 48, 4),
            ],
        );
        let gap =
            format("sample_threshold", 300, &[("start", 8, 8), ("duration", 16, 8), ("interference", 24, 8)]);
        let irq = format("irq_noise", 301, &[("start", 8, 8), ("duration", 16, 8), ("vector", 24, 4)]);
        let formats = [
            (&TIMERLAT[0], &*timerlat),
            (&OSNOISE[0], &*osnoise),
            (&OSNOISE[1], &*gap),
            (&OSNOISE[3], &*irq),
        ];
        let decoder =
            Decoder::new(&Writer::new(false, 8, 4096).header(), false, &formats).expect("a decoder");
        assert!(decoder.refused().is_empty());
        decoder
    }

    fn decoded(id: u16, numbers: &[&[u8]]) -> Option<TracerRecord> {
        let mut data = vec![0; 8];
        data[..2].copy_from_slice(&id.to_le_bytes());
        numbers.iter().for_each(|bytes| data.extend_from_slice(bytes));
        let raw: Raw = decoder().record(Cpu(1), Nanos(5), &data).ok()?;
        match raw.what {
            What::Tracer { record } => Some(record),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn records_of_both_tracers_are_read_by_the_names_of_their_fields() {
        let period = decoded(
            16,
            &[
                &100_u64.to_le_bytes(),
                &9_000_u64.to_le_bytes(),
                &40_u64.to_le_bytes(),
                &1_u32.to_le_bytes(),
                &2_u32.to_le_bytes(),
                &3_u32.to_le_bytes(),
                &4_u32.to_le_bytes(),
                &5_u32.to_le_bytes(),
            ],
        );
        let expected = TracerRecord::NoisePeriod {
            runtime: Nanos(9_000_000),
            noise: Nanos(100_000),
            longest: Nanos(40_000),
            counts: [1, 2, 3, 4, 5],
        };
        assert_eq!(period, Some(expected));
        let three = |b: u64, c: u64| {
            [7_u64.to_le_bytes().to_vec(), b.to_le_bytes().to_vec(), c.to_le_bytes().to_vec()].concat()
        };
        let gap = decoded(300, &[&three(1_500, 2)]);
        assert_eq!(gap, Some(TracerRecord::NoiseGap { ns: Nanos(1_500), interference: 2 }));
        let irq = decoded(301, &[&three(700, 236)]);
        assert_eq!(irq, Some(TracerRecord::Noise { source: NoiseSource::Irq, ns: Nanos(700) }));
        let sample = decoded(17, &[&9_u32.to_le_bytes(), &1_u32.to_le_bytes(), &12_345_u64.to_le_bytes()]);
        assert_eq!(sample, Some(TracerRecord::TimerLatency { activation: 9, context: 1, ns: Nanos(12_345) }));
    }

    #[test]
    fn spans_out_of_range_and_short_records_are_malformed() {
        assert_eq!(
            decoded(300, &[&7_u64.to_le_bytes(), &u64::MAX.to_le_bytes(), &1_u64.to_le_bytes()]),
            None
        );
        assert_eq!(decoded(17, &[&9_u32.to_le_bytes()]), None);
        let most = i64::MAX.to_le_bytes();
        assert_eq!(decoded(16, &[&most, &most, &most, &[0; 20]]), None, "microseconds beyond nanoseconds");
    }

    proptest! {
        #[test]
        fn any_record_is_survived(id in prop_oneof![Just(16u16), Just(17), Just(300), Just(301)],
                                  bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            decoded(id, &[&bytes]);
        }
    }
}
