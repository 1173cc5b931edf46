//! Path patterns: `*` stands for any characters, `?` for one.

/// Whether a whole path matches a pattern. `/scratch/*` matches everything
/// below /scratch; a pattern without a slash is compared with the last part of
/// the path.
pub(crate) fn matches(pattern: &str, path: &str) -> bool {
    let subject = match pattern.contains('/') {
        true => path,
        false => path.rsplit('/').next().unwrap_or(path),
    };
    let pattern: Vec<char> = pattern.chars().collect();
    let subject: Vec<char> = subject.chars().collect();
    glob(&pattern, &subject)
}

/// Without recursion: after a mismatch, the last star takes one more character.
fn glob(pattern: &[char], subject: &[char]) -> bool {
    let (mut at, mut position) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while position < subject.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, position));
                at += 1;
            }
            Some(it) if *it == '?' || *it == subject[position] => {
                at += 1;
                position += 1;
            }
            _ => match star {
                Some((star_at, taken)) => {
                    star = Some((star_at, taken + 1));
                    at = star_at + 1;
                    position = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|it| *it == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_and_question_marks() {
        let cases = [
            ("/scratch/*", "/scratch/a/b", true),
            ("/scratch/*", "/home/a", false),
            ("*.nc", "/data/run.nc", true),
            ("*.nc", "/data/run.nc4", false),
            ("run?", "/data/run7", true),
            ("*a*b*c", "/x/aabbc", true),
            ("*a*b*c", "/x/acb", false),
            ("", "/x/", true),
        ];
        for (pattern, path, expected) in cases {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }
}
