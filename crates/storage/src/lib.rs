//! placeholder, merged with the storage branch
mod buffers;
mod region;
pub mod ring;
pub use buffers::Buffers;
pub use region::Region;
