//! A cursor moves over a table in both directions; in the writing transaction it also changes what it is on.

use super::Table;
use super::position::Position;
use crate::engine::tx::{Pages, WriteTx};
use crate::error::Result;
use std::ops::{Bound, Deref};

/// A cursor over a table: on an entry, or between two. After an error it is nowhere, and must be placed again.
///
/// ```text
/// first, last, seek, seek_back   place it anywhere
/// next, previous                 move it by one entry
/// delete, put                    remove, or set the value of, the entry that it is on (`WriteTx::cursor`)
/// ```
pub struct Cursor<T> {
    tx: T,
    table: Table,
    at: Option<Position>,
}

impl<T: Deref<Target: Pages + Sized>> Cursor<T> {
    pub(super) fn new(tx: T, table: Table) -> Result<Self> {
        drop(super::root_page(&*tx, table)?);
        Ok(Self { tx, table, at: None })
    }

    /// The entry that it is on.
    ///
    /// # Errors
    /// When the entry is damaged.
    pub fn entry(&self) -> Result<Option<(&[u8], &[u8])>> {
        match &self.at {
            Some(at) => at.entry(),
            None => Ok(None),
        }
    }

    /// Moves to the first entry.
    ///
    /// # Errors
    /// When a page cannot be read.
    pub fn first(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        self.seek(Bound::Unbounded)
    }

    /// Moves to the last entry.
    ///
    /// # Errors
    /// When a page cannot be read.
    pub fn last(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        self.seek_back(Bound::Unbounded)
    }

    /// Moves to the first entry whose key is within `from`.
    ///
    /// # Errors
    /// When a page cannot be read.
    pub fn seek(&mut self, from: Bound<&[u8]>) -> Result<Option<(&[u8], &[u8])>> {
        self.at = None;
        let mut at = Position::before(&*self.tx, self.table, from)?;
        at.forward(&*self.tx)?;
        self.at.insert(at).entry()
    }

    /// Moves to the last entry whose key is within `to`.
    ///
    /// # Errors
    /// When a page cannot be read.
    pub fn seek_back(&mut self, to: Bound<&[u8]>) -> Result<Option<(&[u8], &[u8])>> {
        self.at = None;
        let mut at = Position::after(&*self.tx, self.table, to)?;
        at.back(&*self.tx)?;
        self.at.insert(at).entry()
    }

    /// Moves to the next entry, or to the first one if it was not placed yet. Past the last entry it returns `None`, and
    /// `previous` leads back to it.
    ///
    /// # Errors
    /// When a page cannot be read.
    #[expect(clippy::should_implement_trait, reason = "what it returns is borrowed from it")]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let Some(mut at) = self.at.take() else { return self.first() };
        at.forward(&*self.tx)?;
        self.at.insert(at).entry()
    }

    /// Moves to the previous entry, or to the last one if it was not placed yet. Before the first entry it returns
    /// `None`, and `next` leads back to it.
    ///
    /// # Errors
    /// When a page cannot be read.
    pub fn previous(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let Some(mut at) = self.at.take() else { return self.last() };
        at.back(&*self.tx)?;
        self.at.insert(at).entry()
    }
}

impl Cursor<&mut WriteTx<'_>> {
    /// Removes the entry that it is on, and returns whether it was on one. It is then between the entries before and
    /// after it.
    ///
    /// # Errors
    /// As `WriteTx::delete`.
    pub fn delete(&mut self) -> Result<bool> {
        let Some(mut at) = self.take_on_entry()? else { return Ok(false) };
        let table = self.table;
        self.tx.change_several(|tx| at.delete(tx, table))?;
        self.at = Some(at);
        Ok(true)
    }

    /// Sets the value of the entry that it is on, and returns whether it was on one.
    ///
    /// # Errors
    /// As `WriteTx::put`.
    pub fn put(&mut self, value: &[u8]) -> Result<bool> {
        let Some((key, _)) = self.entry()? else { return Ok(false) };
        self.tx.check_length(key.len() + value.len())?;
        let Some(mut at) = self.take_on_entry()? else { return Ok(false) };
        let table = self.table;
        self.tx.change_several(|tx| at.replace(tx, table, value))?;
        self.at = Some(at);
        Ok(true)
    }

    /// Its position, if it is on an entry.
    fn take_on_entry(&mut self) -> Result<Option<Position>> {
        let is_on = self.entry()?.is_some();
        Ok(self.at.take_if(|_| is_on))
    }
}

impl<'a> WriteTx<'a> {
    /// A cursor that can change the table.
    ///
    /// # Errors
    /// When the handle is stale, or a page cannot be read.
    pub fn cursor_mut(&mut self, table: Table) -> Result<Cursor<&mut Self>> {
        Cursor::new(self, table)
    }

    /// Removes the first entry, and returns it.
    ///
    /// # Errors
    /// As `delete`.
    pub fn pop_first(&mut self, table: Table) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let mut cursor = self.cursor_mut(table)?;
        let popped = cursor.first()?.map(|(key, value)| (key.to_vec(), value.to_vec()));
        cursor.delete()?;
        Ok(popped)
    }

    /// Removes the last entry, and returns it.
    ///
    /// # Errors
    /// As `delete`.
    pub fn pop_last(&mut self, table: Table) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let mut cursor = self.cursor_mut(table)?;
        let popped = cursor.last()?.map(|(key, value)| (key.to_vec(), value.to_vec()));
        cursor.delete()?;
        Ok(popped)
    }
}
