//! A database that several users share.

use super::server::{Server, execute, select_column};
use super::{Place, simulate_comparison};

/// A database with the users anna, who owns it and creates the tables, and bert.
struct Shared {
    _server: Server,
    url: String,
    anna: Place,
    bert: Place,
}

impl Shared {
    fn new() -> Option<Self> {
        let server = Server::start_own()?;
        let url = server.create_database();
        let name = url.split(['/', '?']).nth(3).unwrap().to_owned();
        execute(
            &url,
            &format!("CREATE USER anna; CREATE USER bert; ALTER DATABASE {name} OWNER TO anna"),
        );
        let place_of = |user: &str| Place::database(url.replace("postgres@", &format!("{user}@")));
        let (anna, bert) = (place_of("anna"), place_of("bert"));
        anna.open().keep(&simulate_comparison("hers")).unwrap();
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
    let Some(shared) = Shared::new() else { return };
    let before = shared.anna.open().load("hers").unwrap();
    let mut store = shared.bert.open();
    assert_eq!(store.load("hers").unwrap(), before);
    store.keep(&simulate_comparison("his")).unwrap();
    assert_eq!(store.list(9).unwrap().len(), 2);

    let change = |_: &[String]| vec!["mine".to_owned()];
    let error = store.retag("hers", change).unwrap_err().to_string();
    assert!(error.contains("database user anna,"), "{error}");
    assert_eq!(store.retag("his", change).unwrap().after, ["mine"]);
    let ids = ["hers", "his"].map(str::to_owned);
    let removed = store.remove(&ids).unwrap();
    assert_eq!(
        (&removed.gone[..], &removed.of_others[..]),
        (&ids[1..], &ids[..1])
    );
    let mut other = simulate_comparison("hers");
    other.tags = vec!["forged".to_owned()];
    let error = store.keep(&other).err().map(|error| error.to_string());
    let waits = shared.bert.take_messages().join("\n");
    let message = error.unwrap_or(waits);
    assert!(
        message.contains("belongs to another database user"),
        "{message}"
    );
    assert!(!store.create(&other).unwrap());
    assert_eq!(shared.anna.open().load("hers").unwrap(), before);
    // The owner of the tables may not change the rows of others, either.
    drop(store);
    shared
        .bert
        .open()
        .create(&simulate_comparison("later"))
        .unwrap();
    let removed = shared.anna.open().remove(&["later".to_owned()]).unwrap();
    assert_eq!(removed.of_others, ["later"]);
}

#[test]
fn others_cannot_change_a_record_by_sql() {
    let Some(shared) = Shared::new() else { return };
    let before = shared.anna.open().load("hers").unwrap();
    let bert = shared.bert.url.as_str();
    for sql in [
        "UPDATE pinwise.record SET body = 'x'",
        "UPDATE pinwise.line SET title = 'x'",
        "UPDATE pinwise.outline SET body = 'x'",
        "DELETE FROM pinwise.record",
        "DELETE FROM pinwise.line",
    ] {
        // None of the rows is bert's: nothing changes.
        execute(bert, sql);
    }
    let number = select_column(&shared.url, "SELECT number FROM pinwise.line").remove(0);
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
    let tags = select_column(&shared.url, "SELECT count(*) FROM pinwise.tag");
    assert_eq!(tags, ["0"]);
}

/// The error of the store when the superuser opens it, if any.
fn open_error(url: &str) -> Option<String> {
    let refused = Place::database(url.to_owned()).try_open().err();
    refused.map(|error| error.to_string())
}

#[test]
fn the_creator_of_the_tables_cannot_run_code_as_later_users() {
    let Some(server) = Server::start_own() else {
        return;
    };
    let url = server.create_database();
    let name = url.split(['/', '?']).nth(3).unwrap();
    execute(
        &url,
        &format!("CREATE USER mallory; GRANT CREATE ON DATABASE {name} TO mallory"),
    );
    let mallory = url.replace("postgres@", "mallory@");
    Place::database(mallory.clone()).open();
    execute(
        &mallory,
        "CREATE FUNCTION pinwise.plant() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN ALTER ROLE mallory SUPERUSER; RETURN NEW; END $$;
         CREATE TRIGGER plant BEFORE INSERT ON pinwise.record
            FOR EACH ROW EXECUTE FUNCTION pinwise.plant();
         GRANT ALL ON SCHEMA pinwise TO PUBLIC;
         GRANT ALL ON ALL TABLES IN SCHEMA pinwise TO PUBLIC",
    );
    let place = Place::database(url.clone());
    if let Ok(mut store) = place.try_open() {
        store.keep(&simulate_comparison("one")).unwrap();
    }
    let rights = "SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'";
    assert_eq!(select_column(&url, rights), ["f"]);
    let error = open_error(&url).unwrap();
    assert!(
        error.contains("schema pinwise belongs to mallory") && !error.contains('\n'),
        "{error}"
    );
}

/// SQL that another user may leave in the schema, SQL that removes it, and words of the refusal.
const PLANTS: [(&str, &str, &str); 13] = [
    (
        "ALTER SCHEMA pinwise OWNER TO mallory",
        "ALTER SCHEMA pinwise OWNER TO postgres",
        "the schema pinwise belongs to mallory",
    ),
    (
        "ALTER TABLE pinwise.tag OWNER TO mallory",
        "ALTER TABLE pinwise.tag OWNER TO postgres",
        "belongs to mallory",
    ),
    (
        "GRANT CREATE ON SCHEMA pinwise TO mallory",
        "REVOKE CREATE ON SCHEMA pinwise FROM mallory",
        "(REVOKE CREATE ON schema pinwise FROM mallory;",
    ),
    (
        "GRANT ALL ON pinwise.run TO PUBLIC",
        "REVOKE ALL ON pinwise.run FROM PUBLIC",
        "(REVOKE TRIGGER ON table pinwise.run FROM PUBLIC;",
    ),
    (
        "CREATE TRIGGER plant BEFORE INSERT ON pinwise.tag
                FOR EACH ROW EXECUTE FUNCTION other.plant()",
        "DROP TRIGGER plant ON pinwise.tag",
        "trigger plant on pinwise.tag",
    ),
    (
        "CREATE RULE plant AS ON INSERT TO pinwise.tag DO ALSO SELECT other.same('x')",
        "DROP RULE plant ON pinwise.tag",
        "rule plant on pinwise.tag",
    ),
    (
        "CREATE POLICY plant ON pinwise.tag USING (other.same(name) = name)",
        "DROP POLICY plant ON pinwise.tag",
        "policy plant on pinwise.tag",
    ),
    (
        "ALTER TABLE pinwise.line ALTER words SET DEFAULT other.same('x')",
        "ALTER TABLE pinwise.line ALTER words DROP DEFAULT",
        "default of column words of pinwise.line",
    ),
    (
        "ALTER TABLE pinwise.line ALTER words TYPE other.txt",
        "ALTER TABLE pinwise.line ALTER words TYPE TEXT COLLATE \"C\"",
        "type of column words of pinwise.line",
    ),
    (
        "ALTER TABLE pinwise.tag ADD CONSTRAINT plant CHECK (other.same(name) = name)",
        "ALTER TABLE pinwise.tag DROP CONSTRAINT plant",
        "check plant on pinwise.tag",
    ),
    (
        "CREATE INDEX plant ON pinwise.tag (other.same(name))",
        "DROP INDEX pinwise.plant",
        "index pinwise.plant",
    ),
    (
        "CREATE FUNCTION pinwise.upper(BIGINT) RETURNS TEXT LANGUAGE sql AS 'SELECT $1::text'",
        "DROP FUNCTION pinwise.upper",
        "function pinwise.upper",
    ),
    (
        "CREATE OPERATOR pinwise.|| (LEFTARG = BIGINT, RIGHTARG = BIGINT, FUNCTION = int8pl)",
        "DROP OPERATOR pinwise.|| (BIGINT, BIGINT)",
        "operator pinwise.||",
    ),
];

#[test]
fn code_that_others_left_in_the_schema_is_refused_until_it_is_gone() {
    let Some(server) = Server::start_own() else {
        return;
    };
    let url = server.create_database();
    execute(
        &url,
        "CREATE USER mallory; CREATE SCHEMA other; CREATE DOMAIN other.txt AS TEXT;
         CREATE FUNCTION other.same(TEXT) RETURNS TEXT IMMUTABLE LANGUAGE sql AS 'SELECT $1';
         CREATE FUNCTION other.plant() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RETURN NEW; END $$",
    );
    Place::database(url.clone()).open();
    for (plant, remove, words) in PLANTS {
        execute(&url, plant);
        let error = open_error(&url).unwrap_or_default();
        assert!(error.contains(words), "{plant}: {error}");
        execute(&url, remove);
        assert_eq!(open_error(&url), None, "{remove}");
    }
}
