//! TDS of the server's side, written from [MS-TDS] independently of the client: packets, LOGIN7, tokens.

use std::io::{self, Read, Write};
use std::net::TcpStream;

/// A packet's type and payload, and whether it is the message's last.
pub fn read_packet(stream: &mut impl Read) -> io::Result<(u8, bool, Vec<u8>)> {
    let mut header = [0u8; 8];
    stream.read_exact(&mut header)?;
    let length = usize::from(header[2]) << 8 | usize::from(header[3]);
    assert!((8..=4096).contains(&length), "a packet of {length} bytes, where 4096 were agreed on");
    assert_eq!((header[4], header[5], header[7]), (0, 0, 0), "SPID and window of a client");
    let mut payload = vec![0; length - 8];
    stream.read_exact(&mut payload)?;
    Ok((header[0], header[1] & 1 == 1, payload))
}

/// A message's type and payload.
pub fn read_message(stream: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut all = Vec::new();
    loop {
        let (kind, is_last, payload) = read_packet(stream)?;
        all.extend(payload);
        if is_last {
            return Ok((kind, all));
        }
    }
}

/// A message in packets of at most `packet_bytes`.
pub fn packets(kind: u8, message: &[u8], packet_bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    let mut number = 1u8;
    loop {
        let end = message.len().min(at + packet_bytes - 8);
        let length = end - at + 8;
        let is_last = end == message.len();
        out.extend([kind, u8::from(is_last), (length >> 8) as u8, length as u8, 0, 51, number, 0]);
        out.extend(&message[at..end]);
        (at, number) = (end, number.wrapping_add(1));
        if is_last {
            return out;
        }
    }
}

/// The answer to PRELOGIN: version 15.0.4123, encryption, no instance, no thread, no MARS.
pub fn prelogin(encryption: u8) -> Vec<u8> {
    vec![
        0, 0, 26, 0, 6, 1, 0, 32, 0, 1, 2, 0, 33, 0, 1, 3, 0, 34, 0, 0, 4, 0, 34, 0, 1, 0xFF, //
        15, 0, 0x10, 0x1B, 0, 0, encryption, 0, 0,
    ]
}

/// The encryption that a client's PRELOGIN asks for.
pub fn wish(message: &[u8]) -> u8 {
    let mut at = 0;
    while message[at] != 0xFF {
        let offset = usize::from(message[at + 1]) << 8 | usize::from(message[at + 2]);
        if message[at] == 1 {
            return message[offset];
        }
        at += 5;
    }
    panic!("no word about encryption")
}

/// The content of a LOGIN7.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    pub tds_version: u32,
    pub user: String,
    pub password: String,
    pub program: String,
    pub server: String,
    pub database: String,
}

pub fn login(message: &[u8]) -> Login {
    let number = |at: usize| usize::from(message[at]) | usize::from(message[at + 1]) << 8;
    let bytes = |at: usize| message[number(at)..][..2 * number(at + 2)].to_vec();
    let text = |at: usize| utf16(&bytes(at));
    assert_eq!(number(0) | number(2) << 16, message.len(), "the length in it is its own");
    let password: Vec<u8> = bytes(44).iter().map(|byte| (byte ^ 0xA5).rotate_right(4)).collect();
    Login {
        tds_version: (number(4) | number(6) << 16) as u32,
        user: text(40),
        password: utf16(&password),
        program: text(48),
        server: text(52),
        database: text(68),
    }
}

/// The text of an SQL batch behind its headers.
pub fn batch(message: &[u8]) -> String {
    let headers = u32::from_le_bytes(message[..4].try_into().unwrap()) as usize;
    assert_eq!(headers, 22, "one header, of the transaction");
    assert_eq!(message[4..10], [18, 0, 0, 0, 2, 0]);
    utf16(&message[headers..])
}

