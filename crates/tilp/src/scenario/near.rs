//! Names that a user may have meant.

/// Names like the one that was typed, the nearest first, at most three.
pub(super) fn near<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let end = last(typed);
    let mut found: Vec<(usize, &str)> = names
        .filter_map(|name| {
            let (whole, part) = (distance(typed, name), distance(&end, &last(name)));
            // The same end in another section, or a slip of the finger anywhere.
            let is_near = part == 0 || whole <= 1 + typed.len() / 8 || part <= end.len() / 4;
            is_near.then_some((whole.min(2 * part), name))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, name)| name).take(3).collect()
}

/// The fewest letters to insert, delete or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_and_wrong_sections_are_near_and_other_words_are_not() {
        let names = ["limits.deadline_s", "limits.bandwidth_hz", "model.width", "cell.n_terminals"];
        let of = |typed: &str| near(typed, names.into_iter());
        assert_eq!(of("limits.dedline_s"), ["limits.deadline_s"]);
        assert_eq!(of("cell.deadline_s"), ["limits.deadline_s"]);
        assert_eq!(of("cell.terminals"), ["cell.n_terminals"]);
        assert!(of("colour").is_empty());
        assert_eq!((distance("", "abc"), distance("kitten", "sitting")), (3, 3));
    }
}
