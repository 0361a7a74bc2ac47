//! Tracers of the kernel that measure: their refusals, and the instance in which one runs.

use std::io;

use host::tracefs::{NotHere, Tracing, start_keeper};
use model::error::{Exit, Failure, Result, run_with};
use trace::catalog::EventSpec;
use trace::decode::Decoder;
use trace::page::Lost;

/// Tracer of the kernel, and the way without it.
#[derive(Clone, Copy, Debug)]
pub struct KernelTracer {
    /// Name, as in `available_tracers`.
    pub name: &'static str,
    /// Option of the kernel's configuration.
    pub option: &'static str,
    /// Remedy of each refusal.
    pub instead: &'static str,
}

impl KernelTracer {
    /// Opens tracefs of a kernel with this tracer.
    ///
    /// # Errors
    /// Not supported or not permitted, with the remedy.
    pub fn find(self) -> Result<Tracing> {
        let tracing = Tracing::open().map_err(|why| self.refusal(why))?;
        let offered = tracing.read("available_tracers").unwrap_or_default();
        if !offered.split_ascii_whitespace().any(|name| name == self.name) {
            return Err(Failure::not_supported(format!(
                "this kernel has no {} tracer ({}): {}",
                self.name, self.option, self.instead
            )));
        }
        Ok(tracing)
    }

    /// Refuses a tracer whose threads and settings another program uses, in any instance.
    ///
    /// # Errors
    /// Not permitted, with the place.
    pub fn refuse_used(self, tracing: &Tracing, names: &[&str]) -> Result<()> {
        tracing.remove_dead();
        let others = tracing.others();
        let tracer_of = |name: &String| {
            let tracer = tracing.read(&format!("instances/{name}/current_tracer")).unwrap_or_default();
            (tracer.trim().to_owned(), format!("in the instance {name}"))
        };
        let top = (others.tracer.clone(), "at the top level of tracefs".to_owned());
        let mut all = std::iter::once(top).chain(others.instances.iter().map(tracer_of));
        match all.find(|(tracer, _)| names.contains(&tracer.as_str())) {
            None => Ok(()),
            Some((tracer, place)) => Err(self.used(&tracer, &format!(" {place}"))),
        }
    }

    fn used(self, tracer: &str, place: &str) -> Failure {
        Failure::not_permitted(format!(
            "another program uses the kernel's {tracer} tracer{place}: wait until it ends, or {}",
            self.instead
        ))
    }

    /// Failure of a call that arms it.
    pub fn failed(self, error: &io::Error) -> Failure {
        match error.raw_os_error() {
            Some(libc::EBUSY) => self.used(self.name, ""),
            _ => {
                let what = format!("cannot use the kernel's {} tracer", self.name);
                Failure::of_call(what, error, Exit::NotSupported, self.instead)
            }
        }
    }

    fn refusal(self, why: NotHere) -> Failure {
        let instead = self.instead;
        match why {
            NotHere::NoTracefs => Failure::not_supported(format!("this kernel has no tracing: {instead}")),
            NotHere::NotMounted => Failure::not_supported(format!(
                "tracefs is not mounted: mount -t tracefs nodev /sys/kernel/tracing, or {instead}"
            )),
            NotHere::NotPermitted(errno) => Failure::not_permitted(format!(
                "tracefs is not permitted here ({}): {}, and without kernel lockdown, or {instead}",
                io::Error::from_raw_os_error(errno),
                run_with("CAP_SYS_ADMIN")
            )),
            NotHere::Failed(errno) => {
                let error = io::Error::from_raw_os_error(errno);
                Failure::of_call("cannot open tracefs", &error, Exit::NotSupported, instead)
            }
        }
    }
}

/// Starts the keeper, which removes the instance after a kill; returns the reason if there is none.
pub fn keep_instance() -> Option<String> {
    start_keeper().err().map(|error| {
        format!("if this process is killed, the tracer runs until onbeat starts again: no keeper ({error})")
    })
}

/// Decoder of a tracer's records on this kernel.
///
/// # Errors
/// Not supported: the kernel's formats are others.
pub fn decoder(tracing: &Tracing, records: &'static [EventSpec], instead: &str) -> Result<Decoder> {
    let refused = |what: String| {
        Failure::not_supported(format!("the tracer's records have an unknown form ({what}): {instead}"))
    };
    let format = |record: &'static EventSpec| {
        tracing
            .read(&format!("events/{}/{}/format", record.system, record.event))
            .map(|text| (record, text))
            .map_err(|error| refused(format!("{}: {error}", record.event)))
    };
    let formats = records.iter().map(format).collect::<Result<Vec<_>>>()?;
    let header = tracing.read("events/header_page").map_err(|error| refused(error.to_string()))?;
    let formats: Vec<_> = formats.iter().map(|(record, text)| (*record, text.as_str())).collect();
    let decoder = Decoder::new(&header, cfg!(target_endian = "big"), &formats).map_err(refused)?;
    match decoder.refused().first() {
        Some((_, why)) => Err(refused(why.clone())),
        None => Ok(decoder),
    }
}

/// Number of records that were overwritten before a page.
pub fn lost_before(lost: Lost) -> u64 {
    match lost {
        Lost::Nothing => 0,
        Lost::Records(n) => n,
        Lost::Some => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACER: KernelTracer =
        KernelTracer { name: "osnoise", option: "CONFIG_OSNOISE_TRACER", instead: "use --source spin" };

    #[test]
    fn each_refusal_names_the_remedy() {
        let refusals = [
            (TRACER.refusal(NotHere::NoTracefs), Exit::NotSupported),
            (TRACER.refusal(NotHere::NotMounted), Exit::NotSupported),
            (TRACER.refusal(NotHere::NotPermitted(libc::EPERM)), Exit::NotPermitted),
            (TRACER.failed(&io::Error::from_raw_os_error(libc::EBUSY)), Exit::NotPermitted),
            (TRACER.failed(&io::Error::from_raw_os_error(libc::EINVAL)), Exit::NotSupported),
        ];
        for (failure, exit) in refusals {
            assert_eq!(failure.exit, exit, "{}", failure.message);
            assert!(failure.message.contains("use --source spin"), "{}", failure.message);
            assert!(!failure.message.contains('\n'), "{}", failure.message);
        }
    }
}
