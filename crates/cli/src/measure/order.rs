//! The order of runs.

use indicatif::{ProgressBar, ProgressStyle};

/// The order in which `count` contenders run in a repeat: reversed every second time, so that no
/// contender always runs after the same one, and a slow phase of the machine affects all of them.
pub(crate) fn alternating(repeat: u64, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |place| match repeat.is_multiple_of(2) {
        true => place,
        false => count - 1 - place,
    })
}

/// Progress over a number of runs.
pub(crate) fn progress_bar(runs: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}");
    ProgressBar::new(runs).with_style(style.expect("the template is made of indicatif's own keys"))
}

/// Runs contenders `repeats` times in alternating order, with progress over the figures that each
/// run reports. `run` gets the contender's place and the number of the repeat.
pub(crate) fn interleave(
    repeats: u32,
    contenders: usize,
    figures: usize,
    mut run: impl FnMut(usize, u32, &ProgressBar),
) {
    let figures = figures as u64;
    let progress = progress_bar(u64::from(repeats) * contenders as u64 * figures);
    let mut done = 0;
    for repeat in 0..repeats {
        for place in alternating(repeat.into(), contenders) {
            run(place, repeat, &progress);
            // Failed runs report less.
            done += figures;
            progress.set_position(done);
        }
    }
    progress.finish_and_clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_repeat_is_reversed() {
        assert_eq!(alternating(0, 3).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(alternating(1, 3).collect::<Vec<_>>(), [2, 1, 0]);
        assert_eq!(alternating(1, 0).count(), 0);
    }
}
