//! Statements over many rows: a round trip to a database costs more than a row does.

use std::fmt::Write;

use sqlx::{AnyConnection, AssertSqlSafe};

/// Numbers of rows in one statement. They are few, so that the texts are few and stay prepared.
const SIZES: [usize; 3] = [64, 8, 1];

/// Cuts rows into pieces of these sizes.
pub fn pieces<T>(mut rows: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let size = SIZES.into_iter().find(|size| *size <= rows.len())?;
        let (piece, rest) = rows.split_at(size);
        rows = rest;
        Some(piece)
    })
}

/// Chunks for statements with eight arguments, padded with their last item.
pub fn eights<T: Copy>(all: &[T]) -> impl Iterator<Item = [T; 8]> + '_ {
    all.chunks(8).map(|some| std::array::from_fn(|at| some[at.min(some.len() - 1)]))
}

/// A statement whose values are numbered through, in the words of an engine. SQLite's driver looks
/// up the name of each value in a list of all of them, hundreds in a statement; `?` has no name.
pub fn statement(by: &AnyConnection, text: String) -> AssertSqlSafe<String> {
    if by.backend_name() != "SQLite" {
        return AssertSqlSafe(text);
    }
    let mut parts = text.split('$');
    let head = parts.next().unwrap_or_default().to_owned();
    let is_digit = |letter: char| letter.is_ascii_digit();
    AssertSqlSafe(parts.fold(head, |all, part| all + "?" + part.trim_start_matches(is_digit)))
}

/// `($1, $2), ($3, $4)` after a head: `rows` groups of `width` arguments.
pub fn values(head: &str, width: usize, rows: usize) -> String {
    let mut text = head.to_owned();
    for place in 0..width * rows {
        let before = match place % width {
            0 if place > 0 => "), (",
            0 => "(",
            _ => ", ",
        };
        let _ = write!(text, "{before}${}", place + 1);
    }
    text + ")"
}

/// Query for rows with any of that many keys. It is a union of one query each, because every engine
/// then uses the key's index; for a list of keys it may scan the table.
pub fn by_keys(select: &str, key: &[&str], rows: usize) -> String {
    let mut text = String::new();
    for place in 0..key.len() * rows {
        let column = place % key.len();
        match column {
            0 if place > 0 => text += " union all ",
            0 => {}
            _ => text += " and ",
        }
        if column == 0 {
            text = text + select + " where ";
        }
        let _ = write!(text, "{} = ${}", key[column], place + 1);
    }
    text
}

/// `a in ($1, $2) and b in ($3, $4)`: rows that have any of that many keys in each column. It is
/// one query even for a database that is distributed over machines.
pub fn among(columns: &[&str], rows: usize) -> String {
    let list = |(at, column): (usize, &&str)| {
        let places: Vec<String> = (1..=rows).map(|place| format!("${}", at * rows + place)).collect();
        format!("{column} in ({})", places.join(", "))
    };
    columns.iter().enumerate().map(list).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreEngine;
    use crate::store::engines::on_each_engine;

    #[test]
    fn places_are_numbered_through() {
        assert_eq!(values("values ", 2, 2), "values ($1, $2), ($3, $4)");
        let asked =
            "select c from t where a = $1 and b = $2 union all select c from t where a = $3 and b = $4";
        assert_eq!(by_keys("select c from t", &["a", "b"], 2), asked);
        assert_eq!(among(&["a", "b"], 2), "a in ($1, $2) and b in ($3, $4)");
    }

    #[test]
    fn values_have_a_number_where_the_engine_needs_one() {
        on_each_engine(async |store| {
            let one = store.pool.acquire().await.unwrap();
            let text = statement(&one, values("values ", 2, 6) + " on conflict do nothing").0;
            let places = match store.engine() {
                StoreEngine::Sqlite => ["(?, ?)"; 6].join(", "),
                StoreEngine::Postgres => {
                    [1, 3, 5, 7, 9, 11].map(|n| format!("(${n}, ${})", n + 1)).join(", ")
                }
            };
            assert_eq!(text, format!("values {places} on conflict do nothing"));
        });
    }

    #[test]
    fn pieces_are_all_of_it_in_its_order_and_of_few_sizes() {
        for n in 0..300 {
            let rows: Vec<usize> = (0..n).collect();
            assert_eq!(pieces(&rows).flatten().copied().collect::<Vec<_>>(), rows);
            assert!(pieces(&rows).all(|piece| SIZES.contains(&piece.len())));
        }
    }
}
