//! The figures of all contenders, and what follows from them.

use super::Mode;
use super::protocol::{Direction, Figure};

/// Whose MPI-IO a contender uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The MPI's own.
    Own,
    /// pario's, under the same MPI.
    Pario,
}

impl Side {
    /// Both, in the order of tables.
    pub(crate) const ALL: [Side; 2] = [Side::Own, Side::Pario];
}

/// One MPI-IO under one MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contender {
    /// The MPI's number.
    pub(crate) mpi: usize,
    /// Whose MPI-IO.
    pub(crate) side: Side,
}

/// Rounds whose best and median differ by more than this fraction leave the best in doubt.
pub(crate) const DOUBTFUL_SPREAD: f64 = 0.3;

/// A contender's best of all rounds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Best {
    /// The shortest time.
    pub(crate) seconds: f64,
    /// The highest speed relative to raw POSIX calls in the same run.
    pub(crate) of_raw: f64,
    /// The time of every round.
    pub(crate) rounds: Vec<f64>,
}

impl Best {
    /// Whether the rounds differ so much that the best may be luck.
    fn is_doubtful(&self) -> bool {
        let mut sorted = self.rounds.clone();
        sorted.sort_by(f64::total_cmp);
        let median = sorted[sorted.len() / 2];
        median > self.seconds * (1.0 + DOUBTFUL_SPREAD)
    }
}

/// Speeds of one pattern in one direction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// The pattern's name.
    pub(crate) pattern: &'static str,
    /// Which way the data goes.
    pub(crate) direction: Direction,
    /// Bytes of all ranks.
    pub(crate) bytes: u64,
    /// Pieces of the rank that has most.
    pub(crate) pieces: u64,
    /// The best of each MPI's own and of pario; `None` where all runs failed.
    best: Vec<[Option<Best>; 2]>,
}

impl Row {
    /// A contender's best.
    pub(crate) fn best(&self, contender: Contender) -> Option<&Best> {
        self.best[contender.mpi][contender.side as usize].as_ref()
    }

    /// A contender's speed in MB/s (10^6 bytes).
    pub(crate) fn speed(&self, contender: Contender) -> Option<f64> {
        let best = self.best(contender)?;
        Some(self.bytes as f64 / best.seconds / 1e6)
    }

    /// How much faster pario is than an MPI's own under that MPI.
    pub(crate) fn over_own(&self, mpi: usize) -> Option<f64> {
        let seconds = |side| Some(self.best(Contender { mpi, side })?.seconds);
        Some(seconds(Side::Own)? / seconds(Side::Pario)?)
    }

    /// How much faster the best of pario is than the best of all MPIs' own.
    pub(crate) fn over_best_peer(&self) -> Option<f64> {
        let shortest = |side: Side| {
            let all = (0..self.best.len()).filter_map(|mpi| self.best(Contender { mpi, side }));
            all.map(|best| best.seconds).min_by(f64::total_cmp)
        };
        Some(shortest(Side::Own)? / shortest(Side::Pario)?)
    }

    fn add(&mut self, contender: Contender, figure: &Figure) {
        self.bytes = figure.bytes;
        self.pieces = figure.pieces;
        let of_raw = figure.raw_seconds / figure.seconds;
        let best = &mut self.best[contender.mpi][contender.side as usize];
        let best = best.get_or_insert(Best {
            seconds: figure.seconds,
            of_raw,
            rounds: Vec::new(),
        });
        best.rounds.push(figure.seconds);
        best.seconds = best.seconds.min(figure.seconds);
        best.of_raw = best.of_raw.max(of_raw);
    }
}

/// All patterns in one folder with one number of ranks and one kind of calls.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Section {
    /// The folder, as the user named it.
    pub(crate) folder: String,
    /// Its file system.
    pub(crate) file_system: String,
    /// Number of ranks.
    pub(crate) ranks: u32,
    /// Which calls.
    pub(crate) mode: Mode,
    /// Every pattern in both directions.
    pub(crate) rows: Vec<Row>,
}

