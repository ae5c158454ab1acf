//! The format of a page in the data file.
//!
//! ```text
//!  0  CRC-32C u32 of everything after it
//!  4  owner   u32 what it is for: see `owner`
//!  8  page    u64 number: detects a page at a wrong place
//! 16  lsn     u64 of the last log record that changed it
//! 24  store   u64 low half of the store's identity
//! 32  the page's content
//! ```
//! In memory the first 32 bytes are zeros except for the owner; the other fields are filled in when the page is
//! written.
//!
//! ```text
//! owner 0   a user's page; any page of a store whose meta page has owner 0 too: it was made before there were owners
//!       1   free          2   the meta page          3   a page of the catalog
//!       16 or more        a page of the table with this number
//! ```

use crate::error::{Error, Result};
use crate::format::codec::{put_u32, put_u64, u32_at, u64_at};
use crate::{Lsn, PageNo};

/// Bytes of a page that belong to the engine.
pub const PAGE_HEADER_BYTES: usize = 32;

const OWNER_AT: usize = 4;
pub(crate) const OWNER_USER: u32 = 0;
pub(crate) const OWNER_FREE: u32 = 1;
pub(crate) const OWNER_META: u32 = 2;
pub(crate) const OWNER_CATALOG: u32 = 3;
/// Table numbers begin here.
pub(crate) const TABLES_FROM: u32 = 16;

/// The owner of a page. Users cannot forge it, since they cannot write the header.
#[inline]
pub(crate) fn owner(bytes: &[u8]) -> u32 {
    u32_at(bytes, OWNER_AT)
}

pub(crate) fn set_owner(bytes: &mut [u8], owner: u32) {
    put_u32(bytes, OWNER_AT, owner);
}

/// Fills in the header of a page before it is written.
pub(crate) fn stamp(bytes: &mut [u8], store: u64, page: PageNo, lsn: Lsn) {
    put_u64(bytes, 8, page.0);
    put_u64(bytes, 16, lsn.packed());
    put_u64(bytes, 24, store);
    let crc = crc32c::crc32c(&bytes[4..]);
    put_u32(bytes, 0, crc);
}

/// Checks a page that was read and clears its header except for the owner; returns its LSN.
pub(crate) fn unstamp(bytes: &mut [u8], store: u64, page: PageNo) -> Result<Lsn> {
    let lsn = Lsn::from_packed(u64_at(bytes, 16));
    let damaged = |why: String| Err(Error::CorruptPage { page, why });
    if u32_at(bytes, 0) != crc32c::crc32c(&bytes[4..]) {
        return damaged("its checksum does not fit".into());
    }
    if u64_at(bytes, 8) != page.0 {
        return damaged(format!("page {} was written there", u64_at(bytes, 8)));
    }
    if u64_at(bytes, 24) != store {
        return damaged("it belongs to another store".into());
    }
    bytes[..OWNER_AT].fill(0);
    bytes[OWNER_AT + 4..PAGE_HEADER_BYTES].fill(0);
    Ok(lsn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_at_a_wrong_place_of_another_store_or_with_a_wrong_bit_is_refused() {
        let mut page = vec![0; 4096];
        page[100] = 1;
        set_owner(&mut page, OWNER_CATALOG);
        stamp(&mut page, 7, PageNo(3), Lsn::new(1, 8, 1));
        assert!(unstamp(&mut page.clone(), 7, PageNo(4)).is_err());
        assert!(unstamp(&mut page.clone(), 8, PageNo(3)).is_err());
        let mut flipped = page.clone();
        flipped[4000] ^= 1;
        assert!(unstamp(&mut flipped, 7, PageNo(3)).is_err());
        assert_eq!(unstamp(&mut page, 7, PageNo(3)).unwrap(), Lsn::new(1, 8, 1));
        assert_eq!(page[..32].iter().filter(|byte| **byte != 0).count(), 1);
        assert_eq!(owner(&page), OWNER_CATALOG);
    }
}
