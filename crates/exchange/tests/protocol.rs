//! What the protocol promises about messages, memory, look-ups and overlap,
//! counted in the simulator.

use std::sync::Arc;

use pario_exchange::{
    Direction, Groups, Limits, Rank, Setting,
    simulate::{self, Model, Pattern, Report},
};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

struct Call {
    pattern: Pattern,
    direction: Direction,
    ranks_per_node: u32,
    limits: Limits,
    model: Model,
}

impl Call {
    fn new(pattern: Pattern, direction: Direction, ranks_per_node: u32) -> Call {
        let limits = Limits {
            window_bytes: MIB,
            slice_bytes: MIB,
            depth: 2,
            staging: 2,
            node_buffers: 2,
            unit: 4 * KIB,
            eager_bytes: 0,
            tags: 0..1024,
        };
        let model = Model::default();
        Call {
            pattern,
            direction,
            ranks_per_node,
            limits,
            model,
        }
    }

    fn run(&self) -> Report {
        let nodes: Vec<u32> = (0..self.pattern.ranks)
            .map(|rank| rank / self.ranks_per_node)
            .collect();
        let setting = Arc::new(Setting {
            direction: self.direction,
            groups: Arc::new(Groups::by_node(&nodes)),
            root: Rank(0),
            limits: self.limits.clone(),
        });
        let bytes = self.pattern.rank_bytes();
        let pattern = Arc::new(self.pattern.clone());
        simulate::run(&setting, &pattern, |_| bytes, &self.model)
    }
}

/// One aggregator on each of the nodes that are a multiple of `every`.
fn spread(pattern: Pattern, ranks_per_node: u32, every: u32) -> Pattern {
    let nodes = pattern.ranks.div_ceil(ranks_per_node);
    let aggregators = (0..nodes).step_by(every as usize);
    let aggregators = aggregators.map(|node| Rank(node * ranks_per_node));
    pattern.aggregated_by(aggregators.collect(), MIB)
}

#[test]
fn a_small_call_of_two_nodes_is_one_message_each_way() {
    for direction in [Direction::Write, Direction::Read] {
        for ranks_per_node in [1, 4] {
            let pattern = Pattern::cyclic(2 * ranks_per_node, 256, 4);
            let mut call = Call::new(pattern, direction, ranks_per_node);
            call.limits.eager_bytes = 64 * KIB;
            let Report { total, .. } = call.run();
            assert_eq!(total.control_messages, 2, "{direction:?}");
            assert_eq!(total.data_messages, 0, "{direction:?}");
            assert_eq!(total.transfers, 1, "{direction:?}");
        }
    }
}

#[test]
fn one_data_message_per_node_and_window() {
    for direction in [Direction::Write, Direction::Read] {
        // Every window holds data of all sixteen ranks on four nodes.
        let call = Call::new(Pattern::cyclic(16, 4 * KIB, 64), direction, 4);
        let total = call.run().total;
        let windows = 16 * 64 * 4 * KIB / MIB;
        assert_eq!(total.transfers, windows);
        assert_eq!(total.data_messages, windows * 3);
        assert_eq!(total.data_bytes, 12 * 64 * 4 * KIB);
    }
}

#[test]
fn one_rank_of_a_node_reports_that_all_have_copied() {
    for direction in [Direction::Write, Direction::Read] {
        let (nodes, ranks) = (4, 64);
        let call = Call::new(
            Pattern::cyclic(ranks, 4 * KIB, 64),
            direction,
            ranks / nodes,
        );
        let notes = call.run().total.notes;
        // Every node is asked once per window: each rank but the relay gets a note,
        // and the last one answers, if it is not the relay. The tree has its own.
        let windows = u64::from(ranks) * 64 * 4 * KIB / MIB;
        let (asked, tree) = (windows * u64::from(nodes), 4 * u64::from(ranks));
        assert!(notes >= asked * 15, "{direction:?}: {notes}");
        assert!(notes <= asked * 16 + tree, "{direction:?}: {notes}");
    }
}

#[test]
fn without_the_layer_every_rank_sends_its_own_part() {
    let pattern = Pattern::cyclic(16, 4 * KIB, 64);
    let total = Call::new(pattern, Direction::Write, 1).run().total;
    assert_eq!(total.data_messages, 4 * 15);
    assert_eq!(total.notes, 0);
}

