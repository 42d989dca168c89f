//! A server with TLS: which `sslmode` accepts its certificate.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use pinwise_store::StoreError;

use super::Place;
use super::server::{Server, execute, select_column};
use crate::support::{PATIENCE, decode_output, pinwise, report_skip};

/// Methods of authentication: none over the socket.
const HBA: &str = "\
local all all trust
hostssl all scram 127.0.0.1/32 scram-sha-256
host all clear 127.0.0.1/32 password
host all postgres 127.0.0.1/32 trust
";

struct Stage {
    server: Server,
    port: u16,
    socket: String,
}

impl Stage {
    /// Starts a server with a certificate for `localhost` from the authority `ours`. There is another
    /// authority, `theirs`.
    fn new() -> Option<Self> {
        if Command::new("openssl").arg("version").output().is_err() {
            report_skip("openssl is not installed (apt-get install openssl)");
            return None;
        }
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        let server = Server::start_prepared(|folder| {
            write_certificates(folder);
            std::fs::write(folder.join("hba"), HBA).unwrap();
            // The server runs as another user, whatever the umask.
            let readable = std::fs::Permissions::from_mode(0o644);
            std::fs::set_permissions(folder.join("hba"), readable).unwrap();
            drop(free);
            vec![
                format!("port={port}"),
                "listen_addresses=127.0.0.1".to_owned(),
                format!("hba_file={}", folder.join("hba").display()),
            ]
        })?;
        let folder = server.folder().display();
        let socket = format!("postgres://postgres@/postgres?host={folder}&port={port}");
        execute(
            &socket,
            "CREATE USER scram SUPERUSER PASSWORD 'sesame'; CREATE USER clear SUPERUSER PASSWORD 'sesame'",
        );
        Some(Self {
            server,
            port,
            socket,
        })
    }

    /// The URL with these parameters, in which `{ours}` and `{theirs}` are files of the authorities.
    fn url(&self, user_and_host: &str, parameters: &str) -> String {
        let folder = self.server.folder().display();
        let parameters = parameters
            .replace("{ours}", &format!("{folder}/ours.crt"))
            .replace("{theirs}", &format!("{folder}/theirs.crt"));
        format!(
            "postgres://{user_and_host}:{}/postgres?{parameters}",
            self.port
        )
    }

    /// Whether the connection is encrypted, according to the server.
    fn is_encrypted(&self, user_and_host: &str, parameters: &str) -> Result<bool, StoreError> {
        let place = Place::database(self.url(user_and_host, parameters));
        let _store = place.try_open()?;
        let until = Instant::now() + PATIENCE;
        loop {
            let found = select_column(
                &self.socket,
                "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
                 WHERE application_name = 'pinwise'",
            );
            match &found.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ["t"] => return Ok(true),
                ["f"] => return Ok(false),
                // The server may not have noticed yet that the previous client has gone.
                other => assert!(Instant::now() < until, "{other:?}"),
            }
        }
    }

    #[track_caller]
    fn check(&self, user_and_host: &str, parameters: &str, is_encrypted: bool) {
        match self.is_encrypted(user_and_host, parameters) {
            Ok(found) => assert_eq!(found, is_encrypted, "{parameters}"),
            Err(error) => panic!("{parameters}: {error}"),
        }
    }

    #[track_caller]
    fn check_refusal(&self, user_and_host: &str, parameters: &str, words: &[&str]) {
        let error = self.is_encrypted(user_and_host, parameters).unwrap_err();
        let error = error.to_string();
        for word in words {
            assert!(error.contains(word), "{parameters}: {error}");
        }
        assert!(
            !error.contains('\n') && !error.contains("sesame"),
            "{error}"
        );
    }
}

