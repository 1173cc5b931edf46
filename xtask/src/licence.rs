//! Licence expressions of crates (SPDX), and which of them are allowed.

/// Licences under which a dependency may be used. All of them allow the project to stay under MIT
/// or Apache-2.0.
const ALLOWED: [&str; 6] = [
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSL-1.0",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
];

/// Fails unless the expression can be satisfied with allowed licences.
pub(crate) fn check(expression: &str) -> Result<(), String> {
    let mut words = words(expression);
    words.reverse();
    match any(&mut words) {
        Some(true) if words.is_empty() => Ok(()),
        Some(false) if words.is_empty() => Err(format!("licence {expression} is not allowed")),
        _ => Err(format!("licence {expression:?} cannot be read")),
    }
}

/// Licences, operators and brackets. A slash is an old form of `OR`.
fn words(expression: &str) -> Vec<String> {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let mut words: Vec<String> = Vec::new();
    let mut parts = spaced.split_whitespace();
    while let Some(part) = parts.next() {
        match (part, words.last_mut()) {
            ("WITH", Some(licence)) => {
                *licence = format!("{licence} WITH {}", parts.next().unwrap_or(""));
            }
            _ => words.push(part.to_owned()),
        }
    }
    words
}

/// Alternatives; the next word is the last of the list.
fn any(words: &mut Vec<String>) -> Option<bool> {
    let mut allowed = all(words)?;
    while words.pop_if(|word| word == "OR").is_some() {
        allowed |= all(words)?;
    }
    Some(allowed)
}

fn all(words: &mut Vec<String>) -> Option<bool> {
    let mut allowed = one(words)?;
    while words.pop_if(|word| word == "AND").is_some() {
        allowed &= one(words)?;
    }
    Some(allowed)
}

fn one(words: &mut Vec<String>) -> Option<bool> {
    let word = words.pop()?;
    match word.as_str() {
        "(" => {
            let allowed = any(words)?;
            (words.pop()? == ")").then_some(allowed)
        }
        "OR" | "AND" | ")" => None,
        licence => Some(ALLOWED.contains(&licence)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_allowed_alternative_is_enough() {
        for expression in [
            "MIT",
            "MIT OR Apache-2.0 OR LGPL-2.1-or-later",
            "Unlicense/MIT",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
        ] {
            check(expression).unwrap();
        }
    }

    #[test]
    fn every_required_licence_must_be_allowed() {
        for expression in [
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(MIT OR Apache-2.0) AND LGPL-2.1",
            "MIT WITH some-exception",
        ] {
            let error = check(expression).unwrap_err();
            assert!(error.contains("is not allowed"), "{error}");
        }
    }

    #[test]
    fn malformed_expressions_are_not_allowed() {
        for expression in ["", "MIT OR", "(MIT", "MIT)", "MIT Apache-2.0", "OR"] {
            let error = check(expression).unwrap_err();
            assert!(error.contains("cannot be read"), "{expression:?}: {error}");
        }
    }
}
