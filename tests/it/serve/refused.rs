//! Requests that are refused, and what is reported if something is wrong.

use std::net::TcpListener;
use std::os::unix::process::CommandExt;

use super::*;
use crate::support::report_skip;

#[test]
fn every_path_is_below_the_secret() {
    let place = Place::new();
    place.compare(&[]);
    let site = place.serve();
    let secret = site.home.trim_matches('/');
    let longer = format!("/{secret}0/");
    let shorter = format!("/{}/", &secret[1..]);
    let upper = format!("/{}/", secret.to_uppercase());
    let bare = format!("/{secret}");
    let below = format!("/{secret}/../{secret}/");
    let paths = [
        "/",
        "//",
        "/api/records",
        "/favicon.ico",
        "/etc/passwd",
        "/open/",
        "/%2e%2e/",
        &longer,
        &shorter,
        &upper,
    ];
    for path in paths {
        let answer = site.ask("GET", path, &[]);
        assert_eq!((answer.status, answer.body.as_str()), (404, ""), "{path}");
        answer.check_protection();
    }
    // Who knows the secret gets a link to the page.
    let home = format!("href=\"{}\"", site.home);
    for (path, status) in [
        (bare.as_str(), 200),
        (below.as_str(), 404),
        (&format!("{}nothing", site.home), 404),
    ] {
        let answer = site.ask("GET", path, &[]);
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.body.contains(&home), "{path}: {}", answer.body);
        answer.check_protection();
    }
    for path in [
        "nothing",
        "api",
        "api/",
        "api/records/",
        "api/records/a/b",
        "../etc/passwd",
    ] {
        assert_eq!(site.get(path).status, 404, "{path}");
    }
}

#[test]
fn only_own_hosts_and_origins_are_answered() {
    let place = Place::new();
    let site = place.serve();
    let check = |name, value: &str, status| {
        let answer = site.ask(
            "GET",
            &format!("{}api/records", site.home),
            &[(name, value)],
        );
        assert_eq!(answer.status, status, "{name}: {value}");
        answer.check_protection();
        assert_eq!(answer.body.is_empty(), status != 200);
    };
    let port = site.port;
    check("Host", &format!("localhost:{port}"), 200);
    check("Host", &format!("[::1]:{port}"), 200);
    check("Host", &format!("rebound.example:{port}"), 421);
    check("Host", "127.0.0.1", 421);
    check("Host", "", 421);
    check("Origin", &format!("http://127.0.0.1:{port}"), 200);
    check("Origin", "http://rebound.example", 403);
    check("Origin", "null", 403);
    check("Sec-Fetch-Site", "same-origin", 200);
    check("Sec-Fetch-Site", "cross-site", 403);
    // No request changes anything.
    let answer = site.ask("DELETE", &format!("{}api/records/last", site.home), &[]);
    assert_eq!((answer.status, answer.header("allow")), (405, "get, head"));
    answer.check_protection();
}

#[test]
fn too_large_requests_are_refused() {
    let site = Place::new().serve();
    let long = "a".repeat(5_000);
    assert_eq!(site.get(&format!("api/records?text={long}")).status, 414);
    let larger = "a".repeat(100_000);
    let status = site.ask("GET", &site.home, &[("Cookie", &larger)]).status;
    assert_eq!(status, 431);
    let many: Vec<(&str, &str)> = vec![("X-Many", "1"); 100];
    assert_eq!(site.ask("GET", &site.home, &many).status, 431);
    assert_eq!(
        Answer::read(site.send("this is no HTTP\r\n\r\n")).status,
        400
    );
    assert_eq!(site.get("").status, 200);
}

#[test]
fn damaged_and_newer_records_do_not_hide_the_others() {
    let place = Place::new();
    let ids = [place.compare(&[]), place.compare(&[]), place.compare(&[])];
    let site = place.serve();
    let newer = "replace(body, 'pinwise.comparison/1', 'pinwise.comparison/9')";
    place.execute_sql(&format!(
        "UPDATE record SET body = substr(body, 1, 300) WHERE id = '{}'",
        ids[0]
    ));
    place.execute_sql(&format!(
        "UPDATE record SET body = {newer} WHERE id = '{}'",
        ids[1]
    ));
    let (status, error) = site.get_error(&format!("api/records/{}", ids[0]));
    assert!(status == 422 && error.contains("damaged"), "{error}");
    for path in ["records", "live"] {
        let (status, error) = site.get_error(&format!("api/{path}/{}", ids[1]));
        assert!(
            status == 422 && error.contains("pinwise.comparison/9"),
            "{error}"
        );
    }
    assert_eq!(site.get_json("api/records")["total"], 3);
    assert_eq!(
        site.get_json(&format!("api/records/{}", ids[2]))["id"],
        ids[2].as_str()
    );
    let (_, message) = site.end("TERM");
    assert!(
        !message.contains("warning"),
        "a record's damage is no trouble of the store: {message}"
    );
}

