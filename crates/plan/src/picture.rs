//! A plan as an SVG picture: which rank's bytes go to which aggregator in which
//! round. There is one row per rank and per aggregator, and the file extends
//! from left to right; colours are aggregators, numbers are rounds.

use std::{
    fmt::{self, Write},
    ops::Range,
};

use crate::{Access, Case, Plan, Rounds, Segments, Timed};

/// Maximum number of rows and bars; more would be unreadable.
const RANKS_MAX: usize = 32;
const AGGREGATORS_MAX: usize = 32;
const BARS_MAX: usize = 20_000;

/// Sizes in pixels.
const WIDTH: f64 = 960.0;
const MARGIN: f64 = 90.0;
const ROW: f64 = 20.0;
const BAR: f64 = 15.0;
const TITLE: f64 = 30.0;
/// Minimum width of a bar that is labelled with its round.
const LABEL_WIDTH: f64 = 14.0;

/// Difference in hue between consecutive aggregators, in degrees. The golden
/// angle keeps any number of hues apart.
const HUE_STEP: f64 = 137.5;

/// A range of the file in one row.
struct Bar {
    row: Row,
    file: Range<u64>,
    /// Index among the aggregators; `None` where a rank moves its own data.
    aggregator: Option<usize>,
    round: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    Rank(u32),
    Aggregator(usize),
}

/// Draws a plan.
pub fn svg(case: &Case<'_>, plan: &Plan) -> String {
    let mut picture = Picture::new(case.region());
    let owners = match plan {
        Plan::Rounds(rounds) | Plan::Prefetch(rounds) => picture.rounds(case, rounds),
        Plan::Segments(segments) => picture.segments(case, segments),
        Plan::Timed(timed) => picture.timed(case, timed),
        Plan::Individual | Plan::PrivateSieve { .. } => picture.own(case, |_| 0),
    };
    let mut text = String::new();
    let drawn = picture.draw(&mut text, case.accesses.len(), &owners);
    drawn.expect("writing to a string does not fail");
    text
}

struct Picture {
    region: Range<u64>,
    bars: Vec<Bar>,
    is_complete: bool,
}

impl Picture {
    fn new(region: Range<u64>) -> Picture {
        Picture {
            region,
            bars: Vec::new(),
            is_complete: true,
        }
    }

    /// Adds a bar, or extends the row's last one where the two could not be
    /// told apart.
    fn add(&mut self, bar: Bar) {
        let hair = (self.region.end - self.region.start) / WIDTH as u64;
        let last = self.bars.iter_mut().rfind(|last| last.row == bar.row);
        if let Some(last) = last
            && (last.aggregator, last.round) == (bar.aggregator, bar.round)
            && bar.file.start <= last.file.end.saturating_add(hair)
        {
            last.file.end = last.file.end.max(bar.file.end);
            return;
        }
        match self.bars.len() < BARS_MAX {
            true => self.bars.push(bar),
            false => self.is_complete = false,
        }
    }

    fn rounds(&mut self, case: &Case<'_>, rounds: &Rounds) -> Vec<u32> {
        let (mut round, mut after) = (0, 0);
        for scheduled in rounds.schedule(case.accesses) {
            if scheduled.aggregator < after {
                round += 1;
            }
            after = scheduled.aggregator + 1;
            if !self.is_complete {
                break;
            }
            let bar = |row, file| Bar {
                row,
                file,
                aggregator: Some(scheduled.aggregator),
                round,
            };
            for extent in scheduled.window.extents() {
                for rank in rounds.members(scheduled.aggregator, case.ranks()) {
                    let access = &case.accesses[rank as usize];
                    let data = access.data_in(extent.clone());
                    if (rank as usize) < RANKS_MAX && !data.is_empty() {
                        self.add(bar(Row::Rank(rank), span_of(access, data)));
                    }
                }
                if scheduled.aggregator < AGGREGATORS_MAX {
                    self.add(bar(Row::Aggregator(scheduled.aggregator), extent.clone()));
                }
            }
        }
        rounds.aggregators.iter().map(|it| it.rank).collect()
    }

    fn segments(&mut self, case: &Case<'_>, segments: &Segments) -> Vec<u32> {
        for (index, group) in segments.groups.iter().enumerate() {
            for cycle in 0..segments.cycles {
                for rank in &group.members {
                    let access = &case.accesses[*rank as usize];
                    let start = cycle.saturating_mul(segments.segment_bytes);
                    let end = start
                        .saturating_add(segments.segment_bytes)
                        .min(access.len());
                    if start >= end || *rank as usize >= RANKS_MAX {
                        continue;
                    }
                    self.add(Bar {
                        row: Row::Rank(*rank),
                        file: span_of(access, start..end),
                        aggregator: Some(index),
                        round: cycle,
                    });
                }
                if !self.is_complete {
                    break;
                }
            }
        }
        segments.groups.iter().map(|it| it.aggregator).collect()
    }

    fn timed(&mut self, case: &Case<'_>, timed: &Timed) -> Vec<u32> {
        let mut orders = vec![0; case.accesses.len()];
        for groups in &timed.sets {
            for (order, group) in groups.iter().enumerate() {
                group
                    .iter()
                    .for_each(|rank| orders[*rank as usize] = order as u64);
            }
        }
        self.own(case, |rank| orders[rank])
    }

