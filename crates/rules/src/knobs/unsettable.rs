//! Reasons why `onbeat tune` does not change a setting, if they apply to several rules.

/// For a word of the kernel's command line.
pub const BOOT: &str = "the kernel takes it from its command line, which it reads at boot alone";

/// For an option of the kernel's configuration.
pub const BUILT: &str = "it was decided when the kernel was built";

/// For a limit of a user or a service.
pub const LOGIN: &str =
    "a limit is given with a login or at the start of a service, not to what runs already";

/// For the hardware, its heat, or the host of a guest.
pub const MACHINE: &str = "it is the machine itself, or a choice of other CPUs";

/// For the work of another program.
pub const PROGRAM: &str = "it is what another program does, and none is stopped unasked";
