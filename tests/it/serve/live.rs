//! Events about records that change while the page is open.

use super::*;

/// The events of an open request.
struct Events {
    lines: BufReader<TcpStream>,
}

impl Events {
    fn open(site: &Serving, path: &str) -> Self {
        // HTTP/1.0: the answer comes in one piece that ends with the connection.
        let request = format!(
            "GET {}{path} HTTP/1.0\r\nHost: 127.0.0.1:{}\r\n\r\n",
            site.home, site.port
        );
        let mut events = Self {
            lines: BufReader::new(site.send(&request)),
        };
        let head = events.read_block();
        assert!(head[0].contains(" 200 "), "{head:?}");
        assert!(
            head.contains(&"content-type: text/event-stream".to_owned()),
            "{head:?}"
        );
        assert!(
            head.contains(&"cache-control: no-store".to_owned()),
            "{head:?}"
        );
        events
    }

    /// Lines up to an empty one, or to the end.
    fn read_block(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        loop {
            let mut line = String::new();
            self.lines.read_line(&mut line).unwrap();
            match line.trim_end() {
                "" => return found,
                line => found.push(line.to_owned()),
            }
        }
    }

    /// Name and data of the next event; `None` at the end.
    fn next(&mut self) -> Option<(String, String)> {
        loop {
            let block = self.read_block();
            let field = |name: &str| block.iter().find_map(|l| l.strip_prefix(name));
            match (field("event: "), field("data: ")) {
                (Some(name), Some(data)) => return Some((name.to_owned(), data.to_owned())),
                _ if block.is_empty() => return None,
                _ => {}
            }
        }
    }
}

/// Starts a comparison of two slow commands on this machine.
fn start_comparison(place: &Place, runs: &str) -> Child {
    let options = split_words("--quiet compare --seed 1 --warmup 0 --place os-default --max-runs");
    let commands = [runs, "--command", "sleep 0.1", "--command", "sleep 0.11"];
    place
        .pinwise(&[&options[..], &commands].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The id of the new record, once it exists.
fn wait_for_record(site: &Serving) -> String {
    wait_for("a record", || {
        let listing = site.get_json("api/records");
        listing["records"][0]["id"].as_str().map(str::to_owned)
    })
}

/// Runs in a record, with those of unfinished blocks.
fn count_runs(record: &Value) -> usize {
    let arms = record["arms"].as_array().unwrap().iter();
    let lists = arms.flat_map(|arm| [&arm["runs"], &arm["other_runs"]]);
    lists.map(|list| list.as_array().map_or(0, Vec::len)).sum()
}

/// The records that the events contain, and the last event.
fn watch_records(events: &mut Events, mut after: impl FnMut(usize)) -> (Vec<Value>, Value) {
    let mut records = Vec::new();
    loop {
        let (name, data) = events.next().expect("it ends by saying so");
        let data: Value = serde_json::from_str(&data).unwrap();
        match name.as_str() {
            "record" => records.push(data),
            "end" => return (records, data),
            other => panic!("{other}: {data}"),
        }
        after(records.len());
    }
}

#[test]
fn a_comparison_is_shown_as_it_grows() {
    let place = Place::new();
    let site = place.serve();
    let mut comparing = start_comparison(&place, "8");
    let id = wait_for_record(&site);
    let mut events = Events::open(&site, &format!("api/live/{id}"));
    let (records, end) = watch_records(&mut events, |_| {});
    assert!(comparing.wait().unwrap().success());
    let counts: Vec<usize> = records.iter().map(count_runs).collect();
    assert!(counts.len() >= 2, "{counts:?}");
    assert!(counts.is_sorted(), "{counts:?}");
    assert!(records[0]["stopped"].is_null());
    let last = records.last().unwrap();
    assert_eq!(count_runs(last), 16);
    assert!(last["stopped"].is_string());
    assert_eq!(end["complete"], true);
    assert!(events.next().is_none());
    assert!(site.get_json(&format!("api/records/{id}")) == *last);
}

#[test]
fn a_comparison_that_is_killed_ends_as_cut_off() {
    let place = Place::new();
    let site = place.serve();
    let mut comparing = start_comparison(&place, "1000");
    let id = wait_for_record(&site);
    let mut events = Events::open(&site, &format!("api/live/{id}"));
    let (records, end) = watch_records(&mut events, |seen| {
        if seen == 2 {
            comparing.kill().unwrap();
        }
    });
    comparing.wait().unwrap();
    assert_eq!(end["complete"], false);
    assert!(records.last().unwrap()["stopped"].is_null());
    let listed = site.get_json("api/records");
    assert_eq!(listed["records"][0]["complete"], false);
}

#[test]
fn a_finished_record_is_reported_at_once() {
    let place = Place::new();
    let id = place.compare(&[]);
    let site = place.serve();
    let mut events = Events::open(&site, "api/live/last");
    let (records, end) = watch_records(&mut events, |_| {});
    assert_eq!((records.len(), &records[0]["id"]), (1, &id.into()));
    assert_eq!(end["complete"], true);
}

#[test]
fn a_removed_record_is_reported() {
    let place = Place::new();
    let site = place.serve();
    let mut comparing = start_comparison(&place, "1000");
    let id = wait_for_record(&site);
    let mut events = Events::open(&site, &format!("api/live/{id}"));
    assert_eq!(events.next().unwrap().0, "record");
    place.execute_sql("DELETE FROM record");
    let (name, message) = wait_for("the removal", || {
        events.next().filter(|(name, _)| name != "record")
    });
    assert_eq!(name, "gone");
    assert!(message.contains("No record has the id"), "{message}");
    assert!(events.next().is_none());
    assert_eq!(site.get_json("api/records")["total"], 0);
    comparing.kill().unwrap();
    comparing.wait().unwrap();
}

#[test]
fn a_new_record_changes_the_list() {
    let place = Place::new();
    let site = place.serve();
    let mut events = Events::open(&site, "api/live");
    let list = Some(("list".to_owned(), "changed".to_owned()));
    assert_eq!(
        events.next(),
        list,
        "the first event is for earlier changes"
    );
    place.compare(&[]);
    assert_eq!(events.next(), list);
    assert_eq!(site.get_json("api/records")["total"], 1);
}

#[test]
fn pages_beyond_the_limit_are_told_to_retry() {
    let place = Place::new();
    let site = place.serve();
    let mut pages: Vec<Events> = (0..64).map(|_| Events::open(&site, "api/live")).collect();
    for page in &mut pages {
        assert_eq!(page.next().unwrap().0, "list");
    }
    let refused = site.get("");
    assert_eq!((refused.status, refused.header("retry-after")), (503, "1"));
    refused.check_protection();
    place.compare(&[]);
    for page in &mut pages {
        assert_eq!(page.next().unwrap().0, "list");
    }
    drop(pages);
    wait_for("an answer", || {
        Some(site.get("")).filter(|answer| answer.status == 200)
    });
}

#[test]
fn silent_connections_do_not_displace_pages() {
    let place = Place::new();
    let site = place.serve();
    let mut page = Events::open(&site, "api/live");
    assert_eq!(page.next().unwrap().0, "list");
    let silent: Vec<TcpStream> = (0..200)
        .map(|_| TcpStream::connect((Ipv4Addr::LOCALHOST, site.port)).unwrap())
        .collect();
    // The silent connections were accepted before this one.
    assert_eq!(site.get("").status, 200);
    place.compare(&[]);
    assert_eq!(page.next().unwrap().0, "list", "the page is still served");
    drop(silent);
}
