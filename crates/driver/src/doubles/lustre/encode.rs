//! Layouts of Lustre as bytes, from the header `lustre_user.h` of Lustre 2.15.

/// A header of version 1, or of version 3 if there is a pool.
#[derive(Clone, Debug)]
pub struct PlainLayout {
    /// `LOV_PATTERN_…`.
    pub pattern: u32,
    /// Bytes per stripe.
    pub stripe_size: u32,
    /// Number of stripes as stored.
    pub count: u16,
    /// The pool, if any.
    pub pool: Option<String>,
    /// The server of each object.
    pub servers: Vec<u32>,
}

/// A component of a composite layout.
#[derive(Clone, Debug)]
pub struct ComponentLayout {
    /// `lcme_id`: the mirror in the upper half.
    pub id: u32,
    /// `LCME_FL_…`.
    pub flags: u32,
    /// First byte.
    pub start: u64,
    /// End, `u64::MAX` for the end of the file.
    pub end: u64,
    /// Its pattern.
    pub plain: Vec<u8>,
}

impl PlainLayout {
    /// A layout without objects.
    pub fn new(pattern: u32, stripe_size: u32, count: u16) -> PlainLayout {
        PlainLayout {
            pattern,
            stripe_size,
            count,
            pool: None,
            servers: Vec::new(),
        }
    }

    /// The same with an object on each of these servers.
    #[must_use]
    pub fn on(self, servers: &[u32]) -> PlainLayout {
        PlainLayout {
            servers: servers.to_vec(),
            ..self
        }
    }

    /// As the attribute `lustre.lov` holds it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let magic: u32 = match self.pool {
            None => 0x0bd1_0bd0,
            Some(_) => 0x0bd3_0bd0,
        };
        let mut bytes = magic.to_le_bytes().to_vec();
        bytes.extend(self.pattern.to_le_bytes());
        bytes.extend([0; 16]);
        bytes.extend(self.stripe_size.to_le_bytes());
        bytes.extend(self.count.to_le_bytes());
        bytes.extend(0xffff_u16.to_le_bytes());
        if let Some(pool) = &self.pool {
            let mut name = [0; 16];
            name[..pool.len()].copy_from_slice(pool.as_bytes());
            bytes.extend(name);
        }
        for server in &self.servers {
            bytes.extend([2; 16]);
            bytes.extend([0; 4]);
            bytes.extend(server.to_le_bytes());
        }
        bytes
    }
}

/// A composite layout.
pub fn composite(generation: u32, components: &[ComponentLayout]) -> Vec<u8> {
    let mirrors = components.iter().map(|it| it.id >> 16).max().unwrap_or(0);
    let mut offset = 32 + 48 * components.len();
    let total = offset + components.iter().map(|it| it.plain.len()).sum::<usize>();
    let mut bytes = 0x0bd6_0bd0_u32.to_le_bytes().to_vec();
    bytes.extend((total as u32).to_le_bytes());
    bytes.extend(generation.to_le_bytes());
    bytes.extend(0u16.to_le_bytes());
    bytes.extend((components.len() as u16).to_le_bytes());
    bytes.extend((mirrors.saturating_sub(1) as u16).to_le_bytes());
    bytes.resize(32, 0);
    for component in components {
        bytes.extend(component.id.to_le_bytes());
        bytes.extend(component.flags.to_le_bytes());
        bytes.extend(component.start.to_le_bytes());
        bytes.extend(component.end.to_le_bytes());
        bytes.extend((offset as u32).to_le_bytes());
        bytes.extend((component.plain.len() as u32).to_le_bytes());
        bytes.extend([0; 16]);
        offset += component.plain.len();
    }
    for component in components {
        bytes.extend(&component.plain);
    }
    bytes
}
