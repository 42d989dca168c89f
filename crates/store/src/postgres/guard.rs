//! Inspects the heads of a server's messages before the client library sees them. It delays and
//! changes none; two things end a connection:
//!
//! - The server chooses how a password is proved, and if it asks for the password itself, the
//!   client library sends it, whoever the server is. If the server is unverified, this is refused.
//! - The client library allocates as much memory as a server announces. Messages are limited, and
//!   so is what is kept for the life of the connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsStream};

/// Limit on a row: the largest record, and its other columns.
pub(super) const LARGEST_ROW: usize = 128 << 20;
/// Limit on other messages, and on everything that is kept of a connection.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// Bytes of a message's type and length (PostgreSQL, "Message Formats").
const HEAD: usize = 5;
/// The same for an `Authentication…`, followed by its method.
const AUTHENTICATION: usize = 9;
/// The method of `AuthenticationCleartextPassword`.
const CLEARTEXT: [u8; 4] = [0, 0, 0, 3];

/// Why a working connection is ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    /// The server requests a password that it must not get.
    #[error(
        "the server asks for the password in clear text, which goes over loopback, Unix sockets and TLS only (write sslmode=verify-full, let it ask by scram-sha-256, or use a tunnel: ssh -L 5432:localhost:5432 HOST)"
    )]
    Cleartext,
    /// It announces more than any answer needs.
    #[error(
        "the server sends a message of {bytes} bytes, where at most {most} are read (is it a PostgreSQL server?)"
    )]
    TooLarge {
        /// What it announced.
        bytes: usize,
        /// The limit for such messages.
        most: usize,
    },
    /// It continues without an end.
    #[error("the server sends settings and notices without end (is it a PostgreSQL server?)")]
    Endless,
}

/// The state of the message being read.
#[derive(Debug, Default)]
struct Messages {
    /// Its first bytes.
    head: [u8; AUTHENTICATION],
    read: usize,
    /// Remaining bytes after its head.
    left: usize,
    /// Bytes that the client library keeps for the life of the connection.
    kept: usize,
    /// Has the server announced that it is ready?
    is_ready: bool,
}

impl Messages {
    /// Processes further bytes of the server.
    fn follow(&mut self, mut bytes: &[u8], gives_password: bool) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let now = self.left.min(bytes.len());
                self.left -= now;
                bytes = &bytes[now..];
                continue;
            }
            self.head[self.read] = bytes[0];
            self.read += 1;
            bytes = &bytes[1..];
            let wanted = match self.head[0] {
                b'R' => AUTHENTICATION,
                _ => HEAD,
            };
            if self.read == wanted {
                self.left = self.judge(gives_password)?;
                self.read = 0;
            }
        }
        Ok(())
    }

    /// The number of bytes after the head.
    fn judge(&mut self, gives_password: bool) -> io::Result<usize> {
        let [tag, a, b, c, d, method @ ..] = self.head;
        let length = u32::from_be_bytes([a, b, c, d]);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let most = match tag {
            b'D' => LARGEST_ROW,
            _ => MAX_MESSAGE_BYTES,
        };
        if length > most {
            let bytes = length;
            return Err(io::Error::other(Ended::TooLarge { bytes, most }));
        }
        if tag == b'R' && method == CLEARTEXT && !gives_password {
            return Err(io::Error::other(Ended::Cleartext));
        }
        // Before it is ready the library keeps notices, later settings.
        if !self.is_ready || tag == b'S' {
            self.kept += length;
            if self.kept > MAX_MESSAGE_BYTES {
                return Err(io::Error::other(Ended::Endless));
            }
        }
        self.is_ready |= tag == b'Z';
        let head = if tag == b'R' { AUTHENTICATION } else { HEAD };
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
        Poll::Ready(this.messages.follow(more, this.gives_password))
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

    /// The verdict on these bytes, read this many at a time.
    fn follow_handshake(bytes: &[u8], size: usize, gives_password: bool) -> Result<(), String> {
        let mut messages = Messages::default();
        for piece in bytes.chunks(size) {
            messages
                .follow(piece, gives_password)
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
    fn messages_have_a_bound() {
        let check =
            |bytes: &[u8], wanted: Option<&str>| match (follow_handshake(bytes, 3, true), wanted) {
                (Ok(()), None) => {}
                (Err(error), Some(word)) => assert!(error.contains(word), "{error}"),
                (found, _) => panic!("{wanted:?}: {found:?}"),
            };
        let ready = message(b'Z', b"I");
        let after = |tag, length| [ready.clone(), head(tag, length)].concat();
        check(&after(b'D', LARGEST_ROW), None);
        check(&after(b'D', LARGEST_ROW + 1), Some("at most"));
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
        fn the_question_for_the_password_is_found_among_others(
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
        fn any_bytes_are_followed(bytes in prop::collection::vec(any::<u8>(), 0..60), size in 1usize..12) {
            let _ = follow_handshake(&bytes, size, false);
        }
    }
}
