//! A list of block maxima, and what it supports.

#![cfg_attr(fuzzing, no_main)]

use bundle::foreign::maxima::{self, Maxima};
use entry::fuzz_target;
use model::units::Nanos;
use stats::bounds::{BoundsInput, Question, bounds};
use stats::series::{BLOCK, Series};

fuzz_target!(|bytes: &[u8]| {
    let mut maxima = Maxima::default();
    if bytes.split(|&byte| byte == b'\n').try_for_each(|line| maxima.line(line)).is_err() {
        return;
    }
    let Ok((list, _)) = maxima.finish() else { return };
    let series = Series::of_maxima(maxima::values(&list), BLOCK, Nanos(1));
    let question =
        Question { limit: Some(Nanos(1_000)), horizon: Nanos::SECOND, chosen: true, ..Question::default() };
    bounds(&BoundsInput::of(&series), &question);
});
