//! What a node tells on standard error, a line each, with the time.

use std::io::{Write, stderr};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use log::{LevelFilter, Log, Metadata, Record};

use crate::show::rfc3339;
use crate::visible::on_error;

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    /// `2026-01-31T23:59:59.999Z testigo: warn: message`.
    Text,
    /// An object with time, level and message.
    Json,
}

struct StandardError(LogFormat);

impl Log for StandardError {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("testigo")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
            let ms = since_1970.map_or(0, |since| since.as_millis() as u64);
            let line = line(self.0, ms, record);
            // A line that cannot be written, say because the disk is full, is lost; the node goes on.
            let _ = writeln!(stderr(), "{}", on_error(line));
        }
    }

    fn flush(&self) {}
}

fn line(format: LogFormat, ms: u64, record: &Record<'_>) -> String {
    let (time, level) = (rfc3339(ms), record.level().as_str().to_lowercase());
    let message = record.args().to_string();
    match format {
        LogFormat::Text => format!("{time} testigo: {level}: {message}"),
        LogFormat::Json => {
            serde_json::json!({ "time": time, "level": level, "message": message }).to_string()
        }
    }
}

pub(super) fn tell(level: LevelFilter, format: LogFormat) {
    // A second logger in one process has no effect, which is right.
    let logger = Box::leak(Box::new(StandardError(format)));
    if log::set_logger(logger).is_ok() {
        log::set_max_level(level);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_time_the_level_and_what_is_said() {
        let said = |format| {
            let args = format_args!("the disk is \"full\"");
            let record = Record::builder().level(log::Level::Warn).args(args).build();
            line(format, 951_868_799_999, &record)
        };
        assert_eq!(
            said(LogFormat::Text),
            "2000-02-29T23:59:59.999Z testigo: warn: the disk is \"full\""
        );
        let json: serde_json::Value = serde_json::from_str(&said(LogFormat::Json)).unwrap();
        let expected = serde_json::json!({
            "time": "2000-02-29T23:59:59.999Z", "level": "warn", "message": "the disk is \"full\""
        });
        assert_eq!(json, expected);
    }
}
