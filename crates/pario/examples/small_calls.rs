//! What a call costs: small writes through a file next to plain `pwrite`.
use std::{os::unix::fs::FileExt, time::Instant};

use pario::{Basic, Datatype, File, Info, Mode, View, threads};

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "/dev/shm".into());
    let path = std::path::Path::new(&folder).join(format!("pario-small-{}", std::process::id()));
    let raw = std::fs::File::create(path.with_extension("raw")).expect("the folder is writable");
    let results = threads::run(1, |comm| -> pario::Result<()> {
        let mode = Mode::CREATE | Mode::READ_WRITE | Mode::DELETE_ON_CLOSE;
        let file = File::open(&comm, &path, mode, &Info::new())?;
        let byte = Datatype::basic(Basic::Byte);
        for (name, size, strided) in [
            ("8 B", 8, false),
            ("4 KiB", 4096, false),
            ("64 x 8 B at stride 16", 512, true),
        ] {
            let data = vec![1u8; size];
            if strided {
                let eight = Datatype::contiguous(8, &byte)?;
                file.set_view(&View::new(0, &byte, &Datatype::resized(&eight, 0, 16)?))?;
            }
            let rounds = 100_000u64;
            let best = |work: &dyn Fn(u64)| {
                (0..5)
                    .map(|_| {
                        let start = Instant::now();
                        (0..rounds / 5).for_each(work);
                        start.elapsed().as_nanos() as f64 / (rounds / 5) as f64
                    })
                    .fold(f64::MAX, f64::min)
            };
            let ours = best(&|n| {
                file.write_at((n % 1000) * size as u64, &data)
                    .expect("it can be written");
            });
            let plain = best(&|n| {
                raw.write_all_at(&data, (n % 1000) * size as u64)
                    .expect("it can be written");
            });
            let read = best(&|n| {
                let mut back = [0u8; 4096];
                file.read_at((n % 1000) * size as u64, &mut back[..size])
                    .expect("it can be read");
            });
            println!("{name}: pario write {ours:.0} ns, read {read:.0} ns, pwrite {plain:.0} ns");
        }
        file.close()
    });
    std::fs::remove_file(path.with_extension("raw")).expect("it is there");
    for result in results {
        result.expect("no panic").expect("no error");
    }
}
