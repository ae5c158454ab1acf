//! The shim's VFS: registers it, opens files, and calls the VFS below for everything else.

use crate::abi::{
    DlSymbol, FullPathname, SQLITE_CANTOPEN, SQLITE_ERROR, SQLITE_OK, SqliteFile, SqliteFunctions, SqliteVfs,
};
use crate::file::{CountedFile, methods_like, vfs_below};
use crate::registry::{Publish, Registry};
use std::ffi::{CStr, OsStr, c_char, c_double, c_int, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The name to open a database with.
pub const VFS_NAME: &str = "headroom";
const VFS_NAME_C: &CStr = c"headroom";
/// A path that begins with this names a directory that this process has open.
const DESCRIPTORS: &str = "/proc/self/fd/";

/// Why the shim could not be registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// SQLite has no VFS for the shim to call.
    #[error("sqlite has no default vfs to count for; call register after sqlite3_initialize")]
    NoDefaultVfs,
    /// Another VFS, or another copy of this one, has the name.
    #[error("sqlite has a vfs called 'headroom' already, from another copy of this library; use that one")]
    NameTaken,
    /// `sqlite3_vfs_register` failed.
    #[error("sqlite refused the vfs with result code {0}")]
    Refused(c_int),
    /// There is no memory for the counters.
    #[error("cannot map memory for the counters: {0}")]
    Memory(#[from] std::io::Error),
}

static REGISTRY: OnceLock<Registry> = OnceLock::new();
static REGISTERING: Mutex<()> = Mutex::new(());

/// Registers the shim over SQLite's default VFS, under the name [`VFS_NAME`] and, with `make_default`, as the new
/// default. A second call returns the same registry and ignores its `publish`.
///
/// With [`Publish::Private`], which a program uses for databases of its own, a database below a directory that is open as
/// descriptor N has the name `/proc/self/fd/N/NAME`. SQLite would replace that by the directory's path, which another user
/// may lead elsewhere. The shim keeps it for the database, its log and journals; [`Registry::files`] has the path.
///
/// # Safety
/// The functions must be those of one SQLite library (3.5.9 or later) that stays loaded.
///
/// # Errors
/// [`RegisterError`]. A counters file that cannot be created is not an error: see [`Registry::published`].
pub unsafe fn register(
    functions: SqliteFunctions,
    publish: Publish,
    make_default: bool,
) -> Result<&'static Registry, RegisterError> {
    let _one_at_a_time = REGISTERING.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: by contract the functions are SQLite's; a name is null-terminated, or null for the default.
    let find = |name| unsafe { (functions.vfs_find)(name) };
    let registered = find(VFS_NAME_C.as_ptr());
    let shim = if registered.is_null() {
        let below = find(ptr::null());
        if below.is_null() {
            return Err(RegisterError::NoDefaultVfs);
        }
        // SAFETY: SQLite keeps its VFS objects alive while they are registered.
        Box::into_raw(Box::new(unsafe { shim_over(below, &publish) }))
    } else {
        // SAFETY: a registered VFS is alive; `open` exists in every version.
        let ours = unsafe { (*registered).open }
            .is_some_and(|function| function as usize == open as *const () as usize);
        if !ours {
            return Err(RegisterError::NameTaken);
        }
        registered
    };
    // Before SQLite can open a file with the shim.
    let is_first = REGISTRY.get().is_none();
    let registry = match REGISTRY.get() {
        Some(registry) => registry,
        None => {
            let new = Registry::new(publish)?;
            REGISTRY.get_or_init(|| new)
        }
    };
    // SAFETY: the handler is a function of this library, which is never unloaded; the shim is never freed.
    let code = unsafe {
        if is_first {
            libc::atexit(at_exit);
        }
        (functions.vfs_register)(shim, c_int::from(make_default))
    };
    match code {
        SQLITE_OK => Ok(registry),
        code => Err(RegisterError::Refused(code)),
    }
}

extern "C" fn at_exit() {
    if let Some(registry) = REGISTRY.get() {
        registry.withdraw();
    }
}

/// # Safety
/// `below` is a registered VFS.
unsafe fn shim_over(below: *mut SqliteVfs, publish: &Publish) -> SqliteVfs {
    // SAFETY: by contract; the fields read are those that `version` promises.
    let under = unsafe { &*below };
    let version = under.version.clamp(1, 3);
    let full_pathname: FullPathname = match publish {
        Publish::Private => full_pathname_or_descriptor,
        Publish::Shared { .. } => full_pathname,
    };
    SqliteVfs {
        version,
        file_bytes: size_of::<CountedFile>() as c_int + under.file_bytes,
        path_bytes_max: under.path_bytes_max,
        next: ptr::null_mut(),
        name: VFS_NAME_C.as_ptr(),
        app_data: below.cast(),
        open: Some(open),
        // A function that is absent below (SQLite built without extension loading) is absent here.
        delete: under.delete.and(Some(delete)),
        access: under.access.and(Some(access)),
        full_pathname: under.full_pathname.and(Some(full_pathname)),
        dl_open: under.dl_open.and(Some(dl_open)),
        dl_error: under.dl_error.and(Some(dl_error)),
        dl_sym: under.dl_sym.and(Some(dl_sym)),
        dl_close: under.dl_close.and(Some(dl_close)),
        randomness: under.randomness.and(Some(randomness)),
        sleep: under.sleep.and(Some(sleep)),
        current_time: under.current_time.and(Some(current_time)),
        last_error: under.last_error.and(Some(last_error)),
        current_time_int64: (version >= 2 && under.current_time_int64.is_some())
            .then_some(current_time_int64),
        set_system_call: (version >= 3 && under.set_system_call.is_some()).then_some(set_system_call),
        get_system_call: (version >= 3 && under.get_system_call.is_some()).then_some(get_system_call),
        next_system_call: (version >= 3 && under.next_system_call.is_some()).then_some(next_system_call),
    }
}

