//! `onbeat-farm export --kcidb` and `--lava`: runs as results of tests.

use std::io::{self, Write};

use model::error::{Failure, Result};
use model::units::{Bare, Nanos, parse_span};

use crate::environments::KnownRecords;
use crate::records::{FarmBoard, FarmRun};
use crate::results::{kcidb, lava};
use crate::store::FarmStore;

/// Runs of a board that are looked at.
const MOST: i64 = 1 << 20;

#[derive(clap::Args, Default)]
pub struct ResultFlags {
    /// Print runs as a report for KCIDB instead, sent by ORIGIN: small letters, digits and
    /// underlines
    #[arg(long, value_name = "ORIGIN", conflicts_with_all = ["histograms", "lava"])]
    kcidb: Option<String>,
    /// Print runs as `lava-test-case` lines for a LAVA test instead
    #[arg(long, conflicts_with = "histograms")]
    lava: bool,
    /// Let a run pass if no latency exceeds this; without it, runs are measurements that neither
    /// pass nor fail
    #[arg(long, value_name = "SPAN")]
    limit: Option<String>,
}

impl ResultFlags {
    pub fn is_given(&self) -> bool {
        self.kcidb.is_some() || self.lava
    }

    /// Looks at the flags before anything is opened.
    pub fn check(&self) -> Result<Option<Nanos>> {
        if self.kcidb.as_ref().is_some_and(|origin| !kcidb::is_origin(origin)) {
            return Err(Failure::usage(
                "invalid --kcidb: expected an origin of small letters, digits and underlines",
            ));
        }
        match &self.limit {
            Some(_) if !self.is_given() => {
                Err(Failure::usage("--limit needs --kcidb or --lava: name one of these"))
            }
            Some(text) => match parse_span(text, Bare::Micros) {
                Ok(limit) if limit.0 > 0 => Ok(Some(limit)),
                Ok(_) => Err(Failure::usage("invalid --limit: expected a longer latency, like 100us")),
                Err(why) => Err(Failure::usage(format!("--limit: {why}"))),
            },
            None => Ok(None),
        }
    }

    /// Prints the runs of these boards that began within a time, the oldest of a board first.
    pub async fn print(
        &self,
        store: &FarmStore,
        boards: &[FarmBoard],
        within: std::ops::Range<i64>,
        out: &mut impl Write,
    ) -> Result<()> {
        let failed = |error: io::Error| Failure::internal(format!("cannot print it ({error}): try again"));
        let limit = self.check()?;
        let mut all: Vec<FarmRun> = Vec::new();
        let mut environments = KnownRecords::new();
        for board in boards {
            let mut runs = store.runs(&board.board, MOST).await?;
            runs.retain(|run| within.contains(&run.started));
            runs.reverse();
            if self.lava {
                for run in &runs {
                    writeln!(out, "{}", lava::line(run, limit)).map_err(failed)?;
                }
                continue;
            }
            all.append(&mut runs);
            for one in store.environments(&board.board).await? {
                let by_name = one.digests.iter().map(|name| (name.clone(), one.record.clone()));
                environments.extend(by_name);
            }
        }
        if let Some(origin) = &self.kcidb {
            let report = kcidb::report(origin, &all, &environments, limit);
            writeln!(out, "{report}").map_err(failed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::error::Exit;

    #[test]
    fn a_limit_is_a_latency() {
        let of = |limit: &str| {
            let (kcidb, limit) = (Some("lab".to_owned()), Some(limit.to_owned()));
            ResultFlags { kcidb, lava: false, limit }.check()
        };
        assert_eq!(of("1.5us").unwrap(), Some(Nanos(1_500)));
        for wrong in ["0", "0us", "much"] {
            let refused = of(wrong).unwrap_err();
            assert!(refused.exit == Exit::Usage && refused.message.contains("--limit: "), "{refused}");
        }
    }
}
