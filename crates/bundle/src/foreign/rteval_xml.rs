//! `summary.xml` of rteval, element by element: the parts for a run.

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::error::ImportError;
use super::{BUCKET_LIMIT, THREAD_LIMIT, date, decimal, quoted, unit};
use model::units::{CPU_LIMIT, Cpu, Nanos};

/// Maximum nesting that is followed.
const DEPTH: usize = 32;

/// Parts of a summary that are read.
#[derive(Debug, Default)]
pub(super) struct RtevalSummary {
    pub version: String,
    pub release: String,
    pub is_rt: bool,
    pub machine: String,
    pub cmdline: String,
    pub clocksource: String,
    /// Average over the run.
    pub load: String,
    /// Commands of the loads.
    pub loads: Vec<String>,
    pub measurements: Vec<RtevalMeasurement>,
}

/// Result of one of its measuring modules.
#[derive(Debug, Default)]
pub(super) struct RtevalMeasurement {
    /// `cyclictest` or `timerlat`.
    pub module: String,
    pub line: usize,
    pub command: String,
    /// Latency that stopped it.
    pub limit: Option<Nanos>,
    pub system: Option<RtevalSamples>,
    pub cores: Vec<RtevalSamples>,
    /// Start by the machine's clock, in microseconds since 1970.
    pub begin_us: Option<i64>,
    /// End by the machine's clock, in microseconds since 1970.
    pub end_us: Option<i64>,
}

/// Samples of a core or of all of them.
#[derive(Debug, Default)]
pub(super) struct RtevalSamples {
    pub line: usize,
    pub cpu: Option<Cpu>,
    pub priority: Option<u32>,
    pub count: Option<u64>,
    pub min: Option<Nanos>,
    pub mean: Option<Nanos>,
    pub max: Option<Nanos>,
    pub rows: Vec<(u64, u64)>,
    /// Unit of the extremes, and of the rows.
    pub unit: Option<Nanos>,
}

/// Reads the document; an error states the line.
pub(super) fn parse(text: &str) -> Result<RtevalSummary, ImportError> {
    let mut reader = Reader::from_str(text);
    let mut walk = Walk { line: 1, ..Walk::default() };
    let mut position = 0;
    loop {
        let event = reader.read_event();
        let now = usize::try_from(reader.buffer_position()).unwrap_or(text.len()).min(text.len());
        let begin = walk.line;
        walk.line += text.as_bytes()[position.min(now)..now].iter().filter(|&&byte| byte == b'\n').count();
        position = now;
        match event.map_err(|error| damaged(&error).at(begin))? {
            Event::Start(element) => {
                walk.open(&element).map_err(|error| error.at(begin))?;
            }
            Event::Empty(element) => {
                walk.open(&element).map_err(|error| error.at(begin))?;
                walk.path.pop();
            }
            Event::Text(content) => {
                let content = content.decode().unwrap_or_default();
                walk.text(content.trim()).map_err(|error| error.at(begin))?;
            }
            Event::End(_) => drop(walk.path.pop()),
            Event::Eof => break,
            _ => {}
        }
    }
    match walk.path.last() {
        Some(open) => Err(ImportError(format!(
            "line {}: the file ends within {}: give the whole file",
            walk.line,
            quoted(open)
        ))),
        None => Ok(walk.summary),
    }
}

fn damaged(error: &quick_xml::Error) -> ImportError {
    ImportError(format!("damaged XML ({error}): give the whole file"))
}

#[derive(Default)]
struct Walk {
    line: usize,
    path: Vec<String>,
    /// Unit of the open element.
    unit: Option<Nanos>,
    /// True if the open clocksource is the one in use.
    is_current: bool,
    rows: usize,
    summary: RtevalSummary,
}

