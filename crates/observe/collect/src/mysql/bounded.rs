//! Work on a connection that is waited for so long and no longer, as a whole: the client library bounds each read, so that a
//! server which sends a byte now and then would never be given up.

use super::error::MysqlError;
use mysql::Conn;
use std::collections::BTreeSet;
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest that an answer takes, and that opening or a snapshot takes in all.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Servers to which a connection is still being made that nobody waits for any more: it cannot be ended from outside,
/// and no other is begun beside it.
static GIVEN_UP: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The connection that the work is done on, once there is one: to end it from outside.
#[derive(Clone, Default)]
pub(super) struct Line(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    socket: Option<TcpStream>,
    is_cut: bool,
}

impl Line {
    /// The work goes on over this connection.
    pub fn is(&self, conn: &Conn) {
        // SAFETY: the connection is borrowed, and with it its socket is open while it is duplicated.
        let socket = unsafe { BorrowedFd::borrow_raw(conn.as_raw_fd()) };
        let mut state = locked(&self.0);
        // Of a Unix socket as well: it is only ever shut.
        state.socket = socket.try_clone_to_owned().ok().map(TcpStream::from);
        state.shut_where_cut();
    }

    /// Nobody waits for the work any more.
    pub fn is_cut(&self) -> bool {
        locked(&self.0).is_cut
    }

    /// Ends it: whoever reads from it gets its end.
    fn cut(&self) {
        let mut state = locked(&self.0);
        state.is_cut = true;
        state.shut_where_cut();
    }
}

impl State {
    fn shut_where_cut(&self) {
        if let Some(socket) = self.socket.as_ref().filter(|_| self.is_cut) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// Does it on a thread of its own, within [`ANSWER_TIMEOUT`].
pub(super) fn bounded<T: Send + 'static>(
    name: &str,
    work: impl FnOnce(&Line) -> Result<T, MysqlError> + Send + 'static,
) -> Result<T, MysqlError> {
    let timed_out = || MysqlError::TimedOut { name: name.into(), seconds: ANSWER_TIMEOUT.as_secs() };
    if locked(&GIVEN_UP).contains(name) {
        return Err(timed_out());
    }
    let line = Line::default();
    // Without room: what is sent was received, or nobody is there.
    let (to, answer) = sync_channel(0);
    let (of_thread, its_name) = (line.clone(), name.to_owned());
    let thread = std::thread::Builder::new().name("mysql-source".into()).spawn(move || {
        if to.send(work(&of_thread)).is_err() {
            locked(&GIVEN_UP).remove(&its_name);
        }
    });
    let thread = thread.map_err(|error| MysqlError::Failed { name: name.into(), why: error.to_string() })?;
    match answer.recv_timeout(ANSWER_TIMEOUT) {
        Ok(answer) => answer,
        Err(RecvTimeoutError::Timeout) => {
            locked(&GIVEN_UP).insert(name.into());
            line.cut();
            Err(timed_out())
        }
        // It panicked.
        Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => Err(MysqlError::Failed { name: name.into(), why: "its thread has ended".into() }),
        },
    }
}

/// What it guards is whole even where a thread has panicked.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
