//! A database that several users share.

use super::server::{Server, execute, select};
use super::{Place, comparison};

/// A database with the users anna, who makes the tables, and bert.
struct Shared {
    _server: Server,
    url: String,
    anna: Place,
    bert: Place,
}

impl Shared {
    fn new(test: &str) -> Option<Self> {
        let server = Server::own(test)?;
        let url = server.database();
        let name = url.split(['/', '?']).nth(3).unwrap().to_owned();
        execute(
            &url,
            &format!("CREATE USER anna; CREATE USER bert; GRANT CREATE ON DATABASE {name} TO anna"),
        );
        let of = |user: &str| Place::database(url.replace("postgres@", &format!("{user}@")));
        let (anna, bert) = (of("anna"), of("bert"));
        anna.open().keep(&comparison("hers")).unwrap();
        execute(
            &url,
            "GRANT USAGE ON SCHEMA pinwise TO bert;
             GRANT SELECT ON pinwise.version TO bert;
             GRANT SELECT, INSERT, UPDATE, DELETE
                ON pinwise.record, pinwise.run, pinwise.line, pinwise.outline, pinwise.tag TO bert",
        );
        Some(Self {
            _server: server,
            url,
            anna,
            bert,
        })
    }
}

#[test]
fn others_may_read_a_record_and_not_change_it() {
    let Some(shared) = Shared::new("store::others_may_read_a_record_and_not_change_it") else {
        return;
    };
    let before = shared.anna.open().load("hers").unwrap();
    let mut store = shared.bert.open();
    assert_eq!(store.load("hers").unwrap(), before);
    store.keep(&comparison("his")).unwrap();
    assert_eq!(store.list(9).unwrap().len(), 2);

    let change = |_: &[String]| vec!["mine".to_owned()];
    let error = store.retag("hers", change).unwrap_err().to_string();
    assert!(error.contains("anna's"), "{error}");
    assert_eq!(store.retag("his", change).unwrap().after, ["mine"]);
    let ids = ["hers", "his"].map(str::to_owned);
    let removed = store.remove(&ids).unwrap();
    assert_eq!(
        (&removed.gone[..], &removed.of_others[..]),
        (&ids[1..], &ids[..1])
    );
    let mut other = comparison("hers");
    other.tags = vec!["forged".to_owned()];
    let error = store.keep(&other).err().map(|error| error.to_string());
    let waits = shared.bert.message().join("\n");
    let message = error.unwrap_or(waits);
    assert!(message.contains("another database user's"), "{message}");
    assert!(!store.create(&other).unwrap());
    assert_eq!(shared.anna.open().load("hers").unwrap(), before);
    // Who made the tables has no more rights to the rows of others.
    drop(store);
    shared.bert.open().create(&comparison("later")).unwrap();
    let removed = shared.anna.open().remove(&["later".to_owned()]).unwrap();
    assert_eq!(removed.of_others, ["later"]);
}

#[test]
fn past_the_store_others_cannot_change_a_record_either() {
    let test = "store::past_the_store_others_cannot_change_a_record_either";
    let Some(shared) = Shared::new(test) else {
        return;
    };
    let before = shared.anna.open().load("hers").unwrap();
    let bert = shared.bert.url.as_str();
    for sql in [
        "UPDATE pinwise.record SET body = 'x'",
        "UPDATE pinwise.line SET title = 'x'",
        "UPDATE pinwise.outline SET body = 'x'",
        "DELETE FROM pinwise.record",
        "DELETE FROM pinwise.line",
    ] {
        // None is his: nothing happens.
        execute(bert, sql);
    }
    let number = select(&shared.url, "SELECT number FROM pinwise.line").remove(0);
    let forged = [
        format!("INSERT INTO pinwise.tag (name, number) VALUES ('x', {number})"),
        format!("INSERT INTO pinwise.tag (name, number, owner) VALUES ('x', {number}, 'anna')"),
        "INSERT INTO pinwise.run (record, number, arm, body) VALUES ('hers', 99, 0, '')".to_owned(),
    ];
    for sql in forged {
        let quiet = format!(
            "DO $$ BEGIN {sql}; RAISE 'it was taken' USING ERRCODE = 'P0002'; EXCEPTION WHEN foreign_key_violation OR insufficient_privilege THEN NULL; END $$"
        );
        execute(bert, &quiet);
    }
    let store = shared.anna.open();
    assert_eq!(store.list(9).unwrap().len(), 1);
    assert_eq!(store.load("hers").unwrap(), before);
    let tags = select(&shared.url, "SELECT count(*) FROM pinwise.tag");
    assert_eq!(tags, ["0"]);
}
