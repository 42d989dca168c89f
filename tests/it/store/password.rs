//! Servers that ask for a password, and impostors.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use pinwise_store::StoreError;

use super::Place;

/// Accepts a client, declines TLS, and reads its greeting.
fn accept_greeting(listener: &TcpListener) -> TcpStream {
    let (mut client, _) = listener.accept().unwrap();
    let mut request = [0; 8];
    client.read_exact(&mut request).unwrap();
    assert_eq!(
        request,
        [0, 0, 0, 8, 4, 210, 22, 47],
        "not a request for TLS"
    );
    client.write_all(b"N").unwrap();
    let mut length = [0; 4];
    client.read_exact(&mut length).unwrap();
    let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
    client.read_exact(&mut startup).unwrap();
    client
}

/// Serves one store at this address, with further parameters, after its greeting. Returns the
/// server's result and the store's error.
fn serve_store<T: Send + 'static>(
    host: &str,
    parameters: &str,
    serve: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (T, StoreError) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || serve(accept_greeting(&listener)));
    let url = format!("postgres://me:sesame@{host}:{port}/db{parameters}");
    let error = Place::database(url).try_open().unwrap_err();
    (server.join().unwrap(), error)
}

/// Asks for the password in clear text, as a server at this address. Returns the client's answer,
/// and the store's error.
fn ask_for_clear_password(host: &str) -> (String, StoreError) {
    serve_store(host, "", |mut client| {
        client.write_all(&[b'R', 0, 0, 0, 8, 0, 0, 0, 3]).unwrap();
        let mut answer = [0; 64];
        let got = client.read(&mut answer).unwrap_or(0);
        String::from_utf8_lossy(&answer[..got]).into_owned()
    })
}

#[test]
fn a_password_is_sent_in_clear_text_to_this_machine_only() {
    let (got, _) = ask_for_clear_password("127.0.0.1");
    assert!(got.contains("sesame"), "{got:?}");
    // This address reaches this machine, too, but the store does not know that.
    let (got, error) = ask_for_clear_password("0.0.0.0");
    assert!(!got.contains("sesame"), "{got:?}");
    assert!(matches!(error, StoreError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("clear text"), "{error}");
}

/// Sends an endless answer, as a server. Returns the number of bytes that the client takes, and the
/// store's error.
fn send_endless_answer(greeting: &'static [u8], piece: Vec<u8>) -> (usize, StoreError) {
    const MAX_SENT_BYTES: usize = 512 << 20;
    serve_store("127.0.0.1", "", move |mut client| {
        client.write_all(greeting).unwrap();
        let mut sent = 0;
        while sent < MAX_SENT_BYTES && client.write_all(&piece).is_ok() {
            sent += piece.len();
        }
        sent
    })
}

#[test]
fn a_server_cannot_fill_the_memory() {
    // Messages that accept the client, and the beginning of a row of 2 GiB.
    let row = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05ID\x7f\xff\xff\xff";
    // A message that accepts the client, and endless settings.
    let setting = [&b"S\0\x01\0\x04"[..], &[b'x'; 0xfffe], &[0, 0]].concat();
    let settings = b"R\0\0\0\x08\0\0\0\0";
    for (greeting, piece, words) in [
        (&row[..], vec![0; 1 << 16], "at most 134217728 are read"),
        (settings, setting, "without end"),
    ] {
        let (sent, error) = send_endless_answer(greeting, piece);
        // Bytes in the buffers of the system count as sent.
        assert!(sent < 64 << 20, "{sent} bytes were taken: {error}");
        let error = error.to_string();
        assert!(error.contains(words) && !error.contains('\n'), "{error}");
    }
}

/// Answers like this, as a server, and then no more. Returns the store's error.
fn answer_client(
    answers: impl FnOnce(&mut TcpStream) + Send + 'static,
    parameters: &str,
) -> StoreError {
    let (_, error) = serve_store("127.0.0.1", parameters, |mut client| {
        answers(&mut client);
        // Until the client disconnects.
        let _ = client.read_to_end(&mut Vec::new());
    });
    error
}

/// A message `Authentication…` with this method and its data.
fn authentication_message(method: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(8 + body.len()).unwrap();
    [&b"R"[..], &length.to_be_bytes(), &[0, 0, 0, method], body].concat()
}

/// Asks for SCRAM with this many iterations.
fn ask_for_rounds(client: &mut TcpStream, rounds: u32) {
    client
        .write_all(&authentication_message(10, b"SCRAM-SHA-256\0\0"))
        .unwrap();
    let mut head = [0; 5];
    client.read_exact(&mut head).unwrap();
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    let mut first = vec![0; length as usize - 4];
    client.read_exact(&mut first).unwrap();
    let first = String::from_utf8_lossy(&first);
    let (_, nonce) = first.rsplit_once("r=").unwrap();
    let answer = format!("r={nonce}x,s=c2FsdA==,i={rounds}");
    client
        .write_all(&authentication_message(11, answer.as_bytes()))
        .unwrap();
}

#[test]
fn a_server_cannot_keep_the_client_computing() {
    for rounds in [1 << 31, u32::MAX] {
        let error = answer_client(move |client| ask_for_rounds(client, rounds), "");
        assert!(matches!(error, StoreError::Refused { .. }), "{error}");
        let error = error.to_string();
        assert!(
            error.contains("iteration count") && error.contains("is it the right server"),
            "{error}"
        );
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn endless_answers_of_a_server_are_cut_off() {
    let check = |answers: fn(&mut TcpStream)| {
        let error = answer_client(answers, "?connect_timeout=1");
        assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
        let error = error.to_string();
        assert!(error.contains("no answer within 1 s"), "{error}");
    };
    check(|_| {});
    // The usual number of iterations, and no further message.
    check(|client| ask_for_rounds(client, 4096));
    // A notice, one byte at a time.
    check(|client| {
        let notice = [&b"N\0\0\xff\xff"[..], &[b'x'; 0xfffb]].concat();
        for byte in notice {
            if client.write_all(&[byte]).is_err() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    });
    // Accepts the client, but does not answer its first statement.
    check(|client| {
        let ready = [&authentication_message(0, b"")[..], b"Z\0\0\0\x05I"].concat();
        client.write_all(&ready).unwrap();
    });
}
