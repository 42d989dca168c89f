//! TLS for clients: which certificates are trusted, and for which hosts.
//!
//! `require` only checks that the server holds the certificate's key: SCRAM's channel binding then
//! detects a man in the middle. No client certificate is sent, and no revocation list read.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256, Sha384, Sha512};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use tokio_rustls::rustls::crypto::{
    WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use super::failure::{Failure, Insecure};
use crate::sslmode::{Authorities, SslMode};

/// A connection that is encrypted.
pub(super) type Encrypted<S> = TlsStream<S>;

/// Limits the size of a file of certificates, bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The systems' trusted certificates: Debian, Red Hat, SUSE, Alpine.
const SYSTEM_FILES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The TLS configuration of all connections.
#[derive(Debug, Clone)]
pub(super) struct Client(Option<Arc<ClientConfig>>);

impl Client {
    /// Reads the authorities' certificates if `mode` needs them.
    pub(super) fn new(mode: SslMode, authorities: Option<&Authorities>) -> Result<Self, Insecure> {
        if mode == SslMode::Disable {
            return Ok(Self(None));
        }
        let roots = match mode >= SslMode::VerifyCa {
            true => Some(read_roots(authorities)?),
            false => None,
        };
        let provider = Arc::new(ring::default_provider());
        let verifier = Verifier {
            roots,
            checks_name: mode == SslMode::VerifyFull,
            algorithms: provider.signature_verification_algorithms,
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Insecure(format!("TLS: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Self(Some(Arc::new(config))))
    }

    /// Encrypts a connection; returns it with its channel binding.
    pub(super) async fn encrypt<S>(
        self,
        stream: S,
        host: &str,
    ) -> Result<(Encrypted<S>, Option<Vec<u8>>), Failure>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = ServerName::try_from(host.to_owned());
        let (Some(config), Ok(name)) = (self.0, name) else {
            return Err(Insecure(format!("TLS: '{host}' is not the name of a host")).into());
        };
        let connected = TlsConnector::from(config).connect(name, stream).await;
        let stream = connected.map_err(|error| explain_failure(error, host))?;
        let (_, session) = stream.get_ref();
        let certificate = session.peer_certificates().and_then(<[_]>::first);
        let end_point = certificate.and_then(|certificate| hash_end_point(certificate));
        Ok((stream, end_point))
    }
}

/// The certificates of authorities.
fn read_roots(authorities: Option<&Authorities>) -> Result<RootCertStore, Insecure> {
    let path = match authorities {
        Some(Authorities::File(path)) => path,
        Some(Authorities::System) => {
            let found = SYSTEM_FILES
                .iter()
                .map(Path::new)
                .find(|path| path.exists());
            found.ok_or_else(|| {
                Insecure(
                    "this system has no file of trusted certificates (name one: sslrootcert=FILE)"
                        .to_owned(),
                )
            })?
        }
        None => {
            return Err(Insecure(
                "no certificate authority is named (add sslrootcert=FILE, with its certificates, or sslrootcert=system)"
                    .to_owned(),
            ));
        }
    };
    let invalid = |reason: &str| Insecure(format!("sslrootcert={}: {reason}", path.display()));
    let pem = read_file(path).map_err(|error| invalid(&error.to_string()))?;
    let mut certificates = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        certificates.push(certificate.map_err(|_| invalid("it is damaged, or not PEM"))?);
    }
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates);
    match added {
        0 => Err(invalid(
            "it has no certificate (as PEM, -----BEGIN CERTIFICATE-----)",
        )),
        _ => Ok(roots),
    }
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a pipe or device must not block.
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other("it is larger than 4 MiB"));
    }
    Ok(bytes)
}

/// Why there is no encrypted connection, and what to do.
fn explain_failure(error: io::Error, host: &str) -> Failure {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    let Some(inner) = inner else {
        return error.into();
    };
    let words = match inner {
        Error::InvalidCertificate(error) => match error {
            CertificateError::UnknownIssuer => {
                "its certificate is of no trusted authority (sslrootcert=FILE names them)"
                    .to_owned()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!("its certificate is not for {host} (sslmode=verify-ca takes any name)")
            }
            error => format!("its certificate: {error} (sslmode=require takes any)"),
        },
        error => format!("TLS: {error}"),
    };
    Insecure(words).into()
}

