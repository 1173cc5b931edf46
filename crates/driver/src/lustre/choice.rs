//! The layout of new files for which the user requested none.
//!
//! With the usual default of one stripe, all nodes write to a single server. A
//! directory whose default is anything else was set up by someone for a reason,
//! and stays as it is.

use super::{
    create::Wanted,
    layout::{Layout, Plain, StripeCount},
    placement::RAID0,
};
use crate::ExpectedUse;

/// A choice and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The directory's default.
    Keep(String),
    /// This layout.
    Stripes(Wanted, String),
}

/// Servers for files whose size is not known: enough for several nodes, and not
/// too many for small files, which wait for every server when they are deleted
/// or queried.
const SERVERS_MAX: u32 = 8;

/// A server gets at least this many bytes of a file whose size is known.
const SERVER_BYTES_MIN: u64 = 64 << 20;

/// Chooses a layout; `default` is the one that new files get.
pub(super) fn choose(default: &Layout, expected: ExpectedUse) -> Choice {
    let keep = |reason: &str| Choice::Keep(reason.to_owned());
    let default_bytes = match default {
        Layout::Composite(_) => return keep("the directory has a composite default"),
        Layout::Foreign => return keep("the directory has a foreign default"),
        Layout::Plain(plain) => match reserved(plain) {
            Some(reason) => return keep(reason),
            None => Some(plain.stripe_size).filter(|bytes| *bytes > 0),
        },
    };
    let ExpectedUse { nodes, bytes } = expected;
    let (most, size) = match bytes {
        None => (SERVERS_MAX, String::new()),
        Some(bytes) => {
            let servers = (bytes / SERVER_BYTES_MIN).max(1);
            let size = format!(" of the expected {bytes} bytes");
            (u32::try_from(servers).unwrap_or(u32::MAX), size)
        }
    };
    match nodes.min(most).min(u32::from(u16::MAX - 1)) {
        0 | 1 if nodes <= 1 => keep("all ranks are on one node"),
        0 | 1 => keep("one stripe suffices for the expected size"),
        count => {
            let wanted = Wanted {
                count: Some(StripeCount::Exactly(count as u16)),
                stripe_bytes: default_bytes,
                ..Wanted::default()
            };
            let reason = format!("since {nodes} nodes share the file{size}");
            Choice::Stripes(wanted, reason)
        }
    }
}

/// Why a directory's default has to stay, if it has to.
fn reserved(default: &Plain) -> Option<&'static str> {
    match default.count {
        _ if default.pool.is_some() => Some("the directory's default names a pool"),
        _ if default.pattern > RAID0 => Some("the directory has a default of a special kind"),
        StripeCount::All => Some("the directory's default is all servers"),
        StripeCount::Exactly(count) if count > 1 => {
            Some("the directory's default has several stripes")
        }
        StripeCount::Exactly(_) | StripeCount::Default => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{doubles::lustre::PlainLayout, lustre::fixtures};

    fn chosen(default: &[u8], nodes: u32, bytes: Option<u64>) -> Result<u16, String> {
        let default = Layout::parse(default).unwrap();
        match choose(&default, ExpectedUse { nodes, bytes }) {
            Choice::Keep(reason) => Err(reason),
            Choice::Stripes(wanted, _) => match wanted.count {
                Some(StripeCount::Exactly(count)) => Ok(count),
                other => panic!("{other:?}"),
            },
        }
    }

    #[test]
    fn one_stripe_becomes_one_per_node() {
        let single = PlainLayout::new(1, 4 << 20, 1).to_bytes();
        assert_eq!(chosen(&single, 4, None), Ok(4));
        assert_eq!(chosen(&single, 64, None), Ok(8));
        assert_eq!(chosen(&single, 64, Some(1 << 40)), Ok(64));
        assert_eq!(chosen(&single, 64, Some(200 << 20)), Ok(3));
        assert!(chosen(&single, 64, Some(1 << 20)).is_err());
        assert!(chosen(&single, 1, None).is_err());
    }

    #[test]
    fn what_an_administrator_set_up_stays() {
        let pooled = PlainLayout {
            pool: Some("flash".to_owned()),
            ..PlainLayout::new(1, 1 << 20, 1)
        };
        for (default, why) in [
            (fixtures::progressive(), "composite"),
            (pooled.to_bytes(), "pool"),
            (PlainLayout::new(1, 1 << 20, 2).to_bytes(), "several"),
            (PlainLayout::new(1, 1 << 20, 0xffff).to_bytes(), "all"),
            (PlainLayout::new(0x201, 1 << 20, 1).to_bytes(), "special"),
        ] {
            let kept = chosen(&default, 8, None).unwrap_err();
            assert!(kept.contains(why), "{kept}");
        }
    }
}
