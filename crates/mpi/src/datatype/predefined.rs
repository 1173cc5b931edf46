//! The layouts of predefined datatypes, which every data access looks up.

use std::sync::OnceLock;

use pario_layout::Datatype as Layout;

use crate::handles::Datatype;

/// More than hosts have: about a hundred, and those that programs parametrise.
const SLOTS: usize = 512;

/// A hash table that only grows, so that looking up takes no lock. A type for which there is
/// no space is decoded again when it is used again.
#[derive(Debug)]
pub(super) struct PredefinedTypes {
    slots: Box<[OnceLock<(Datatype, Layout)>; SLOTS]>,
}

impl Default for PredefinedTypes {
    fn default() -> Self {
        Self {
            slots: Box::new([const { OnceLock::new() }; SLOTS]),
        }
    }
}

impl PredefinedTypes {
    /// The slots in which a type may be, in the order in which they are filled.
    fn candidates(
        &self,
        datatype: Datatype,
    ) -> impl Iterator<Item = &OnceLock<(Datatype, Layout)>> {
        /// 2^64 divided by the golden ratio: handles are addresses or have few different bits.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let hash = (datatype.0.wrapping_mul(SPREAD) >> (u64::BITS - SLOTS.ilog2())) as usize;
        (hash..hash + SLOTS).map(|index| &self.slots[index % SLOTS])
    }

    /// The layout of a type, if it is known.
    #[inline]
    pub(super) fn get(&self, datatype: Datatype) -> Option<&Layout> {
        self.candidates(datatype)
            .map_while(OnceLock::get)
            .find(|(known, _)| *known == datatype)
            .map(|(_, layout)| layout)
    }

    /// Keeps the layout of a type, unless it is known.
    pub(super) fn insert(&self, datatype: Datatype, layout: &Layout) {
        for slot in self.candidates(datatype) {
            let (known, _) = slot.get_or_init(|| (datatype, layout.clone()));
            if *known == datatype {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pario_layout::Basic;

    use super::*;

    #[test]
    fn types_that_share_a_slot_are_told_apart() {
        let types = PredefinedTypes::default();
        let layouts = [Basic::Byte, Basic::Double, Basic::Int].map(Layout::basic);
        for number in 0..SLOTS as u64 {
            assert!(types.get(Datatype(number)).is_none());
            types.insert(Datatype(number), &layouts[number as usize % 3]);
        }
        for number in 0..SLOTS as u64 {
            let found = types.get(Datatype(number));
            assert_eq!(found, Some(&layouts[number as usize % 3]), "{number}");
        }
    }

    #[test]
    fn a_full_table_keeps_what_it_has() {
        let types = PredefinedTypes::default();
        let (byte, double) = (Layout::basic(Basic::Byte), Layout::basic(Basic::Double));
        for number in 0..2 * SLOTS as u64 {
            types.insert(Datatype(number), &byte);
        }
        types.insert(Datatype(0), &double);
        assert_eq!(types.get(Datatype(0)), Some(&byte));
        assert!(types.get(Datatype(2 * SLOTS as u64 - 1)).is_none());
    }
}