    /// Every rank moves its own data, in a round of its own.
    fn own(&mut self, case: &Case<'_>, round: impl Fn(usize) -> u64) -> Vec<u32> {
        for (rank, access) in case.accesses.iter().enumerate().take(RANKS_MAX) {
            if !access.is_empty() {
                self.add(Bar {
                    row: Row::Rank(rank as u32),
                    file: access.span(),
                    aggregator: None,
                    round: round(rank),
                });
            }
        }
        Vec::new()
    }

    fn draw(&self, out: &mut String, ranks: usize, owners: &[u32]) -> fmt::Result {
        let rank_rows = ranks.min(RANKS_MAX);
        let rows = rank_rows + owners.len().min(AGGREGATORS_MAX);
        let height = TITLE + ROW * (rows as f64 + 2.0);
        let full = WIDTH + MARGIN + 10.0;
        writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {full} {height}\" \
             font-family=\"sans-serif\" font-size=\"11\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
             <text x=\"{MARGIN}\" y=\"18\">bytes {} to {}; colours are aggregators, numbers are \
             rounds{}</text>",
            self.region.start,
            self.region.end,
            if self.is_complete {
                ""
            } else {
                " (the first of many)"
            },
        )?;
        for rank in 0..rank_rows {
            label(out, rank, &format!("rank {rank}"))?;
        }
        for (index, owner) in owners.iter().enumerate().take(AGGREGATORS_MAX) {
            label(out, rank_rows + index, &format!("aggregator {owner}"))?;
        }
        for bar in &self.bars {
            self.draw_bar(out, bar, rank_rows, owners)?;
        }
        writeln!(out, "</svg>")
    }

    fn draw_bar(&self, out: &mut String, bar: &Bar, ranks: usize, owners: &[u32]) -> fmt::Result {
        let scale = WIDTH / (self.region.end - self.region.start).max(1) as f64;
        let x = MARGIN + (bar.file.start - self.region.start) as f64 * scale;
        let width = ((bar.file.end - bar.file.start) as f64 * scale).max(0.5);
        let (row, source) = match bar.row {
            Row::Rank(rank) => (rank as usize, format!("rank {rank}")),
            Row::Aggregator(index) => (ranks + index, "window".to_owned()),
        };
        let y = row_top(row);
        let (colour, target) = match bar.aggregator {
            Some(index) => (
                format!("hsl({:.0},60%,62%)", index as f64 * HUE_STEP % 360.0),
                format!(" to aggregator {}", owners[index]),
            ),
            None => ("hsl(210,15%,72%)".to_owned(), String::new()),
        };
        writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{BAR}\" fill=\"{colour}\" \
             stroke=\"white\" stroke-width=\"0.4\"><title>{source}, bytes {}..{}{target}, round \
             {}</title></rect>",
            bar.file.start, bar.file.end, bar.round
        )?;
        if width < LABEL_WIDTH {
            return Ok(());
        }
        let (middle, baseline) = (x + width / 2.0, y + BAR - 4.0);
        writeln!(
            out,
            "<text x=\"{middle:.1}\" y=\"{baseline}\" text-anchor=\"middle\">{}</text>",
            bar.round
        )
    }
}

/// From the first byte of a range of data bytes to the end of the last.
fn span_of(access: &Access, data: Range<u64>) -> Range<u64> {
    access.offset_of(data.start)..access.offset_of(data.end - 1) + 1
}

fn row_top(row: usize) -> f64 {
    TITLE + ROW * row as f64
}

fn label(out: &mut String, row: usize, text: &str) -> fmt::Result {
    let (x, y) = (MARGIN - 6.0, row_top(row) + BAR - 4.0);
    writeln!(
        out,
        "<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\">{text}</text>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Striping, decide,
        testing::{Fixture, strided},
    };

    #[test]
    fn every_plan_can_be_drawn() {
        let mut fixture = Fixture::new(
            (0..4)
                .map(|rank| strided(rank * 64, 64, 256, 640))
                .collect(),
        );
        fixture.facts.striping = Some(Striping {
            unit: 100,
            count: 3,
        });
        fixture.tuning.aggregators = Some(2);
        fixture.tuning.slice_bytes = Some(300);
        for it in crate::algorithm::ALGORITHMS {
            fixture.tuning.algorithm = Some(it.name().into());
            let case = fixture.case();
            let picture = svg(&case, &decide(&case).plan(&case));
            assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
            for tag in ["text", "rect", "title"] {
                let opened = picture.matches(&format!("<{tag}")).count();
                let closed = picture.matches(&format!("</{tag}>")).count();
                assert!(opened == closed || (tag == "rect" && opened == closed + 1));
            }
            assert!(picture.contains("rank 3"), "{}", it.name());
        }
        fixture.tuning.algorithm = Some("two-phase".into());
        let case = fixture.case();
        let picture = svg(&case, &decide(&case).plan(&case));
        assert!(picture.contains("to aggregator 2, round 4"), "{picture}");
    }

    #[test]
    fn pictures_of_large_plans_stay_small() {
        let accesses = (0..100).map(|rank| strided(rank * 8, 8, 800, 8 << 20));
        let fixture = Fixture::new(accesses.collect());
        let case = fixture.case();
        let picture = svg(&case, &decide(&case).plan(&case));
        assert!(picture.len() < 400 * BARS_MAX);
    }
}
