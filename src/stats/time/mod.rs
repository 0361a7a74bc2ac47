//! When spikes come: in bursts, periodically, more often from some time on.
