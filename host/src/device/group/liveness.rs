//! Who of the processes of `torchrun` is no more, from before they have joined until they leave.
//!
//! NCCL says nothing of a process that ends while others wait for it to join, and its own errors name none. So every process
//! holds a connection to rank 0, at the second port after the launcher's, and says before it goes that it does. The operating
//! system closes the connections of a process that is killed, at once and whatever its state: rank 0 hears of it, and tells
//! the others. What a process says that fails goes the same way.
//!
//! Nothing else depends on it. Where rank 0 cannot be reached, members are waited for until the limit, as before.

mod frame;

use std::io::ErrorKind;
use std::net::{Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use self::frame::{Frame, Kind, Reader};
use super::GroupError;
use super::peers::PROCESS_ENDED;
use crate::parallel::locked;

/// Between two looks of rank 0, and two tries of another member.
const PAUSE: Duration = Duration::from_millis(20);
/// How long one try may take.
const TRY: Duration = Duration::from_secs(1);

/// A member's connection to rank 0, or rank 0's to all; dropping it says that the member leaves in good order.
#[derive(Debug)]
pub(super) struct Liveness(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    rank: usize,
    /// What members of one job say alike when they come.
    job: String,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Who has come, of which rank 0 alone knows.
    came: Vec<bool>,
    /// What was heard first.
    lost: Option<GroupError>,
    /// To each member that is here; of another member than rank 0, that to rank 0 alone.
    connections: Vec<(usize, TcpStream)>,
    /// Whether this member is leaving.
    is_over: bool,
}

impl Liveness {
    /// Begins to listen, or to look for rank 0, at a host and a port.
    ///
    /// # Errors
    /// [`GroupError::Engine`] when rank 0 cannot listen there, or there is no thread.
    pub(super) fn begin(place: &str, (rank, size): (usize, usize)) -> Result<Self, GroupError> {
        let mut came = vec![false; size];
        came[rank] = true;
        let shared = Arc::new(Shared {
            rank,
            job: format!("warpfuse {size} {place}"),
            state: Mutex::new(State {
                came,
                lost: None,
                connections: Vec::new(),
                is_over: false,
            }),
            changed: Condvar::new(),
        });
        let own = Liveness(shared.clone());
        let place = place.to_owned();
        match rank {
            0 => {
                let listener = listen(&place).map_err(failed)?;
                begin_thread(move || serve(&shared, &listener))?;
            }
            _ => begin_thread(move || follow(&shared, &place))?,
        }
        Ok(own)
    }

    /// A member that has failed or ended.
    pub(super) fn lost(&self) -> Option<GroupError> {
        locked(&self.0.state).lost.clone()
    }

    /// Who has not come, as far as this member knows.
    pub(super) fn absent(&self) -> Vec<usize> {
        let state = locked(&self.0.state);
        let others = (0..state.came.len()).filter(|other| *other != self.0.rank);
        match self.0.rank {
            0 if state.came.contains(&false) => others.filter(|rank| !state.came[*rank]).collect(),
            _ => others.collect(),
        }
    }

    /// Tells the others why this member cannot go on, unless they know of somebody before.
    pub(super) fn report(&self, message: &str) {
        let rank = self.0.rank;
        let error = GroupError::Failed {
            rank,
            message: message.to_owned(),
        };
        let until = Instant::now() + TRY;
        let mut state = locked(&self.0.state);
        while rank > 0 && state.connections.is_empty() && state.lost.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.0.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
        state.lose(&error);
    }
}

impl Drop for Liveness {
    fn drop(&mut self) {
        let mut state = locked(&self.0.state);
        state.is_over = true;
        for (_, connection) in &mut state.connections {
            if !thread::panicking() {
                Frame::of(Kind::Bye, self.0.rank, "").send(connection);
            }
            // Whoever waits for more need not.
            let _ = connection.shutdown(Shutdown::Both);
        }
        self.0.changed.notify_all();
    }
}

impl State {
    /// Keeps what was heard first; whether this is it.
    fn note(&mut self, error: &GroupError) -> bool {
        let is_first = self.lost.is_none();
        if is_first {
            self.lost = Some(error.clone());
        }
        is_first
    }

    /// Keeps what was heard first, and tells everybody.
    fn lose(&mut self, error: &GroupError) {
        if self.note(error) {
            for (_, connection) in &mut self.connections {
                frame_of(error).send(connection);
            }
        }
    }
}

fn frame_of(error: &GroupError) -> Frame {
    match error {
        GroupError::Left { rank, .. } => Frame::of(Kind::Left, *rank, ""),
        GroupError::Failed { rank, message } => Frame::of(Kind::Failed, *rank, message),
        other => Frame::of(Kind::Failed, 0, &other.to_string()),
    }
}

fn left(rank: usize) -> GroupError {
    let how = PROCESS_ENDED;
    GroupError::Left { rank, how }
}

fn failed(error: std::io::Error) -> GroupError {
    GroupError::Engine {
        operation: "connections between the processes",
        message: error.to_string(),
    }
}

fn begin_thread(work: impl FnOnce() + Send + 'static) -> Result<(), GroupError> {
    let thread = thread::Builder::new().name("warpfuse-liveness".to_owned());
    thread.spawn(work).map(drop).map_err(failed)
}

/// At the address of this name, or at all of this machine's where the name is that of something in front of it.
fn listen(place: &str) -> std::io::Result<TcpListener> {
    let listener = TcpListener::bind(place).or_else(|error| {
        let port = place
            .to_socket_addrs()?
            .next()
            .map(|address| address.port());
        match (error.kind(), port) {
            (ErrorKind::AddrNotAvailable, Some(port)) => {
                TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))
            }
            _ => Err(error),
        }
    })?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// What somebody who has connected to rank 0 has said.
