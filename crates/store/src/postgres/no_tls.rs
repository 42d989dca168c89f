//! What stands in the place of `tls` in a pinwise that is built without it:
//! nobody who asks for TLS is connected without.

use super::failure::{Failure, Insecure};
use crate::sslmode::{Authorities, SslMode};

/// Can connections be encrypted?
pub(super) const IS_SPOKEN: bool = false;

/// There is none.
pub(super) type Encrypted<S> = S;

/// What encrypts nothing.
#[derive(Debug, Clone)]
pub(super) struct Client;

impl Client {
    pub(super) fn new(mode: SslMode, _: Option<&Authorities>) -> Result<Self, Insecure> {
        match mode {
            SslMode::Disable | SslMode::Prefer => Ok(Self),
            _ => Err(refusal()),
        }
    }

    #[expect(clippy::unused_async, reason = "with TLS it waits")]
    pub(super) async fn encrypt<S>(
        self,
        _: S,
        _: &str,
    ) -> Result<(Encrypted<S>, Option<Vec<u8>>), Failure> {
        Err(refusal().into())
    }
}

fn refusal() -> Insecure {
    Insecure(
        "this pinwise is built without TLS (build it with the feature tls, or use a tunnel: ssh -L 5432:localhost:5432 HOST)"
            .to_owned(),
    )
}
