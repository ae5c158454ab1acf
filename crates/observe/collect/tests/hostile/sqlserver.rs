use super::*;
use collect::sqlserver::SqlServer;

fn open(port: u16, options: &str) -> Result<Box<dyn Source>, SourceError> {
    let variables = |name: &str| (name == "SQLCMDPASSWORD").then(|| "secret".to_owned());
    let options = if options.is_empty() { "encrypt=off" } else { options };
    let text = format!("sqlserver://watcher@127.0.0.1:{port}/?{options}");
    Ok(Box::new(SqlServer::open_in(&text, &variables)?))
}

fn packet(kind: u8, status: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (payload.len() as u16 + 8).to_be_bytes();
    [&[kind, status, high, low, 0, 0, 1, 0], payload].concat()
}

fn read_message(tcp: &mut TcpStream) -> io::Result<()> {
    loop {
        let header = take(tcp, 8)?;
        take(tcp, usize::from(u16::from_be_bytes([header[2], header[3]])) - 8)?;
        if header[1] & 1 == 1 {
            return Ok(());
        }
    }
}

/// A word on encryption: 0 off, 1 on, 2 not supported.
fn agreed(tcp: &mut TcpStream, encryption: u8) -> io::Result<()> {
    read_message(tcp)?;
    tcp.write_all(&packet(4, 1, &[1, 0, 6, 0, 1, 0xFF, encryption]))?;
    read_message(tcp)
}

fn at_login(tcp: &mut TcpStream, payload: &[u8]) -> io::Result<()> {
    agreed(tcp, 2)?;
    tcp.write_all(&packet(4, 1, payload))?;
    silent(tcp)
}

fn logged_in(tcp: &mut TcpStream) -> io::Result<()> {
    agreed(tcp, 2)?;
    tcp.write_all(&packet(4, 1, &[0xAD, 0, 0]))?;
    read_message(tcp)
}

fn answered(tcp: &mut TcpStream, payload: &[u8]) -> io::Result<()> {
    logged_in(tcp)?;
    tcp.write_all(&packet(4, 1, payload))?;
    silent(tcp)
}

/// A table with `count` columns of bigint, or of another type.
fn columns(count: u16, kind: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x81];
    bytes.extend(count.to_le_bytes());
    (0..count).for_each(|_| bytes.extend([&[0; 6], kind, &[1, b'a', 0]].concat()));
    bytes
}

const WIDE: &[u8] = &[0xE7, 0xFF, 0xFF, 0, 0, 0, 0, 0];

fn routed(tcp: &mut TcpStream) -> io::Result<()> {
    let port = tcp.local_addr()?.port().to_le_bytes();
    let host: Vec<u8> = "127.0.0.1".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut content = vec![20, 0, 0, 0, port[0], port[1], 9, 0];
    content.extend(host);
    at_login(tcp, &[&[0xE3, content.len() as u8, 0], content.as_slice()].concat())
}

