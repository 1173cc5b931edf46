//! OrangeFS (PVFS2) through the kernel's client: the distribution of a file from
//! its attributes `user.pvfs2.*`, in the text form of the programs that set
//! them (OrangeFS 2.9). Not tried on a real one.
//!
//! The kernel's client cannot set the distribution of a single new file, only
//! the default of its directory, which is the administrator's.

use std::{ffi::CStr, os::fd::BorrowedFd};

use pario_types::{Placement, Striping};

use crate::control::Control;

/// No value is longer.
const VALUE_BYTES_MAX: usize = 1 << 10;

/// Where the bytes of a file are, if that is understood.
pub(crate) fn placement(control: &Control, file: BorrowedFd<'_>) -> Option<Placement> {
    let value = |name: &CStr| {
        let value = control.attribute(file, name, VALUE_BYTES_MAX).ok()?;
        let text = String::from_utf8(value).ok()?;
        Some(text.trim_matches(['\0', ' ', '\n']).to_owned())
    };
    let name = value(c"user.pvfs2.dist_name")?;
    let parameters = value(c"user.pvfs2.dist_params");
    let servers = value(c"user.pvfs2.num_dfiles")?;
    distribution(&name, parameters.as_deref(), &servers).map(Placement::uniform)
}

/// Stripes if none are given.
const STRIP_BYTES: u64 = 64 << 10;

/// The striping of a distribution. Only round-robin distributions are
/// understood.
fn distribution(name: &str, parameters: Option<&str>, servers: &str) -> Option<Striping> {
    if name != "simple_stripe" {
        return None;
    }
    let unit = match parameters {
        None | Some("") => STRIP_BYTES,
        Some(parameters) => {
            let mut values = parameters
                .split(',')
                .filter_map(|it| it.trim().strip_prefix("strip_size:"));
            values.next()?.trim().parse().ok()?
        }
    };
    let count = servers.parse().ok()?;
    (unit > 0 && count > 0).then_some(Striping { unit, count })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_robin_distributions_are_understood() {
        let striping = |unit, count| Some(Striping { unit, count });
        assert_eq!(distribution("simple_stripe", None, "4"), striping(65536, 4));
        let parameters = Some("strip_size:131072");
        assert_eq!(
            distribution("simple_stripe", parameters, "3"),
            striping(131_072, 3)
        );
        for (name, parameters, servers) in [
            ("basic_dist", None, "1"),
            ("varstrip_dist", Some("strips:0:32K"), "2"),
            ("simple_stripe", Some("strip_size:0"), "2"),
            ("simple_stripe", Some("strip_size:x"), "2"),
            ("simple_stripe", Some("other:1"), "2"),
            ("simple_stripe", None, "0"),
            ("simple_stripe", None, "-1"),
        ] {
            assert_eq!(
                distribution(name, parameters, servers),
                None,
                "{parameters:?}"
            );
        }
    }
}