struct Guest {
    stream: TcpStream,
    reader: Reader,
    /// None until it has said who it is.
    rank: Option<usize>,
}

/// Rank 0's part, until it leaves.
fn serve(shared: &Shared, listener: &TcpListener) {
    let mut guests: Vec<Guest> = Vec::new();
    let mut state = locked(&shared.state);
    while !state.is_over {
        while let Ok((stream, _)) = listener.accept() {
            if stream.set_nonblocking(true).is_ok() {
                let reader = Reader::default();
                let rank = None;
                guests.push(Guest {
                    stream,
                    reader,
                    rank,
                });
            }
        }
        guests.retain_mut(|guest| hear(&mut state, guest, &shared.job));
        let waited = shared.changed.wait_timeout(state, PAUSE);
        state = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
    }
}

/// Reads what a guest has sent; whether it stays.
fn hear(state: &mut State, guest: &mut Guest, job: &str) -> bool {
    let is_open = guest.reader.fill(&mut guest.stream);
    while let Some(frame) = guest.reader.next() {
        match (frame.kind, guest.rank) {
            (Kind::Hello, None) if state.welcome(guest, &frame, job) => {}
            (Kind::Failed, Some(rank)) => state.lose(&GroupError::Failed {
                rank,
                message: frame.text,
            }),
            (Kind::Bye, Some(rank)) => {
                state.connections.retain(|(other, _)| *other != rank);
                return false;
            }
            // Somebody else's.
            _ => return false,
        }
    }
    if is_open && !guest.reader.is_broken() {
        return true;
    }
    if let Some(rank) = guest.rank {
        state.connections.retain(|(other, _)| *other != rank);
        state.lose(&left(rank));
    }
    false
}

impl State {
    /// Takes in somebody who says that it is a member; whether it is.
    fn welcome(&mut self, guest: &mut Guest, hello: &Frame, job: &str) -> bool {
        let rank = hello.rank;
        let is_new = self.came.get(rank) == Some(&false);
        let Some(mut own) = guest.stream.try_clone().ok().filter(|_| is_new) else {
            return false;
        };
        if hello.text != job {
            return false;
        }
        Frame::of(Kind::Hello, 0, job).send(&mut own);
        if let Some(lost) = &self.lost {
            frame_of(lost).send(&mut own);
        }
        self.came[rank] = true;
        self.connections.push((rank, own));
        guest.rank = Some(rank);
        true
    }
}

/// The part of any other member: looks for rank 0 until it is there, and hears what it says.
fn follow(shared: &Shared, place: &str) {
    while !locked(&shared.state).is_over {
        if let Some((stream, reader)) = meet(shared, place) {
            return listen_to_first(shared, stream, reader);
        }
        let state = locked(&shared.state);
        drop(shared.changed.wait_timeout(state, PAUSE));
    }
}

/// A connection to rank 0 of this job; none where nobody, or somebody else, listens there.
fn meet(shared: &Shared, place: &str) -> Option<(TcpStream, Reader)> {
    let addresses: Vec<SocketAddr> = place.to_socket_addrs().ok()?.collect();
    let each = addresses.iter();
    let mut stream = each
        .map(|address| TcpStream::connect_timeout(address, TRY))
        .find_map(Result::ok)?;
    stream.set_read_timeout(Some(TRY)).ok()?;
    Frame::of(Kind::Hello, shared.rank, &shared.job).send(&mut stream);
    let mut reader = Reader::default();
    let answer = loop {
        if let Some(frame) = reader.next() {
            break frame;
        }
        // One that has said hello stays: rank 0 would take the end of its connection for its own.
        if !reader.fill(&mut stream) || reader.is_broken() {
            return None;
        }
        if locked(&shared.state).is_over {
            Frame::of(Kind::Bye, shared.rank, "").send(&mut stream);
            return None;
        }
    };
    let is_first = answer.kind == Kind::Hello && answer.text == shared.job;
    stream.set_read_timeout(None).ok()?;
    is_first.then_some((stream, reader))
}

fn listen_to_first(shared: &Shared, mut stream: TcpStream, mut reader: Reader) {
    {
        let mut state = locked(&shared.state);
        if state.is_over {
            // It left before rank 0 had answered, when there was no connection to say so.
            Frame::of(Kind::Bye, shared.rank, "").send(&mut stream);
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
        if let Ok(own) = stream.try_clone() {
            state.connections.push((0, own));
        }
        shared.changed.notify_all();
    }
    loop {
        while let Some(frame) = reader.next() {
            let Frame { kind, rank, text } = frame;
            let error = match kind {
                Kind::Left => left(rank),
                Kind::Failed => GroupError::Failed {
                    rank,
                    message: text,
                },
                Kind::Bye | Kind::Hello => return,
            };
            locked(&shared.state).note(&error);
        }
        if !reader.fill(&mut stream) {
            let mut state = locked(&shared.state);
            if !state.is_over {
                state.note(&left(0));
            }
            return;
        }
    }
}

#[cfg(test)]
mod tests;
