//! A password goes in clear text to nobody across a network.
//!
//! The server chooses how it is proved to it, and one that asks for the password
//! itself gets it from the client library, whoever the server is. Over a
//! connection that is not encrypted it may be anybody: there this refuses. It
//! looks at the first message of the server and passes on all the rest.

use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

/// The beginning of `AuthenticationCleartextPassword`: type, length, 3
/// (PostgreSQL, "Message Formats").
const CLEARTEXT: [u8; 9] = [b'R', 0, 0, 0, 8, 0, 0, 0, 3];

/// The server wants what it must not get.
#[derive(Debug, thiserror::Error)]
#[error(
    "the server asks for the password in clear text, which goes over loopback and Unix sockets only (let it ask by scram-sha-256, or use a tunnel: ssh -L 5432:localhost:5432 HOST)"
)]
pub(super) struct CleartextRefused;

/// Puts a [`Guarded`] in the place where the client library has TLS.
#[derive(Debug, Clone, Copy)]
pub(super) struct Guard;

impl<S: AsyncRead + AsyncWrite + Unpin> MakeTlsConnect<S> for Guard {
    type Stream = Guarded<S>;
    type TlsConnect = Self;
    type Error = io::Error;

    fn make_tls_connect(&mut self, _: &str) -> io::Result<Self> {
        Ok(*self)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsConnect<S> for Guard {
    type Stream = Guarded<S>;
    type Error = io::Error;
    type Future = Ready<io::Result<Guarded<S>>>;

    fn connect(self, stream: S) -> Self::Future {
        ready(Ok(Guarded {
            stream,
            head: [0; CLEARTEXT.len()],
            read: 0,
            given: 0,
            is_known: false,
        }))
    }
}

/// A connection whose first message is looked at.
#[derive(Debug)]
pub(super) struct Guarded<S> {
    stream: S,
    /// The first bytes of the server.
    head: [u8; CLEARTEXT.len()],
    read: usize,
    given: usize,
    /// Is it known that the head may pass?
    is_known: bool,
}

impl<S> TlsStream for Guarded<S>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while !this.is_known {
            let mut rest = ReadBuf::new(&mut this.head[this.read..]);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut rest))?;
            let more = rest.filled().len();
            this.read += more;
            let head = &this.head[..this.read];
            if head == CLEARTEXT {
                return Poll::Ready(Err(io::Error::other(CleartextRefused)));
            }
            this.is_known = more == 0 || !CLEARTEXT.starts_with(head);
        }
        if this.given < this.read {
            let left = &this.head[this.given..this.read];
            let now = left.len().min(into.remaining());
            into.put_slice(&left[..now]);
            this.given += now;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.stream).poll_read(context, into)
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

    /// A connection that has these bytes, so many at a time.
    struct Pieces {
        bytes: Vec<u8>,
        size: usize,
    }

    impl AsyncRead for Pieces {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            into: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let now = self.size.min(self.bytes.len()).min(into.remaining());
            let piece: Vec<u8> = self.bytes.drain(..now).collect();
            into.put_slice(&piece);
            Poll::Ready(Ok(()))
        }
    }

    /// What passes, by buffers of this size; `None` where it is refused.
    fn passed(bytes: &[u8], size: usize, buffer: usize) -> Option<Vec<u8>> {
        let mut guarded = Guarded {
            stream: Pieces {
                bytes: bytes.to_vec(),
                size,
            },
            head: [0; CLEARTEXT.len()],
            read: 0,
            given: 0,
            is_known: false,
        };
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut all = Vec::new();
        loop {
            let mut space = vec![0; buffer];
            let mut into = ReadBuf::new(&mut space);
            match Pin::new(&mut guarded).poll_read(&mut context, &mut into) {
                Poll::Ready(Ok(())) if into.filled().is_empty() => return Some(all),
                Poll::Ready(Ok(())) => all.extend_from_slice(into.filled()),
                Poll::Ready(Err(error)) => {
                    assert!(error.to_string().contains("clear text"), "{error}");
                    return None;
                }
                Poll::Pending => panic!("there is always something"),
            }
        }
    }

    proptest! {
        #[test]
        fn everything_passes_but_the_question_for_the_password(
            bytes in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..30),
                // Other methods, and a message that was cut off.
                (0u8..14, prop::collection::vec(any::<u8>(), 0..9)).prop_map(|(method, more)| {
                    [&[b'R', 0, 0, 0, 8, 0, 0, 0, method][..], &more].concat()
                }),
                (0..CLEARTEXT.len()).prop_map(|length| CLEARTEXT[..length].to_vec()),
            ],
            size in 1usize..12,
            buffer in 1usize..20,
        ) {
            let wanted = (!bytes.starts_with(&CLEARTEXT)).then(|| bytes.clone());
            prop_assert_eq!(passed(&bytes, size, buffer), wanted);
        }
    }
}
