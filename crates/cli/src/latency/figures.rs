//! The times.

use serde::Serialize;

use super::calls::Row;
use crate::compare::figures::Side;
use crate::compare::protocol::Latency;
use crate::machine::Machine;
use crate::measure::Doubt;

/// Seconds per call, for each repeat; a floating-point number, because calls may take nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Times(Vec<f64>);

impl Times {
    /// Microseconds per call: the best and the median of the repeats; `None` before the first.
    pub(super) fn best_and_median(&self) -> Option<(f64, f64)> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let best = sorted.first()?;
        Some((best * 1e6, sorted[sorted.len() / 2] * 1e6))
    }

    pub(super) fn doubt(&self) -> Option<Doubt> {
        let (best, median) = self.best_and_median()?;
        Doubt::of_spread(best, median)
    }
}

/// The times of one call under one MPI.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    pub(super) row: Row,
    /// By side.
    times: [Times; 2],
}

impl Figure {
    pub(super) fn times(&self, side: Side) -> &Times {
        &self.times[side as usize]
    }

    /// pario's speedup over the MPI's own.
    pub(super) fn ratio(&self) -> Option<f64> {
        let best = |side| self.times(side).best_and_median().map(|it| it.0);
        Some(best(Side::Own)? / best(Side::Pario)?)
    }
}

/// The figures of one number of ranks under one MPI.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Section {
    pub(super) mpi: String,
    pub(super) ranks: u32,
    pub(super) figures: Vec<Figure>,
}

impl Section {
    /// A section without times.
    pub(super) fn new(mpi: &str, ranks: u32, rows: &[Row]) -> Section {
        let figure = |&row| Figure {
            row,
            times: Default::default(),
        };
        Section {
            mpi: mpi.to_owned(),
            ranks,
            figures: rows.iter().map(figure).collect(),
        }
    }

    pub(super) fn title(&self) -> String {
        match self.ranks {
            1 => format!("{}, 1 rank", self.mpi),
            ranks => format!("{}, {ranks} ranks", self.mpi),
        }
    }

    /// Adds a time; fails with the reason if it cannot be used.
    pub(super) fn add(&mut self, side: Side, latency: Latency) -> Result<(), String> {
        if let Some(fault) = latency.fault {
            return Err(format!("{}: {fault}", latency.call));
        }
        let figure = self.figures.iter_mut().find(|it| {
            it.row.call.name == latency.call
                && it.row.bytes == latency.bytes
                && it.row.in_flight == latency.in_flight
        });
        let figure = figure.ok_or_else(|| {
            format!(
                "{}: reported for {} bytes and {} in flight, which were not requested",
                latency.call, latency.bytes, latency.in_flight
            )
        })?;
        figure.times[side as usize].0.push(latency.seconds);
        Ok(())
    }
}

/// Everything that was measured.
pub(super) struct Latencies {
    pub(super) machine: Machine,
    /// The directory, as the user named it.
    pub(super) directory: String,
    pub(super) file_system: String,
    pub(super) repeats: u32,
    pub(super) sections: Vec<Section>,
    /// Launchers that could not be used.
    pub(super) notes: Vec<String>,
    /// Runs that failed.
    pub(super) faults: Vec<String>,
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::latency::calls;

    fn latency(bytes: u64, seconds: f64) -> Latency {
        Latency {
            call: "write_at".to_owned(),
            bytes,
            in_flight: 1,
            seconds,
            fault: None,
        }
    }

    /// Two sizes of one call: of the first the MPI's own takes 4 µs and pario 2 µs, the second has
    /// no times.
    pub(in crate::latency) fn latencies() -> Latencies {
        let calls = calls::named(&["write_at".to_owned()]).unwrap();
        let mut section = Section::new("MPI, A", 2, &calls::rows(&calls, &[0, 8]));
        for (side, times) in [
            (Side::Own, [4e-6, 5e-6, 4.5e-6]),
            (Side::Pario, [2e-6, 3e-6, 4e-6]),
        ] {
            for seconds in times {
                section.add(side, latency(0, seconds)).unwrap();
            }
        }
        Latencies {
            machine: Machine {
                date: "2000-02-29".to_owned(),
                pario: "0",
                facts: vec![("Kernel", "Linux".to_owned())],
            },
            directory: "/data".to_owned(),
            file_system: "tmpfs".to_owned(),
            repeats: 3,
            sections: vec![section],
            notes: Vec::new(),
            faults: vec!["MPI, A: wrong".to_owned()],
        }
    }

    #[test]
    fn best_and_median_are_those_of_the_repeats() {
        let times = Times(vec![3e-6, 1e-6, 2e-6]);
        let (best, median) = times.best_and_median().unwrap();
        assert!((best - 1.0).abs() < 1e-9 && (median - 2.0).abs() < 1e-9);
        assert_eq!(times.doubt(), Some(Doubt::Spread));
        assert_eq!(Times::default().best_and_median(), None);
        let section = &latencies().sections[0];
        assert!((section.figures[0].ratio().unwrap() - 2.0).abs() < 1e-9);
        assert_eq!(section.figures[1].ratio(), None);
    }

    #[test]
    fn times_of_other_files_and_other_calls_are_rejected() {
        let section = &mut latencies().sections[0];
        let before = section.clone();
        let fault = Some("not its file".to_owned());
        let wrong = Latency {
            fault,
            ..latency(0, 1e-9)
        };
        let reason = section.add(Side::Pario, wrong).unwrap_err();
        assert_eq!(reason, "write_at: not its file");
        let reason = section.add(Side::Pario, latency(9, 1e-9)).unwrap_err();
        assert!(reason.contains("for 9 bytes"), "{reason}");
        assert_eq!(*section, before);
    }
}
