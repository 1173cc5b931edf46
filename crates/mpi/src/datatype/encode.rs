//! Makes datatypes of the host, with the host's own constructors.

#![allow(unsafe_code)] // Calls constructors of the host by their names.

use std::error::Error;
use std::ffi::{c_int, c_void};
use std::fmt;

use pario_layout::{Basic, Contents, Darray, Distribution, Order};

use crate::error::MpiError;
use crate::handles::Datatype;
use crate::host::Host;
use crate::host::abi::{Slot, Slots};

/// Why a datatype cannot be made with the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// A function of the host failed.
    Mpi(MpiError),
    /// The host lacks a predefined type.
    NoBasic(Basic),
    /// The host lacks a constructor.
    NoFunction(&'static str),
    /// A number exceeds the range of the constructor.
    TooLarge(u64),
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mpi(error) => error.fmt(f),
            Self::NoBasic(basic) => write!(f, "the MPI has no datatype {}", basic.name()),
            Self::NoFunction(name) => write!(f, "the MPI has no function {name}"),
            Self::TooLarge(number) => write!(
                f,
                "{number} is more than constructors of datatypes take, which is {}",
                c_int::MAX
            ),
        }
    }
}

impl Error for EncodeError {}

impl From<MpiError> for EncodeError {
    fn from(error: MpiError) -> Self {
        Self::Mpi(error)
    }
}

/// A datatype of the host; freed when dropped, which must happen before the MPI ends.
#[derive(Debug)]
pub struct Encoded<'a> {
    host: &'a Host,
    datatype: Datatype,
    origin: Origin,
}

/// Who frees a datatype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// Nothing: it is predefined.
    Predefined,
    /// This library, which made it.
    Made,
}

impl Encoded<'_> {
    /// The host's handle.
    pub fn handle(&self) -> Datatype {
        self.datatype
    }
}

impl Drop for Encoded<'_> {
    fn drop(&mut self) {
        if self.origin == Origin::Made {
            // The handle is valid; there is nowhere to report an error.
            let _ = self.host.type_free(self.datatype);
        }
    }
}

impl Host {
    /// A committed datatype of the host, made by the same constructors with the same arguments.
    /// If the host gives a structure other bounds, they are set to those of `datatype`.
    pub fn encode(&self, datatype: &pario_layout::Datatype) -> Result<Encoded<'_>, EncodeError> {
        let mut made: Vec<Encoded<'_>> = Vec::new();
        for (datatype, contents) in datatype.contents() {
            let maker = Encoder {
                host: self,
                parts: &made,
            };
            let one = maker.make(&contents)?;
            made.push(with_bounds_of(datatype, one)?);
        }
        let last = made.pop().expect("the list ends with the datatype itself");
        if last.origin == Origin::Made {
            self.type_commit(last.datatype)?;
        }
        Ok(last)
    }
}

/// The same datatype with the bounds of another one.
fn with_bounds_of<'a>(
    datatype: &pario_layout::Datatype,
    made: Encoded<'a>,
) -> Result<Encoded<'a>, EncodeError> {
    let host = made.host;
    let (lower_bound, extent) = (datatype.lower_bound(), datatype.extent());
    match host.type_extent(made.datatype)? == (lower_bound, extent) {
        true => Ok(made),
        false => Encoder { host, parts: &[] }.resized(lower_bound, extent, made.datatype),
    }
}

/// Calls a constructor of the host: its name, and its arguments with their types; the address
/// of the new handle is added at the end.
macro_rules! construct {
    ($maker:expr, $name:literal, $($argument:expr => $type:ty),* $(,)?) => {{
        let host = $maker.host;
        let address = host.function($name);
        let address = address.ok_or(EncodeError::NoFunction(concat!("MPI_", $name)))?;
        type Function = unsafe extern "C" fn($($type,)* *mut c_void) -> c_int;
        // SAFETY: the signature is the standard's, except for handles, which are 64 bits in a
        // register (see `host::functions`).
        let function = unsafe { std::mem::transmute::<*mut c_void, Function>(address) };
        let mut slot = Slot::new(host.flavour(), 0);
        // SAFETY: handles are valid, and arrays have the lengths that are passed.
        let code = unsafe { function($($argument,)* slot.pointer()) };
        host.check(concat!("MPI_", $name), code)?;
        Ok($maker.own(Datatype(slot.handle())))
    }};
}

/// Applies constructors to datatypes that have been made already.
struct Encoder<'a, 'b> {
    host: &'a Host,
    parts: &'b [Encoded<'a>],
}

