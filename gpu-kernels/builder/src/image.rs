//! One architecture's kernels, brought up to date: what has changed is compiled and assembled again, and nothing else.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::compile::{Compiler, Core};
use crate::device_crate::DeviceCrate;
use crate::folder::{folder_of, ptx_file};
use crate::index::{self, Assembled, Index, Record};
use crate::parallel::in_parallel;
use crate::split::Piece;
use crate::unit::{Job, Unit, jobs};
use crate::{Arch, BuildError, Image, LineInfo, Ptxas, Toolchain, checks, process};

/// What is to be made.
pub(crate) struct Request<'a> {
    pub device: &'a DeviceCrate,
    pub toolchain: &'a Toolchain,
    pub ptxas: Option<&'a Ptxas>,
    pub arch: Arch,
    pub lines: LineInfo,
    /// What the caller knows of the kernels; without units all that there are.
    pub units: &'a [Unit],
    /// The folder of all architectures.
    pub target_dir: &'a Path,
    /// Where `core` is compiled.
    pub core_dir: &'a Path,
    /// What to begin with where nothing is compiled.
    pub seed_dir: Option<&'a Path>,
    /// Programs to run at once.
    pub workers: usize,
}

/// Kernels whose optimisation takes about as long as rustc takes to read the crate.
const FEW: usize = 48;

/// Fingerprints of code, by kernel.
type Codes = BTreeMap<String, String>;

/// What may run beside others.
enum Task<'a> {
    Codes,
    Job(usize, &'a Job<'a>),
}

/// What comes of it.
enum Made {
    Codes(Codes),
    Pieces(Vec<Piece>),
}