/// Checks only what `sslmode` requests.
#[derive(Debug)]
struct Verifier {
    roots: Option<RootCertStore>,
    checks_name: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            let certificate = ParsedCertificate::try_from(certificate)?;
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                roots,
                intermediates,
                now,
                self.algorithms.all,
            )?;
            if self.checks_name {
                verify_server_name(&certificate, name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// `tls-server-end-point` (RFC 5929): the certificate, hashed with its signature's hash, MD5 and
/// SHA-1 replaced. `None` for other signatures.
fn hash_end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    // Certificate ::= SEQUENCE { tbsCertificate, SEQUENCE { OBJECT, … }, … }
    let (whole, _) = split_element(certificate, 0x30)?;
    let (_, rest) = split_element(whole, 0x30)?;
    let (algorithm, _) = split_element(rest, 0x30)?;
    let (object, _) = split_element(algorithm, 0x06)?;
    // The prefixes of the object identifiers of PKCS #1 and ANSI X9.62; their last bytes name the
    // hash.
    let rsa = object.strip_prefix(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01]);
    let ecdsa = object.strip_prefix(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04]);
    match (rsa, ecdsa) {
        (Some([4 | 5 | 11]), _) | (_, Some([1] | [3, 2])) => {
            Some(Sha256::digest(certificate).to_vec())
        }
        (Some([12]), _) | (_, Some([3, 3])) => Some(Sha384::digest(certificate).to_vec()),
        (Some([13]), _) | (_, Some([3, 4])) => Some(Sha512::digest(certificate).to_vec()),
        _ => None,
    }
}

/// Splits DER into the content of its first element, which must have this tag, and the rest.
fn split_element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, first], mut rest) = der.split_first_chunk()?;
    let mut length = usize::from(first);
    if first > 0x80 {
        let (bytes, after) = rest.split_at_checked(length & 0x7f)?;
        length = bytes.iter().try_fold(0_usize, |all, &byte| {
            Some(all.checked_mul(256)? + usize::from(byte))
        })?;
        rest = after;
    }
    (found == tag).then(|| rest.split_at_checked(length))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A certificate with only the parts that are read.
    fn build_certificate(object: &[u8]) -> Vec<u8> {
        let encode = |tag: u8, content: &[u8]| {
            let length = u16::try_from(content.len()).unwrap().to_be_bytes();
            [&[tag, 0x82][..], &length, content].concat()
        };
        let algorithm = encode(0x30, &encode(0x06, object));
        encode(0x30, &[encode(0x30, &[0; 300]), algorithm].concat())
    }

    #[test]
    fn end_point_has_the_hash_of_the_signature() {
        let length =
            |object: &[u8]| hash_end_point(&build_certificate(object)).map(|hash| hash.len());
        let rsa = |last: u8| length(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, last]);
        let found = [5, 10, 11, 12, 13].map(rsa);
        assert_eq!(found, [Some(32), None, Some(32), Some(48), Some(64)]);
        assert_eq!(
            length(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 3, 3]),
            Some(48)
        );
        assert_eq!(length(&[0x2b, 0x65, 0x70]), None);
    }

    #[test]
    fn files_without_certificates_are_refused_with_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let check = |name: &str, content: Option<Vec<u8>>, word: &str| {
            let path = folder.path().join(name);
            if let Some(content) = content {
                std::fs::write(&path, content).unwrap();
            }
            let error = read_roots(Some(&Authorities::File(path)))
                .unwrap_err()
                .to_string();
            assert!(error.contains(name) && error.contains(word), "{error}");
        };
        check("none", None, "No such file");
        check("", None, "not a file");
        check("text", Some(b"-".to_vec()), "BEGIN CERTIFICATE");
        check(
            "broken",
            Some(b"-----BEGIN CERTIFICATE-----\n%\n".to_vec()),
            "PEM",
        );
        let large = vec![b'x'; usize::try_from(MAX_FILE_BYTES).unwrap() + 1];
        check("large", Some(large), "4 MiB");
        let error = read_roots(None).unwrap_err().to_string();
        assert!(error.contains("sslrootcert=system"), "{error}");
    }

    proptest! {
        #[test]
        fn any_certificate_is_parsed(bytes in prop::collection::vec(any::<u8>(), 0..60), at in 0usize..400) {
            let _ = hash_end_point(&bytes);
            let mut whole = build_certificate(&bytes);
            whole.truncate(at);
            let _ = hash_end_point(&whole);
        }
    }
}
