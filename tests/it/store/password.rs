//! Servers that ask for a password.

use std::io::{Read, Write};
use std::net::TcpListener;

use pinwise::store::StoreError;

use super::Place;

/// What a server gets that asks for the password in clear text, and what the
/// store says of it.
fn asked_in_the_clear(host: &str) -> (String, StoreError) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut length = [0; 4];
        client.read_exact(&mut length).unwrap();
        let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
        client.read_exact(&mut startup).unwrap();
        client.write_all(&[b'R', 0, 0, 0, 8, 0, 0, 0, 3]).unwrap();
        let mut answer = [0; 64];
        let got = client.read(&mut answer).unwrap_or(0);
        String::from_utf8_lossy(&answer[..got]).into_owned()
    });
    let url = format!("postgres://me:sesame@{host}:{port}/db");
    let error = Place::database(url).try_open().unwrap_err();
    (server.join().unwrap(), error)
}

#[test]
fn a_password_goes_in_clear_text_to_this_machine_only() {
    let (got, _) = asked_in_the_clear("127.0.0.1");
    assert!(got.contains("sesame"), "{got:?}");
    // An address that is this machine, too, but not known to be.
    let (got, error) = asked_in_the_clear("0.0.0.0");
    assert!(!got.contains("sesame"), "{got:?}");
    assert!(matches!(error, StoreError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("clear text"), "{error}");
}
