//! Command lines, from the program's own list of commands and options.

use std::path::Path;

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, Command};

use super::random::Random;

const VALUES: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "0.5",
    "1e-3",
    "10",
    "100",
    "1e308",
    "nan",
    "inf",
    "-inf",
    "",
    "x",
    "auto",
    "auto:5",
    "0.1,1",
    "1,1",
    "2^6",
    "2^99",
    "99999999999999999999",
    "é",
    "--",
    "-",
    "price",
    "kind",
    "rooms",
    "-1",
    "tab",
    ";",
    "cuda:9",
    "1KiB",
];
/// Files that [`write_files`] writes, and some that are not there.
const FILES: &[&str] = &[
    "table.csv",
    "table.csv",
    "plain.svm",
    "plain.svm",
    "x.npy",
    "y.npy",
    "names.txt",
    "model",
    "classifier",
    "missing.svm",
    ".",
    "",
];
/// Where results may go.
const PLACES: &[&str] = &["out", "out.npy", "-", "no/folder/out", ".", ""];
/// Options whose value is a place for results.
const WRITES: &[&str] = &[
    "output",
    "report",
    "figures",
    "hubs",
    "authorities",
    "transformed",
    "components",
];

/// The subcommands that run in little time and memory whatever the options are.
const SMALL: &[&str] = &[
    "train", "cv", "predict", "evaluate", "inspect", "convert", "plan",
];

/// The program's commands, once.
#[derive(Debug)]
pub struct Words {
    program: Command,
}

impl Default for Words {
    fn default() -> Self {
        let mut program = warpfuse::cli::command();
        program.build();
        Words { program }
    }
}

impl Words {
    /// A command line of any command, for the parser alone.
    pub fn any(&self, random: &mut Random) -> Vec<String> {
        let mut words = vec!["warpfuse".to_owned()];
        let mut command = &self.program;
        loop {
            options(command, random, &mut words);
            let all: Vec<&Command> = command.get_subcommands().collect();
            if all.is_empty() || random.once_in(30) {
                break;
            }
            command = all[random.below(all.len())];
            words.push(command.get_name().to_owned());
        }
        if random.once_in(5) {
            let at = 1 + random.below(words.len());
            words.insert(at.min(words.len()), random.word(VALUES).to_owned());
        }
        words
    }

    /// A command line that is run: on the CPU, on small files.
    pub fn small(&self, random: &mut Random) -> Vec<String> {
        let mut words = vec!["warpfuse".to_owned()];
        let name = random.word(SMALL);
        let Some(mut command) = self.program.find_subcommand(name) else {
            return words;
        };
        words.push(name.to_owned());
        let all: Vec<&Command> = command.get_subcommands().collect();
        if !all.is_empty() {
            command = all[random.below(all.len())];
            words.push(command.get_name().to_owned());
        }
        options(command, random, &mut words);
        let has_device = command.get_arguments().any(|arg| arg.get_id() == "device");
        if has_device && !words.iter().any(|word| word == "--device") {
            words.extend(["--device", "cpu"].map(str::to_owned));
        }
        words
    }
}

/// Some options, each with a value if it takes one, and what has to be there.
fn options(command: &Command, random: &mut Random, words: &mut Vec<String>) {
    let all: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| !is_dull(arg))
        .collect();
    let named: Vec<&&Arg> = all.iter().filter(|arg| !arg.is_positional()).collect();
    for positional in all.iter().filter(|arg| arg.is_positional()) {
        if !random.once_in(20) {
            words.push(value(positional, random));
        }
    }
    for _ in 0..random.below(5) {
        if named.is_empty() {
            return;
        }
        let option = random.pick(&named);
        words.push(format!("--{}", option.get_long().unwrap_or("")));
        let takes = matches!(option.get_action(), ArgAction::Set | ArgAction::Append);
        if takes && !random.once_in(30) {
            words.push(value(option, random));
        }
    }
}

/// What prints help or sets the number of threads; both are the same with every command.
fn is_dull(arg: &Arg) -> bool {
    ["help", "version", "threads", "device"]
        .iter()
        .any(|id| arg.get_id() == *id)
}

fn value(arg: &Arg, random: &mut Random) -> String {
    let possible = arg.get_possible_values();
    if !possible.is_empty() && !random.once_in(10) {
        return random.pick(&possible).get_name().to_owned();
    }
    let pool = match arg.get_id().as_str() {
        _ if random.once_in(6) => VALUES,
        id if WRITES.contains(&id) => PLACES,
        "model" if arg.is_positional() => &["model", "classifier", "table.csv"],
        "data" | "validation" => &["table.csv", "plain.svm", "plain.svm", "x.npy", "texts.npz"],
        "target_column" => &["price", "kind", "rooms", "-1", "2"],
        "target" | "sample_weight" | "offset" | "exposure" | "groups" => &["y.npy"],
        _ if random.once_in(3) => FILES,
        _ => VALUES,
    };
    random.word(pool).to_owned()
}

/// Writes the files that command lines name, into `folder`.
///
/// # Errors
/// When one cannot be written.
pub fn write_files(folder: &Path, models: &[Vec<u8>]) -> Result<()> {
    let array = |rows: usize, cols: usize| {
        let shape = if cols == 1 {
            format!("{rows},")
        } else {
            format!("{rows}, {cols}")
        };
        let mut header =
            format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}");
        while !(header.len() + 11).is_multiple_of(64) {
            header.push(' ');
        }
        header.push('\n');
        let numbers = (0..rows * cols).flat_map(|at| ((at * 7 % 5) as f64).to_le_bytes());
        let length = (header.len() as u16).to_le_bytes();
        [
            b"\x93NUMPY\x01\x00",
            &length[..],
            header.as_bytes(),
            &numbers.collect::<Vec<_>>(),
        ]
        .concat()
    };
    let table = "city,rooms,price,kind\nUlm,3,280,a\nBonn,2,200,b\nUlm,4,330,a\nBonn,5,350,b\nUlm,1,305,b\nBonn,3,250,a\n";
    let plain = "1 1:1 3:1\n2 2:2 3:1\n1 1:3 2:1\n2 2:4\n1 1:2\n2 2:3\n";
    let none: &[u8] = &[];
    let (model, classifier) = (
        models.first().map_or(none, |m| m),
        models.get(1).map_or(none, |m| m),
    );
    let files: [(&str, &[u8]); 7] = [
        ("table.csv", table.as_bytes()),
        ("plain.svm", plain.as_bytes()),
        ("x.npy", &array(6, 3)),
        ("y.npy", &array(6, 1)),
        ("names.txt", b"age\nheight\nweight\n"),
        ("model", model),
        ("classifier", classifier),
    ];
    for (name, content) in files {
        std::fs::write(folder.join(name), content)
            .with_context(|| format!("cannot write {name}"))?;
    }
    Ok(())
}
