//! Processes that are killed at any moment: the job ends, names who it was, and leaves no half of a model.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::mpirun::command;
use crate::program::Folder;

/// Jobs; `WARPFUSE_KILLS` says another number.
const JOBS: usize = 12;
/// Processes of a job.
const PROCESSES: usize = 3;

/// Rows whose fit lasts for some seconds.
fn rows() -> String {
    let mut text = String::new();
    for row in 0..20_000_usize {
        let label = (row * row + row / 7) % 2;
        text += &label.to_string();
        for column in 1..=12 {
            let value = (row * (2 * column + 1) + column * column) % 101;
            text += &format!(" {column}:{}", value as f64 / 50.0 - 1.0);
        }
        text.push('\n');
    }
    text
}

/// A job over `data.svm` of the folder that goes on until rounding ends it, and says on stderr what it does: some 30 lines.
fn start(folder: &Folder, model: &str, more: &[&str]) -> Child {
    let data = &folder.path("data.svm");
    let endless = ["--tol", "1e-300", "--max-iter", "1000000000", "-vv"];
    let fit = [
        "train",
        "logreg",
        data,
        "--solver",
        "newton-cg",
        "--reproducible",
        "-o",
        model,
    ];
    let mut command = command(PROCESSES, folder, &[], &[&fit[..], &endless, more].concat());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().expect("mpirun starts")
}

/// The process of a rank, once it is there: a child of `mpirun`.
fn process_of(mpirun: u32, rank: usize) -> Option<u32> {
    let variable = format!("OMPI_COMM_WORLD_RANK={rank}");
    let numbers = std::fs::read_dir("/proc").ok()?.flatten();
    let mut numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.find(|number: &u32| {
        let of = Path::new("/proc").join(number.to_string());
        let stat = std::fs::read_to_string(of.join("stat")).unwrap_or_default();
        let fields = stat.rsplit_once(')').map(|(_, fields)| fields.to_owned());
        let parent = fields.and_then(|fields| fields.split_whitespace().nth(1)?.parse().ok());
        let environment = std::fs::read(of.join("environ")).unwrap_or_default();
        parent == Some(mpirun)
            && environment
                .split(|byte| *byte == 0)
                .any(|own| own == variable.as_bytes())
    })
}

fn read_line(log: &mut impl BufRead, said: &mut String) {
    let bytes = log.read_line(said).expect("the log is text");
    assert!(bytes > 0, "the job has ended: {said}");
}

/// Kills one of three processes in one job after the other: when it has just started, and after some lines of its log.
pub fn a_killed_process_is_named_and_ends_the_job() {
    let named = std::env::var("WARPFUSE_KILLS").ok();
    let jobs = named.map_or(JOBS, |jobs| jobs.parse().expect("a number of jobs"));
    let folder = Folder::new();
    folder.file("data.svm", rows());
    let model = folder.path("model");
    for job in 0..jobs {
        // Lines of the log after the processes have joined, and 0 for a moment before that.
        let (rank, line) = (job % PROCESSES, (job * 7) % 15 * (job % 5).min(1));
        let mut child = start(&folder, &model, &[]);
        let mut log = BufReader::new(child.stderr.take().expect("stderr is piped"));
        let mut said = String::new();
        while line > 0 && !said.contains("share the rows") {
            read_line(&mut log, &mut said);
        }
        for _ in 1..line {
            read_line(&mut log, &mut said);
        }
        let number = loop {
            match process_of(child.id(), rank) {
                Some(number) => break number,
                None => std::thread::yield_now(),
            }
        };
        let killed = Command::new("kill")
            .args(["-9", &number.to_string()])
            .status();
        assert!(killed.expect("kill runs").success());
        // Ends with the last process that could say something.
        log.read_to_string(&mut said).expect("the log is text");
        let status = child.wait().expect("mpirun ends");
        assert!(!status.success(), "job {job}: {said}");
        // Of a process that has not joined the others mpirun may say no more than that there was one.
        let who = format!("process rank {rank} with PID ");
        assert!(line == 0 || said.contains(&who), "job {job}: {said}");
        assert!(!Path::new(&model).exists(), "job {job} left a model");
        for rank in 0..PROCESSES {
            assert_eq!(
                process_of(child.id(), rank),
                None,
                "job {job} left a process"
            );
        }
    }
}

/// Kills one process after the other at any moment, and lets the next job go on where the checkpoint is: the last one ends
/// with the bits of a job that nobody killed.
pub fn killed_jobs_go_on_from_their_checkpoints() {
    let folder = Folder::new();
    folder.file("data.svm", rows());
    let model = folder.path("model");
    let alone = folder.path("alone");
    let mut undisturbed = start(&folder, &alone, &[]);
    let mut said = String::new();
    let log = undisturbed.stderr.take().expect("stderr is piped");
    BufReader::new(log).read_to_string(&mut said).expect("text");
    assert!(undisturbed.wait().expect("mpirun ends").success(), "{said}");
    let checkpoint = folder.path("checkpoint");
    let more = ["--checkpoint", &checkpoint, "--every", "0s"];
    let (mut kills, mut resumed) = (0, 0);
    // Later each time, so that one of them ends by itself.
    for job in 0..1_000 {
        let mut child = start(&folder, &model, &more);
        let mut log = BufReader::new(child.stderr.take().expect("stderr is piped"));
        let mut said = String::new();
        let is_over = |said: &str| said.matches("checkpoint").count() > 3 + 4 * job;
        while !is_over(&said) && log.read_line(&mut said).expect("the log is text") > 0 {}
        let victim = process_of(child.id(), job % PROCESSES).filter(|_| is_over(&said));
        if let Some(victim) = victim {
            kills += 1;
            // It may have ended by itself meanwhile.
            let mut kill = Command::new("kill");
            let _ = kill.args(["-9", &victim.to_string()]).status();
        }
        log.read_to_string(&mut said).expect("the log is text");
        resumed += usize::from(said.contains("goes on from checkpoint"));
        if child.wait().expect("mpirun ends").success() {
            break;
        }
        assert!(victim.is_some(), "job {job}: {said}");
        assert!(!Path::new(&model).exists(), "job {job} left a model");
    }
    assert!(
        kills > 1 && resumed > 1,
        "{kills} killed, {resumed} went on"
    );
    assert_eq!(folder.read("model"), folder.read("alone"));
    assert!(!Path::new(&checkpoint).exists());
}
