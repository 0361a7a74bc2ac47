//! Whether a series of block maxima is one series: level, trend, dependence, and where its large values lie.
