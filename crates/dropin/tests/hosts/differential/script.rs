//! Cases as the C program reads them: words separated by blanks, one step per line, a file per rank.

use std::fmt::Write as _;

use super::case::{Access, Case, Communicator, Direction, Family, Hints, How, Scope, Step, Whence};
use super::datatype::{Datatype, Distribution, Leaf, Order, Unit};

/// A case for one rank, under a number.
pub(super) fn of_rank(case: &Case, number: usize, rank: usize) -> String {
    let mut text = format!("case {number} {}", communicator(case.communicator));
    let (bytes, salt) = case.fill.as_ref().map_or((-1, 0), |it| (it.bytes, it.salt));
    let shared = u8::from(case.asks_shared);
    let _ = writeln!(
        text,
        " {bytes} {salt} {shared} {} {}",
        case.open.mode.0,
        hints(&case.open.hints)
    );
    for it in &case.steps {
        text += &step(it, rank);
        text.push('\n');
    }
    text += "end\n";
    text
}

fn communicator(it: Communicator) -> &'static str {
    match it {
        Communicator::World => "world",
        Communicator::Own => "self",
        Communicator::Dup => "dup",
        Communicator::Halves => "halves",
        Communicator::Reversed => "reversed",
    }
}

fn hints(hints: &Hints) -> String {
    let mut text = hints.len().to_string();
    for (key, value) in hints {
        let _ = write!(text, " {key} {value}");
    }
    text
}

fn step(step: &Step, rank: usize) -> String {
    match step {
        Step::View(views, info) => {
            let view = &views[rank];
            format!(
                "view {} {} {} {}",
                view.displacement,
                datatype(&view.etype),
                datatype(&view.filetype),
                hints(info)
            )
        }
        Step::Access(it) => access(it, rank),
        Step::Complete(method) => format!("complete {method}"),
        Step::SplitEnd => "split_end".into(),
        Step::Seek(seeks) => {
            let (offset, from) = seeks[rank];
            format!("seek {offset} {}", whence(from))
        }
        Step::SeekShared(offset, from) => format!("seek_shared {offset} {}", whence(*from)),
        Step::SetSize(size) => format!("set_size {size}"),
        Step::Preallocate(size) => format!("preallocate {size}"),
        Step::Sync => "sync".into(),
        Step::Atomicity(is_atomic) => format!("atomicity {}", u8::from(*is_atomic)),
        Step::Info(info) => format!("info {}", hints(info)),
        Step::Extent(of) => format!("extent {}", datatype(of)),
        Step::Reopen(open) => format!("reopen {} {}", open.mode.0, hints(&open.hints)),
    }
}

fn whence(from: Whence) -> char {
    match from {
        Whence::Set => 's',
        Whence::Current => 'c',
        Whence::End => 'e',
    }
}

fn access(it: &Access, rank: usize) -> String {
    let part = &it.parts[rank];
    let memory = part.memory();
    let direction = match it.direction {
        Direction::Read => 'r',
        Direction::Write => 'w',
    };
    let family = match it.family {
        Family::Explicit => 0,
        Family::Individual => 1,
        Family::Shared => 2,
    };
    let scope = u8::from(it.scope == Scope::Collective);
    let how = match it.how {
        How::Blocking => 0,
        How::Nonblocking => 1,
        How::Split => 2,
    };
    format!(
        "access {direction} {family} {scope} {how} {} {} {} {} {} {} {} {} {}",
        u8::from(part.is_active),
        part.offset,
        part.count,
        datatype(&part.memory),
        u8::from(part.is_absolute),
        u8::from(part.is_large),
        memory.bytes,
        memory.origin,
        part.salt
    )
}

fn leaf(leaf: Leaf) -> char {
    match leaf {
        Leaf::Byte => 'b',
        Leaf::Char => 'c',
        Leaf::Short => 's',
        Leaf::Int => 'i',
        Leaf::Float => 'f',
        Leaf::Double => 'd',
        Leaf::LongLong => 'l',
    }
}

fn words(numbers: &[i64]) -> String {
    let words: Vec<String> = numbers.iter().map(i64::to_string).collect();
    words.join(" ")
}

fn initial(unit: Unit) -> &'static str {
    match unit {
        Unit::Elements => "",
        Unit::Bytes => "h",
    }
}

fn order(order: Order) -> char {
    match order {
        Order::C => 'C',
        Order::Fortran => 'F',
    }
}

/// A datatype in prefix notation.
pub(super) fn datatype(it: &Datatype) -> String {
    match it {
        Datatype::Basic(it) => leaf(*it).to_string(),
        Datatype::Contiguous(count, of) => format!("contiguous {count} {}", datatype(of)),
        Datatype::Vector {
            count,
            length,
            stride,
            unit,
            of,
        } => {
            let initial = initial(*unit);
            format!("{initial}vector {count} {length} {stride} {}", datatype(of))
        }
        Datatype::Indexed { blocks, unit, of } => {
            let (lengths, places): (Vec<i64>, Vec<i64>) = blocks.iter().copied().unzip();
            format!(
                "{}indexed {} {} {} {}",
                initial(*unit),
                blocks.len(),
                words(&lengths),
                words(&places),
                datatype(of)
            )
        }
        Datatype::IndexedBlock {
            length,
            displacements,
            unit,
            of,
        } => format!(
            "{}indexed_block {} {length} {} {}",
            initial(*unit),
            displacements.len(),
            words(displacements),
            datatype(of)
        ),
        Datatype::Struct(fields) => {
            let mut text = format!("struct {}", fields.len());
            for field in fields {
                let (length, place) = (field.length, field.displacement);
                let _ = write!(text, " {length} {place} {}", datatype(&field.datatype));
            }
            text
        }
        Datatype::Subarray {
            sizes,
            parts,
            starts,
            order: it,
            of,
        } => format!(
            "subarray {} {} {} {} {} {}",
            sizes.len(),
            order(*it),
            words(sizes),
            words(parts),
            words(starts),
            datatype(of)
        ),
        Datatype::Darray {
            size,
            rank,
            dimensions,
            order: it,
            of,
        } => {
            let mut text = format!("darray {size} {rank} {} {}", dimensions.len(), order(*it));
            for it in dimensions {
                let distribution = match it.distribution {
                    Distribution::Block => 'b',
                    Distribution::Cyclic => 'c',
                    Distribution::None => 'n',
                };
                let _ = write!(
                    text,
                    " {} {distribution} {} {}",
                    it.size, it.argument, it.grid
                );
            }
            format!("{text} {}", datatype(of))
        }
        Datatype::Resized { low, extent, of } => {
            format!("resized {low} {extent} {}", datatype(of))
        }
        Datatype::Dup(of) => format!("dup {}", datatype(of)),
    }
}
