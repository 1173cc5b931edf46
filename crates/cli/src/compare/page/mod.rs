//! The comparison as a page: one file, no other resources, light or dark as the reader likes.

mod axis;
mod parts;
mod plot;

use std::io::{self, Write};

use super::Comparison;

/// The page, with `{{names}}` in the places of what is filled in.
const TEMPLATE: &str = include_str!("template.html");
const STYLE: &str = include_str!("style.css");

/// Colours that the style has for MPIs.
const COLOURS: usize = 6;

/// Writes the page.
pub(crate) fn write(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    out.write_all(filled(comparison).as_bytes())
}

fn filled(comparison: &Comparison) -> String {
    let mut page = String::new();
    let mut parts = TEMPLATE.split("{{");
    page.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (name, rest) = part
            .split_once("}}")
            .expect("the template closes its braces");
        page.push_str(&part_of(comparison, name));
        page.push_str(rest);
    }
    page
}

/// What stands in a place of the template.
fn part_of(comparison: &Comparison, name: &str) -> String {
    match name {
        "style" => STYLE.to_owned(),
        "date" => escaped(&comparison.machine.date),
        "version" => escaped(env!("CARGO_PKG_VERSION")),
        "command" => escaped(&comparison.command),
        "rounds" => comparison.rounds_in_words(),
        "scale" => comparison.scale.to_string(),
        "faults" => parts::faults(comparison),
        "cards" => parts::cards(comparison),
        "machine" => parts::machine(comparison),
        "patterns" => parts::patterns(comparison),
        "sections" => {
            let sections = comparison.sections.iter();
            sections.map(|it| parts::section(comparison, it)).collect()
        }
        unknown => unreachable!("the template asks for {unknown}"),
    }
}

/// Text that HTML takes for nothing else.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            other => safe.push(other),
        }
    }
    safe
}

/// The class that gives an MPI its colour.
fn colour(mpi: usize) -> String {
    format!("m{}", mpi % COLOURS)
}

#[cfg(test)]
mod tests {
    use super::super::tests::comparison;
    use super::*;

    #[test]
    fn the_page_is_whole_and_stands_alone() {
        let page = filled(&comparison());
        assert!(!page.contains("{{") && !page.contains("NaN"), "{page}");
        for outside in ["http://", "https://", "src=", "href=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        for tag in [
            "section", "table", "svg", "tr", "td", "div", "details", "dl", "g",
        ] {
            let open = page.matches(&format!("<{tag} ")).count()
                + page.matches(&format!("<{tag}>")).count();
            assert_eq!(open, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }

    #[test]
    fn what_machines_say_is_escaped_and_losses_are_shown() {
        let page = filled(&comparison());
        assert!(page.contains("2 of &lt;some&gt;") && page.contains("MPI &lt;&amp;&gt; more"));
        assert!(page.contains("0.50×") && page.contains("class=\"behind\""));
        assert!(page.contains("MPI A: wrong"));
        assert!(page.contains("2000-02-29"));
        assert!(page.contains("(libmpi.so)") && !page.contains("/lib/libmpi.so"));
    }
}
