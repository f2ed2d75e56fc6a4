//! The parts of a Markdown file that name something: code, links, headings.

/// Something that a document names.
pub struct Piece {
    /// Its line, counted from 1.
    pub line: usize,
    /// What it is.
    pub kind: Kind,
    /// Its text: code without its marks, the target of a link, the words of a heading.
    pub text: String,
}

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Code inside a sentence.
    Inline,
    /// A line of a fenced block without a language, or of a shell.
    Shell,
    /// A line of a fenced block in another language.
    Other,
    /// The target of a link or an image.
    Link,
    /// A heading.
    Heading,
}

/// The pieces of a document, in their order. Lines of a shell that end in a backslash are joined.
pub fn pieces(text: &str) -> Vec<Piece> {
    let mut found: Vec<Piece> = Vec::new();
    let mut fence: Option<Kind> = None;
    let mut goes_on = false;
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        if let Some(language) = line.trim_start().strip_prefix("```") {
            fence = match fence {
                Some(_) => None,
                None => Some(block(language.trim())),
            };
            continue;
        }
        let Some(kind) = fence else {
            found.extend(sentence(line, line_number));
            continue;
        };
        let code = line.strip_suffix('\\').unwrap_or(line);
        match found.last_mut() {
            Some(last) if goes_on => last.text = format!("{} {}", last.text, code.trim()),
            _ => found.push(Piece { line: line_number, kind, text: code.to_owned() }),
        }
        goes_on = line.ends_with('\\');
    }
    assert!(fence.is_none(), "a fenced block has no end");
    found
}

fn block(language: &str) -> Kind {
    match language {
        "" | "sh" | "bash" | "shell" | "console" => Kind::Shell,
        _ => Kind::Other,
    }
}

/// Inline code, links and the heading of one line.
fn sentence(line: &str, number: usize) -> Vec<Piece> {
    let piece = |kind, text: &str| Piece { line: number, kind, text: text.to_owned() };
    let mut found = Vec::new();
    if line.starts_with('#') {
        found.push(piece(Kind::Heading, line.trim_start_matches('#').trim()));
    }
    // A span that begins with two marks may hold single ones.
    let mut rest = line;
    let mut plain = String::new();
    while let Some(start) = rest.find('`') {
        plain += &rest[..start];
        let marks = rest[start..].chars().take_while(|mark| *mark == '`').count();
        let after = &rest[start + marks..];
        let Some(end) = after.find(&"`".repeat(marks)) else { break };
        found.push(piece(Kind::Inline, after[..end].trim()));
        plain += "code";
        rest = &after[end + marks..];
    }
    plain += rest;
    for link in plain.split("](").skip(1) {
        let target = link.split([')', ' ']).next().unwrap_or_default();
        found.push(piece(Kind::Link, target));
    }
    for html in plain.split(" src=\"").skip(1).chain(plain.split(" href=\"").skip(1)) {
        found.push(piece(Kind::Link, html.split('"').next().unwrap_or_default()));
    }
    found
}

/// The anchor that a heading gets.
pub fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn code_links_and_headings_are_found_with_their_lines() {
    let text = "# A `b`\nsee `docs/x.md` and [y](z.md#a-b) ``a`b``\n```sh\ntilp run \\\n  tiny\n```\n<img src=\"p.png\">\n";
    let found: Vec<_> = pieces(text).into_iter().map(|p| (p.line, p.kind, p.text)).collect();
    let piece = |line, kind, text: &str| (line, kind, text.to_owned());
    let expected = [
        piece(1, Kind::Heading, "A `b`"),
        piece(1, Kind::Inline, "b"),
        piece(2, Kind::Inline, "docs/x.md"),
        piece(2, Kind::Inline, "a`b"),
        piece(2, Kind::Link, "z.md#a-b"),
        piece(4, Kind::Shell, "tilp run  tiny"),
        piece(7, Kind::Link, "p.png"),
    ];
    assert_eq!(found, expected);
    assert_eq!(anchor("A `b`, c"), "a-b-c");
}