#[test]
fn bytes_that_all_ranks_want_are_sent_once_per_node() {
    let call = Call::new(Pattern::same(32, 2 * MIB), Direction::Read, 8);
    let total = call.run().total;
    assert_eq!(total.data_bytes, 3 * 2 * MIB);
    assert_eq!(total.transfers, 2);
}

#[test]
fn sparse_data_needs_as_few_windows_as_its_bytes_do() {
    // 1 KiB of every 64: 4 MiB in 256 MiB of the file.
    let pattern = Pattern {
        stride: 64 * KIB * 8,
        step: 64 * KIB,
        ..Pattern::cyclic(8, KIB, 512)
    };
    let total = Call::new(pattern, Direction::Write, 2).run().total;
    assert!((4..=5).contains(&total.transfers), "{total:?}");
}

#[test]
fn contiguous_parts_are_received_in_their_place() {
    // The only copies are those of the ranks themselves: a megabyte each, in
    // one window each.
    let pattern = Pattern::blocks(16, MIB);
    for direction in [Direction::Write, Direction::Read] {
        let total = Call::new(pattern.clone(), direction, 4).run().total;
        assert_eq!(total.copies, 16, "{direction:?}");
    }
}

#[test]
fn memory_does_not_grow_with_the_data() {
    for direction in [Direction::Write, Direction::Read] {
        for mib in [4, 64, 512] {
            let mut call = Call::new(Pattern::blocks(2, mib * MIB), direction, 1);
            call.limits.eager_bytes = 64 * KIB;
            let report = call.run();
            assert!(report.most.memory_bytes_max <= 2 * MIB, "{report:?}");
        }
    }
}

#[test]
fn the_exchange_overlaps_file_access() {
    // The network is twice as fast as the file: a window is there before the
    // one before it is written.
    let makespan = |direction, depth| {
        let mut call = Call::new(Pattern::blocks(2, 64 * MIB), direction, 1);
        call.limits.depth = depth;
        call.model = Model {
            link_rate: 2000,
            file_rate: 1000,
            copy_rate: 1_000_000,
            file_latency_ns: 0,
            servers: 1,
            ..call.model
        };
        // Half of the data is the aggregator's own.
        let report = call.run();
        (report.makespan_ns, report)
    };
    let file_ns = 128 * MIB;
    let network_ns = 32 * MIB;
    for direction in [Direction::Write, Direction::Read] {
        let (one_after_the_other, _) = makespan(direction, 1);
        let (overlapped, report) = makespan(direction, 2);
        assert!(
            one_after_the_other > file_ns + network_ns * 9 / 10,
            "{direction:?}"
        );
        assert!(overlapped < file_ns * 11 / 10, "{direction:?}: {report:?}");
        assert!(report.overlapped_bytes > 60 * MIB, "{report:?}");
    }
}

#[test]
fn a_ranks_work_depends_on_its_own_data() {
    for direction in [Direction::Write, Direction::Read] {
        for pattern in [Pattern::blocks, |ranks, _| {
            Pattern::cyclic(ranks, 4 * KIB, 16)
        }] {
            let most = |ranks| {
                let pattern = spread(pattern(ranks, 256 * KIB), 16, 4);
                Call::new(pattern, direction, 16).run().most_member
            };
            let (few, many) = (most(128), most(4096));
            assert!(many.lookups <= few.lookups.max(16), "{few:?} {many:?}");
            // A rank that relays for its node serves 1 in 16 realms; the
            // tree is a few levels higher.
            let messages = few.control_messages + few.data_messages;
            let messages_many = many.control_messages + many.data_messages;
            assert!(messages_many <= 2 * messages + 32, "{few:?} {many:?}");
            assert!(many.events <= 2 * few.events + 64, "{few:?} {many:?}");
        }
    }
}

#[test]
fn a_transfer_uses_the_servers_of_its_stripes() {
    let makespan = |servers| {
        let mut call = Call::new(Pattern::blocks(2, 32 * MIB), Direction::Write, 1);
        call.limits.window_bytes = 8 * MIB;
        call.model = Model {
            file_rate: 100,
            stripe_bytes: MIB,
            servers,
            ..call.model
        };
        call.run().makespan_ns
    };
    let (one, eight) = (makespan(1), makespan(8));
    assert!((6..=8).contains(&(one / eight)), "{one} {eight}");
}
