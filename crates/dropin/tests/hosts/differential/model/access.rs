//! Accesses: what moves, and whether there is one right answer.

use std::collections::HashSet;

use super::{Legal, Model, Pending, Rejected};
use crate::differential::case::{Access, Direction, Family, How, Memory, Part, Scope, pattern};
use crate::differential::record::{self, Value};

/// What one rank moves.
struct Transfer {
    rank: usize,
    memory: Memory,
    offsets: Vec<i64>,
}

impl Model {
    pub(super) fn access(&mut self, access: &Access) -> Legal {
        if access.scope == Scope::Collective && access.parts.iter().any(|part| !part.is_active) {
            return Err(Rejected("all ranks take part in a collective call"));
        }
        if access.family == Family::Shared && !self.has_equal_views() {
            return Err(Rejected("shared pointers need equal views"));
        }
        if access.family == Family::Shared
            && access.scope == Scope::Collective
            && access.how == How::Nonblocking
        {
            return Err(Rejected("there is no such call"));
        }
        if access.scope == Scope::Independent && access.how == How::Split {
            return Err(Rejected("there is no such call"));
        }
        let mut errors = self.errors(access);
        match (errors.next(), errors.next()) {
            (None, _) => {}
            (Some(_), None) if access.how != How::Blocking && access.scope == Scope::Collective => {
                return Err(Rejected("the call or its completion may return the error"));
            }
            (Some(class), None) => {
                self.fail(access, class);
                return Ok(());
            }
            (Some(_), Some(_)) => return Err(Rejected("it is wrong in two ways")),
        }
        for group in 0..self.groups.len() {
            self.access_in(group, access)?;
        }
        if access.how != How::Blocking {
            self.is_busy = true;
            self.is_split = access.how == How::Split;
        }
        Ok(())
    }

