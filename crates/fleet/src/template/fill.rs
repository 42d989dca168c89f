//! Replaces placeholders of a template's text by their values.

/// Names of placeholders, and the meaning of their values.
pub const PLACEHOLDERS: [(&str, &str); 15] = [
    ("node", "the node"),
    ("fleet", "the fleet's id"),
    ("name", "a name for the job"),
    (
        "label",
        "a name for the job on this node, of lower-case letters, digits and -",
    ),
    ("folder", "the fleet's folder"),
    ("program", "the executable in it"),
    ("command", "the command that the node runs, as one line"),
    ("argv", "the same as a list of words"),
    ("log", "the file for its output"),
    ("script", "the file of [submit] script"),
    ("job", "the job's id (in [status] and [cancel])"),
    ("time", "--time as HH:MM:SS"),
    ("seconds", "--time in seconds"),
    ("partition", "--partition"),
    ("constraint", "--constraint"),
];

/// A further placeholder, for `--account`. As for other options, a line with it is left out if the
/// option is not given.
pub(super) const ACCOUNT: &str = "account";

/// How values are quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quoting {
    /// As shell words.
    Shell,
    /// As JSON, which YAML reads, too.
    Json,
}

/// The values of placeholders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Values {
    pub(super) node: String,
    pub(super) fleet: String,
    pub(super) name: String,
    pub(super) label: String,
    pub(super) folder: String,
    pub(super) program: String,
    pub(super) argv: Vec<String>,
    pub(super) log: String,
    pub(super) script: Option<String>,
    pub(super) job: Option<String>,
    pub(super) time: Option<String>,
    pub(super) seconds: Option<String>,
    pub(super) partition: Option<String>,
    pub(super) constraint: Option<String>,
    pub(super) account: Option<String>,
}

impl Values {
    /// The quoted value of a placeholder; `None` if it has none.
    fn render(&self, name: &str, quoting: Quoting) -> Option<String> {
        let text = match name {
            "argv" | "command" => return Some(self.render_command(name, quoting)),
            "node" => Some(&self.node),
            "fleet" => Some(&self.fleet),
            "name" => Some(&self.name),
            "label" => Some(&self.label),
            "folder" => Some(&self.folder),
            "program" => Some(&self.program),
            "log" => Some(&self.log),
            "script" => self.script.as_ref(),
            "job" => self.job.as_ref(),
            "time" => self.time.as_ref(),
            "seconds" => self.seconds.as_ref(),
            "partition" => self.partition.as_ref(),
            "constraint" => self.constraint.as_ref(),
            "account" => self.account.as_ref(),
            _ => None,
        };
        text.map(|text| match quoting {
            Quoting::Shell => shell_words::quote(text).into_owned(),
            Quoting::Json => serde_json::Value::from(text.as_str()).to_string(),
        })
    }

    fn render_command(&self, name: &str, quoting: Quoting) -> String {
        let line = shell_words::join(&self.argv);
        match (name, quoting) {
            (_, Quoting::Shell) => line,
            ("argv", Quoting::Json) => serde_json::Value::from(self.argv.clone()).to_string(),
            (_, Quoting::Json) => serde_json::Value::from(line).to_string(),
        }
    }
}

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    /// Without its braces.
    Placeholder(&'a str),
}

/// Splits a line: `{word}` is a placeholder, `{{word}}` is the text `{word}`, and other braces are
/// text.
pub(super) fn split_placeholders(line: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        pieces.push(Piece::Text(before));
        let (length, piece) = parse_brace(from);
        pieces.push(piece);
        rest = &from[length..];
    }
    pieces.push(Piece::Text(rest));
    pieces
}

/// Parses the piece that begins with a brace. Returns its length, bytes, and the piece.
fn parse_brace(from: &str) -> (usize, Piece<'_>) {
    let is_escaped = from.starts_with("{{");
    let start = 1 + usize::from(is_escaped);
    let word = &from[start..];
    let length = word
        .find(|c: char| !c.is_ascii_lowercase())
        .unwrap_or(word.len());
    let (name, behind) = word.split_at(length);
    if name.is_empty() {
        return (1, Piece::Text(&from[..1]));
    }
    if is_escaped && behind.starts_with("}}") {
        return (length + 4, Piece::Text(&from[1..length + 3]));
    }
    if !is_escaped && behind.starts_with('}') {
        return (length + 2, Piece::Placeholder(name));
    }
    (1, Piece::Text(&from[..1]))
}

/// Fills the placeholders of a text. Lines with one that has no value are left out.
pub(super) fn fill(text: &str, values: &Values, quoting: Quoting) -> String {
    let lines = text.split_inclusive('\n').filter_map(|line| {
        let words = split_placeholders(line)
            .into_iter()
            .map(|piece| match piece {
                Piece::Text(text) => Some(text.to_owned()),
                Piece::Placeholder(name) => values.render(name, quoting),
            });
        words.collect::<Option<String>>()
    });
    lines.collect()
}
