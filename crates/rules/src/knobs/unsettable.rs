//! Reasons why `onbeat tune` does not change a setting, if they apply to several rules.

/// For a word of the kernel's command line.
pub const BOOT: &str = "the kernel reads it from its command line, only at boot";

/// For an option of the kernel's configuration.
pub const BUILT: &str = "it was decided when the kernel was built";

/// For a limit of a user or a service.
pub const LOGIN: &str = "a limit is set at login or at the start of a service, not for running programs";

/// For the hardware, its heat, or the host of a guest.
pub const MACHINE: &str = "it is a property of the machine, or a choice of other CPUs";

/// For the work of another program.
pub const PROGRAM: &str = "another program does it, and onbeat stops no program without being asked";