fn utf16(bytes: &[u8]) -> String {
    let units: Vec<u16> = bytes.chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    String::from_utf16(&units).unwrap()
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn short_text(text: &str) -> Vec<u8> {
    [vec![text.encode_utf16().count() as u8], wide(text)].concat()
}

fn long_text(text: &str) -> Vec<u8> {
    [(text.encode_utf16().count() as u16).to_le_bytes().to_vec(), wide(text)].concat()
}

fn with_length(token: u8, content: &[u8]) -> Vec<u8> {
    [&[token], (content.len() as u16).to_le_bytes().as_slice(), content].concat()
}

/// ENVCHANGE of the packet size, INFO, LOGINACK, DONE.
pub fn login_accepted() -> Vec<u8> {
    let size = with_length(0xE3, &[vec![4], short_text("4096"), short_text("4096")].concat());
    let info = message(0xAB, 5701, 0, "Changed database context to 'master'.");
    let version = [0x74, 0, 0, 4];
    let program = [short_text("Microsoft SQL Server"), vec![15, 0, 0x10, 0x1B]].concat();
    let acknowledged = with_length(0xAD, &[&[1], version.as_slice(), &program].concat());
    [size, info, acknowledged, done(0, 0)].concat()
}

/// LOGINACK, and ENVCHANGE of the routing.
pub fn login_routed(host: &str, port: u16) -> Vec<u8> {
    let there = [vec![0], port.to_le_bytes().to_vec(), long_text(host)].concat();
    let change = [vec![20], (there.len() as u16).to_le_bytes().to_vec(), there, vec![0, 0]].concat();
    [login_accepted(), with_length(0xE3, &change), done(0, 0)].concat()
}

/// ERROR, and DONE with its error bit.
pub fn error(number: i32, class: u8, text: &str) -> Vec<u8> {
    [message(0xAA, number, class, text), done(2, 0)].concat()
}

fn message(token: u8, number: i32, class: u8, text: &str) -> Vec<u8> {
    let line = 1u32.to_le_bytes().to_vec();
    let parts = [
        number.to_le_bytes().to_vec(),
        vec![1, class],
        long_text(text),
        short_text("RESPONDER"),
        vec![0],
        line,
    ];
    with_length(token, &parts.concat())
}

pub fn done(status: u16, rows: u64) -> Vec<u8> {
    [&[0xFD], status.to_le_bytes().as_slice(), &[0xC1, 0], &rows.to_le_bytes()].concat()
}

/// A column's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    SmallInt,
    /// Nullable.
    Int,
    BigInt,
    /// Nullable.
    BigIntNull,
    Text,
    TextMax,
    Binary,
}

/// A value, `None` for NULL.
#[derive(Clone, Debug)]
pub enum Cell {
    Null,
    Int(i64),
    Text(String),
    Binary(Vec<u8>),
}

/// COLMETADATA, rows alternately as ROW and NBCROW, DONE.
pub fn table(columns: &[(&str, Type)], rows: &[Vec<Cell>]) -> Vec<u8> {
    let mut out = vec![0x81];
    out.extend((columns.len() as u16).to_le_bytes());
    const COLLATION: [u8; 5] = [0x09, 0x04, 0xD0, 0x00, 0x34];
    for (name, kind) in columns {
        out.extend([0, 0, 0, 0, 9, 0]);
        match kind {
            Type::SmallInt => out.push(0x34),
            Type::BigInt => out.push(0x7F),
            Type::Int => out.extend([0x26, 4]),
            Type::BigIntNull => out.extend([0x26, 8]),
            Type::Text => out.extend([&[0xE7, 0x10, 0x04], COLLATION.as_slice()].concat()),
            Type::TextMax => out.extend([&[0xE7, 0xFF, 0xFF], COLLATION.as_slice()].concat()),
            Type::Binary => out.extend([0xA5, 8, 0]),
        }
        out.extend(short_text(name));
    }
    for (at, row) in rows.iter().enumerate() {
        assert_eq!(row.len(), columns.len());
        let is_compressed = at % 2 == 1;
        out.push(if is_compressed { 0xD2 } else { 0xD1 });
        if is_compressed {
            let mut bitmap = vec![0u8; columns.len().div_ceil(8)];
            for (column, _) in row.iter().enumerate().filter(|(_, cell)| matches!(cell, Cell::Null)) {
                bitmap[column / 8] |= 1 << (column % 8);
            }
            out.extend(bitmap);
        }
        for ((_, kind), cell) in columns.iter().zip(row) {
            if !(is_compressed && matches!(cell, Cell::Null)) {
                out.extend(value(*kind, cell));
            }
        }
    }
    out.extend(done(0x10, rows.len() as u64));
    out
}

