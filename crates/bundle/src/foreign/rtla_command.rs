//! Command line of rtla in a log before the result: the schedule and the shape of the histogram.

use model::run::Plan;
use model::units::{Bare, Nanos, parse_span};
use model::vocabulary::{IdleStates, Policy};

use super::rtla_hist_find::RtlaTable;
use super::source::SourceText;

/// Maximum number of lines between a command line and its result.
const REACH: usize = 40;

/// Short options that take a value, attached or as the next word.
const VALUED: &str = "AabcdeEHipPrsST";

/// Default period in microseconds.
const DEFAULT_PERIOD_US: u64 = 1000;
/// Default priority of the measuring threads.
const DEFAULT_PRIORITY: u32 = 95;
/// Default number of buckets.
const DEFAULT_ENTRIES: u64 = 256;

/// Relevant options of a command line; a later one replaces an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RtlaCommand<'a> {
    /// True for timerlat, whose threads wake up periodically.
    is_timerlat: bool,
    /// Width of a bucket in the unit of the output.
    pub width: u64,
    pub entries: u64,
    pub nanoseconds: bool,
    period: Option<&'a str>,
    priority: Option<&'a str>,
    duration: Option<&'a str>,
    limit: Option<&'a str>,
    dma_latency: Option<&'a str>,
}

/// Command line before the lines of a result; `None` if another result is between.
pub(super) fn before<'a>(
    source: &'a SourceText,
    start: usize,
    table: RtlaTable,
    mode: &str,
) -> Option<RtlaCommand<'a>> {
    let lines: Vec<_> = source.slice(start.saturating_sub(REACH)..start).collect();
    let ends = ["over:", "max:", "ALL #", "# RTLA"];
    let own = lines.into_iter().rev().take_while(|line| !ends.iter().any(|end| line.text.starts_with(end)));
    own.filter_map(|line| within(line.text, table, mode)).next()
}

/// Command line in a line of a log: after a prompt, `sudo`, or a script's `+`.
fn within<'a>(line: &'a str, table: RtlaTable, mode: &str) -> Option<RtlaCommand<'a>> {
    let command = line.split(['>', '|', ';', '&']).find(|part| part.contains("rtla "))?;
    let mut words =
        command.split_ascii_whitespace().skip_while(|word| word.rsplit('/').next() != Some("rtla"));
    words.next()?;
    let tracer = words.next()?;
    let is_timerlat = tracer == "timerlat";
    if is_timerlat != (table == RtlaTable::Timerlat) || !matches!(tracer, "timerlat" | "osnoise" | "hwnoise")
    {
        return None;
    }
    let mut words = words.peekable();
    let stated = words.next_if(|word| !word.starts_with('-')).unwrap_or("top");
    (stated == mode).then(|| options(words, is_timerlat))
}

fn options<'a>(mut words: impl Iterator<Item = &'a str>, is_timerlat: bool) -> RtlaCommand<'a> {
    let mut command = RtlaCommand {
        is_timerlat,
        width: 1,
        entries: DEFAULT_ENTRIES,
        nanoseconds: false,
        period: None,
        priority: None,
        duration: None,
        limit: None,
        dma_latency: None,
    };
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--") {
            let (name, attached) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            match short_of(name) {
                Some('n') => command.nanoseconds = true,
                Some(letter) => command.take(letter, attached.or_else(|| words.next())),
                None => {}
            }
            continue;
        }
        let Some(letters) = word.strip_prefix('-') else { continue };
        for (at, letter) in letters.char_indices() {
            command.nanoseconds |= letter == 'n';
            if VALUED.contains(letter) {
                let rest = &letters[at + letter.len_utf8()..];
                command.take(letter, if rest.is_empty() { words.next() } else { Some(rest) });
                break;
            }
        }
    }
    command
}

/// Letter of a long option that is read; `l` represents the one without a letter.
fn short_of(name: &str) -> Option<char> {
    Some(match name {
        "auto" => 'a',
        "bucket-size" => 'b',
        "duration" => 'd',
        "entries" => 'E',
        "nano" => 'n',
        "period" => 'p',
        "priority" => 'P',
        "stop" => 's',
        "thread" => 'T',
        "dma-latency" => 'l',
        _ => return None,
    })
}

