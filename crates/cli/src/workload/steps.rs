//! Time steps for persistent realms (Coloma 2006, section 6.4): all steps of a data point side by
//! side, so that each call is sparse and the calls together fill the file.

use pario_layout::{Basic, Datatype, TypeError};

use super::{Job, Parameter, Piece, Setting, Step, Workload, signed};

/// Variables of a data point and their bytes.
const VARIABLES: u64 = 100;
const VARIABLE: u64 = 32;

/// Time steps at scale 1; the paper has 32.
const STEPS: u64 = 16;

/// See the module.
pub(crate) struct Steps;

impl Workload for Steps {
    fn name(&self) -> &'static str {
        "steps"
    }

    fn about(&self) -> &'static str {
        "time steps of a point side by side, sparse calls; Coloma 2006 is points=2048,steps=32"
    }

    fn parameters(&self) -> &'static [Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter::new("points", "data points of all ranks"),
            Parameter::new("steps", "time steps, a call each"),
            Parameter::new("variables", "variables of 32 bytes of a data point"),
        ];
        PARAMETERS
    }

    fn job(&self, setting: &Setting) -> Result<Box<dyn Job>, String> {
        let choices = &setting.parameters;
        let ranks = u64::from(setting.ranks);
        let steps = choices.number("steps", STEPS)?;
        let variables = choices.number("variables", VARIABLES)?;
        setting.check_bytes(&[variables, VARIABLE, steps])?;
        let record = variables * VARIABLE;
        let points = setting.items(record * steps) * ranks;
        let points = choices.number("points", points)?.div_ceil(ranks);
        setting.check_bytes(&[record, points, steps])?;
        Ok(Box::new(TimeSteps {
            ranks,
            record,
            points,
            steps,
        }))
    }
}

struct TimeSteps {
    ranks: u64,
    /// Bytes of a data point in one step.
    record: u64,
    /// Points of a rank.
    points: u64,
    steps: u64,
}

impl TimeSteps {
    fn place(&self, rank: u32, point: u64, step: u64) -> u64 {
        ((point * self.ranks + u64::from(rank)) * self.steps + step) * self.record
    }
}

impl Job for TimeSteps {
    fn sizes(&self) -> String {
        let TimeSteps {
            record,
            points,
            steps,
            ..
        } = self;
        format!("{steps} steps of {points} points of {record} bytes a rank")
    }

    fn calls(&self) -> u64 {
        self.steps
    }

    fn step(&self, rank: u32, call: u64) -> Result<Step, TypeError> {
        let byte = Datatype::basic(Basic::Byte);
        let record = Datatype::contiguous(self.record, &byte)?;
        let stride = signed(self.record * self.steps * self.ranks);
        let filetype = Datatype::resized(&record, 0, stride)?;
        let bytes = self.points * self.record;
        Ok(Step::dense(
            self.place(rank, 0, call),
            &byte,
            &filetype,
            bytes,
        ))
    }

    fn pieces(&self, rank: u32, call: u64, each: &mut dyn FnMut(Piece)) {
        for point in 0..self.points {
            each(Piece {
                file: self.place(rank, point, call),
                memory: point * self.record,
                bytes: self.record,
            });
        }
    }
}
