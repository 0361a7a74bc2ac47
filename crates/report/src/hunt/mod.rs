//! Results of `hunt`: text for the terminal, the section of the run's page, a trace for Perfetto.

pub mod answer;
pub mod ask;
pub mod ask_data;
pub mod cpu_time;
pub mod culprit_thread;
pub mod cycle_rows;
pub mod disagreement;
pub mod flame;
pub mod kinds;
pub mod lanes;
pub mod last_words;
pub mod nest;
pub mod next_step;
pub mod outside;
pub mod overrun;
pub mod parts;
pub mod path;
pub mod perfetto;
pub mod picture;
pub mod pins;
pub mod program;
pub mod section;
pub mod sentences;
mod shares;
pub mod spike_page;
mod spike_rows;
pub mod spike_text;
pub mod stages;
pub mod strip;
pub mod swatches;
pub mod text;
mod thread_lanes;
pub mod threads;
pub mod tracks;
pub mod typical;
pub mod unlisted;
pub mod windows;

#[cfg(test)]
pub(crate) mod fixture;
