//! What takes which inputs, within which bound.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use warpfuse::io::{
    self, Columns, CsvOptions, Format, Header, IndexBase, MemoryLimit, Missing, ReadOptions, Table,
    TableOptions, Target, Unseen,
};
use warpfuse::learning::SavedModel;
use warpfuse::matrix::{Element, Storage};

use super::damage::damage;
use super::random::Random;
use super::words::{self, Words};
use super::{binary, model, text};

/// What readers may take.
const LIMIT: usize = 16 << 20;

/// What is given inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Subject {
    /// The reader of LIBSVM text
    Libsvm,
    /// The reader of CSV text, and tables of a known schema
    Csv,
    /// The reader of Matrix Market text
    MatrixMarket,
    /// The reader of npy
    Npy,
    /// The reader of npz
    Npz,
    /// The reader of binary caches
    Cache,
    /// Model files
    Model,
    /// The parser of the command line
    Words,
    /// The program, on small files
    Run,
}

impl Subject {
    /// All of them, with their shares in a thousand inputs.
    pub const SHARES: [(Subject, usize); 9] = [
        (Subject::Libsvm, 160),
        (Subject::Csv, 250),
        (Subject::MatrixMarket, 150),
        (Subject::Npy, 120),
        (Subject::Npz, 120),
        (Subject::Cache, 100),
        (Subject::Model, 80),
        (Subject::Words, 17),
        (Subject::Run, 3),
    ];

    /// Of an input that may be any subject's.
    pub fn of(number: u64) -> Subject {
        let mut at = (number % 1000) as usize;
        for (subject, share) in Self::SHARES {
            if at < share {
                return subject;
            }
            at -= share;
        }
        Subject::Run
    }

    /// The most bytes that an input of this length may take.
    pub fn bound(self, length: usize) -> usize {
        match self {
            Subject::Model => 256 * length + (2 << 20),
            Subject::Words => 32 << 20,
            Subject::Run => 256 << 20,
            _ => LIMIT + 64 * length + (2 << 20),
        }
    }
}

/// An input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// The bytes of a file.
    File(Vec<u8>),
    /// A command line.
    Words(Vec<String>),
}

