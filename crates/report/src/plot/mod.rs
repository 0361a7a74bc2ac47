//! Pictures as SVG. `axis`, `svg`, `theme`, `label` draw; `line`, `columns`, `history`, `curve`
//! prepare the numbers; each other file is one picture or a part of several.

pub mod axis;
pub mod before_after;
pub mod columns;
pub mod curve;
pub mod exceedance;
pub mod exceedance_rate;
pub mod folded;
pub mod heat_counts;
pub mod heatmap;
pub mod history;
pub mod label;
pub mod latency;
mod latency_words;
pub mod line;
pub mod marks;
pub mod matrix;
pub mod max_over_time;
pub mod modes;
pub mod overlay;
pub mod peaks;
pub mod ratios;
pub mod shift;
pub mod svg;
pub mod theme;
pub mod wall_ticks;
pub mod watch_over_time;
