//! Whether one set of runs is better than another: the run, or an interleaved segment, is the unit.
