//! Reports about drivers, hints and methods: `PARIO_VERBOSE=1`.

use std::sync::{LazyLock, Once};

use engine::{File, Overlap};
use pario_mpi::{Host, MpiTransport};
use pario_transport::Transport;

use crate::notice;

/// The variables that request reports; the second is ROMIO's.
const VERBOSE: [&str; 2] = ["PARIO_VERBOSE", "ROMIO_PRINT_HINTS"];

fn is_wanted(transport: &MpiTransport) -> bool {
    static WANTED: LazyLock<bool> = LazyLock::new(|| {
        let asks = |name| std::env::var(name).is_ok_and(|value| !matches!(value.trim(), "" | "0"));
        VERBOSE.into_iter().any(asks)
    });
    transport.rank().0 == 0 && *WANTED
}

/// Reports on rank 0 how collective calls were carried out, when the first file that had any is
/// closed.
pub(crate) fn report_close(transport: &MpiTransport, file: &File) {
    static REPORT: Once = Once::new();
    if let (true, Some(method)) = (is_wanted(transport), file.explain_last_all()) {
        REPORT.call_once(|| {
            notice::line(&format!("collective {method}"));
            let Overlap {
                exchanged,
                during_transfers,
            } = file.overlap_last_all();
            if exchanged > 0 {
                notice::line(&format!(
                    "overlap: rank 0 exchanged {exchanged} bytes with other nodes in the last \
                     collective call, {during_transfers} of them during file transfers"
                ));
            }
        });
    }
}

/// Reports on rank 0 the MPI, the transport, the driver and the hints, when the first file is
/// opened.
pub(crate) fn report_open(host: &Host, transport: &MpiTransport, file: &File) {
    static REPORT: Once = Once::new();
    if !is_wanted(transport) {
        return;
    }
    REPORT.call_once(|| {
        let version = host.version().lines().next().unwrap_or("unknown version");
        let mut report = format!(
            "version {}\nMPI: {version} ({}), {}\ntransport: {}\nfile: {}\n",
            env!("CARGO_PKG_VERSION"),
            host.flavour().name(),
            host.path(),
            transport.describe(),
            file.path().display(),
        );
        report.push_str(&file.explain_open());
        for line in report.lines() {
            notice::line(line);
        }
    });
}