fn value(kind: Type, cell: &Cell) -> Vec<u8> {
    match (kind, cell) {
        (Type::SmallInt, Cell::Int(int)) => i16::try_from(*int).unwrap().to_le_bytes().to_vec(),
        (Type::BigInt, Cell::Int(int)) => int.to_le_bytes().to_vec(),
        (Type::Int, Cell::Int(int)) => [&[4], i32::try_from(*int).unwrap().to_le_bytes().as_slice()].concat(),
        (Type::BigIntNull, Cell::Int(int)) => [&[8], int.to_le_bytes().as_slice()].concat(),
        (Type::Int | Type::BigIntNull, Cell::Null) => vec![0],
        (Type::Text, Cell::Text(text)) => {
            let text = wide(text);
            [(text.len() as u16).to_le_bytes().to_vec(), text].concat()
        }
        (Type::Binary, Cell::Binary(bytes)) => {
            [(bytes.len() as u16).to_le_bytes().as_slice(), bytes].concat()
        }
        (Type::Text | Type::Binary, Cell::Null) => vec![0xFF, 0xFF],
        // Of unknown length, in two pieces.
        (Type::TextMax, Cell::Text(text)) => {
            let text = wide(text);
            let (first, second) = text.split_at(text.len() / 2);
            let piece = |bytes: &[u8]| [(bytes.len() as u32).to_le_bytes().as_slice(), bytes].concat();
            let pieces = [first, second].into_iter().filter(|part| !part.is_empty()).flat_map(piece);
            let unknown = 0xFFFF_FFFF_FFFF_FFFEu64.to_le_bytes().into_iter();
            unknown.chain(pieces).chain(0u32.to_le_bytes()).collect()
        }
        (Type::TextMax, Cell::Null) => vec![0xFF; 8],
        (kind, cell) => panic!("{cell:?} in a column of {kind:?}"),
    }
}

/// A connection, perhaps encrypted.
pub struct Peer {
    pub tcp: TcpStream,
    pub tls: Option<rustls::ServerConnection>,
}

impl Peer {
    /// Does the handshake, whose records are in packets of type 0x12.
    pub fn encrypt(&mut self, mut tls: rustls::ServerConnection) -> io::Result<()> {
        while tls.is_handshaking() {
            let (kind, _, records) = read_packet(&mut self.tcp)?;
            assert_eq!(kind, 0x12, "the handshake's records are in packets of PRELOGIN");
            let mut rest = records.as_slice();
            while !rest.is_empty() {
                tls.read_tls(&mut rest)?;
                if let Err(error) = tls.process_new_packets() {
                    let mut alert = Vec::new();
                    tls.write_tls(&mut alert)?;
                    self.tcp.write_all(&packets(0x12, &alert, 4096))?;
                    return Err(io::Error::other(error));
                }
            }
            let mut answer = Vec::new();
            while tls.wants_write() {
                tls.write_tls(&mut answer)?;
            }
            if !answer.is_empty() {
                // In packets smaller than a certificate.
                self.tcp.write_all(&packets(0x12, &answer, 512))?;
            }
        }
        self.tls = Some(tls);
        Ok(())
    }
}

impl Read for Peer {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => rustls::Stream::new(tls, &mut self.tcp).read(buffer),
            None => self.tcp.read(buffer),
        }
    }
}

impl Write for Peer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => rustls::Stream::new(tls, &mut self.tcp).write(bytes),
            None => self.tcp.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => rustls::Stream::new(tls, &mut self.tcp).flush(),
            None => self.tcp.flush(),
        }
    }
}