/// Checks for exit status 2 and an error of one line that has these words.
#[track_caller]
fn check_failure(output: &Output, words: &str) {
    let (out, err) = decode_output(output);
    assert_eq!((output.status.code(), out.as_str()), (Some(2), ""), "{err}");
    assert!(err.starts_with("error:") && err.contains(words), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
}

#[test]
fn unavailable_ports_and_pages_are_reported_at_the_start() {
    let place = Place::new();
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    check_failure(
        &place.run(&["serve", "--port", &port]),
        "is in use by another program (choose",
    );
    std::fs::write(place.path("page.html"), "<html>").unwrap();
    check_failure(&place.run(&["serve"]), "another version");
    check_failure(
        &place
            .pinwise(&["serve"])
            .env("PINWISE_PAGE", "/no/page.html")
            .output()
            .unwrap(),
        "/no/page.html",
    );
    if ::pinwise_report::page::PAGE.is_none() {
        let output = place
            .pinwise(&["serve"])
            .env_remove("PINWISE_PAGE")
            .output();
        check_failure(&output.unwrap(), "built without its page");
    }
}

#[test]
fn stores_that_cannot_be_read_are_reported_at_the_start() {
    let place = Place::new();
    place.compare(&[]);
    let holder = rusqlite::Connection::open(place.store()).unwrap();
    holder
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;")
        .unwrap();
    check_failure(&place.run(&["serve"]), "locked");
    drop(holder);
    place.execute_sql("PRAGMA user_version = 99");
    check_failure(&place.run(&["serve"]), "schema 99");
    std::fs::write(
        place.store(),
        "no store, but long enough to look like the file of one",
    )
    .unwrap();
    check_failure(&place.run(&["serve"]), "damaged");
}

#[test]
fn an_unreachable_store_is_reported_once_and_used_again_later() {
    let place = Place::new();
    let id = place.compare(&[]);
    let site = place.serve();
    // A writer does not block readers.
    let writer = rusqlite::Connection::open(place.store()).unwrap();
    writer
        .execute_batch("BEGIN EXCLUSIVE; DELETE FROM record")
        .unwrap();
    assert_eq!(site.get_json("api/records")["total"], 1);
    drop(writer);
    let away = place.path("away.db");
    std::fs::rename(place.store(), &away).unwrap();
    for path in ["api/records", "api/records/last", "api/live/last"] {
        let (status, error) = site.get_error(path);
        assert_eq!(status, 503, "{path}");
        assert!(error.contains("cannot be opened"), "{error}");
    }
    assert_eq!(
        site.get("").status,
        200,
        "the page itself says what is wrong"
    );
    std::fs::rename(&away, place.store()).unwrap();
    assert_eq!(site.get_json("api/records/last")["id"], id.as_str());
    let (_, message) = site.end("TERM");
    assert_eq!(message.matches("warning:").count(), 1, "{message}");
}

#[test]
fn listening_beyond_loopback_is_warned_of() {
    let place = Place::new();
    let site = Serving::start(&mut place.pinwise(&["serve", "--listen", "0.0.0.0"]));
    let host = format!("192.0.2.7:{}", site.port);
    assert_eq!(site.ask("GET", &site.home, &[("Host", &host)]).status, 200);
    assert_eq!(
        site.ask("GET", &site.home, &[("Host", "rebound.example")])
            .status,
        421
    );
    let (_, message) = site.end("TERM");
    assert!(
        message.contains("warning:") && message.contains("without encryption"),
        "{message}"
    );
    let quiet = Place::new();
    let (_, message) = quiet.serve().end("TERM");
    assert!(!message.contains("warning:"), "{message}");
}

#[test]
fn another_user_is_refused_even_with_the_secret() {
    let place = Place::new();
    let site = place.serve();
    let request = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{0} && printf 'GET {1} HTTP/1.1\\r\\nHost: 127.0.0.1:{0}\\r\\n\\r\\n' >&3 && cat <&3",
        site.port, site.home
    );
    let ask = |user: Option<u32>| {
        let mut shell = Command::new("bash");
        shell.args(["-c", &request]).current_dir("/");
        if let Some(user) = user {
            shell.uid(user).gid(user);
        }
        shell.output()
    };
    let own = decode_output(&ask(None).unwrap()).0;
    assert!(own.starts_with("HTTP/1.1 200 "), "{own}");
    let other = match ask(Some(65534)) {
        Ok(output) => decode_output(&output).0,
        Err(error) => return report_skip(&format!("not root: {error}")),
    };
    assert!(other.starts_with("HTTP/1.1 403 "), "{other}");
    assert!(!other.contains(PAGE), "{other}");
    let (_, message) = site.end("TERM");
    assert!(message.contains("user 65534"), "{message}");
}

#[test]
fn a_missing_store_is_not_created() {
    let place = Place::new();
    let site = place.serve();
    assert_eq!(site.get_json("api/records")["total"], 0);
    assert!(!place.store().exists());
    place.compare(&[]);
    assert_eq!(site.get_json("api/records")["total"], 1);
    let (_, message) = site.end("TERM");
    assert!(message.contains("which does not exist yet"), "{message}");
}
