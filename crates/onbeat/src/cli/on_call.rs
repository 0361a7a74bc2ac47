//! A command whose flags are made when it is called: of two dozen commands one runs, and the texts
//! of all of them are half of what a start costs.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// The flags of a command.
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
