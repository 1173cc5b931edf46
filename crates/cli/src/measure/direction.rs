//! Directions as measurements use them.

use pario_types::Direction;
use serde::{Deserialize, Deserializer, Serializer, de};

/// Both, in the order in which they are measured.
pub(crate) const DIRECTIONS: [Direction; 2] = [Direction::Write, Direction::Read];

/// For `#[serde(with = "…")]`: a direction by its name.
pub(crate) fn serialize<S: Serializer>(direction: &Direction, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(direction.name())
}

/// The inverse.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Direction, D::Error> {
    let name = String::deserialize(from)?;
    let direction = DIRECTIONS.into_iter().find(|it| it.name() == name);
    direction.ok_or_else(|| de::Error::unknown_variant(&name, &["write", "read"]))
}
