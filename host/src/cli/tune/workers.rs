//! Processes that tune, one for each GPU, and who watches them.
//!
//! A launch that hangs cannot be stopped, and one that reads where nothing is takes its GPU's context with it: both end with
//! their process. So launches run in processes of their own, which share a log. One that takes too long over a launch is
//! killed, the launch is remembered as failed, and another process goes on.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::cli::args::TuneRunArgs;
use crate::cli::progress::Ui;
use crate::tune::{Log, UnderWay};

/// How often processes are looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Starts of a process, one after the other, that a signal ended before anything was tried: then nothing ever will be.
const FRUITLESS: usize = 3;

/// A process, and what it is doing.
struct Worker {
    gpu: usize,
    child: Option<Child>,
    doing: Option<(UnderWay, Instant)>,
    fruitless: usize,
}

/// Whether launches run in processes of their own.
pub(super) fn are_wanted(args: &TuneRunArgs) -> bool {
    args.worker.is_none() && (args.processes.is_some() || args.launch_limit.is_some())
}

/// Tunes in processes until the budget is spent, or nothing is left to try.
pub(super) fn run(args: &TuneRunArgs, log: &Path, ui: &Ui) -> Result<()> {
    let until = Instant::now() + args.budget;
    let gpus = args.processes.map_or(1, std::num::NonZeroUsize::get);
    let mut workers: Vec<Worker> = (0..gpus).map(Worker::new).collect();
    for worker in &mut workers {
        worker.start(args, log, until)?;
    }
    while workers.iter().any(|worker| worker.child.is_some()) {
        std::thread::sleep(LOOK);
        let under_way = match args.launch_limit {
            Some(_) => Log::under_way(log)?,
            None => Vec::new(),
        };
        for worker in &mut workers {
            worker.look(args, log, &under_way, ui)?;
            worker.go_on(args, log, until)?;
        }
    }
    Ok(())
}

impl Worker {
    fn new(gpu: usize) -> Worker {
        Worker {
            gpu,
            child: None,
            doing: None,
            fruitless: 0,
        }
    }

    fn start(&mut self, args: &TuneRunArgs, log: &Path, until: Instant) -> Result<()> {
        let program = std::env::current_exe().context("this program is not found")?;
        let left = until.saturating_duration_since(Instant::now());
        let mut command = Command::new(program);
        command.args(std::env::args_os().skip(1));
        if args.log.is_none() {
            command.arg("--log").arg(log);
        }
        let device = match args.processes {
            Some(_) => format!("cuda:{}", self.gpu),
            None => args.device.to_string(),
        };
        command.arg("--worker").arg(device);
        let left = left.as_secs_f64().max(0.001);
        command.arg("--left").arg(format!("{left:.3}s"));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        self.child = Some(
            command
                .spawn()
                .context("a process that tunes cannot be started")?,
        );
        Ok(())
    }

    /// Kills a process that takes too long over a launch.
    fn look(&mut self, args: &TuneRunArgs, log: &Path, all: &[UnderWay], ui: &Ui) -> Result<()> {
        let (Some(child), Some(limit)) = (&mut self.child, args.launch_limit) else {
            return Ok(());
        };
        let own = all.iter().find(|begun| begun.process == child.id());
        match (own, &self.doing) {
            (None, _) => self.doing = None,
            (Some(own), Some((doing, since))) if own == doing => {
                if since.elapsed() > limit {
                    child.kill().context("a process cannot be stopped")?;
                    child.wait().context("a process cannot be stopped")?;
                    let reason = format!("it took longer than {limit:?}");
                    ui.remark(format_args!("stopped, {reason}: {}", own.point));
                    Log::condemn(log, own, &reason)?;
                    self.doing = None;
                }
            }
            (Some(own), _) => self.doing = Some((own.clone(), Instant::now())),
        }
        Ok(())
    }

    /// Starts another process where one has ended before its work.
    fn go_on(&mut self, args: &TuneRunArgs, log: &Path, until: Instant) -> Result<()> {
        let Some(child) = &mut self.child else {
            return Ok(());
        };
        let Some(status) = child.try_wait().context("a process cannot be watched")? else {
            return Ok(());
        };
        let process = child.id();
        self.child = None;
        if status.success() || Instant::now() >= until {
            return Ok(());
        }
        self.fruitless = match Log::has_begun(log, process)? {
            true => 0,
            false => self.fruitless + 1,
        };
        // One that ended by itself has said why.
        let most = if status.code().is_some() {
            1
        } else {
            FRUITLESS
        };
        if self.fruitless >= most {
            bail!("a process that tunes ended before it had tried a launch: {status}");
        }
        self.start(args, log, until)
    }
}

impl Drop for Worker {
    /// No process outlives the one that watches it.
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
