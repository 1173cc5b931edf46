//! The checker itself, on histories made by hand.

use crate::serial::{Access, History, Stamp, from_wire, to_wire};

fn write(cells: &[usize], stamp: Stamp) -> Access {
    Access::Write {
        cells: cells.to_vec(),
        stamp,
    }
}

fn read(cells: &[usize], seen: &[Stamp]) -> Access {
    Access::Read {
        cells: cells.to_vec(),
        seen: seen.to_vec(),
    }
}

fn history(ranks: &[&[Access]], after: &[Stamp]) -> History {
    History {
        before: vec![0; after.len()],
        ranks: ranks.iter().map(|accesses| accesses.to_vec()).collect(),
        after: after.to_vec(),
    }
}

#[test]
fn a_history_that_happened_in_order_is_explained() {
    let history = history(
        &[
            &[write(&[0, 1], 5), read(&[0, 1, 2], &[6, 5, 6])],
            &[read(&[1], &[5]), write(&[0, 2], 6)],
        ],
        &[6, 5, 6],
    );
    assert_eq!(history.serial_order(), Some(vec![0, 1, 1, 0]));
}

#[test]
fn half_a_write_is_found() {
    let torn = history(&[&[write(&[0, 1], 5)], &[read(&[0, 1], &[5, 0])]], &[5, 5]);
    assert_eq!(torn.serial_order(), None);
}

#[test]
fn two_writes_that_mixed_are_found() {
    let mixed = history(&[&[write(&[0, 1], 5)], &[write(&[0, 1], 6)]], &[5, 6]);
    assert_eq!(mixed.serial_order(), None);
}

#[test]
fn reads_that_disagree_on_the_order_of_two_writes_are_found() {
    // Each read alone is fine; together they put both writes first.
    let split = history(
        &[
            &[write(&[0], 5)],
            &[write(&[1], 6)],
            &[read(&[0, 1], &[5, 0])],
            &[read(&[0, 1], &[0, 6])],
        ],
        &[5, 6],
    );
    assert_eq!(split.serial_order(), None);
}

#[test]
fn a_read_that_went_back_in_time_is_found() {
    let back = history(
        &[
            &[write(&[0], 5), write(&[0], 6)],
            &[read(&[0], &[6]), read(&[0], &[5])],
        ],
        &[6],
    );
    assert_eq!(back.serial_order(), None);
}

#[test]
fn a_stamp_from_nowhere_and_a_lost_write_are_found() {
    let torn_cell = history(&[&[write(&[0], 5)], &[read(&[0], &[7])]], &[5]);
    assert_eq!(torn_cell.serial_order(), None);
    assert_eq!(history(&[&[write(&[0], 5)]], &[0]).serial_order(), None);
}

#[test]
fn accesses_survive_the_wire() {
    let accesses = [write(&[1, 7], 1 << 40), read(&[0, 2, 3], &[1, 2, 3])];
    assert_eq!(from_wire(&to_wire(&accesses)), accesses);
    assert_eq!(from_wire(&[]), []);
}