impl Walk {
    fn open(&mut self, element: &BytesStart) -> Result<(), ImportError> {
        let name = String::from_utf8_lossy(element.name().as_ref()).into_owned();
        let attribute = |wanted: &str| {
            let found = element.try_get_attribute(wanted).ok().flatten()?;
            found.normalized_value(XmlVersion::Explicit1_0).ok().map(|value| value.into_owned())
        };
        self.unit = attribute("unit").and_then(|text| unit::stated(&text));
        if self.path.len() >= DEPTH {
            return Err(ImportError(format!("elements nested more than {DEPTH} deep")));
        }
        self.path.push(name);
        let depth = self.path.len();
        let parent = depth.checked_sub(2).map_or("", |at| self.path[at].as_str());
        match (parent, self.path[depth - 1].as_str()) {
            ("", "rteval") => self.summary.version = attribute("version").unwrap_or_default(),
            (_, "kernel") => self.summary.is_rt |= attribute("is_RT").is_some_and(|text| text == "1"),
            (_, "loads") => self.summary.load = attribute("load_average").unwrap_or_default(),
            ("ClockSource", _) => self.is_current = attribute("current").is_some_and(|text| text == "1"),
            ("Measurements" | "Profile", module @ ("cyclictest" | "timerlat")) => {
                let command = attribute("command_line").unwrap_or_default();
                let (module, line) = (module.to_owned(), self.line);
                if self.summary.measurements.len() >= THREAD_LIMIT {
                    return Err("too many measurements".into());
                }
                self.summary.measurements.push(RtevalMeasurement {
                    module,
                    line,
                    command,
                    ..RtevalMeasurement::default()
                });
            }
            ("abort_report", "breaktrace") => {
                let limit = attribute("latency_threshold").and_then(|us| decimal::in_ns(&us, Nanos::MICRO));
                if let Some(measurement) = self.summary.measurements.last_mut() {
                    measurement.limit = limit;
                }
            }
            ("cyclictest" | "timerlat", "system") => {
                let samples = RtevalSamples { line: self.line, ..RtevalSamples::default() };
                if let Some(measurement) = self.summary.measurements.last_mut() {
                    measurement.system = Some(samples);
                }
            }
            ("cyclictest" | "timerlat", "core") => {
                let id = attribute("id").unwrap_or_default();
                let cpu = id.parse().ok().filter(|&cpu| cpu < CPU_LIMIT);
                let cpu = cpu.ok_or_else(|| {
                    ImportError(format!("expected the number of a CPU, found id {}", quoted(&id)))
                })?;
                let priority = attribute("priority").and_then(|text| text.parse().ok());
                let line = self.line;
                let samples =
                    RtevalSamples { line, cpu: Some(Cpu(cpu)), priority, ..RtevalSamples::default() };
                if let Some(measurement) = self.summary.measurements.last_mut() {
                    if measurement.cores.iter().any(|core| core.cpu == samples.cpu) {
                        return Err(ImportError(format!(
                            "duplicate core {cpu}: expected one result in a file"
                        )));
                    }
                    measurement.cores.push(samples);
                }
            }
            ("histogram", "bucket") => {
                let number = |name: &str| attribute(name).and_then(|text| text.parse::<u64>().ok());
                let row = number("index").zip(number("value"));
                let (index, count) = row.ok_or("expected numbers as index and value of a bucket")?;
                self.row(index, count)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn row(&mut self, index: u64, count: u64) -> Result<(), ImportError> {
        self.rows += 1;
        if self.rows > 2 * BUCKET_LIMIT {
            return Err(ImportError(format!("expected at most {BUCKET_LIMIT} buckets that are not empty")));
        }
        let Some(samples) = self.samples() else { return Ok(()) };
        if let Some(last) = samples.rows.last().filter(|last| last.0 >= index) {
            return Err(ImportError(format!("bucket {index} after {}: expected ascending rows", last.0)));
        }
        samples.rows.push((index, count));
        Ok(())
    }

    /// Samples of the open core, or system.
    fn samples(&mut self) -> Option<&mut RtevalSamples> {
        let is_core = self.path.iter().rev().find_map(|name| match name.as_str() {
            "core" => Some(true),
            "system" => Some(false),
            _ => None,
        });
        let measurement = self.summary.measurements.last_mut()?;
        if is_core? { measurement.cores.last_mut() } else { measurement.system.as_mut() }
    }

    fn text(&mut self, text: &str) -> Result<(), ImportError> {
        let depth = self.path.len();
        let name = self.path.last().cloned().unwrap_or_default();
        let parent = depth.checked_sub(2).map_or(String::new(), |at| self.path[at].clone());
        let summary = &mut self.summary;
        let measurement = summary.measurements.last_mut();
        match (parent.as_str(), name.as_str()) {
            ("uname", "kernel") => summary.release = text.into(),
            ("uname", "arch") => summary.machine = text.into(),
            ("ClockSource", "source") if self.is_current => summary.clocksource = text.into(),
            ("cmdlineInfo", "cmdline") => summary.cmdline = text.into(),
            ("loads", "command_line") if !text.is_empty() && summary.loads.len() < THREAD_LIMIT => {
                summary.loads.push(text.into());
            }
            ("timestamps", "runloop_start") => {
                measurement.into_iter().for_each(|one| one.begin_us = date::parse_plain_us(text));
            }
            ("timestamps", "runloop_stop") => {
                measurement.into_iter().for_each(|one| one.end_us = date::parse_plain_us(text));
            }
            ("statistics", _) if !text.is_empty() => return self.statistic(&name, text),
            _ => {}
        }
        Ok(())
    }

    fn statistic(&mut self, name: &str, text: &str) -> Result<(), ImportError> {
        let unit = self.unit;
        let Some(samples) = self.samples() else { return Ok(()) };
        let expected =
            |what: &str| ImportError(format!("expected {what} in <{name}>, found {}", quoted(text)));
        if name == "samples" {
            samples.count = Some(text.parse().map_err(|_| expected("a count"))?);
            return Ok(());
        }
        let slot = match name {
            "minimum" => &mut samples.min,
            "maximum" => &mut samples.max,
            "mean" => &mut samples.mean,
            _ => return Ok(()),
        };
        let unit = unit.unwrap_or(Nanos::MICRO);
        if samples.unit.is_some_and(|known| known != unit) {
            return Err(expected("the unit of the other statistics"));
        }
        samples.unit = Some(unit);
        *slot = Some(decimal::in_ns(text, unit).ok_or_else(|| expected("a number"))?);
        Ok(())
    }
}
