//! The connection to a server, encrypted if requested, and guarded.
//!
//! The client library hands the connection over before it sends anything. This module asks the
//! server for TLS, according to `sslmode`, and returns a stream that inspects all messages of the
//! server. `tls` checks the certificate.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};

use super::failure::{Failure, Insecure};
use super::guard::Guarded;
use super::tls::{Client, Encrypted};
use crate::location::Server;
use crate::sslmode::SslMode;

/// `SSLRequest`: its length and its code (PostgreSQL, "Message Formats").
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// Makes connections to a server.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    mode: SslMode,
    client: Client,
    /// Does all traffic stay on this machine?
    is_local: bool,
    host: String,
}

impl Connector {
    pub(super) fn new(server: &Server) -> Result<Self, Insecure> {
        let mode = match server.security.mode() {
            _ if server.is_socket() => SslMode::Disable,
            mode => mode,
        };
        Ok(Self {
            mode,
            client: Client::new(mode, server.security.authorities())?,
            is_local: server.is_local(),
            host: String::new(),
        })
    }

    /// A connector without encryption, if encryption is optional.
    pub(super) fn fallback(&self) -> Option<Self> {
        let mode = SslMode::Disable;
        (self.mode == SslMode::Prefer).then(|| Self {
            mode,
            ..self.clone()
        })
    }

    /// Guards a connection that stays unencrypted.
    pub(super) fn guard_plain<S>(&self, stream: S) -> Guarded<Channel<S>> {
        Guarded::new(Channel::Plain(stream), self.is_local, None)
    }

    async fn secure<S>(self, mut stream: S) -> Result<Guarded<Channel<S>>, Failure>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        if self.mode == SslMode::Disable {
            return Ok(self.guard_plain(stream));
        }
        stream.write_all(&SSL_REQUEST).await?;
        stream.flush().await?;
        // Exactly one byte: the rest must come encrypted.
        match stream.read_u8().await? {
            b'S' => {}
            b'N' if self.mode == SslMode::Prefer => return Ok(self.guard_plain(stream)),
            b'N' => {
                return Err(Failure::Insecure(Insecure(
                    "the server does not speak TLS (sslmode=prefer does without; or use a tunnel: ssh -L 5432:localhost:5432 HOST)".to_owned(),
                )));
            }
            _ => {
                return Err(Failure::Insecure(Insecure(
                    "the server does not know TLS (is it a PostgreSQL server? sslmode=disable does not ask)".to_owned(),
                )));
            }
        }
        let (encrypted, end_point) = self.client.encrypt(stream, &self.host).await?;
        // A user who only prefers TLS has not said which server may get the password.
        let gives_password = self.is_local || self.mode > SslMode::Prefer;
        let stream = Channel::Encrypted(Box::new(encrypted));
        Ok(Guarded::new(stream, gives_password, end_point))
    }
}

impl<S> MakeTlsConnect<S> for Connector
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Guarded<Channel<S>>;
    type TlsConnect = Self;
    type Error = Failure;

    fn make_tls_connect(&mut self, host: &str) -> Result<Self, Failure> {
        Ok(Self {
            host: host.to_owned(),
            ..self.clone()
        })
    }
}

impl<S> TlsConnect<S> for Connector
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Guarded<Channel<S>>;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Stream, Failure>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(self.secure(stream))
    }
}

/// A connection, encrypted or not.
pub(super) enum Channel<S> {
    Plain(S),
    Encrypted(Box<Encrypted<S>>),
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Channel<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, into),
            Self::Encrypted(stream) => Pin::new(stream).poll_read(context, into),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Channel<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Encrypted(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Encrypted(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Encrypted(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
