use std::{os::unix::fs::FileExt, time::Instant, sync::Barrier};
use pario::{Basic, Datatype, File, Info, Mode, View, threads};
fn main() {
    let ranks: u32 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(2);
    let mib: u64 = std::env::args().nth(2).and_then(|s| s.parse().ok()).unwrap_or(32);
    let dir = std::env::args().nth(3).unwrap_or("/dev/shm".into());
    let path = std::path::PathBuf::from(format!("{dir}/zz-{}", std::process::id()));
    for (name, block, gap) in [("8B", 8u64, 0u64), ("64B", 64, 0), ("4K", 4096, 0), ("hpio 64+64", 64, 64*ranks as u64), ("1M", 1<<20, 0)] {
        let per = mib << 20; 
        let mut best = [f64::MAX; 4];
        for _ in 0..5 {
            // raw
            let raw = path.with_extension("raw");
            let _ = std::fs::remove_file(&raw);
            let barrier = Barrier::new(ranks as usize);
            let times = std::sync::Mutex::new([0f64;2]);
            std::thread::scope(|s| for r in 0..ranks as u64 { let (barrier, raw, times)=(&barrier,&raw,&times); s.spawn(move || {
                let data = vec![r as u8; per as usize];
                let mut back = vec![1u8; per as usize];
                barrier.wait(); let t = Instant::now();
                let f = std::fs::OpenOptions::new().read(true).write(true).create(true).open(raw).unwrap();
                for c in 0..per/(8<<20).min(per) { let n=(8<<20).min(per); f.write_all_at(&data[(c*n) as usize..((c+1)*n) as usize], r*per+c*n).unwrap(); }
                barrier.wait(); if r==0 { times.lock().unwrap()[0]=t.elapsed().as_secs_f64(); }
                barrier.wait(); let t = Instant::now();
                for c in 0..per/(8<<20).min(per) { let n=(8<<20).min(per); f.read_exact_at(&mut back[(c*n) as usize..((c+1)*n) as usize], r*per+c*n).unwrap(); }
                barrier.wait(); if r==0 { times.lock().unwrap()[1]=t.elapsed().as_secs_f64(); }
            });});
            let t = *times.lock().unwrap(); best[0]=best[0].min(t[0]); best[1]=best[1].min(t[1]);
            let _ = std::fs::remove_file(&raw);
            let res = threads::run(ranks, |comm| -> pario::Result<(f64,f64)> {
                let byte = Datatype::basic(Basic::Byte);
                let r = comm.rank().0 as u64;
                let data = vec![r as u8; per as usize];
                let mut back = vec![1u8; per as usize];
                comm.barrier()?; let t = Instant::now();
                let mode = Mode::CREATE | Mode::READ_WRITE | Mode::DELETE_ON_CLOSE | if gap>0 && std::env::var("RMW").is_ok() {Mode::UNIQUE_OPEN} else {Mode::empty()};
                let f = File::open(&comm, &path, mode, &Info::new())?;
                let tile = Datatype::resized(&Datatype::contiguous(block,&byte)?, 0, (block*ranks as u64+gap) as i64)?;
                f.set_view(&View::new(r*block,&byte,&tile))?;
                f.write_at_all(0,&data)?;
                let w = t.elapsed().as_secs_f64();
                comm.barrier()?; let t = Instant::now();
                f.read_at_all(0,&mut back)?;
                let rd = t.elapsed().as_secs_f64();
                assert!(back==data);
                f.close()?;
                Ok((w,rd))
            });
            for x in res { let (w,r)=x.unwrap().unwrap(); best[2]=best[2].min(w); best[3]=best[3].min(r); }
        }
        let mb = (per*ranks as u64) as f64/1e6;
        println!("{name:12} raw w {:6.0} r {:6.0} MB/s | pario w {:6.0} ({:.2}) r {:6.0} ({:.2})", mb/best[0], mb/best[1], mb/best[2], best[0]/best[2], mb/best[3], best[1]/best[3]);
    }
}