impl<'a> Encoder<'a, '_> {
    fn own(&self, datatype: Datatype) -> Encoded<'a> {
        Encoded {
            host: self.host,
            datatype,
            origin: Origin::Made,
        }
    }

    fn make(&self, contents: &Contents<'_>) -> Result<Encoded<'a>, EncodeError> {
        let part = |of: &usize| self.parts[*of].datatype;
        match contents {
            Contents::Basic(basic) => self.basic(*basic),
            Contents::Contiguous { count, of } => {
                let made = self.host.type_contiguous(int(*count)?, part(of))?;
                Ok(self.own(made))
            }
            Contents::Vector {
                count,
                block_length,
                stride,
                of,
            } => construct!(self, "Type_vector", int(*count)? => c_int,
                int(*block_length)? => c_int, signed(*stride)? => c_int, part(of).0 => u64),
            Contents::Hvector {
                count,
                block_length,
                stride,
                of,
            } => construct!(self, "Type_create_hvector", int(*count)? => c_int,
                int(*block_length)? => c_int, *stride => i64, part(of).0 => u64),
            Contents::Indexed { blocks, of } => {
                let lengths = ints(blocks.iter().map(|(length, _)| *length))?;
                let places = blocks.iter().map(|(_, place)| signed(*place));
                let places: Vec<c_int> = places.collect::<Result<_, _>>()?;
                construct!(self, "Type_indexed", length(&lengths)? => c_int,
                    lengths.as_ptr() => *const c_int, places.as_ptr() => *const c_int,
                    part(of).0 => u64)
            }
            Contents::Hindexed { blocks, of } => {
                let lengths = ints(blocks.iter().map(|(length, _)| *length))?;
                let places: Vec<i64> = blocks.iter().map(|(_, place)| *place).collect();
                construct!(self, "Type_create_hindexed", length(&lengths)? => c_int,
                    lengths.as_ptr() => *const c_int, places.as_ptr() => *const i64,
                    part(of).0 => u64)
            }
            Contents::Structure { members } => self.structure(members),
            Contents::Subarray {
                sizes,
                subsizes,
                starts,
                order,
                of,
            } => {
                let each = |numbers: &[u64]| ints(numbers.iter().copied());
                let (sizes, subsizes, starts) = (each(sizes)?, each(subsizes)?, each(starts)?);
                construct!(self, "Type_create_subarray", length(&sizes)? => c_int,
                    sizes.as_ptr() => *const c_int, subsizes.as_ptr() => *const c_int,
                    starts.as_ptr() => *const c_int, self.order(*order) => c_int,
                    part(of).0 => u64)
            }
            Contents::Darray { array, of } => self.darray(array, part(of)),
            Contents::Resized {
                lower_bound,
                extent,
                of,
            } => self.resized(*lower_bound, *extent, part(of)),
        }
    }

    fn basic(&self, basic: Basic) -> Result<Encoded<'a>, EncodeError> {
        let missing = EncodeError::NoBasic(basic);
        let datatype = self.host.named_type(basic.name()).ok_or(missing.clone())?;
        // Hosts may have handles of types that they were built without.
        if self.host.type_size(datatype)? != basic.size() {
            return Err(missing);
        }
        Ok(Encoded {
            host: self.host,
            datatype,
            origin: Origin::Predefined,
        })
    }

    fn structure(&self, members: &[(u64, i64, usize)]) -> Result<Encoded<'a>, EncodeError> {
        let lengths = ints(members.iter().map(|(length, ..)| *length))?;
        let places: Vec<i64> = members.iter().map(|(_, place, _)| *place).collect();
        let parts = members.iter().map(|(.., of)| self.parts[*of].datatype.0);
        let mut types = Slots::new(self.host.flavour(), parts);
        construct!(self, "Type_create_struct", length(&lengths)? => c_int,
            lengths.as_ptr() => *const c_int, places.as_ptr() => *const i64,
            types.pointer() => *mut c_void)
    }

    fn darray(&self, array: &Darray, of: Datatype) -> Result<Encoded<'a>, EncodeError> {
        let sizes = ints(array.sizes.iter().copied())?;
        let grid = ints(array.grid.iter().copied())?;
        let distributions = array.distributions.iter().map(|it| self.distribution(*it));
        let distributions: Vec<_> = distributions.collect::<Result<_, _>>()?;
        let (kinds, parameters): (Vec<c_int>, Vec<c_int>) = distributions.into_iter().unzip();
        construct!(self, "Type_create_darray", int(array.ranks)? => c_int,
            int(array.rank)? => c_int, length(&sizes)? => c_int,
            sizes.as_ptr() => *const c_int, kinds.as_ptr() => *const c_int,
            parameters.as_ptr() => *const c_int, grid.as_ptr() => *const c_int,
            self.order(array.order) => c_int, of.0 => u64)
    }

    fn resized(
        &self,
        lower_bound: i64,
        extent: i64,
        of: Datatype,
    ) -> Result<Encoded<'a>, EncodeError> {
        construct!(self, "Type_create_resized", of.0 => u64, lower_bound => i64, extent => i64)
    }

    /// How a dimension is distributed, and its block length or the default.
    fn distribution(&self, distribution: Distribution) -> Result<(c_int, c_int), EncodeError> {
        let constants = self.host.constants();
        let (kind, block) = match distribution {
            Distribution::Block(block) => (constants.distribute_block, block),
            Distribution::Cyclic(block) => (constants.distribute_cyclic, block),
            Distribution::None => (constants.distribute_none, None),
        };
        let block = block.map(int).transpose()?;
        Ok((kind, block.unwrap_or(constants.distribute_dflt_darg)))
    }

    fn order(&self, order: Order) -> c_int {
        match order {
            Order::C => self.host.constants().order_c,
            Order::Fortran => self.host.constants().order_fortran,
        }
    }
}

fn int(number: u64) -> Result<c_int, EncodeError> {
    c_int::try_from(number).map_err(|_| EncodeError::TooLarge(number))
}

fn signed(number: i64) -> Result<c_int, EncodeError> {
    c_int::try_from(number).map_err(|_| EncodeError::TooLarge(number.unsigned_abs()))
}

fn ints(numbers: impl Iterator<Item = u64>) -> Result<Vec<c_int>, EncodeError> {
    numbers.map(int).collect()
}

fn length<T>(list: &[T]) -> Result<c_int, EncodeError> {
    int(list.len() as u64)
}
