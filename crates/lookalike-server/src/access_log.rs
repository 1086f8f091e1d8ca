//! One line for every request.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use axum::http::{HeaderValue, Method, StatusCode, Uri};
use serde::Serialize;

use crate::log::{LogFormat, log, log_time};
use crate::tokens::LEAST_SECRET_LENGTH;

/// Parameters whose values are shown; any other could be a secret that was put in the wrong place.
const SHOWN: [&str; 12] = [
    "store",
    "explain",
    "method",
    "threshold",
    "evidence",
    "mark",
    "limit",
    "radius",
    "prefix",
    "after",
    "metadata",
    "wait",
];

/// A request as the log has it.
pub(crate) struct LoggedRequest {
    client: Option<IpAddr>,
    method: Method,
    path: String,
    query: String,
    id: HeaderValue,
    pub(crate) token: Option<String>,
}

#[derive(Serialize)]
struct Line<'a> {
    timestamp: &'a str,
    level: &'static str,
    message: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
    method: &'a str,
    path: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    query: &'a str,
    status: u16,
    seconds: f64,
    request_id: &'a str,
}

impl LoggedRequest {
    pub(crate) fn new(method: &Method, uri: &Uri, client: Option<IpAddr>, id: &HeaderValue) -> LoggedRequest {
        let query = uri.query().map(shown_query).unwrap_or_default();
        let path = uri.path().to_owned();
        LoggedRequest { client, method: method.clone(), path, query, id: id.clone(), token: None }
    }

    pub(crate) fn write(&self, format: LogFormat, status: StatusCode, time: Duration) {
        let mut line = self.line(format, SystemTime::now(), status, time);
        line.push('\n');
        log().write(line.as_bytes());
    }

    fn line(&self, format: LogFormat, now: SystemTime, status: StatusCode, time: Duration) -> String {
        let now = log_time(now);
        let id = self.id.to_str().expect("ids are plain ASCII");
        let status = status.as_u16();
        match format {
            LogFormat::Json => {
                let line = Line {
                    timestamp: &now,
                    level: "INFO",
                    message: "request",
                    client: self.client,
                    token: self.token.as_deref(),
                    method: self.method.as_str(),
                    path: &self.path,
                    query: &self.query,
                    status,
                    seconds: (time.as_secs_f64() * 1e6).round() / 1e6,
                    request_id: id,
                };
                serde_json::to_string(&line).expect("a line has string keys only")
            }
            LogFormat::Text => {
                let client = self.client.map_or_else(|| "-".to_owned(), |client| client.to_string());
                let token = self.token.as_deref().unwrap_or("-");
                let mark = if self.query.is_empty() { "" } else { "?" };
                let (method, path, query) = (&self.method, &self.path, &self.query);
                let milliseconds = time.as_secs_f64() * 1e3;
                format!("{now}  INFO {client} {token} {method} {path}{mark}{query} {status} {milliseconds:.3}ms {id}")
            }
        }
    }
}

/// A query string with the values that are known to be harmless.
fn shown_query(query: &str) -> String {
    let is_plain = |value: &str| {
        value.len() < LEAST_SECRET_LENGTH
            && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.,".contains(&byte))
    };
    let is_shown =
        |pair: &&str| pair.split_once('=').is_some_and(|(name, value)| SHOWN.contains(&name) && is_plain(value));
    let pairs: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty()).collect();
    let mut shown: Vec<&str> = pairs.iter().copied().filter(is_shown).collect();
    if shown.len() < pairs.len() {
        shown.push("…");
    }
    shown.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_a_query_string_are_not_shown() {
        for (query, shown) in [
            ("store=if_new&explain=true", "store=if_new&explain=true"),
            ("token=abcdefghijklmnop", "…"),
            ("store=never&abcdefghijklmnop", "store=never&…"),
            ("store=abcdefghijklmnop", "…"),
            ("", ""),
        ] {
            assert_eq!(shown_query(query), shown);
        }
    }

    #[test]
    fn a_line_has_the_client_and_a_time_in_both_formats() {
        let uri = Uri::from_static("/v1/pages?store=if_new&key=secret");
        let id = HeaderValue::from_static("a-1");
        let mut request = LoggedRequest::new(&Method::POST, &uri, "10.0.0.7".parse().ok(), &id);
        request.token = Some("crawler".to_owned());
        let write = |format| request.line(format, SystemTime::UNIX_EPOCH, StatusCode::OK, Duration::from_micros(1500));
        assert_eq!(
            write(LogFormat::Text),
            "1970-01-01T00:00:00.000000Z  INFO 10.0.0.7 crawler POST /v1/pages?store=if_new&… 200 1.500ms a-1"
        );
        let json: serde_json::Value = serde_json::from_str(&write(LogFormat::Json)).unwrap();
        assert_eq!((&json["client"], &json["seconds"]), (&"10.0.0.7".into(), &0.0015.into()));
        assert_eq!((&json["timestamp"], &json["token"]), (&"1970-01-01T00:00:00.000000Z".into(), &"crawler".into()));
    }
}
