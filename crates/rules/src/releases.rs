//! Kernel releases that have a parameter.

use std::convert::Infallible;

/// Releases that have a parameter.
#[derive(Clone, Copy)]
enum Release {
    Since(u32, u32),
    /// Not in this one; the later one that introduced it is not known.
    After(u32, u32),
    /// No longer in this one.
    Before(u32, u32),
}

/// Parameters, or values of one, that not every release has.
const RELEASES: &[(&str, Release)] = &[
    // mm/mm_init.c
    ("check_pages", Release::After(6, 12)),
    ("cpufreq.default_governor", Release::Since(5, 9)),
    // mm/damon/stat.c
    ("damon_stat.enabled", Release::After(6, 12)),
    // drivers/iommu/iommu-debug-pagealloc.c
    ("iommu.debug_pagealloc", Release::After(6, 12)),
    ("irqhandler.duration_warn_us", Release::After(6, 12)),
    // mm/mempool.c
    ("mempool_debug", Release::After(7, 2)),
    // mm/page_table_check.c
    ("page_table_check", Release::Since(5, 17)),
    ("rcutree.enable_rcu_lazy", Release::Since(6, 9)),
    ("rcutree.nohz_full_patience_delay", Release::Since(6, 11)),
    ("rcutree.rcu_idle_gp_delay", Release::Before(5, 17)),
    ("rt_group_sched", Release::Since(6, 16)),
    // slub_debug alone before (mm/slub.c).
    ("slab_debug", Release::Since(6, 9)),
    ("tlbi", Release::After(6, 12)),
    // kernel/trace/trace.c
    ("trace_instance", Release::After(6, 1)),
    // arch/x86/kernel/tsc.c, tsc_setup(); 5.10 has the first.
    ("tsc=nowatchdog", Release::After(4, 19)),
    ("tsc=recalibrate", Release::Since(6, 3)),
    ("tsc=watchdog", Release::Since(6, 3)),
    // kernel/workqueue.c: replaced by affinity scopes.
    ("workqueue.disable_numa", Release::Before(6, 12)),
    ("workqueue.unbound_cpus", Release::Since(6, 6)),
];

/// True for a word of which a kernel of this release does not know a part.
pub fn is_outside(word: &str, major: u32, minor: u32) -> bool {
    matches!(outside_release(word, || Ok::<_, Infallible>((major, minor))), Ok(Some(_)))
}

/// Part of a word (`name=value`) that a kernel of this release does not know, and the reason; none
/// if it may know all.
///
/// # Errors
/// The error of `series`, if the release is needed.
pub fn outside_release<E>(
    word: &str,
    series: impl FnOnce() -> Result<(u32, u32), E>,
) -> Result<Option<(&str, String)>, E> {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    let listed = RELEASES.iter().find(|known| known.0 == name || known.0 == word).copied();
    // The kernel takes sysctls from its command line since 5.8 (fs/proc/proc_sysctl.c).
    let sysctl = || name.starts_with("sysctl.").then_some((name, Release::Since(5, 8)));
    let Some((part, release)) = listed.or_else(sysctl) else { return Ok(None) };
    let series = series()?;
    let why = match release {
        Release::Since(major, minor) if series < (major, minor) => {
            Some(format!("it came with {major}.{minor}"))
        }
        Release::After(major, minor) if series <= (major, minor) => {
            Some(format!("not in {major}.{minor} and before"))
        }
        Release::Before(major, minor) if series >= (major, minor) => Some(format!("gone by {major}.{minor}")),
        _ => None,
    };
    Ok(why.map(|why| (part, why)))
}
