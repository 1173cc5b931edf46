//! The figures of all contenders, and the ratios derived from them.

use std::time::Duration;

use super::Mode;
use super::protocol::Figure;
use crate::measure::{DIRECTIONS, Direction, Samples};

/// Whose MPI-IO a contender uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Own,
    /// pario's, under the same MPI.
    Pario,
}

impl Side {
    /// Both, in the order of tables.
    pub(crate) const ALL: [Side; 2] = [Side::Own, Side::Pario];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Side::Own => "own",
            Side::Pario => "pario",
        }
    }
}

/// One MPI-IO under one MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contender {
    /// The index of the MPI.
    pub(crate) mpi: usize,
    pub(crate) side: Side,
}

impl Contender {
    /// Both sides of a number of MPIs.
    pub(crate) fn all(mpis: usize) -> impl Iterator<Item = Contender> + Clone {
        (0..mpis).flat_map(|mpi| Side::ALL.map(|side| Contender { mpi, side }))
    }
}

/// A contender's repeats; none if all runs failed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Repeats {
    pub(crate) samples: Samples,
    /// The highest speed relative to raw POSIX calls in the same run.
    pub(crate) of_raw: Option<f64>,
}

/// Speeds of one pattern in one direction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) pattern: &'static str,
    pub(crate) direction: Direction,
    /// Bytes of all ranks.
    pub(crate) bytes: u64,
    /// Pieces of the rank that has the most.
    pub(crate) pieces: u64,
    /// By MPI and side.
    repeats: Vec<[Repeats; 2]>,
}

impl Row {
    pub(crate) fn repeats(&self, contender: Contender) -> &Repeats {
        &self.repeats[contender.mpi][contender.side as usize]
    }

    /// A contender's speed in MB/s (10^6 bytes).
    pub(crate) fn speed(&self, contender: Contender) -> Option<f64> {
        let samples = &self.repeats(contender).samples;
        samples.megabytes_per_second(self.bytes)
    }

    /// Speed of pario relative to an MPI's own under that MPI.
    pub(crate) fn over_own(&self, mpi: usize) -> Option<f64> {
        let [own, pario] = &self.repeats[mpi];
        pario.samples.speed_over(&own.samples)
    }

    /// The best speed of pario relative to the best of all MPIs' own.
    pub(crate) fn over_best_peer(&self) -> Option<f64> {
        let best = |side: Side| {
            let all = (0..self.repeats.len()).filter_map(|mpi| self.speed(Contender { mpi, side }));
            all.max_by(f64::total_cmp)
        };
        Some(best(Side::Pario)? / best(Side::Own)?)
    }

    fn add(&mut self, contender: Contender, figure: &Figure) {
        self.bytes = figure.bytes;
        self.pieces = figure.pieces;
        let repeats = &mut self.repeats[contender.mpi][contender.side as usize];
        repeats
            .samples
            .push(Duration::from_secs_f64(figure.seconds));
        let of_raw = figure.raw_seconds / figure.seconds;
        repeats.of_raw = Some(repeats.of_raw.map_or(of_raw, |best| best.max(of_raw)));
    }
}

/// All patterns in one directory with one number of ranks and one kind of calls.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Section {
    /// The directory, as the user named it.
    pub(crate) directory: String,
    pub(crate) file_system: String,
    pub(crate) ranks: u32,
    pub(crate) mode: Mode,
    /// Every pattern in both directions.
    pub(crate) rows: Vec<Row>,
}

impl Section {
    /// A section without figures.
    pub(crate) fn new(
        (directory, file_system): (String, String),
        ranks: u32,
        mode: Mode,
        patterns: impl Iterator<Item = &'static str>,
        mpis: usize,
    ) -> Section {
        let rows = patterns.flat_map(|pattern| {
            DIRECTIONS.map(|direction| Row {
                pattern,
                direction,
                bytes: 0,
                pieces: 0,
                repeats: vec![Default::default(); mpis],
            })
        });
        Section {
            directory,
            file_system,
            ranks,
            mode,
            rows: rows.collect(),
        }
    }

    pub(crate) fn add(&mut self, contender: Contender, figure: &Figure) {
        let is_same =
            |row: &&mut Row| row.pattern == figure.pattern && row.direction == figure.direction;
        if let Some(row) = self.rows.iter_mut().find(is_same) {
            row.add(contender, figure);
        }
    }

    /// Ranks, calls, directory and file system.
    pub(crate) fn title(&self) -> String {
        format!(
            "{} ranks, {}, {} ({})",
            self.ranks,
            self.mode.words(),
            self.directory,
            self.file_system
        )
    }

