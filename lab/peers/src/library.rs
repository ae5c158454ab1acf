//! A shared library of the system, and the functions in it.

use crate::{Error, Result};
use std::ffi::{CStr, CString, c_void};

/// A loaded library. It is never unloaded: an engine's threads may outlive their database by a moment.
pub(crate) struct Library {
    engine: &'static str,
    name: String,
    handle: *mut c_void,
}

impl Library {
    /// Loads the first of these names that the system's loader finds.
    pub(crate) fn find(engine: &'static str, names: &[&str], package: &'static str) -> Result<Library> {
        let mut first = None;
        for name in names {
            let c_name = CString::new(*name).expect("a library's name has no zero in it");
            // SAFETY: the name ends with a zero. Initialisers of a system library run, as in any program linked with it.
            let handle = unsafe { libc::dlopen(c_name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            if !handle.is_null() {
                return Ok(Library { engine, name: (*name).to_owned(), handle });
            }
            first.get_or_insert_with(loader_message);
        }
        Err(Error::NotInstalled { engine, why: first.unwrap_or_default(), package })
    }

    /// The address of a function.
    pub(crate) fn address(&self, function: &'static str) -> Result<*mut c_void> {
        let name = CString::new(function).expect("a function's name has no zero in it");
        // SAFETY: the library is never unloaded; the name ends with a zero.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        if address.is_null() {
            return Err(Error::NoFunction { engine: self.engine, library: self.name.clone(), function });
        }
        Ok(address)
    }
}

/// The loader's last message.
fn loader_message() -> String {
    // SAFETY: dlerror has no arguments.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the loader does not say why".into();
    }
    // SAFETY: the loader's text ends with a zero and stays until this thread calls the loader again.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A struct of C functions, each found in a library by the name of its field.
macro_rules! functions {
    ($(#[$about:meta])* struct $name:ident { $($function:ident: fn($($argument:ty),* $(,)?) $(-> $result:ty)?;)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy)]
        struct $name { $($function: unsafe extern "C" fn($($argument),*) $(-> $result)?,)* }

        impl $name {
            fn load(library: &$crate::library::Library) -> $crate::Result<$name> {
                Ok($name {
                    $(
                        // SAFETY: the library has a function of that name, whose header declares these types; an
                        // address and a function's pointer have one size.
                        $function: unsafe {
                            std::mem::transmute::<*mut std::ffi::c_void, unsafe extern "C" fn($($argument),*) $(-> $result)?>(
                                library.address(stringify!($function))?,
                            )
                        },
                    )*
                })
            }
        }
    };
}
pub(crate) use functions;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_reported_with_its_package() {
        let missing =
            Library::find("Nothing", &["libnothing-of-that-name.so.1"], "libnothing1").err().unwrap();
        assert!(missing.to_string().starts_with("there is no Nothing on this machine: libnothing-of-that"));
        assert_eq!(missing.remedy().as_deref(), Some("apt-get install libnothing1"));
    }

    #[test]
    fn a_library_that_is_too_old_is_reported_with_the_missing_function() {
        let library = Library::find("C", &["libc.so.6"], "libc6").unwrap();
        assert!(library.address("getpid").is_ok());
        let lacking = library.address("getpid_of_next_year").err().unwrap();
        assert!(lacking.to_string().ends_with("(libc.so.6) cannot be used: it has no getpid_of_next_year"));
    }
}