impl<'a> RtlaCommand<'a> {
    fn take(&mut self, letter: char, value: Option<&'a str>) {
        let number = value.and_then(|text| text.parse().ok()).filter(|&n| n > 0);
        match letter {
            'b' => self.width = number.unwrap_or(self.width),
            'E' => self.entries = number.unwrap_or(self.entries),
            'p' => self.period = value,
            'P' => self.priority = value,
            'd' => self.duration = value,
            'l' => self.dma_latency = value,
            'a' => self.limit = value,
            // For osnoise -s ends the run and -T is the least noise; timerlat reverses them.
            'T' if self.is_timerlat => self.limit = value,
            's' if !self.is_timerlat => self.limit = value,
            _ => {}
        }
    }

    /// Fills period, priority, policy, length and limit.
    pub(super) fn fill(&self, plan: &mut Plan) {
        let micros = |text: &str| text.parse::<u32>().ok().map(|us| Nanos(i64::from(us) * Nanos::MICRO.0));
        plan.duration_ns = self.duration.and_then(|text| parse_span(text, Bare::Seconds).ok());
        plan.limit_ns = self.limit.and_then(micros).filter(|&ns| ns > Nanos(0));
        if self.is_timerlat {
            let default = Some(Nanos(DEFAULT_PERIOD_US as i64 * Nanos::MICRO.0));
            plan.interval_ns = self.period.map_or(default, micros).filter(|&ns| ns > Nanos(0));
            plan.distance_ns = Some(Nanos(0));
            let held = self.dma_latency == Some("0");
            plan.idle = if held { IdleStates::Held } else { IdleStates::AsIs }.into();
        }
        let number = |text: &str| text.parse::<u32>().ok().filter(|n| (1..=99).contains(n));
        match self.priority.and_then(|text| text.split_once(':')) {
            None if self.priority.is_some() => {}
            None if self.is_timerlat => {
                (plan.policy, plan.priority) = (Policy::Fifo.into(), Some(DEFAULT_PRIORITY));
            }
            None => (plan.policy, plan.priority) = (Policy::Other.into(), Some(0)),
            Some(("f" | "F", text)) => (plan.policy, plan.priority) = (Policy::Fifo.into(), number(text)),
            Some(("r" | "R", text)) => (plan.policy, plan.priority) = (Policy::Rr.into(), number(text)),
            Some(("o" | "O", _)) => (plan.policy, plan.priority) = (Policy::Other.into(), Some(0)),
            Some(_) => plan.notes.push("threads under SCHED_DEADLINE (-P d:)".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::keyword::Word;

    fn plan_of(line: &str, table: RtlaTable) -> Option<(Plan, u64, u64)> {
        let mut plan = Plan::default();
        let command = within(line, table, "hist")?;
        command.fill(&mut plan);
        Some((plan, command.width, command.entries))
    }

    #[test]
    fn options_are_read() {
        let line =
            "root@board:~# sudo /usr/bin/rtla timerlat hist -uP f:80 -b5 --entries=40 -p 500 -d 1m -a 60 > x";
        let (plan, width, entries) = plan_of(line, RtlaTable::Timerlat).unwrap();
        assert_eq!((width, entries), (5, 40));
        assert_eq!((plan.interval_ns, plan.priority), (Some(Nanos(500_000)), Some(80)));
        assert_eq!(
            (plan.duration_ns, plan.limit_ns),
            (Some(Nanos(60 * Nanos::SECOND.0)), Some(Nanos(60_000)))
        );
        assert_eq!((plan.policy.as_str(), plan.idle), ("fifo", Word::from(IdleStates::AsIs)));
        let (plan, ..) = plan_of("rtla timerlat hist --dma-latency 0 -n", RtlaTable::Timerlat).unwrap();
        assert_eq!((plan.interval_ns, plan.priority), (Some(Nanos::MILLI), Some(95)));
        assert_eq!(plan.idle, IdleStates::Held);
        let (plan, ..) = plan_of("+ rtla osnoise hist -s 70 -P d:1ms:2ms", RtlaTable::Osnoise).unwrap();
        assert_eq!((plan.interval_ns, plan.priority, plan.limit_ns), (None, None, Some(Nanos(70_000))));
    }

    #[test]
    fn other_lines_are_no_command() {
        for line in [
            "rtla timerlat hit stop tracing",
            "rtla osnoise hist",
            "rtla",
            "rtla timerlat -q",
            "xrtla timerlat hist",
        ] {
            assert!(within(line, RtlaTable::Timerlat, "hist").is_none(), "{line}");
        }
        assert!(within("rtla hwnoise -q", RtlaTable::Osnoise, "top").is_some());
    }
}
