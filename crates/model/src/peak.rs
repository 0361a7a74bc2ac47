//! Largest latency of a block.

use serde::Deserialize;

use crate::run::Block;
use crate::units::{Cpu, Nanos};

/// Largest latency of a line of `blocks.jsonl`, with fields as in [`Block`]; the rest is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Peak {
    /// CPU of the line.
    pub cpu: Cpu,
    pub mono_ns: Nanos,
    #[serde(default)]
    pub span_ns: Option<Nanos>,
    pub n: u64,
    pub max_ns: Option<Nanos>,
    #[serde(default)]
    pub max_mono_ns: Option<Nanos>,
    #[serde(default)]
    pub response_ns: Option<Nanos>,
}

impl Peak {
    /// Peak of a block.
    pub fn of(block: &Block) -> Peak {
        Peak {
            cpu: block.cpu,
            mono_ns: block.mono_ns,
            span_ns: block.span_ns,
            n: block.n,
            max_ns: block.max_ns,
            max_mono_ns: block.max_mono_ns,
            response_ns: block.response_ns,
        }
    }
}
