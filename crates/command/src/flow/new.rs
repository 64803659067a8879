//! `testigo flow new`.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use testigo_flow::{MODELS, Model};
use testigo_node::did_you_mean;

use crate::exit::{Failure, Outcome, complain, good_if};
use crate::lab::options::print_json;
use crate::lab::table::Table;

/// Start a flow from a model
///
/// Models: pipeline, router, rework, review; --list says what they are for. An existing file is
/// never overwritten.
///
/// Exit code 0: written; 2: there is no such model, or the file exists or cannot be written.
///
/// Example: testigo flow new orders.flow --from rework
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct New {
    /// The file to write; without it, and for -, standard output.
    file: Option<PathBuf>,
    /// The model.
    #[arg(long, value_name = "MODEL", default_value = "pipeline", value_parser = model)]
    from: Model,
    /// Show the models.
    #[arg(long, conflicts_with = "file")]
    list: bool,
    /// With --list: print JSON, a list of name and about.
    #[arg(long, requires = "list")]
    json: bool,
}

fn model(name: &str) -> Result<Model, String> {
    let known: Vec<&str> = MODELS.iter().map(|model| model.name).collect();
    let found = MODELS.into_iter().find(|model| model.name == name);
    found.ok_or_else(|| {
        let hint = did_you_mean(name, known.iter().copied());
        format!("{hint}there is {}", known.join(", "))
    })
}

impl New {
    pub(crate) fn run(self) -> Outcome {
        if self.json {
            let model =
                |model: Model| serde_json::json!({ "name": model.name, "about": model.about });
            let models: Vec<_> = MODELS.into_iter().map(model).collect();
            print_json(&models)?;
            return Ok(good_if(true));
        }
        if self.list {
            let mut table = Table::new(&["MODEL", "WHAT IT IS FOR"]);
            for model in MODELS {
                table.row([model.name, model.about].map(str::to_owned));
            }
            table.print();
            return Ok(good_if(true));
        }
        let file = self.file.as_ref().filter(|path| path.as_os_str() != "-");
        let Some(path) = file else {
            print!("{}", self.from.text);
            return Ok(good_if(true));
        };
        let written =
            File::create_new(path).and_then(|mut file| file.write_all(self.from.text.as_bytes()));
        written.map_err(|error| {
            Failure::from(format!("{} cannot be written: {error}", path.display()))
        })?;
        let (path, model) = (path.display(), self.from.name);
        complain!("testigo: wrote {path} after the model {model}");
        Ok(good_if(true))
    }
}
