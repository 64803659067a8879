//! What a node shows, for people and as JSON.

use serde_json::{Map, Number, Value as Json};
use testigo_client::Value;

use crate::lab::table::Table;
use crate::span::Span;
use crate::visible::in_line;

/// Prints a value of the node as JSON.
pub(crate) fn print_json(value: &Value) {
    println!("{:#}", json(value));
}

pub(crate) fn json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Number(number) => Json::from(*number),
        Value::Truth(truth) => Json::from(*truth),
        Value::Real(real) => Number::from_f64(*real).map_or(Json::Null, Json::Number),
        Value::Text(text) => Json::from(text.as_str()),
        Value::Bytes(bytes) => bytes_json(bytes),
        Value::List(values) => values.iter().map(json).collect(),
        Value::Map(pairs) => {
            let pair = |(name, value): &(Value, Value)| (plain(name), json(value));
            Json::Object(pairs.iter().map(pair).collect::<Map<String, Json>>())
        }
        Value::Error(refusal) => Json::from(refusal.to_string()),
    }
}

/// Bytes as text if they are one, else in hexadecimal digits.
pub(crate) fn bytes_json(bytes: &[u8]) -> Json {
    match std::str::from_utf8(bytes) {
        Ok(text) => Json::from(text),
        Err(_) => serde_json::json!({ "hex": hex(bytes) }),
    }
}

/// Fields that are yes or no. The wire says 1 or 0, as its version 2 has no truths.
const FLAGS: [&str; 12] = [
    "asks",
    "in",
    "proven",
    "reserved",
    "implicit",
    "in_view",
    "leads",
    "open",
    "ready",
    "recovering",
    "connected",
    "voter",
];

/// Which of a node's numbers are truths. A member of a cluster leads or not; a cluster has a leader, by its number.
pub(crate) fn with_truths(value: &Value) -> Value {
    let truth = |value: &Value| match value {
        Value::Number(number @ (0 | 1)) => Value::Truth(*number == 1),
        other => other.clone(),
    };
    match value {
        Value::List(values) => Value::List(values.iter().map(with_truths).collect()),
        Value::Map(pairs) => {
            let member = value.field("in_view").is_some();
            let pair = |(name, value): &(Value, Value)| {
                let flag = name
                    .text()
                    .is_some_and(|name| FLAGS.contains(&name) || member && name == "leader");
                let value = match flag {
                    true => truth(value),
                    false => with_truths(value),
                };
                (name.clone(), value)
            };
            Value::Map(pairs.iter().map(pair).collect())
        }
        other => other.clone(),
    }
}

/// Prints the plain fields of a map, one a line.
pub(crate) fn print_fields(value: &Value) {
    let Value::Map(pairs) = value else {
        return;
    };
    let pairs = pairs.iter().map(|(name, value)| (plain(name), value));
    for (name, value) in pairs.filter(|(_, value)| value.list().is_none()) {
        println!(
            "{:<18} {}",
            name.trim_end_matches("_ms").replace('_', " "),
            field(&name, value)
        );
    }
}

/// Prints maps as a table of these columns.
pub(crate) fn print_rows(rows: &[Value], columns: &[&str]) {
    let heads: Vec<String> = columns
        .iter()
        .map(|column| column.trim_end_matches("_ms").replace('_', " "))
        .collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = Table::new(&heads);
    for row in rows {
        table.row(columns.iter().map(|column| {
            let value = row.field(column).unwrap_or(&Value::Null);
            field(column, value)
        }));
    }
    table.print();
}

/// The rows of a list, each cell under the name of its column.
pub(crate) fn named(rows: &Value, columns: &[&str]) -> Vec<Value> {
    let row = |row: &Value| {
        let cells = row.list().unwrap_or_default().iter().cloned();
        let names = columns.iter().map(|name| Value::Text((*name).to_owned()));
        Value::Map(names.zip(cells).collect())
    };
    rows.list().unwrap_or_default().iter().map(row).collect()
}

/// Fields that are moments: milliseconds since 1970.
const MOMENTS: [&str; 8] = [
    "at", "created", "arrived", "left", "since", "taken", "until", "ended",
];

