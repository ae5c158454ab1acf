//! Work on a connection with a limit on its total time: the client library limits each read, so that a server which sends
//! a byte now and then would never time out.

use super::error::{ANSWER_TIMEOUT, MysqlError};
use mysql::Conn;
use std::collections::BTreeSet;
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Servers to which an abandoned thread is still connecting. It cannot be stopped, and no second one is started.
static ABANDONED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Ends the connection that the work uses, from another thread.
#[derive(Clone, Default)]
pub(super) struct Canceller(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    socket: Option<TcpStream>,
    is_cancelled: bool,
}

impl Canceller {
    /// From now on the work uses this connection.
    pub fn watch(&self, conn: &Conn) {
        // SAFETY: `conn` owns the socket, and is borrowed while the socket is duplicated.
        let socket = unsafe { BorrowedFd::borrow_raw(conn.as_raw_fd()) };
        let mut state = locked(&self.0);
        // It may be a Unix socket: it is only shut down.
        state.socket = socket.try_clone_to_owned().ok().map(TcpStream::from);
        state.shut_down_if_cancelled();
    }

    pub fn is_cancelled(&self) -> bool {
        locked(&self.0).is_cancelled
    }

    /// Shuts the connection down, so that reads from it return.
    fn cancel(&self) {
        let mut state = locked(&self.0);
        state.is_cancelled = true;
        state.shut_down_if_cancelled();
    }
}

impl State {
    fn shut_down_if_cancelled(&self) {
        if let Some(socket) = self.socket.as_ref().filter(|_| self.is_cancelled) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// Does the work on a thread of its own, within [`ANSWER_TIMEOUT`].
pub(super) fn bounded<T: Send + 'static>(
    name: &str,
    work: impl FnOnce(&Canceller) -> Result<T, MysqlError> + Send + 'static,
) -> Result<T, MysqlError> {
    if locked(&ABANDONED).contains(name) {
        return Err(MysqlError::TimedOut);
    }
    let canceller = Canceller::default();
    // Unbuffered: a send succeeds only if the result is received.
    let (to, result) = sync_channel(0);
    let (canceller_of_thread, name_of_thread) = (canceller.clone(), name.to_owned());
    let thread = std::thread::Builder::new().name("mysql-source".into()).spawn(move || {
        if to.send(work(&canceller_of_thread)).is_err() {
            locked(&ABANDONED).remove(&name_of_thread);
        }
    });
    let thread = thread.map_err(|error| MysqlError::Failed(error.to_string()))?;
    match result.recv_timeout(ANSWER_TIMEOUT) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => {
            locked(&ABANDONED).insert(name.into());
            canceller.cancel();
            Err(MysqlError::TimedOut)
        }
        // The thread panicked.
        Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => Err(MysqlError::Failed("its thread has ended".into())),
        },
    }
}

/// A panic of another thread leaves what the mutex guards valid.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
