//! Text and tables that fit a terminal.

/// Columns of the narrowest terminal that texts and tables are made for.
pub(crate) const COLUMNS: usize = 80;

/// Width between two columns of a table.
const GAP: usize = 2;

/// Breaks the lines of a text that have more than `most` characters at spaces. Continued lines are
/// indented by two more than their first. A word that is longer stays whole.
pub(crate) fn within(text: &str, most: usize) -> String {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let indent = line.chars().take_while(|one| *one == ' ').count();
        let (mut rest, mut start) = (line.to_owned(), indent);
        while let Some(at) = end_of_line(&rest, start, most) {
            lines.push(rest[..at].trim_end().to_owned());
            rest = format!("{}{}", " ".repeat(indent + 2), rest[at..].trim_start());
            start = indent + 2;
        }
        lines.push(rest);
    }
    lines.join("\n")
}

/// Where a line that is too long ends: at the last space that fits, else at the first one after `start`.
fn end_of_line(line: &str, start: usize, most: usize) -> Option<usize> {
    if line.chars().count() <= most {
        return None;
    }
    let spaces = || line.match_indices(' ').map(|(at, _)| at).filter(|at| *at > start);
    let fitting = spaces().take_while(|at| line[..*at].chars().count() <= most).last();
    fitting.or_else(|| spaces().next())
}

/// A Markdown text for a terminal: its tables as aligned columns of at most `most` characters in all, long
/// cells on several lines; other lines as in [`within`].
pub(crate) fn tables_within(markdown: &str, most: usize) -> String {
    let (mut text, mut rows) = (String::new(), Vec::new());
    for line in markdown.lines().chain([""]) {
        match line.strip_prefix('|') {
            Some(row) if row.starts_with("---") => {}
            Some(row) => {
                let row = row.trim_end().trim_end_matches('|');
                rows.push(row.split('|').map(|cell| plain(cell.trim())).collect::<Vec<_>>());
            }
            None => {
                text += &aligned(&std::mem::take(&mut rows), most);
                text += &within(line, most);
                text.push('\n');
            }
        }
    }
    text.trim_end().to_owned() + "\n"
}

/// A cell without the marks of code and bold type.
fn plain(cell: &str) -> String {
    cell.replace(['`'], "").replace("**", "")
}

fn aligned(rows: &[Vec<String>], most: usize) -> String {
    let widths = widths(rows, most);
    let mut text = String::new();
    for row in rows {
        let cells: Vec<Vec<String>> =
            row.iter().zip(&widths).map(|(cell, width)| pieces(cell, *width)).collect();
        for n in 0..cells.iter().map(Vec::len).max().unwrap_or_default() {
            let part = |lines: &Vec<String>| lines.get(n).cloned().unwrap_or_default();
            let parts = cells.iter().map(part).zip(&widths);
            let line: Vec<String> = parts.map(|(part, &width)| format!("{part:width$}")).collect();
            text += line.join(&" ".repeat(GAP)).trim_end();
            text.push('\n');
        }
    }
    text
}

/// The widths of the columns. While all together are too wide, the widest becomes narrower.
fn widths(rows: &[Vec<String>], most: usize) -> Vec<usize> {
    let n = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default().max(1)
    };
    let mut widths: Vec<usize> = (0..n).map(widest).collect();
    while widths.iter().sum::<usize>() + GAP * n.saturating_sub(1) > most {
        let Some(width) = widths.iter_mut().max().filter(|width| **width > 1) else { break };
        *width -= 1;
    }
    widths
}

/// A cell in lines of at most `width` characters, broken at spaces where possible.
fn pieces(cell: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in cell.split_whitespace() {
        let letters: Vec<char> = word.chars().collect();
        for part in letters.chunks(width) {
            let part: String = part.iter().collect();
            let line = lines.last_mut().expect("never empty");
            let used = line.chars().count();
            match used {
                0 => *line = part,
                _ if used + 1 + part.chars().count() <= width => *line = format!("{line} {part}"),
                _ => lines.push(part),
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn long_lines_are_broken_at_spaces_and_short_ones_stay() {
        assert_eq!(within("  one two three\n\nfour", 9), "  one two\n    three\n\nfour");
        assert_eq!(within("endless-word and more", 5), "endless-word\n  and\n  more");
    }

    #[test]
    fn cells_of_a_table_that_is_too_wide_have_several_lines() {
        let table = "# Title\n\n| name | meaning |\n|---|---|\n| `a` | one two three |\n";
        assert_eq!(
            tables_within(table, 13),
            "# Title\n\nname  meaning\na     one two\n      three\n"
        );
    }

    proptest! {
        #[test]
        fn no_line_of_a_table_is_wider_than_asked_and_no_letter_is_lost(
            rows in prop::collection::vec(prop::collection::vec("[a-zé]{0,9}( [a-z0-9.]{1,30}){0,3}", 5), 1..6),
            most in 20..100_usize,
        ) {
            let markdown: String = rows.iter().map(|row| format!("| {} |\n", row.join(" | "))).collect();
            let text = tables_within(&markdown, most);
            prop_assert!(text.lines().all(|line| line.chars().count() <= most), "{text}");
            let letters = |text: &str| {
                let mut all: Vec<char> = text.chars().filter(|one| one.is_alphanumeric()).collect();
                all.sort_unstable();
                all
            };
            prop_assert_eq!(letters(&text), letters(&markdown));
        }
    }
}