unsafe extern "C" fn open(
    shim: *mut SqliteVfs,
    name: *const c_char,
    file: *mut SqliteFile,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let counted = file.cast::<CountedFile>();
    // SAFETY: SQLite passes `file_bytes` bytes, enough for a CountedFile and the file of the VFS below.
    // The VFS below gets the same name pointer, because URI parameters follow the name in memory.
    unsafe {
        counted.write(CountedFile::new(shim));
        let inner = CountedFile::inner(file);
        (*inner).methods = ptr::null();
        let under = vfs_below(shim);
        let Some(open_below) = (*under).open else { return SQLITE_ERROR };
        let code = open_below(under, name, inner, flags, out_flags);
        // A VFS may set methods although it failed; SQLite then closes the file, which must reach it.
        (*counted).base.methods = methods_like((*inner).methods);
        if code == SQLITE_OK
            && let Some(registry) = REGISTRY.get()
        {
            let name =
                (!name.is_null()).then(|| Path::new(OsStr::from_bytes(CStr::from_ptr(name).to_bytes())));
            let name = name.map(|name| path_of_descriptor(name).unwrap_or_else(|| name.into()));
            (*counted).slot = registry.slot_for(name.as_ref().map(|name| name.as_os_str()), flags);
        }
        code
    }
}

/// The full path of a file by its name, unless that begins with an open directory: that name stays as it is.
unsafe extern "C" fn full_pathname_or_descriptor(
    shim: *mut SqliteVfs,
    name: *const c_char,
    bytes: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: SQLite passes its shim, a null-terminated name, and `bytes` bytes for the path.
    unsafe {
        let text = CStr::from_ptr(name).to_bytes_with_nul();
        if !text.starts_with(DESCRIPTORS.as_bytes()) {
            return full_pathname(shim, name, bytes, out);
        }
        if usize::try_from(bytes).is_ok_and(|bytes| text.len() <= bytes) {
            ptr::copy_nonoverlapping(name, out, text.len());
            return SQLITE_OK;
        }
        SQLITE_CANTOPEN
    }
}

/// The path at present of a file in a directory of this process, from `/proc/self/fd/N/NAME`; `None` for other names.
pub fn path_of_descriptor(name: &Path) -> Option<PathBuf> {
    let (directory, file) = (name.parent()?, name.file_name()?);
    let number = directory.strip_prefix(DESCRIPTORS).ok()?.to_str()?;
    number.parse::<u32>().ok()?;
    Some(fs::read_link(directory).ok()?.join(file))
}

/// Functions that call the VFS below unchanged. A function that the VFS below lacks is never called: the shim
/// lacks it too.
macro_rules! forward {
    ($($name:ident($($arg:ident: $kind:ty),*) -> $result:ty, else $absent:expr;)*) => {$(
        unsafe extern "C" fn $name(shim: *mut SqliteVfs, $($arg: $kind),*) -> $result {
            // SAFETY: SQLite calls with a VFS made by `shim_over`; the arguments are its own.
            unsafe {
                let under = vfs_below(shim);
                match (*under).$name {
                    Some(function) => function(under, $($arg),*),
                    None => $absent,
                }
            }
        }
    )*};
}

forward! {
    delete(name: *const c_char, sync_dir: c_int) -> c_int, else SQLITE_ERROR;
    access(name: *const c_char, flags: c_int, out: *mut c_int) -> c_int, else SQLITE_ERROR;
    full_pathname(name: *const c_char, bytes: c_int, out: *mut c_char) -> c_int, else SQLITE_ERROR;
    dl_open(name: *const c_char) -> *mut c_void, else ptr::null_mut();
    dl_error(bytes: c_int, message: *mut c_char) -> (), else ();
    dl_sym(library: *mut c_void, symbol: *const c_char) -> DlSymbol, else None;
    dl_close(library: *mut c_void) -> (), else ();
    randomness(bytes: c_int, out: *mut c_char) -> c_int, else 0;
    sleep(microseconds: c_int) -> c_int, else 0;
    current_time(out: *mut c_double) -> c_int, else SQLITE_ERROR;
    last_error(bytes: c_int, message: *mut c_char) -> c_int, else SQLITE_OK;
    current_time_int64(out: *mut i64) -> c_int, else SQLITE_ERROR;
    set_system_call(name: *const c_char, function: DlSymbol) -> c_int, else SQLITE_ERROR;
    get_system_call(name: *const c_char) -> DlSymbol, else None;
    next_system_call(name: *const c_char) -> *const c_char, else ptr::null();
}