/// Writes the keys and certificates of two authorities and of the server.
fn write_certificates(folder: &Path) {
    let openssl = |arguments: &[&str]| {
        let output = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt"])
            .args(["ec_paramgen_curve:P-256", "-nodes", "-days", "2"])
            .args(arguments)
            .current_dir(folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", decode_output(&output).1);
    };
    for authority in ["ours", "theirs"] {
        let (key, certificate) = (format!("{authority}.key"), format!("{authority}.crt"));
        let name = format!("/CN={authority}");
        openssl(&["-keyout", &key, "-out", &certificate, "-subj", &name]);
    }
    openssl(&[
        "-CA",
        "ours.crt",
        "-CAkey",
        "ours.key",
        "-keyout",
        "server.key",
        "-out",
        "server.crt",
        "-subj",
        "/CN=server",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
    ]);
    // The server runs as another user, whatever the umask here.
    let certificate = folder.join("server.crt");
    std::fs::set_permissions(certificate, PermissionsExt::from_mode(0o644)).unwrap();
}

#[test]
fn sslmode_decides_about_encryption_and_certificates() {
    let Some(stage) = Stage::new() else { return };
    check_certificates(&stage);
    check_where_passwords_go(&stage);
    check_message_of_the_command(&stage);
    // The same server, now without TLS.
    stage.server.stop();
    std::fs::remove_file(stage.server.folder().join("server.key")).unwrap();
    stage.server.start();
    stage.check("postgres@localhost", "", false);
    stage.check("postgres@localhost", "sslmode=prefer", false);
    let words = ["does not speak TLS", "sslmode=prefer", "ssh -L"];
    stage.check_refusal("postgres@localhost", "sslmode=require", &words);
}

fn check_certificates(stage: &Stage) {
    stage.check("postgres@127.0.0.1", "", true);
    stage.check("postgres@127.0.0.1", "sslmode=disable", false);
    stage.check("postgres@127.0.0.1", "sslmode=require", true);
    let ours = "sslmode=verify-full&sslrootcert={ours}";
    stage.check("postgres@localhost", ours, true);
    let words = ["not for 127.0.0.1", "sslmode=verify-ca"];
    stage.check_refusal("postgres@127.0.0.1", ours, &words);
    let ours = "sslmode=verify-ca&sslrootcert={ours}";
    stage.check("postgres@127.0.0.1", ours, true);
    // As in libpq, a named authority is checked with `require`, too.
    for mode in ["require", "verify-ca", "verify-full"] {
        let theirs = format!("sslmode={mode}&sslrootcert={{theirs}}");
        let words = ["no trusted authority", "sslrootcert=FILE"];
        stage.check_refusal("postgres@localhost", &theirs, &words);
    }
    let system = ["no trusted authority", "sslrootcert=FILE"];
    if Path::new("/etc/ssl/certs/ca-certificates.crt").exists() {
        stage.check_refusal("postgres@localhost", "sslrootcert=system", &system);
    }
    let words = ["no certificate authority is named", "sslrootcert=system"];
    stage.check_refusal("postgres@localhost", "sslmode=verify-full", &words);
}

fn check_where_passwords_go(stage: &Stage) {
    // With channel binding the server checks that the client saw its certificate.
    let bound = "sslmode=require&channel_binding=require";
    stage.check("scram:sesame@127.0.0.1", bound, true);
    stage.check("clear:sesame@127.0.0.1", "sslmode=disable", false);
    // This address reaches this machine, too, but the store does not know that: a clear password
    // is sent only over TLS.
    stage.check("clear:sesame@0.0.0.0", "sslmode=require", true);
    for mode in ["prefer", "disable"] {
        let words = ["clear text", "sslmode=verify-full"];
        stage.check_refusal("clear:sesame@0.0.0.0", &format!("sslmode={mode}"), &words);
    }
}

fn check_message_of_the_command(stage: &Stage) {
    let check = |mode: &str, roots: &str, word: Option<&str>| {
        let folder = stage.server.folder();
        let output = pinwise(&folder.join("unused.db"))
            .args(["--store", &stage.url("postgres@localhost", "")])
            .args(["record", "history"])
            .env_remove("PINWISE_STORE")
            .env("HOME", folder)
            .env("XDG_STATE_HOME", folder.join("state"))
            .env("PGSSLMODE", mode)
            .env("PGSSLROOTCERT", folder.join(roots))
            .output()
            .unwrap();
        let (_, err) = decode_output(&output);
        let status = output.status.code();
        match word {
            None => assert_eq!((status, err.as_str()), (Some(0), "")),
            Some(word) => {
                assert_eq!((status, err.lines().count()), (Some(2), 1), "{err}");
                assert!(err.contains(word), "{err}");
            }
        }
    };
    check("verify-full", "ours.crt", None);
    check("verify-full", "theirs.crt", Some("no trusted authority"));
    check("verify-full", "none.crt", Some("none.crt: No such file"));
    check("allow", "ours.crt", Some("write disable, prefer"));
}
