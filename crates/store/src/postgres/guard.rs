//! Inspects the heads of a server's messages before the client library sees them. It neither delays
//! nor changes them, but ends the connection in two cases:
//!
//! - The server asks for the password in clear text, and is not verified. The server chooses how a
//!   password is proved, and the client library would send the password to any server.
//! - The server announces a message that is too large, or makes the client library keep too much.
//!   The library allocates as much memory as a server announces.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsStream};

/// Limits a row: the largest record, and its other columns.
pub(super) const MAX_ROW_BYTES: usize = 128 << 20;
/// Limits other messages, and all that the client library keeps for the life of a connection.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// Bytes of a message's type and length (PostgreSQL, "Message Formats").
const HEAD_BYTES: usize = 5;
/// The same for an `Authentication…` message, with the four bytes of its method.
const AUTHENTICATION_HEAD_BYTES: usize = 9;
/// The method of `AuthenticationCleartextPassword`.
const CLEARTEXT_METHOD: [u8; 4] = [0, 0, 0, 3];

/// Why the guard ends a working connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum GuardError {
    /// The server requests a password that it must not get.
    #[error(
        "the server asks for the password in clear text, which goes over loopback, Unix sockets and TLS only (write sslmode=verify-full, let it ask by scram-sha-256, or use a tunnel: ssh -L 5432:localhost:5432 HOST)"
    )]
    Cleartext,
    /// The server announces more than any answer needs.
    #[error(
        "the server sends a message of {bytes} bytes, where at most {max} are read (is it a PostgreSQL server?)"
    )]
    TooLarge {
        /// What it announced.
        bytes: usize,
        /// The limit for such messages.
        max: usize,
    },
    /// The server sends settings and notices without end.
    #[error("the server sends settings and notices without end (is it a PostgreSQL server?)")]
    Endless,
}

/// The state of the message being read.
#[derive(Debug, Default)]
struct Messages {
    /// The message's first bytes.
    head: [u8; AUTHENTICATION_HEAD_BYTES],
    read: usize,
    /// Remaining bytes after its head.
    remaining: usize,
    /// Bytes that the client library keeps for the life of the connection.
    kept: usize,
    /// Has the server announced that it is ready?
    is_ready: bool,
}

impl Messages {
    /// Processes further bytes of the server.
    fn process(&mut self, mut bytes: &[u8], gives_password: bool) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.remaining > 0 {
                let now = self.remaining.min(bytes.len());
                self.remaining -= now;
                bytes = &bytes[now..];
                continue;
            }
            self.head[self.read] = bytes[0];
            self.read += 1;
            bytes = &bytes[1..];
            let wanted = match self.head[0] {
                b'R' => AUTHENTICATION_HEAD_BYTES,
                _ => HEAD_BYTES,
            };
            if self.read == wanted {
                self.remaining = self.check_head(gives_password)?;
                self.read = 0;
            }
        }
        Ok(())
    }

    /// Checks a complete head; returns the number of bytes after it.
    fn check_head(&mut self, gives_password: bool) -> io::Result<usize> {
        let [tag, a, b, c, d, method @ ..] = self.head;
        let length = u32::from_be_bytes([a, b, c, d]);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let max = match tag {
            b'D' => MAX_ROW_BYTES,
            _ => MAX_MESSAGE_BYTES,
        };
        if length > max {
            let bytes = length;
            return Err(io::Error::other(GuardError::TooLarge { bytes, max }));
        }
        if tag == b'R' && method == CLEARTEXT_METHOD && !gives_password {
            return Err(io::Error::other(GuardError::Cleartext));
        }
        // The library keeps notices until the server is ready, and settings always.
        if !self.is_ready || tag == b'S' {
            self.kept += length;
            if self.kept > MAX_MESSAGE_BYTES {
                return Err(io::Error::other(GuardError::Endless));
            }
        }
        self.is_ready |= tag == b'Z';
        let head = if tag == b'R' {
            AUTHENTICATION_HEAD_BYTES
        } else {
            HEAD_BYTES
        };
        let left = (length + 1).checked_sub(head);
        left.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a message without length"))
    }
}