impl Section {
    /// One without figures.
    pub(crate) fn new(
        (folder, file_system): (String, String),
        ranks: u32,
        mode: Mode,
        patterns: &[&'static str],
        mpis: usize,
    ) -> Section {
        let rows = patterns.iter().flat_map(|&pattern| {
            Direction::ALL.map(|direction| Row {
                pattern,
                direction,
                bytes: 0,
                pieces: 0,
                best: vec![[None, None]; mpis],
            })
        });
        Section {
            folder,
            file_system,
            ranks,
            mode,
            rows: rows.collect(),
        }
    }

    /// Takes a figure in.
    pub(crate) fn add(&mut self, contender: Contender, figure: &Figure) {
        let is_same =
            |row: &&mut Row| row.pattern == figure.pattern && row.direction == figure.direction;
        if let Some(row) = self.rows.iter_mut().find(is_same) {
            row.add(contender, figure);
        }
    }

    /// Where, how many and which.
    pub(crate) fn title(&self) -> String {
        format!(
            "{} ranks, {}, {} ({})",
            self.ranks,
            self.mode.words(),
            self.folder,
            self.file_system
        )
    }

    /// How many figures are in doubt, and how many there are.
    pub(crate) fn doubtful(&self) -> (usize, usize) {
        let figures = || {
            self.rows
                .iter()
                .flat_map(|row| row.best.iter().flatten().flatten())
        };
        let doubtful = figures().filter(|best| best.is_doubtful());
        (doubtful.count(), figures().count())
    }

    /// pario over an MPI's own.
    pub(crate) fn over_own(&self, mpi: usize) -> Option<Summary> {
        Summary::of(
            self.rows
                .iter()
                .filter_map(|row| Some((row, row.over_own(mpi)?))),
        )
    }

    /// The best of pario over the best of the others.
    pub(crate) fn over_best_peer(&self) -> Option<Summary> {
        Summary::of(
            self.rows
                .iter()
                .filter_map(|row| Some((row, row.over_best_peer()?))),
        )
    }
}

/// Ratios of all rows in a few numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Summary {
    /// The geometric mean.
    pub(crate) mean: f64,
    /// The least, and which row has it.
    pub(crate) worst: (f64, String),
    /// Rows below one.
    pub(crate) behind: usize,
    /// All rows.
    pub(crate) rows: usize,
}

impl Summary {
    fn of<'a>(ratios: impl Iterator<Item = (&'a Row, f64)>) -> Option<Summary> {
        let ratios: Vec<_> = ratios.collect();
        let worst = ratios
            .iter()
            .min_by(|one, other| one.1.total_cmp(&other.1))?;
        let logarithms: f64 = ratios.iter().map(|(_, ratio)| ratio.ln()).sum();
        Some(Summary {
            mean: (logarithms / ratios.len() as f64).exp(),
            worst: (
                worst.1,
                format!("{} {}", worst.0.pattern, worst.0.direction.name()),
            ),
            behind: ratios.iter().filter(|(_, ratio)| is_behind(*ratio)).count(),
            rows: ratios.len(),
        })
    }
}

/// Whether a ratio says that pario is slower.
pub(crate) fn is_behind(ratio: f64) -> bool {
    ratio < 1.0
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn figure(pattern: &str, direction: Direction, seconds: f64) -> Figure {
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
        let mut section = Section::new(place, 2, Mode::Coll, &["tile", "small"], 2);
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
    fn the_best_round_counts() {
        let section = section();
        let row = &section.rows[0];
        let contender = Contender {
            mpi: 0,
            side: Side::Own,
        };
        assert_eq!(
            row.best(contender),
            Some(&Best {
                seconds: 2.0,
                of_raw: 0.5,
                rounds: vec![3.0, 2.0]
            })
        );
        assert_eq!(row.speed(contender), Some(1.0));
        // Writes of the first pattern took 2 and 3, 1 and 2, 4 and 5, and 8 and 9 seconds.
        assert_eq!(section.doubtful(), (2, 12));
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