/// A field by what its name says that it is.
fn field(name: &str, value: &Value) -> String {
    match value.number() {
        Some(ms) if name.ends_with("_ms") => rounded(ms).to_string(),
        Some(ms) if MOMENTS.contains(&name) => moment(ms),
        _ => plain(value),
    }
}

/// Date and time in UTC, for people.
fn moment(ms: u64) -> String {
    rfc3339(ms).replace('T', " ")
}

/// Date and time in UTC, as RFC 3339 writes them.
pub(crate) fn rfc3339(ms: u64) -> String {
    let (days, of_day) = (ms / 86_400_000, ms % 86_400_000);
    // Eras of 400 years, each beginning on a first of March, so that a leap day ends its year.
    let (era, day) = ((days + 719_468) / 146_097, (days + 719_468) % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, later) = match month {
        0..=9 => (month + 3, 0),
        _ => (month - 9, 1),
    };
    let year = 400 * era + year + later;
    let (seconds, thousandths) = (of_day / 1_000, of_day % 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{thousandths:03}Z")
}

/// A span with as many digits as a person reads.
pub(crate) fn rounded(ms: u64) -> Span {
    let step = match ms {
        0..=9_999 => 1,
        10_000..=599_999 => 1_000,
        _ => 60_000,
    };
    Span(std::time::Duration::from_millis(ms / step * step))
}

pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::Number(number) => number.to_string(),
        Value::Truth(true) => "yes".into(),
        Value::Truth(false) => "no".into(),
        Value::Real(real) => real.to_string(),
        Value::Text(text) => in_line(text).into_owned(),
        Value::Bytes(bytes) => format!("({} bytes that are no text)", bytes.len()),
        Value::List(values) => match values.is_empty() {
            true => "-".into(),
            false => values.iter().map(plain).collect::<Vec<_>>().join(" "),
        },
        Value::Map(_) => "…".into(),
        Value::Error(refusal) => refusal.to_string(),
    }
}

/// Bytes as JSON can carry them.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_an_object_and_a_null_is_null() {
        let text = |text: &str| Value::Text(text.into());
        let map = Value::Map(vec![
            (text("name"), text("a")),
            (text("lease_ms"), Value::Null),
            (text("holders"), Value::List(vec![Value::Number(1)])),
        ]);
        let expected = serde_json::json!({"name": "a", "lease_ms": null, "holders": [1]});
        assert_eq!(json(&map), expected);
    }

    #[test]
    fn what_is_yes_or_no_is_a_truth() {
        let text = |text: &str| Value::Text(text.into());
        let member = Value::Map(vec![
            (text("id"), Value::Number(1)),
            (text("in_view"), Value::Number(1)),
            (text("leader"), Value::Number(0)),
        ]);
        let status = Value::Map(vec![
            (text("leader"), Value::Number(1)),
            (text("leads"), Value::Number(1)),
            (text("members"), Value::List(vec![member])),
        ]);
        let expected = serde_json::json!({
            "leader": 1, "leads": true, "members": [{"id": 1, "in_view": true, "leader": false}]
        });
        assert_eq!(json(&with_truths(&status)), expected);
        assert_eq!(plain(&Value::Truth(false)), "no");
    }

    #[test]
    fn spans_are_shown_in_units() {
        assert_eq!(field("held_ms", &Value::Number(61_400)), "61s");
        assert_eq!(field("held_ms", &Value::Number(7_230_000)), "2h");
        assert_eq!(field("left_ms", &Value::Null), "-");
        assert_eq!(field("fence", &Value::Number(61_400)), "61400");
    }

    #[test]
    fn moments_are_shown_as_date_and_time() {
        for (ms, shown) in [
            (0, "1970-01-01 00:00:00.000Z"),
            (951_782_400_000, "2000-02-29 00:00:00.000Z"),
            (951_868_799_999, "2000-02-29 23:59:59.999Z"),
            (1_704_067_199_001, "2023-12-31 23:59:59.001Z"),
            (1_794_763_808_497, "2026-11-15 17:30:08.497Z"),
            (4_107_542_400_000, "2100-03-01 00:00:00.000Z"),
        ] {
            assert_eq!(field("created", &Value::Number(ms)), shown);
        }
    }
}
