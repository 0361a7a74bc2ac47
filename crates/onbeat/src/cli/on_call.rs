//! Command whose flags are built when it is called: one of two dozen commands runs, and the texts
//! of all of them are half of the start-up cost.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// Flags of a command.
pub struct OnCall<T>(pub T);

impl<T: Args> Args for OnCall<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(T::augment_args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(T::augment_args_for_update)
    }
}

impl<T: FromArgMatches> FromArgMatches for OnCall<T> {
    fn from_arg_matches(found: &ArgMatches) -> Result<OnCall<T>, Error> {
        T::from_arg_matches(found).map(OnCall)
    }

    fn update_from_arg_matches(&mut self, found: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(found)
    }
}