impl Request<'_> {
    /// Compiles, checks, assembles.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub(crate) fn image(&self) -> Result<Image, BuildError> {
        let folder = folder_of(self.target_dir, self.arch);
        let kernels = folder.join("kernels");
        fs::create_dir_all(&kernels).map_err(BuildError::io(&kernels, "created"))?;
        let _alone = locked(&folder)?;
        let mut index = match Index::read(&folder)? {
            Some(index) => index,
            None => self.seed(&folder)?,
        };
        self.compile(&folder, &mut index)?;
        self.keep_expected(&folder, &mut index)?;
        if let Some(ptxas) = self.ptxas {
            self.assemble(ptxas, &folder, &mut index)?;
        }
        index.save(&folder)?;
        let image = Image::of(self.arch, folder, &index);
        Ok(match self.ptxas {
            Some(_) => image,
            None => image.without_machine_code(),
        })
    }

    /// Takes over what lies in the other folder; what of it is not current is compiled again like everything else.
    fn seed(&self, folder: &Path) -> Result<Index, BuildError> {
        let Some(other) = self.seed_dir.map(|seed| folder_of(seed, self.arch)) else {
            return Ok(Index::default());
        };
        if !other.is_dir() {
            return Ok(Index::default());
        }
        let _alone = locked(&other)?;
        let index = Index::read(&other)?.unwrap_or_default();
        for (name, record) in &index.kernels {
            let (from, to) = (ptx_file(&other, name), ptx_file(folder, name));
            fs::copy(&from, &to).map_err(BuildError::io(&from, "copied"))?;
            if record.assembled.is_some() {
                let from = from.with_extension("cubin");
                fs::copy(&from, to.with_extension("cubin"))
                    .map_err(BuildError::io(&from, "copied"))?;
            }
        }
        index.save(folder)?;
        Ok(index)
    }

    fn compiler<'a>(&'a self, folder: &'a Path) -> Compiler<'a> {
        Compiler {
            device: self.device,
            toolchain: self.toolchain,
            arch: self.arch,
            lines: self.lines,
            folder,
            core_dir: self.core_dir,
        }
    }

    /// Names that the caller expects.
    fn expected(&self) -> impl Iterator<Item = &str> {
        self.units
            .iter()
            .flat_map(|unit| unit.kernels.iter().map(String::as_str))
    }

    /// Whether compiling all takes no longer than finding out what has changed.
    fn are_few(&self) -> bool {
        !self.units.is_empty() && self.expected().count() < FEW
    }

    fn compile(&self, folder: &Path, index: &mut Index) -> Result<(), BuildError> {
        let compiler = self.compiler(folder);
        let source = index::fingerprint((self.device.source()?, compiler.recipe()));
        let lacks = |name: &str| !index.kernels.contains_key(name);
        let complete = index.source == source && !self.expected().any(lacks);
        if complete && !index.kernels.is_empty() {
            return Ok(());
        }
        process::say(&format!("compiling {} for {}", self.device.name, self.arch));
        let core = compiler.core()?;
        let codes = if index.kernels.is_empty() || self.are_few() {
            self.compile_all(&compiler, &core, index)?
        } else {
            let codes = self.codes(&compiler, &core)?;
            self.compile_changed(&compiler, &core, &codes, index)?;
            codes
        };
        for (name, record) in &mut index.kernels {
            record.code = codes.get(name).cloned().unwrap_or_default();
        }
        index.source = source;
        index.save(folder)
    }

    /// With source lines in the PTX every change of a file may be one of a kernel.
    fn codes(&self, compiler: &Compiler, core: &Core) -> Result<Codes, BuildError> {
        let all = Job {
            units: self.units.iter().collect(),
        };
        let mut codes: Codes = compiler.codes(core, &all)?.into_iter().collect();
        if self.lines == LineInfo::Kept {
            let source = self.device.source()?;
            for code in codes.values_mut() {
                *code = format!("{code}-{source}");
            }
        }
        Ok(codes)
    }

    /// Everything, and meanwhile the fingerprints, which the next build asks for.
    fn compile_all(
        &self,
        compiler: &Compiler,
        core: &Core,
        index: &mut Index,
    ) -> Result<Codes, BuildError> {
        // What is about to be overwritten is forgotten first, for this build may be interrupted.
        for record in index.kernels.values_mut() {
            (record.code, record.ptx) = Default::default();
        }
        index.source.clear();
        index.save(compiler.folder)?;
        let jobs = self.jobs(self.units);
        let numbered = jobs.iter().enumerate();
        let tasks: Vec<Task> = numbered
            .map(|(number, job)| Task::Job(number, job))
            .chain((!self.are_few()).then_some(Task::Codes))
            .collect();
        let mut codes = Codes::new();
        for made in in_parallel(&tasks, self.workers, |task| match task {
            Task::Codes => self.codes(compiler, core).map(Made::Codes),
            Task::Job(number, job) => compiler.ptx(core, (*number, job)).map(Made::Pieces),
        })? {
            match made {
                Made::Codes(made) => codes = made,
                Made::Pieces(pieces) => write(compiler.folder, pieces, index)?,
            }
        }
        Ok(codes)
    }

    /// The units of which a kernel's code is not as it was.
    fn compile_changed(
        &self,
        compiler: &Compiler,
        core: &Core,
        codes: &Codes,
        index: &mut Index,
    ) -> Result<(), BuildError> {
        let changed = |name: &String| {
            let record = index.kernels.get(name);
            record.is_none_or(|record| codes.get(name) != Some(&record.code))
        };
        let units: Vec<Unit> = self
            .units
            .iter()
            .filter(|unit| unit.kernels.iter().any(changed))
            .cloned()
            .collect();
        let all = self.units.is_empty() && codes.keys().any(changed);
        if units.is_empty() && !all {
            return Ok(());
        }
        let names: Vec<&str> = units.iter().map(|unit| unit.name.as_str()).collect();
        process::say(&format!("changed for {}: {}", self.arch, names.join(" ")));
        // As above.
        for kernel in units.iter().flat_map(|unit| &unit.kernels) {
            if let Some(record) = index.kernels.get_mut(kernel) {
                record.code.clear();
                record.ptx.clear();
            }
        }
        index.source.clear();
        index.save(compiler.folder)?;
        let jobs: Vec<(usize, Job)> = self.jobs(&units).into_iter().enumerate().collect();
        let compile = |(number, job): &(usize, Job)| compiler.ptx(core, (*number, job));
        for pieces in in_parallel(&jobs, self.workers, compile)? {
            write(compiler.folder, pieces, index)?;
        }
        Ok(())
    }

    /// Without units there is one run, which has everything.
    fn jobs<'u>(&self, units: &'u [Unit]) -> Vec<Job<'u>> {
        if units.is_empty() {
            return vec![Job { units: Vec::new() }];
        }
        jobs(units, self.workers)
    }

    /// Refuses an image that lacks a kernel, and drops kernels that the crate no longer has.
    fn keep_expected(&self, folder: &Path, index: &mut Index) -> Result<(), BuildError> {
        let found: Vec<&str> = index.kernels.keys().map(String::as_str).collect();
        checks::require(&found, self.arch, self.expected())?;
        if self.units.is_empty() {
            return Ok(());
        }
        let expected: std::collections::BTreeSet<&str> = self.expected().collect();
        let superfluous: Vec<String> = found
            .into_iter()
            .filter(|name| !expected.contains(name))
            .map(String::from)
            .collect();
        for name in superfluous {
            index.kernels.remove(&name);
            let ptx = ptx_file(folder, &name);
            // What is not there need not be removed.
            let _ = (
                fs::remove_file(&ptx),
                fs::remove_file(ptx.with_extension("cubin")),
            );
        }
        Ok(())
    }

    fn assemble(&self, ptxas: &Ptxas, folder: &Path, index: &mut Index) -> Result<(), BuildError> {
        let recipe = |record: &Record| format!("{ptxas:?} {}", record.ptx);
        let is_current = |(name, record): &(&String, &Record)| {
            let made = record.assembled.as_ref();
            made.is_some_and(|made| made.recipe == recipe(record))
                && ptx_file(folder, name).with_extension("cubin").is_file()
        };
        let waiting: Vec<(String, String)> = index
            .kernels
            .iter()
            .filter(|kernel| !is_current(kernel))
            .map(|(name, record)| (name.clone(), recipe(record)))
            .collect();
        if waiting.is_empty() {
            return Ok(());
        }
        process::say(&format!(
            "assembling {} kernels for {}",
            waiting.len(),
            self.arch
        ));
        // As above.
        for (name, _) in &waiting {
            if let Some(record) = index.kernels.get_mut(name) {
                record.assembled = None;
            }
        }
        index.save(folder)?;
        let made = in_parallel(&waiting, self.workers, |(name, recipe)| {
            let resources = self.assemble_one(ptxas, &ptx_file(folder, name), name)?;
            Ok(Assembled {
                recipe: recipe.clone(),
                resources,
            })
        })?;
        for ((name, _), made) in waiting.iter().zip(made) {
            if let Some(record) = index.kernels.get_mut(name) {
                record.assembled = Some(made);
            }
        }
        Ok(())
    }

    /// Every kernel must have its figures, or a change of ptxas's wording would hide spills.
    fn assemble_one(
        &self,
        ptxas: &Ptxas,
        ptx: &Path,
        name: &str,
    ) -> Result<crate::Resources, BuildError> {
        let reported = ptxas.assemble(ptx, self.arch, &ptx.with_extension("cubin"))?;
        let of_kernel = reported.into_iter().find(|known| known.entry == name);
        of_kernel.ok_or_else(|| BuildError::Report {
            entries: vec![name.to_owned()],
        })
    }
}

/// Writes what differs; the fingerprints of the code are filled in when everything is there.
fn write(folder: &Path, pieces: Vec<Piece>, index: &mut Index) -> Result<(), BuildError> {
    for Piece { name, text } in pieces {
        let path = ptx_file(folder, &name);
        let ptx = index::fingerprint(&text);
        let known = index.kernels.get(&name);
        if !(known.is_some_and(|known| known.ptx == ptx) && path.is_file()) {
            fs::write(&path, &text).map_err(BuildError::io(&path, "written"))?;
        }
        let assembled = known.and_then(|known| known.assembled.clone());
        let record = Record {
            code: String::new(),
            ptx,
            assembled,
        };
        index.kernels.insert(name, record);
    }
    Ok(())
}

/// Keeps other builds out of the folder as long as the file lives.
fn locked(folder: &Path) -> Result<File, BuildError> {
    let path: PathBuf = folder.join("lock");
    let file = File::create(&path).map_err(BuildError::io(&path, "created"))?;
    file.lock().map_err(BuildError::io(&path, "locked"))?;
    Ok(file)
}
