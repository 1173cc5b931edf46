use super::*;

fn pieces(job: &dyn Job, rank: u32, call: u64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    job.pieces(rank, call, &mut |piece| pieces.push(piece));
    pieces
}

/// Every byte of a call as (offset in the file, offset in memory), by its types.
fn by_types(step: &Step) -> Vec<(u64, u64)> {
    let file = step.filetype.layout();
    let memory = step.memory.layout();
    (0..step.bytes())
        .map(|byte| {
            let file = step
                .displacement
                .checked_add_signed(file.offset_of(step.offset + byte).unwrap());
            let memory = u64::try_from(memory.offset_of(byte).unwrap());
            (file.unwrap(), memory.unwrap())
        })
        .collect()
}

#[test]
fn types_and_formulas_say_the_same() {
    let variants = [
        ("dist3d", "size=5x6x7"),
        ("dist3d", "size=5x6x7,ghosts=2"),
        ("btio", "side=7,steps=2"),
        ("flash", "edge=3,blocks=2"),
        ("hpio", "region=10,spacing=6,count=9,type=enumerated"),
        ("hpio", "memory=contiguous,count=9"),
        ("hpio", "file=contiguous,count=9"),
        ("ior", "layout=strided,segment=100"),
        ("ior", "layout=strided,segment=100,access=view"),
        ("ior", "layout=strided,segment=100,access=datatype"),
        ("ior", "layout=random,segment=100"),
        ("ior", "layout=random,segment=100,access=view"),
        ("ior", "segment=100,access=view"),
        ("tile", "element=3,width=5,height=4"),
        ("cyclic", "block=3"),
        ("coll_perf", "side=13"),
        ("s3d", "side=9"),
        ("small", "view=contiguous,calls=3"),
    ];
    let plain = WORKLOADS.iter().map(|it| (it.name, ""));
    for (name, parameters) in plain.chain(variants) {
        for ranks in [1, 2, 3, 4, 6] {
            let job = test_job(&format!("{name}:{parameters}"), ranks, 0.002);
            let mut written = std::collections::BTreeSet::new();
            for (rank, call) in (0..ranks).flat_map(|it| (0..job.calls()).map(move |c| (it, c))) {
                let step = job.step(rank, call).unwrap();
                step.filetype.check_filetype(&step.etype).unwrap();
                let formula: Vec<_> = pieces(&*job, rank, call)
                    .iter()
                    .flat_map(|it| (0..it.bytes).map(|at| (it.file + at, it.memory + at)))
                    .collect();
                assert_eq!(by_types(&step), formula, "{name}:{parameters}, rank {rank}");
                assert!(
                    formula
                        .iter()
                        .all(|(_, memory)| *memory < step.memory_bytes)
                );
                for (file, _) in formula {
                    assert!(written.insert(file), "{name}: byte {file} is written twice");
                }
            }
            assert!(!written.is_empty(), "{name} moves nothing");
        }
    }
}

#[test]
fn names_are_distinct_and_described() {
    let mut names: Vec<_> = WORKLOADS.iter().map(|it| it.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), WORKLOADS.len());
    assert!(WORKLOADS.iter().all(|it| !it.about.is_empty()));
    let unknown = parse("nothing").err().unwrap();
    assert!(unknown.starts_with("unknown workload `nothing`; workloads are dist3d,"));
}

#[test]
fn the_scale_is_what_a_rank_moves() {
    for workload in WORKLOADS {
        let bytes = |scale| {
            let job = test_job(workload.name, 4, scale);
            (0..job.calls())
                .map(|call| job.step(1, call).unwrap().bytes())
                .sum::<u64>()
        };
        let (one, quarter) = (bytes(1.0), bytes(0.25));
        assert!(
            one > 3_000_000 && one < 20_000_000,
            "{}: {one}",
            workload.name
        );
        assert!(quarter < one, "{}", workload.name);
    }
}

#[test]
fn commas_separate_workloads_and_choices() {
    let list = |text: &str| split_list(&[text.to_owned()]);
    assert_eq!(list("tile,small"), ["tile", "small"]);
    assert_eq!(
        list("btio,hpio:region=64,spacing=0,small"),
        ["btio", "hpio:region=64,spacing=0", "small"]
    );
    let twice = ["hpio:count=3".to_owned(), "ior:segment=4,tile".to_owned()];
    assert_eq!(
        split_list(&twice),
        ["hpio:count=3", "ior:segment=4", "tile"]
    );
}
