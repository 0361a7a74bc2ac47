//! `cpu`: floating-point arithmetic.

use std::convert::Infallible;
use std::hint::black_box;
use std::io;

use super::SECOND;
use crate::load::{Count, Load, LoadTask, Needs};
use host::work::Figure;

pub const LOAD: Load = Load {
    name: "cpu",
    title: "computes in floating point",
    doc: "Each process multiplies matrices of 32 x 32 numbers of 64 bits, which fit into any L1 cache. It \
          uses the whole CPU, and causes heat, frequency changes and the scheduler's tick.",
    count: Count { what: "processes", default: None },
    size: None,
    keys: &[],
    unit: "operations",
    paced: true,
    chunk: |_| (2 * SIDE * SIDE * SIDE) as u64,
    window: SECOND,
    figure: Figure::CpuTime,
    needs: |_| Needs { memory: 1 << 20, disk: 0, tasks: 1 },
    run,
};

const SIDE: usize = 32;

type Matrix = [[f64; SIDE]; SIDE];

fn run(work: &mut LoadTask) -> io::Result<Infallible> {
    let (mut one, other) = (identity(1.000_001), identity(0.999_999));
    work.begin()?;
    loop {
        one = product(black_box(&one), black_box(&other));
        // A multiplication and an addition per element.
        work.done(2 * SIDE * SIDE * SIDE);
    }
}

/// Matrix whose powers neither vanish nor overflow.
fn identity(scale: f64) -> Matrix {
    let mut matrix = [[1e-9; SIDE]; SIDE];
    for (at, row) in matrix.iter_mut().enumerate() {
        row[at] = scale - 1e-9 * (SIDE as f64 - 1.0);
    }
    matrix
}

fn product(one: &Matrix, other: &Matrix) -> Matrix {
    let mut product = [[0.0; SIDE]; SIDE];
    for (row, left) in product.iter_mut().zip(one) {
        for (factor, right) in left.iter().zip(other) {
            row.iter_mut().zip(right).for_each(|(sum, number)| *sum += factor * number);
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_stay_numbers() {
        let (mut one, other) = (identity(1.000_001), identity(0.999_999));
        for _ in 0..10_000 {
            one = product(&one, &other);
        }
        assert!(one.iter().flatten().all(|number| number.is_normal() && *number < 2.0));
    }
}