/// A connection whose messages are inspected.
pub(super) struct Guarded<S> {
    stream: S,
    messages: Messages,
    gives_password: bool,
    /// Its `tls-server-end-point`.
    end_point: Option<Vec<u8>>,
}

impl<S> Guarded<S> {
    /// `gives_password`: may the server get the password itself?
    pub(super) fn new(stream: S, gives_password: bool, end_point: Option<Vec<u8>>) -> Self {
        Self {
            stream,
            messages: Messages::default(),
            gives_password,
            end_point,
        }
    }
}

impl<S> TlsStream for Guarded<S>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    fn channel_binding(&self) -> ChannelBinding {
        let end_point = self.end_point.clone();
        end_point.map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = into.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, into))?;
        let more = &into.filled()[before..];
        Poll::Ready(this.messages.process(more, this.gives_password))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Processes these bytes, `size` at a time.
    fn follow_handshake(bytes: &[u8], size: usize, gives_password: bool) -> Result<(), String> {
        let mut messages = Messages::default();
        for piece in bytes.chunks(size) {
            messages
                .process(piece, gives_password)
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// The head of a message of this length.
    fn head(tag: u8, length: usize) -> Vec<u8> {
        let length = u32::try_from(length).unwrap().to_be_bytes();
        [&[tag][..], &length].concat()
    }

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        [head(tag, body.len() + 4), body.to_vec()].concat()
    }

    #[test]
    fn large_messages_are_refused() {
        let check =
            |bytes: &[u8], wanted: Option<&str>| match (follow_handshake(bytes, 3, true), wanted) {
                (Ok(()), None) => {}
                (Err(error), Some(word)) => assert!(error.contains(word), "{error}"),
                (found, _) => panic!("{wanted:?}: {found:?}"),
            };
        let ready = message(b'Z', b"I");
        let after = |tag, length| [ready.clone(), head(tag, length)].concat();
        check(&after(b'D', MAX_ROW_BYTES), None);
        check(&after(b'D', MAX_ROW_BYTES + 1), Some("at most"));
        check(&after(b'E', MAX_MESSAGE_BYTES), None);
        check(&after(b'E', MAX_MESSAGE_BYTES + 1), Some("at most"));
        check(&after(b'N', u32::MAX as usize), Some("4294967295 bytes"));
        check(&after(b'D', 3), Some("without length"));
        check(&message(b'R', b""), None);
        check(
            &[message(b'R', b""), message(b'Z', b"IIII")].concat(),
            Some("without length"),
        );
    }

    #[test]
    fn memory_kept_for_a_connection_is_limited() {
        let many = |tag| message(tag, &[b'x'; 1000]).repeat(2000);
        let ready = message(b'Z', b"I");
        let is_endless = |bytes: &[u8]| {
            let found = follow_handshake(bytes, 4096, true);
            found.is_err_and(|error| error.contains("without end"))
        };
        assert!(is_endless(&many(b'N')));
        assert!(!is_endless(&[ready.clone(), many(b'N')].concat()));
        assert!(is_endless(&[ready.clone(), many(b'S')].concat()));
        assert!(!is_endless(&[ready, many(b'D')].concat()));
    }

    proptest! {
        #[test]
        fn cleartext_password_request_is_found_among_other_messages(
            before in prop::collection::vec((b'A'..b'P', prop::collection::vec(any::<u8>(), 0..9)), 0..5),
            method in 0u8..14,
            size in 1usize..12,
        ) {
            let mut bytes: Vec<u8> = before.iter().flat_map(|(tag, body)| message(*tag, body)).collect();
            bytes.extend(message(b'R', &[0, 0, 0, method]));
            prop_assert_eq!(follow_handshake(&bytes, size, false).is_err(), method == 3);
            prop_assert_eq!(follow_handshake(&bytes, size, true), Ok(()));
            // Without its last byte it is not a request yet.
            prop_assert_eq!(follow_handshake(&bytes[..bytes.len() - 1], size, false), Ok(()));
        }

        #[test]
        fn any_bytes_are_processed(bytes in prop::collection::vec(any::<u8>(), 0..60), size in 1usize..12) {
            let _ = follow_handshake(&bytes, size, false);
        }
    }
}
