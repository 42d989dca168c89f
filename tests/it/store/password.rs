//! Servers that ask for a password, and servers that are none.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use pinwise::store::StoreError;

use super::Place;

/// Accepts one client that is to be answered in plain, and reads its greeting.
fn greeted(listener: &TcpListener) -> TcpStream {
    let (mut client, _) = listener.accept().unwrap();
    let mut question = [0; 8];
    client.read_exact(&mut question).unwrap();
    assert_eq!(question, [0, 0, 0, 8, 4, 210, 22, 47], "does it speak TLS?");
    client.write_all(b"N").unwrap();
    let mut length = [0; 4];
    client.read_exact(&mut length).unwrap();
    let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
    client.read_exact(&mut startup).unwrap();
    client
}

/// What a server gets that asks for the password in clear text, and what the
/// store says of it.
fn asked_in_the_clear(host: &str) -> (String, StoreError) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let mut client = greeted(&listener);
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

/// How much of an endless answer is taken from a server, and what the store says.
fn sent_without_end(greeting: &'static [u8], piece: Vec<u8>) -> (usize, StoreError) {
    const MOST: usize = 512 << 20;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let mut client = greeted(&listener);
        client.write_all(greeting).unwrap();
        let mut sent = 0;
        while sent < MOST && client.write_all(&piece).is_ok() {
            sent += piece.len();
        }
        sent
    });
    let url = format!("postgres://me@127.0.0.1:{port}/db");
    let error = Place::database(url).try_open().unwrap_err();
    (server.join().unwrap(), error)
}

#[test]
fn a_server_cannot_fill_the_memory() {
    // Accepted and ready, then a row of 2 GiB.
    let row = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05ID\x7f\xff\xff\xff";
    // Accepted, then settings.
    let setting = [&b"S\0\x01\0\x04"[..], &[b'x'; 0xfffe], &[0, 0]].concat();
    let settings = b"R\0\0\0\x08\0\0\0\0";
    for (greeting, piece, words) in [
        (&row[..], vec![0; 1 << 16], "at most 134217728 are read"),
        (settings, setting, "without end"),
    ] {
        let (sent, error) = sent_without_end(greeting, piece);
        // What the system's buffers hold is as good as sent.
        assert!(sent < 64 << 20, "{sent} bytes were taken: {error}");
        let error = error.to_string();
        assert!(error.contains(words) && !error.contains('\n'), "{error}");
    }
}
