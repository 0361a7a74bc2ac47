//! Whether a hypervisor may have stopped a CPU.

use model::run::Host;

/// Whether the machine is a virtual one, as far as it is known.
pub fn is_virtual(host: &Host) -> bool {
    !matches!(host.virtualization.as_str(), "" | "none")
}
