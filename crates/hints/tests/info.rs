//! MPI's info object.

use pario_hints::{Info, InfoError, MAX_KEY_LEN, MAX_VALUE_LEN};

#[test]
fn keys_keep_their_order_and_their_place() {
    let mut info = Info::from_pairs([("b", "1"), ("a", "2"), (" b ", " 3 "), ("c", "")]).unwrap();
    assert_eq!(
        info.iter().collect::<Vec<_>>(),
        [("b", "3"), ("a", "2"), ("c", "")]
    );
    assert_eq!(info.key(1), Some("a"));
    assert_eq!(info.key(3), None);
    assert_eq!(info.remove("a"), Ok("2".to_owned()));
    assert_eq!(
        info.remove("a"),
        Err(InfoError::NoSuchKey {
            key: "a".to_owned()
        })
    );
    assert_eq!(
        (info.key(1), info.len(), info.is_empty()),
        (Some("c"), 2, false)
    );
    assert_eq!(info.get("b "), Some("3"));
    assert_eq!(info.get("B"), None);
}

#[test]
fn limits_are_the_standards() {
    let mut info = Info::new();
    let (key, value) = ("k".repeat(MAX_KEY_LEN), "v".repeat(MAX_VALUE_LEN));
    info.set(&key, &value).unwrap();
    assert_eq!(info.get(&key), Some(value.as_str()));
    let set_error = |key: &str, value: &str| Info::new().set(key, value).unwrap_err();
    assert_eq!(
        set_error(&(key + "k"), ""),
        InfoError::KeyTooLong { len: 256 }
    );
    let error = set_error("k", &(value + "v"));
    assert_eq!(
        error,
        InfoError::ValueTooLong {
            key: "k".to_owned(),
            len: 1025
        }
    );
    assert!(error.to_string().contains("1025"));
    assert_eq!(set_error("  ", "v"), InfoError::EmptyKey);
    assert_eq!(set_error("a\0b", "v"), InfoError::KeyWithNul);
    assert_eq!(
        set_error("a", "\0v"),
        InfoError::ValueWithNul {
            key: "a".to_owned()
        }
    );
}
