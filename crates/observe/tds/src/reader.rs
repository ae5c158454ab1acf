use crate::Fault;

/// Reads numbers and texts from a message that may end anywhere.
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(message: &'a [u8]) -> Reader<'a> {
        Reader { rest: message }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn take(&mut self, bytes: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) =
            self.rest.split_at_checked(bytes).ok_or(Fault::Protocol("its answer ends too early"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| Fault::Protocol("its answer ends too early"))
    }

    pub fn u8(&mut self) -> Result<u8, Fault> {
        self.array().map(u8::from_le_bytes)
    }

    pub fn u16(&mut self) -> Result<u16, Fault> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u16_be(&mut self) -> Result<u16, Fault> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_le_bytes)
    }

    /// B_VARCHAR: a byte of length in characters.
    pub fn short_text(&mut self) -> Result<String, Fault> {
        let characters = self.u8()?;
        self.text(usize::from(characters))
    }

    /// US_VARCHAR: two bytes of length in characters.
    pub fn long_text(&mut self) -> Result<String, Fault> {
        let characters = self.u16()?;
        self.text(usize::from(characters))
    }

    fn text(&mut self, characters: usize) -> Result<String, Fault> {
        self.take(2 * characters).map(decode_utf16)
    }
}

/// Decodes UTF-16; invalid units are replaced.
pub fn decode_utf16(bytes: &[u8]) -> String {
    let units = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}