    /// The classes of what is wrong with an access.
    fn errors(&self, access: &Access) -> impl Iterator<Item = &'static str> + use<> {
        let is_negative = |part: &Part| access.family == Family::Explicit && part.offset < 0;
        let errors = [
            (
                access.direction == Direction::Read && self.may('w'),
                "ACCESS",
            ),
            (
                access.direction == Direction::Write && self.may('r'),
                "READ_ONLY",
            ),
            (
                access.family != Family::Shared && self.may('s'),
                "UNSUPPORTED_OPERATION",
            ),
            (access.parts.iter().all(is_negative), "ARG"),
        ];
        let found = errors.into_iter().filter(|(is_wrong, _)| *is_wrong);
        found.map(|(_, class)| class)
    }

    /// The call returns an error at once, whatever its kind, and nothing happens.
    fn fail(&mut self, access: &Access, class: &str) {
        for (rank, part) in access.parts.iter().enumerate() {
            if part.is_active {
                self.put(rank, "class", class);
                let memory = untouched(part, part.memory().bytes);
                self.put(rank, "memory", record::bytes(&memory));
            }
        }
    }

    fn access_in(&mut self, group: usize, access: &Access) -> Legal {
        let transfers = self.transfers(group, access)?;
        self.is_deterministic(group, access, &transfers)?;
        for transfer in transfers {
            self.move_data(group, access, transfer);
        }
        Ok(())
    }

    /// What each rank moves; pointers go on.
    fn transfers(&mut self, group: usize, access: &Access) -> Result<Vec<Transfer>, Rejected> {
        let mut ranks = self.groups[group].members.clone();
        if access.scope == Scope::Independent {
            // Ranks of independent shared accesses take turns in the order of the world.
            ranks.sort_unstable();
        }
        let mut transfers = Vec::new();
        for rank in ranks {
            let part = &access.parts[rank];
            if !part.is_active {
                continue;
            }
            let memory = part.memory();
            let bytes = memory.places.len() as i64;
            let etype = self.ranks[rank].window.etype;
            if bytes % etype != 0 || part.offset < 0 {
                return Err(Rejected(
                    "whole etypes are moved, from the start of the view on",
                ));
            }
            let pointer = match access.family {
                Family::Explicit => &mut part.offset.clone(),
                Family::Individual => &mut self.ranks[rank].position,
                Family::Shared => &mut self.groups[group].shared,
            };
            let position = *pointer;
            *pointer += bytes / etype;
            let window = &self.ranks[rank].window;
            let offsets = window.offsets(position * window.etype, bytes);
            transfers.push(Transfer {
                rank,
                memory,
                offsets,
            });
        }
        Ok(transfers)
    }

    /// Whether the order in which ranks and pending accesses reach the file does not matter.
    fn is_deterministic(&self, group: usize, access: &Access, transfers: &[Transfer]) -> Legal {
        let pending = self.groups[group].members.iter();
        let pending: Vec<&Pending> = pending
            .flat_map(|rank| &self.ranks[*rank].pending)
            .collect();
        let size = self.groups[group].contents.as_ref().map_or(0, Vec::len) as i64;
        let sizes = pending.iter().map(|other| other.size);
        let size = sizes.fold(size, i64::min);
        let mine: Vec<i64> = transfers
            .iter()
            .flat_map(|transfer| transfer.offsets.iter().copied())
            .collect();
        if access.direction == Direction::Write && has_repeats(mine.clone()) {
            return Err(Rejected("writes overlap"));
        }
        let set: HashSet<i64> = mine.iter().copied().collect();
        let is_past_end = mine.iter().any(|offset| *offset >= size);
        for other in pending {
            if access.direction == Direction::Read && other.direction == Direction::Read {
                continue;
            }
            if other.offsets.iter().any(|offset| set.contains(offset)) {
                return Err(Rejected("a pending access uses the same bytes"));
            }
            if is_past_end && (other.is_short || other.is_growing) {
                return Err(Rejected("the end of the file is moving"));
            }
        }
        for transfer in transfers {
            if access.direction == Direction::Read && has_repeats(transfer.memory.places.clone()) {
                return Err(Rejected("a byte of memory is read twice"));
            }
        }
        Ok(())
    }

    fn move_data(&mut self, group: usize, access: &Access, transfer: Transfer) {
        let Transfer {
            rank,
            memory,
            offsets,
        } = transfer;
        let part = &access.parts[rank];
        let mut bytes = untouched(part, memory.bytes);
        let contents = self.groups[group].contents.get_or_insert_default();
        let size = contents.len() as i64;
        let is_growing =
            access.direction == Direction::Write && offsets.iter().any(|offset| *offset >= size);
        let moved = match access.direction {
            Direction::Write => {
                for (place, offset) in memory.places.iter().zip(&offsets) {
                    let offset = *offset as usize;
                    if contents.len() <= offset {
                        contents.resize(offset + 1, 0);
                    }
                    contents[offset] = bytes[*place as usize];
                }
                offsets.len()
            }
            Direction::Read => {
                let pairs = memory.places.iter().zip(&offsets);
                let mut moved = 0;
                for (place, offset) in pairs.take_while(|(_, offset)| **offset < size) {
                    bytes[*place as usize] = contents[*offset as usize];
                    moved += 1;
                }
                moved
            }
        };
        self.is_short |= moved < offsets.len();
        let mut values = counts(part, moved as i64);
        values.push(("memory", Value::Word(record::bytes(&bytes))));
        self.put(rank, "class", "success");
        let step = self.step;
        if access.how == How::Blocking {
            for (key, value) in values {
                self.ranks[rank].values.insert((step, key.into()), value);
            }
        } else {
            self.ranks[rank].pending.push(Pending {
                step,
                direction: access.direction,
                is_short: moved < offsets.len(),
                is_growing,
                size,
                offsets,
                values,
            });
        }
    }
}

fn has_repeats(mut numbers: Vec<i64>) -> bool {
    numbers.sort_unstable();
    numbers.windows(2).any(|pair| pair[0] == pair[1])
}

fn untouched(part: &Part, bytes: i64) -> Vec<u8> {
    (0..bytes).map(|at| pattern(part.salt, at)).collect()
}

/// What a status says after this many bytes.
fn counts(part: &Part, moved: i64) -> Vec<(&'static str, Value)> {
    let mut item = part.memory.layout().size();
    if part.is_absolute {
        item *= part.count;
    }
    let leaf = part.memory.leaf().bytes();
    let exact = |unit: i64| match unit {
        // What counts of empty types mean is undefined.
        0 => Value::Open,
        unit if moved % unit == 0 => Value::Word((moved / unit).to_string()),
        _ => Value::Word("-1".into()),
    };
    let mut values = vec![
        ("count", exact(item)),
        ("bytes", Value::Word(moved.to_string())),
    ];
    // The program asks for elements only where no host aborts.
    if moved > 0 && moved % leaf == 0 && !part.memory.has_darray() {
        values.push(("elements", exact(leaf.min(item))));
    }
    values
}