    /// The repeats of all contenders that have some.
    pub(crate) fn samples(&self) -> impl Iterator<Item = &Samples> {
        let repeats = self
            .rows
            .iter()
            .flat_map(|row| row.repeats.iter().flatten());
        repeats
            .map(|it| &it.samples)
            .filter(|it| it.best().is_some())
    }

    /// pario relative to an MPI's own.
    pub(crate) fn over_own(&self, mpi: usize) -> Option<Summary> {
        Summary::of(&self.rows, |row| row.over_own(mpi))
    }

    /// The best of pario relative to the best of the others.
    pub(crate) fn over_best_peer(&self) -> Option<Summary> {
        Summary::of(&self.rows, Row::over_best_peer)
    }
}

/// A summary of the ratios of all rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) mean: f64,
    /// The lowest, and which row has it.
    pub(crate) worst: (f64, String),
    /// Rows below one.
    pub(crate) behind: usize,
    /// All rows.
    pub(crate) rows: usize,
}

impl Summary {
    fn of(rows: &[Row], ratio: impl Fn(&Row) -> Option<f64>) -> Option<Summary> {
        let ratios: Vec<_> = rows
            .iter()
            .filter_map(|row| Some((row, ratio(row)?)))
            .collect();
        let (row, worst) = ratios
            .iter()
            .min_by(|one, other| one.1.total_cmp(&other.1))?;
        let logarithms: f64 = ratios.iter().map(|(_, ratio)| ratio.ln()).sum();
        Some(Summary {
            mean: (logarithms / ratios.len() as f64).exp(),
            worst: (*worst, format!("{} {}", row.pattern, row.direction.name())),
            behind: ratios.iter().filter(|(_, ratio)| is_behind(*ratio)).count(),
            rows: ratios.len(),
        })
    }
}

/// Whether pario is slower.
pub(crate) fn is_behind(ratio: f64) -> bool {
    ratio < 1.0
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn figure(pattern: &str, direction: Direction, seconds: f64) -> Figure {
        Figure {
            pattern: pattern.to_owned(),
            direction,
            bytes: 2_000_000,
            pieces: 3,
            seconds,
            raw_seconds: 1.0,
            fault: None,
        }
    }

    /// Two MPIs and two patterns. The first MPI's own takes 2 s, the second's 4 s; pario takes 1 s
    /// under the first, 8 s under the second; reading the second pattern failed for all.
    pub(crate) fn section() -> Section {
        let place = ("/tmp".to_owned(), "tmpfs".to_owned());
        let patterns = ["tile", "small"].into_iter();
        let mut section = Section::new(place, 2, Mode::Coll, patterns, 2);
        for (mpi, side, seconds) in [
            (0, Side::Own, 2.0),
            (0, Side::Pario, 1.0),
            (1, Side::Own, 4.0),
            (1, Side::Pario, 8.0),
        ] {
            let contender = Contender { mpi, side };
            section.add(contender, &figure("tile", Direction::Write, seconds + 1.0));
            section.add(contender, &figure("tile", Direction::Write, seconds));
            section.add(contender, &figure("tile", Direction::Read, seconds));
            section.add(contender, &figure("small", Direction::Write, seconds));
        }
        section
    }

    #[test]
    fn the_best_repeat_counts() {
        let section = section();
        let row = &section.rows[0];
        let contender = Contender {
            mpi: 0,
            side: Side::Own,
        };
        let repeats = row.repeats(contender);
        assert_eq!(repeats.samples.all(), [3, 2].map(Duration::from_secs));
        assert_eq!(repeats.of_raw, Some(0.5));
        assert_eq!(row.speed(contender), Some(1.0));
        // Writes of the first pattern took 2 and 3, 1 and 2, 4 and 5, and 8 and 9 seconds.
        let doubtful = section.samples().filter(|it| it.doubt().is_some());
        assert_eq!((doubtful.count(), section.samples().count()), (2, 12));
        assert_eq!((row.over_own(0), row.over_own(1)), (Some(2.0), Some(0.5)));
        assert_eq!(row.over_best_peer(), Some(2.0));
    }

    #[test]
    fn rows_without_figures_do_not_count() {
        let section = section();
        assert_eq!(section.rows.len(), 4);
        assert_eq!(section.rows[3].over_own(0), None);
        let summary = section.over_own(1).unwrap();
        assert_eq!((summary.behind, summary.rows), (3, 3));
        assert!((summary.mean - 0.5).abs() < 1e-12);
        assert_eq!(summary.worst, (0.5, "tile write".to_owned()));
        assert_eq!(section.over_best_peer().unwrap().behind, 0);
    }
}