#[test]
fn no_server_of_sql_server_ends_more_than_its_own_source() {
    let behaviours = [
        fails("closes at once", close),
        fails("is silent", silent),
        fails("another protocol", another_protocol),
        fails("a byte now and then", |tcp| slowly(tcp, &packet(4, 0, &[1; 100]))),
        fails("a packet shorter than its header", |tcp| {
            tcp.write_all(&[4, 1, 0, 7, 0, 0, 1, 0]).and_then(|()| silent(tcp))
        }),
        fails("a packet that is no answer", |tcp| {
            tcp.write_all(&packet(1, 1, &[0; 4])).and_then(|()| silent(tcp))
        }),
        fails("packets without end", |tcp| endlessly(tcp, &packet(4, 0, &[0; 4000]))),
        fails("empty packets without end", |tcp| endlessly(tcp, &packet(4, 0, &[]))),
        fails("no word about encryption", |tcp| {
            tcp.write_all(&packet(4, 1, &[0xFF])).and_then(|()| silent(tcp))
        }),
        fails("encryption at an offset that is not there", |tcp| {
            tcp.write_all(&packet(4, 1, &[1, 0xFF, 0xFF, 0, 1, 0xFF]))?;
            silent(tcp)
        }),
        with("encrypt=mandatory", fails("TLS is refused", |tcp| agreed(tcp, 2))),
        with(
            "encrypt=mandatory",
            fails("TLS is garbage", |tcp| {
                agreed(tcp, 1)?;
                endlessly(tcp, &packet(0x12, 1, &[0x16, 3, 3, 0x40, 0]))
            }),
        ),
        with("encrypt=mandatory", fails("TLS ends at once", |tcp| agreed(tcp, 1))),
        fails("closes after the login", |tcp| agreed(tcp, 2)),
        fails("an error with escapes and half a surrogate", |tcp| {
            let text = [0x1B, 0, b'[', 0, b'2', 0, b'J', 0, 0, 0xD8, 0x2E, 0x20];
            let content = [&[0x10, 0x48, 0, 0, 1, 14, 6, 0], text.as_slice()].concat();
            at_login(tcp, &[&[0xAA, content.len() as u8, 0], content.as_slice()].concat())
        }),
        fails("an error that is cut", |tcp| at_login(tcp, &[0xAA, 0xFF, 0xFF, 1])),
        fails("an unknown token", |tcp| at_login(tcp, &[0x01, 2, 3])),
        fails("an answer without a word", |tcp| at_login(tcp, &[])),
        fails("messages to the login without end", |tcp| {
            agreed(tcp, 2)?;
            endlessly(tcp, &packet(4, 0, &[0xAB, 1, 0, 0]))
        }),
        fails("a session state of 4 GiB", |tcp| at_login(tcp, &[0xE4, 0xFF, 0xFF, 0xFF, 0xFF])),
        fails("sends to itself for ever", routed),
        fails("closes at the first query", logged_in),
        fails("65,000 columns", |tcp| answered(tcp, &[0x81, 0xE8, 0xFD])),
        fails("a type that is unknown", |tcp| answered(tcp, &columns(1, &[0x62]))),
        fails("rows without columns", |tcp| answered(tcp, &[0xD1, 1, 2, 3])),
        fails("a value longer than the answer", |tcp| {
            answered(tcp, &[columns(1, &[0xE7, 0, 1, 0, 0, 0, 0, 0]), vec![0xD1, 0xFE, 0xFF]].concat())
        }),
        fails("a piece of 4 GiB", |tcp| {
            answered(
                tcp,
                &[columns(1, WIDE), vec![0xD1, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]].concat(),
            )
        }),
        fails("too many tables", |tcp| answered(tcp, &columns(1, &[0x7F]).repeat(100))),
        fails("NULLs without end", |tcp| {
            logged_in(tcp)?;
            tcp.write_all(&packet(4, 0, &columns(200, &[0x26, 8])))?;
            endlessly(tcp, &packet(4, 0, &[&[0xD2], [0xFF; 25].as_slice()].concat().repeat(100)))
        }),
        fails("tables of NULLs, each below its limit", |tcp| {
            logged_in(tcp)?;
            for _ in 0..15 {
                tcp.write_all(&packet(4, 0, &columns(200, &[0x26, 8])))?;
                let rows = packet(4, 0, &[&[0xD2], [0xFF; 25].as_slice()].concat().repeat(100));
                tcp.write_all(&rows.repeat(95))?;
            }
            tcp.write_all(&packet(4, 1, &[0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]))?;
            silent(tcp)
        }),
        fails("a packet that never comes", |tcp| {
            logged_in(tcp)?;
            tcp.write_all(&[4, 1, 0xFF, 0xFF, 0, 0, 1, 0])?;
            silent(tcp)
        }),
    ];
    try_all(&behaviours, open);
}