impl Input {
    /// Bytes.
    pub fn len(&self) -> usize {
        match self {
            Input::File(bytes) => bytes.len(),
            Input::Words(words) => words.iter().map(String::len).sum(),
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// As one line of text.
    pub fn shown(&self) -> String {
        match self {
            Input::File(bytes) => bytes.escape_ascii().to_string(),
            Input::Words(words) => format!("{words:?}"),
        }
    }
}

/// Where inputs are written, and what they are made of.
#[derive(Debug)]
pub struct Workshop {
    folder: PathBuf,
    models: Vec<Vec<u8>>,
    words: Words,
}

impl Workshop {
    /// In `folder`, which must be empty.
    ///
    /// # Errors
    /// When files cannot be written, or no models be trained.
    pub fn new(folder: &Path) -> Result<Workshop> {
        let models = model::train(folder)?;
        let (folder, words) = (folder.to_owned(), Words::default());
        Ok(Workshop {
            folder,
            models,
            words,
        })
    }

    /// The input of this number.
    pub fn input(&self, subject: Subject, number: u64) -> Input {
        let mut random = Random::new(number);
        let random = &mut random;
        let mut bytes = match subject {
            Subject::Libsvm => text::libsvm(random),
            Subject::Csv => text::csv(random),
            Subject::MatrixMarket => text::matrix_market(random),
            Subject::Npy => binary::npy(random),
            Subject::Npz => binary::npz(random),
            Subject::Cache => self.cache(random),
            Subject::Model => model::tampered(&self.models, random),
            Subject::Words => return Input::Words(self.words.any(random)),
            Subject::Run => return Input::Words(self.words.small(random)),
        };
        if random.once_in(4) {
            damage(&mut bytes, random);
        }
        if subject == Subject::Cache && !random.once_in(2) {
            io::reseal_cache(&mut bytes);
        }
        Input::File(bytes)
    }

    /// A cache of what some LIBSVM text says, most often with some bytes changed.
    fn cache(&self, random: &mut Random) -> Vec<u8> {
        let (text, cache) = (
            self.folder.join("for-cache.svm"),
            self.folder.join("for-cache.wfc"),
        );
        let plain = b"1 1:1 3:2\n2 2:1\n";
        let written = std::fs::write(&text, text::libsvm(random)).is_ok();
        let options = ReadOptions {
            format: Some(Format::LibSvm),
            ..ReadOptions::default()
        };
        let data = written
            .then(|| io::read::<f64>(&text, &options).ok())
            .flatten();
        let data = data.or_else(|| {
            std::fs::write(&text, plain).ok()?;
            io::read::<f64>(&text, &options).ok()
        });
        let stored = data.is_some_and(|data| io::write_cache(&cache, &data).is_ok());
        let mut bytes = if stored {
            std::fs::read(&cache).unwrap_or_default()
        } else {
            Vec::new()
        };
        for _ in 0..random.below(3) {
            let at = random.below(bytes.len());
            if let Some(byte) = bytes.get_mut(at) {
                *byte = *random.pick(&[0, 1, 2, 0x7f, 0xf0, 0xff]);
            }
        }
        bytes
    }

    /// Gives the input to what takes it; whether it is taken.
    ///
    /// # Errors
    /// When it cannot be written, which is not the subject's fault.
    ///
    /// # Panics
    /// Where the subject panics, or hands out what it promises not to.
    pub fn give(&self, subject: Subject, input: &Input, number: u64) -> Result<bool> {
        // Options of their own stream: an input stays what it is when an option is added.
        let mut random = Random::new(!number);
        let bytes = match input {
            Input::Words(words) if subject == Subject::Words => {
                return Ok(warpfuse::cli::understands(words));
            }
            Input::Words(words) => {
                words::write_files(&self.folder, &self.models)?;
                return Ok(warpfuse::cli::main_on(words) == std::process::ExitCode::SUCCESS);
            }
            Input::File(bytes) => bytes,
        };
        let path = self.folder.join("input.csv");
        std::fs::write(&path, bytes).context("cannot write an input")?;
        Ok(match subject {
            Subject::Model => opened(&path, &self.folder.join("again")),
            _ if random.once_in(2) => taken::<f32>(subject, &path, &mut random),
            _ => taken::<f64>(subject, &path, &mut random),
        })
    }
}

/// Reads a model, asks it for everything, and writes it.
fn opened(path: &Path, again: &Path) -> bool {
    let Ok(model) = SavedModel::load(path) else {
        return false;
    };
    let cols = model.cols();
    let names = model.schema().feature_names(cols);
    assert!(
        names.is_none_or(|names| names.len() == cols),
        "as many names as columns"
    );
    (0..cols.min(100)).for_each(|column| drop(model.schema().label(column)));
    if let SavedModel::Linear(linear) = &model {
        assert!(
            linear.coef().concat().iter().all(|w| w.is_finite()),
            "finite coefficients"
        );
        assert!(
            linear
                .save(again)
                .is_ok_and(|()| SavedModel::load(again).is_ok()),
            "what is written is read"
        );
    }
    true
}

/// Some options of a reader.
fn some_options(subject: Subject, random: &mut Random) -> ReadOptions {
    let format = match subject {
        Subject::Libsvm => Format::LibSvm,
        Subject::Csv => Format::Csv,
        Subject::MatrixMarket => Format::MatrixMarket,
        Subject::Npy => Format::Npy,
        Subject::Npz => Format::Npz,
        _ => Format::Cache,
    };
    let bases = [
        IndexBase::Auto,
        IndexBase::Auto,
        IndexBase::Zero,
        IndexBase::One,
    ];
    let columns = [
        Columns::Infer,
        Columns::Infer,
        Columns::AtLeast(5),
        Columns::Exactly(4),
    ];
    let targets = ["price", "y", "1", "-1", "9", ""];
    let headers = [Header::Auto, Header::Auto, Header::Present, Header::Absent];
    let is_csv = subject == Subject::Csv;
    let has_target = is_csv || subject == Subject::Npz || random.once_in(10);
    ReadOptions {
        format: Some(format),
        memory: MemoryLimit::Bytes(LIMIT as u64),
        index_base: match subject {
            Subject::Libsvm => *random.pick(&bases),
            _ => IndexBase::Auto,
        },
        columns: *random.pick(&columns),
        target: (has_target && random.once_in(3)).then(|| Target::new(random.word(&targets))),
        csv: match is_csv {
            false => CsvOptions::default(),
            true => CsvOptions {
                delimiter: *random.pick(&[None, None, Some(b';'), Some(b' ')]),
                header: *random.pick(&headers),
            },
        },
        ..ReadOptions::default()
    }
}

/// Some of what may become of a table.
fn some_table(random: &mut Random) -> TableOptions {
    let name = |random: &mut Random| match random.once_in(6) {
        true => vec![random.word(&["city", "age", "1", "-1", "none"]).to_owned()],
        false => Vec::new(),
    };
    TableOptions {
        missing: *random.pick(&[Missing::Refuse, Missing::Mean, Missing::Indicator]),
        buckets: random.once_in(5).then_some(16),
        categorical: name(random),
        drop: name(random),
        ..TableOptions::default()
    }
}

/// Reads data with some options.
fn taken<T: Element>(subject: Subject, path: &Path, random: &mut Random) -> bool {
    let options = some_options(subject, random);
    let table = match subject {
        Subject::Csv => some_table(random),
        _ => TableOptions::default(),
    };
    let Ok(first) = io::read_table::<T>(path, &options, &table) else {
        return false;
    };
    check(&first);
    // The same file as a model would read it has to fit.
    let like = TableOptions {
        schema: Some(first.schema.clone()),
        unseen: *random.pick(&[Unseen::Zeros, Unseen::Refuse]),
        ..TableOptions::default()
    };
    let options = ReadOptions {
        columns: Columns::Exactly(first.features.cols()),
        ..options
    };
    let second = io::read_table::<T>(path, &options, &like);
    let second = second.unwrap_or_else(|error| panic!("read once, then refused: {error}"));
    assert!(
        second.features == first.features && second.unseen.is_empty(),
        "a schema gives the same features"
    );
    true
}

/// What every table promises.
fn check<T: Element>(table: &Table<T>) {
    let features = &table.features;
    let is_finite = |value: &T| value.to_f64().is_finite();
    let finite = match features.storage() {
        Storage::Dense(values) => values.iter().all(is_finite),
        Storage::Sparse(matrix) => matrix.data().iter().all(is_finite),
    };
    assert!(finite, "finite features");
    let cols = features.cols();
    let names = table.schema.feature_names(cols);
    assert!(
        names.is_none_or(|names| names.len() == cols),
        "as many names as columns"
    );
    let targets = table.targets.as_ref().map(|targets| match targets {
        io::TableTargets::Numbers(numbers) => numbers.len(),
        io::TableTargets::Text(texts) => texts.len(),
    });
    assert!(
        targets.is_none_or(|targets| targets == features.rows()),
        "a target for each row"
    );
}
