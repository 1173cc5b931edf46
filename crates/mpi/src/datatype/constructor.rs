//! Applies the host's constructors.

use std::ffi::c_int;

use pario_layout::{Basic, Darray, Datatype, Distribution, Order};

use super::DecodeError;
use super::contents::{Arguments, Displacements};
use super::named;
use crate::host::combiner::Combiner;
use crate::host::{Contents, Host};

/// A constructor of the host with its inner datatypes.
pub(super) struct Constructor<'a> {
    pub(super) host: &'a Host,
    pub(super) combiner: Combiner,
    /// The size of the type according to the host.
    pub(super) size: u64,
    pub(super) parts: &'a [Datatype],
}

impl Constructor<'_> {
    pub(super) fn apply(&self, contents: &Contents) -> Result<Datatype, DecodeError> {
        let displacements = match self.combiner {
            Combiner::HvectorInteger | Combiner::HindexedInteger | Combiner::StructInteger => {
                Displacements::Integers
            }
            _ => Displacements::Addresses,
        };
        let arguments = Arguments::new(contents, displacements);
        match self.combiner {
            Combiner::Named => Err(self.malformed()),
            Combiner::Dup => self.part().cloned(),
            Combiner::Contiguous => self.contiguous(arguments),
            Combiner::Vector | Combiner::Hvector | Combiner::HvectorInteger => {
                self.vector(arguments)
            }
            Combiner::Indexed | Combiner::Hindexed | Combiner::HindexedInteger => {
                self.indexed(arguments)
            }
            Combiner::IndexedBlock | Combiner::HindexedBlock => self.indexed_block(arguments),
            Combiner::Struct | Combiner::StructInteger => self.structure(arguments),
            Combiner::Subarray => self.subarray(arguments),
            Combiner::Darray => self.darray(arguments),
            Combiner::Resized => self.resized(arguments),
            Combiner::F90Real => self.sized(named::REALS),
            Combiner::F90Complex => self.sized(named::COMPLEXES),
            Combiner::F90Integer => self.sized(named::INTEGERS),
            Combiner::ValueIndex => match self.parts {
                [value, index] => Ok(named::value_and_index(value, index)?),
                _ => Err(self.malformed()),
            },
        }
    }

    fn malformed(&self) -> DecodeError {
        DecodeError::Malformed(Some(self.combiner))
    }

    /// A required argument.
    fn given<T>(&self, argument: Option<T>) -> Result<T, DecodeError> {
        argument.ok_or_else(|| self.malformed())
    }

    /// The only inner datatype.
    fn part(&self) -> Result<&Datatype, DecodeError> {
        self.given(self.parts.first())
    }

    fn contiguous(&self, mut arguments: Arguments<'_>) -> Result<Datatype, DecodeError> {
        let count = self.given(arguments.length())?;
        Ok(Datatype::contiguous(count, self.part()?)?)
    }

    fn vector(&self, mut arguments: Arguments<'_>) -> Result<Datatype, DecodeError> {
        let count = self.given(arguments.length())?;
        let block_length = self.given(arguments.length())?;
        let of = self.part()?;
        Ok(match self.combiner {
            Combiner::Vector => {
                Datatype::vector(count, block_length, self.given(arguments.count())?, of)?
            }
            _ => Datatype::hvector(count, block_length, self.given(arguments.bytes())?, of)?,
        })
    }

    fn indexed(&self, mut arguments: Arguments<'_>) -> Result<Datatype, DecodeError> {
        let count = self.given(arguments.length())? as usize;
        let lengths = self.given(arguments.lengths(count))?;
        let of = self.part()?;
        let with = |displacements: Vec<i64>| -> Vec<(u64, i64)> {
            lengths.into_iter().zip(displacements).collect()
        };
        Ok(match self.combiner {
            Combiner::Indexed => {
                Datatype::indexed(&with(self.given(arguments.counts(count))?), of)?
            }
            _ => Datatype::hindexed(&with(self.given(arguments.bytes_each(count))?), of)?,
        })
    }

    fn indexed_block(&self, mut arguments: Arguments<'_>) -> Result<Datatype, DecodeError> {
        let count = self.given(arguments.length())? as usize;
        let length = self.given(arguments.length())?;
        let of = self.part()?;
        Ok(match self.combiner {
            Combiner::IndexedBlock => {
                Datatype::indexed_block(length, &self.given(arguments.counts(count))?, of)?
            }
            _ => Datatype::hindexed_block(length, &self.given(arguments.bytes_each(count))?, of)?,
        })
    }

    fn structure(&self, mut arguments: Arguments<'_>) -> Result<Datatype, DecodeError> {
        let count = self.given(arguments.length())? as usize;
        let lengths = self.given(arguments.lengths(count))?;
        let displacements = self.given(arguments.bytes_each(count))?;
        if self.parts.len() != count {
            return Err(self.malformed());
        }
        let members = lengths.into_iter().zip(displacements).zip(self.parts);
        let members: Vec<_> = members
            .map(|((length, displacement), of)| (length, displacement, of.clone()))
            .collect();
        Ok(Datatype::structure(&members)?)
    }

    fn subarray(&self, mut arguments: Arguments<'_>) -> Result<Datatype, DecodeError> {
        let dimensions = self.dimensions(&mut arguments)?;
        let sizes = self.given(arguments.lengths(dimensions))?;
        let subsizes = self.given(arguments.lengths(dimensions))?;
        let starts = self.given(arguments.lengths(dimensions))?;
        let order = self.order(arguments.integer())?;
        Ok(Datatype::subarray(
            &sizes,
            &subsizes,
            &starts,
            order,
            self.part()?,
        )?)
    }

    fn darray(&self, mut arguments: Arguments<'_>) -> Result<Datatype, DecodeError> {
        let processes = self.given(arguments.integer())?;
        let rank = self.given(arguments.integer())?;
        let dimensions = self.dimensions(&mut arguments)?;
        let array_sizes = self.given(arguments.lengths(dimensions))?;
        let distributions = self.given(arguments.integers(dimensions))?;
        let parameters = self.given(arguments.integers(dimensions))?;
        let grid = self.given(arguments.integers(dimensions))?;
        let order = self.order(arguments.integer())?;
        let count = |&number: &c_int| self.given(u64::try_from(number).ok());
        let distribution = |(&kind, &parameter)| self.distribution(kind, parameter);
        let array = Darray {
            ranks: count(&processes)?,
            rank: count(&rank)?,
            sizes: array_sizes,
            distributions: distributions
                .iter()
                .zip(parameters)
                .map(distribution)
                .collect::<Result<_, _>>()?,
            grid: grid.iter().map(count).collect::<Result<_, _>>()?,
            order,
        };
        Ok(Datatype::darray(&array, self.part()?)?)
    }

    /// How a dimension is distributed; the parameter is a block length or the default.
    fn distribution(&self, kind: c_int, parameter: c_int) -> Result<Distribution, DecodeError> {
        let constants = self.host.constants();
        if kind == constants.distribute_none {
            return Ok(Distribution::None);
        }
        let block = match parameter == constants.distribute_dflt_darg {
            true => None,
            false => Some(self.given(u64::try_from(parameter).ok())?),
        };
        match kind {
            _ if kind == constants.distribute_block => Ok(Distribution::Block(block)),
            _ if kind == constants.distribute_cyclic => Ok(Distribution::Cyclic(block)),
            _ => Err(self.malformed()),
        }
    }

    fn resized(&self, mut arguments: Arguments<'_>) -> Result<Datatype, DecodeError> {
        let lower_bound = self.given(arguments.bytes())?;
        let extent = self.given(arguments.bytes())?;
        Ok(Datatype::resized(self.part()?, lower_bound, extent)?)
    }

    /// The number of dimensions of an array.
    fn dimensions(&self, arguments: &mut Arguments<'_>) -> Result<usize, DecodeError> {
        let count = self.given(arguments.integer())?;
        usize::try_from(count).map_err(|_| self.malformed())
    }

    fn order(&self, number: Option<c_int>) -> Result<Order, DecodeError> {
        let constants = self.host.constants();
        match number {
            Some(number) if number == constants.order_c => Ok(Order::C),
            Some(number) if number == constants.order_fortran => Ok(Order::Fortran),
            _ => Err(self.malformed()),
        }
    }

    /// The one of several basic types that has the size of this type.
    fn sized(&self, kinds: &[Basic]) -> Result<Datatype, DecodeError> {
        let kind = kinds.iter().find(|kind| kind.size() == self.size);
        Ok(self.given(kind.copied())?.into())
    }
}
