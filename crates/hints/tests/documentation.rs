//! `docs/hints.md` is the output of the definitions.

use std::path::Path;

#[test]
fn documentation_is_up_to_date() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hints.md");
    let expected = pario_hints::markdown();
    if std::env::var_os("PARIO_BLESS").is_some() {
        std::fs::create_dir_all(page.parent().unwrap()).unwrap();
        std::fs::write(&page, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(
        found == expected,
        "docs/hints.md is stale: run PARIO_BLESS=1 cargo test -p pario-hints documentation"
    );
}
