//! Paths into JSON documents.

/// A path such as `.summary.rates[0]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath {
    pub(super) text: String,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

impl JsonPath {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        for part in text.strip_prefix('.')?.split('.') {
            let (key, indices) = match part.find('[') {
                Some(at) => part.split_at(at),
                None => (part, ""),
            };
            if !key.is_empty() {
                steps.push(Step::Key(key.to_owned()));
            }
            for index in indices.split_terminator(']') {
                steps.push(Step::Index(index.strip_prefix('[')?.parse().ok()?));
            }
            let is_open = !indices.is_empty() && !indices.ends_with(']');
            if part.is_empty() || is_open {
                return None;
            }
        }
        Some(Self {
            text: text.to_owned(),
            steps,
        })
    }

    pub(super) fn follow<'a>(
        &self,
        document: &'a serde_json::Value,
    ) -> Option<&'a serde_json::Value> {
        self.steps
            .iter()
            .try_fold(document, |value, step| match step {
                Step::Key(key) => value.get(key),
                Step::Index(index) => value.get(index),
            })
    }
}
