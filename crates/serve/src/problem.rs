//! An error in the form in which the page gets it.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use pinwise_record::RecordError;
use pinwise_store::StoreError;

/// An error as a sentence, and a hint what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Problem {
    #[serde(skip)]
    pub(super) status: StatusCode,
    pub(super) error: String,
    pub(super) hint: String,
}

impl Problem {
    pub(super) fn new(status: StatusCode, error: impl Into<String>, hint: &str) -> Self {
        Self {
            status,
            error: error.into(),
            hint: hint.to_owned(),
        }
    }

    /// Does it concern the store as a whole, rather than the request?
    pub(super) fn concerns_store(&self) -> bool {
        self.status == StatusCode::SERVICE_UNAVAILABLE
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let unavailable = StatusCode::SERVICE_UNAVAILABLE;
        match error {
            StoreError::Id(reason) => Self::new(
                StatusCode::NOT_FOUND,
                to_sentence(&reason),
                "It may have been removed. See the history for existing records.",
            ),
            StoreError::Record { id, reason } => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                to_sentence(&format!("record {id}: {reason}")),
                record_hint(&reason),
            ),
            StoreError::Locked { path } => Self::new(
                unavailable,
                format!("The store {path} is locked by another process."),
                "Records are shown again once it releases the store.",
            ),
            StoreError::Damaged { path, reason } => Self::new(
                unavailable,
                format!("The store {path} is damaged: {reason}."),
                "Move it away to start anew, or serve another with --store.",
            ),
            StoreError::OtherVersion { path, found, known } => Self::new(
                unavailable,
                format!("The store {path} has schema {found}, this pinwise reads schema {known}."),
                "Start pinwise serve of the version that wrote it, or serve another store with --store.",
            ),
            StoreError::Open { path, reason } => Self::new(
                unavailable,
                format!("The store {path} cannot be opened: {reason}."),
                "It may have been moved away.",
            ),
            StoreError::Unreachable { store, reason } => Self::new(
                unavailable,
                format!("The store {store} cannot be reached: {reason}."),
                "Records are shown again once its server answers.",
            ),
            StoreError::Refused { store, reason } => Self::new(
                unavailable,
                format!("The store {store} refuses: {reason}."),
                "Check the permissions on its server.",
            ),
            _ => Self::new(
                unavailable,
                to_sentence(&error.to_string()),
                "Check its disk and write permissions.",
            ),
        }
    }
}

const fn record_hint(reason: &RecordError) -> &'static str {
    match reason {
        RecordError::Damaged(_) => "It may be truncated. Other records are not affected.",
        RecordError::Newer { .. } | RecordError::Unknown { .. } => "Open it with a newer pinwise.",
        RecordError::OtherKind { .. } | RecordError::NotStored { .. } => {
            "pinwise record show prints it as text."
        }
    }
}

/// Makes a sentence of an error's words: with a capital letter and a full stop.
pub(super) fn to_sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_string(&self).unwrap_or_default();
        let mut response = json_response(body);
        *response.status_mut() = self.status;
        response
    }
}

/// An answer with a JSON body.
pub(super) fn json_response(body: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_requests_differ_from_failures() {
        let check = |error: StoreError, status: u16, words: &str| {
            let problem = Problem::from(error);
            assert_eq!(problem.status.as_u16(), status);
            assert!(
                problem.error.contains(words) && problem.error.ends_with('.'),
                "{problem:?}"
            );
            assert!(!problem.hint.is_empty());
            assert_eq!(problem.concerns_store(), status == 503);
        };
        let path = || "x.db".to_owned();
        check(
            StoreError::Id("no record has the id 'x'".to_owned()),
            404,
            "No record",
        );
        check(StoreError::Locked { path: path() }, 503, "locked");
        check(
            StoreError::OtherVersion {
                path: path(),
                found: 9,
                known: 1,
            },
            503,
            "schema 9",
        );
        let reason = RecordError::Newer {
            found: "pinwise.trace/9".to_owned(),
            known: "pinwise.trace/1",
        };
        check(
            StoreError::Record {
                id: "1".to_owned(),
                reason,
            },
            422,
            "pinwise.trace/9",
        );
    }
}
