//! Arguments of `--store`.

use pinwise_store::Location;

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    match Location::parse(text) {
        Ok(Location::Sqlite(path)) => assert!(!path.as_os_str().is_empty()),
        Ok(Location::Nowhere) => assert_eq!(text, "none"),
        Ok(Location::Postgres(server)) => {
            assert!(text.starts_with("postgres"));
            assert!(server.to_string().starts_with("postgres://"));
        }
        // Possible passwords and invisible characters are not shown unchanged.
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
