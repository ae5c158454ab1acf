use super::*;
use collect::mysql::Mysql;
use std::os::unix::fs::OpenOptionsExt;

fn open(port: u16, options: &str) -> Result<Box<dyn Source>, SourceError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("my.cnf");
    let mut file = fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path).unwrap();
    writeln!(file, "[client]\nuser=watcher\npassword=secret").unwrap();
    let file = path.display();
    Ok(Box::new(Mysql::open(&format!("mysql://127.0.0.1:{port}/?defaults-file={file}&{options}"))?))
}

fn packet(number: u8, payload: &[u8]) -> Vec<u8> {
    let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
    [&[a, b, c, number], payload].concat()
}

fn read_packet(tcp: &mut TcpStream) -> io::Result<Vec<u8>> {
    let header = take(tcp, 4)?;
    take(tcp, u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize)
}

/// A greeting with these capabilities (without TLS: 0x8_a201) and this plugin.
fn greeting(capabilities: u32, plugin: &str) -> Vec<u8> {
    let [a, b, c, d] = capabilities.to_le_bytes();
    let mut payload = b"\x0a8.0.36\0\x01\0\0\0abcdefgh\0".to_vec();
    payload.extend([a, b, 45, 2, 0, c, d, 21]);
    payload.extend([0; 10]);
    payload.extend(b"ijklmnopqrst\0");
    payload.extend(plugin.bytes());
    payload.push(0);
    packet(0, &payload)
}

const PLAIN: u32 = 0x8_A201;
const ACCEPTS_KEY: &str = "get-server-public-key=true";
const NATIVE: &str = "mysql_native_password";

fn greeted(tcp: &mut TcpStream, plugin: &str) -> io::Result<()> {
    tcp.write_all(&greeting(PLAIN, plugin))?;
    read_packet(tcp).map(drop)
}

fn proved(tcp: &mut TcpStream, payload: &[u8]) -> io::Result<()> {
    greeted(tcp, NATIVE)?;
    tcp.write_all(&packet(2, payload))?;
    silent(tcp)
}

fn logged_in(tcp: &mut TcpStream) -> io::Result<()> {
    greeted(tcp, NATIVE)?;
    tcp.write_all(&packet(2, &[0, 0, 0, 2, 0, 0, 0]))?;
    read_packet(tcp).map(drop)
}

fn answered(tcp: &mut TcpStream, payload: &[u8]) -> io::Result<()> {
    logged_in(tcp)?;
    tcp.write_all(&packet(1, payload))?;
    silent(tcp)
}

/// Answers the request for the key.
fn key(tcp: &mut TcpStream, pem: &[u8]) -> io::Result<()> {
    greeted(tcp, "caching_sha2_password")?;
    tcp.write_all(&packet(2, &[1, 4]))?;
    read_packet(tcp)?;
    tcp.write_all(&packet(4, &[&[1], pem].concat()))?;
    silent(tcp)
}

const DEFINITION: &[u8] = b"\x03def\0\0\0\x01a\0\x0c\x2d\0\0\0\0\0\xfd\0\0\0\0\0";

/// The head of a table with `columns` columns, and its end of columns.
fn head(columns: u8) -> Vec<u8> {
    let mut bytes = packet(1, &[columns]);
    (0..columns).for_each(|at| bytes.extend(packet(at + 2, DEFINITION)));
    bytes.extend(packet(columns + 2, &[0xFE, 0, 0, 2, 0]));
    bytes
}

fn table(tcp: &mut TcpStream, columns: u8, row: &[u8]) -> io::Result<()> {
    logged_in(tcp)?;
    tcp.write_all(&[head(columns), packet(columns + 3, row)].concat())?;
    silent(tcp)
}

/// Every query gets a table of the columns it asks for, all values this one.
fn absurd(tcp: &mut TcpStream, value: &[u8]) -> io::Result<()> {
    greeted(tcp, NATIVE)?;
    tcp.write_all(&packet(2, &[0, 0, 0, 2, 0, 0, 0]))?;
    let host = fs::read_to_string("/proc/sys/kernel/hostname")?;
    loop {
        let query = String::from_utf8_lossy(&read_packet(tcp)?).into_owned();
        let columns = match query.get(1..).unwrap_or_default() {
            text if text.starts_with("SHOW") => 2,
            text if text.contains("setup_instruments") => 3,
            text if text.contains("by_event_name") => 9,
            text if text.contains("by_instance") => 10,
            text if text.starts_with("SET") => {
                tcp.write_all(&packet(1, &[0, 0, 0, 2, 0, 0, 0]))?;
                continue;
            }
            _ => 1,
        };
        let one = [&[value.len() as u8], value].concat();
        let mut named = one.repeat(usize::from(columns));
        let mut answer = head(columns);
        let mut number = columns + 3;
        for name in ["uptime", "performance_schema", "datadir", "hostname", "pid_file"] {
            if columns == 2 {
                let value: &[u8] = match name {
                    "performance_schema" => b"ON",
                    // It claims to be on this machine.
                    "hostname" => host.trim().as_bytes(),
                    "pid_file" => b"/dev/zero",
                    _ => value,
                };
                named = [&[name.len() as u8], name.as_bytes(), &[value.len() as u8], value].concat();
            }
            answer.extend(packet(number, &named));
            number += 1;
        }
        answer.extend(packet(number, &[0xFE, 0, 0, 2, 0]));
        tcp.write_all(&answer)?;
    }
}

#[test]
fn no_server_of_mysql_ends_more_than_its_own_source() {
    let behaviours = [
        fails("closes at once", close),
        fails("is silent", silent),
        fails("another protocol", another_protocol),
        fails("a byte now and then", |tcp| slowly(tcp, &greeting(PLAIN, NATIVE))),
        fails("an empty packet for a greeting", |tcp| {
            tcp.write_all(&packet(0, &[])).and_then(|()| silent(tcp))
        }),
        fails("a greeting of 16 MiB", |tcp| {
            tcp.write_all(&[0xFF, 0xFF, 0xFF, 0])?;
            endlessly(tcp, &[10])
        }),
        fails("a greeting that is cut", |tcp| {
            tcp.write_all(&packet(0, b"\x0a8.0")).and_then(|()| silent(tcp))
        }),
        fails("a version without end", |tcp| {
            tcp.write_all(&packet(0, &[10; 1000])).and_then(|()| silent(tcp))
        }),
        fails("protocol 9", |tcp| tcp.write_all(&packet(0, &[9; 100])).and_then(|()| silent(tcp))),
        fails("no capabilities", |tcp| tcp.write_all(&greeting(0, NATIVE)).and_then(|()| silent(tcp))),
        fails("an error with escapes for a greeting", |tcp| {
            tcp.write_all(&packet(0, &[&[0xFF, 0x69, 0x04], UGLY].concat()))?;
            silent(tcp)
        }),
        fails("an error without a code", |tcp| tcp.write_all(&packet(0, &[0xFF])).and_then(|()| silent(tcp))),
        fails("closes after the greeting", |tcp| tcp.write_all(&greeting(PLAIN, NATIVE))),
        fails("closes after the login", |tcp| greeted(tcp, NATIVE)),
        fails("an empty packet after the login", |tcp| proved(tcp, &[])),
        fails("the login is refused with escapes", |tcp| {
            proved(tcp, &[b"\xff\x15\x04#28000".as_slice(), UGLY].concat())
        }),
        fails("a plugin that is not here", |tcp| {
            proved(tcp, b"\xfeclient_ed25519\0abcdefghijklmnopqrstuvwxyz012345")
        }),
        fails("the plugin parsec", |tcp| proved(tcp, b"\xfeparsec\0abcdefghijklmnopqrstuvwxyz012345")),
        fails("the password in clear", |tcp| proved(tcp, b"\xfemysql_clear_password\0")),
        fails("the oldest password", |tcp| proved(tcp, b"\xfe")),
        fails("a switch without a nonce", |tcp| proved(tcp, b"\xfemysql_native_password\0")),
        fails("switches without end", |tcp| {
            greeted(tcp, NATIVE)?;
            for at in 1u8.. {
                tcp.write_all(&packet(2 * at, b"\xfecaching_sha2_password\0abcdefghijklmnopqrst\0"))?;
                read_packet(tcp)?;
            }
            Ok(())
        }),
        fails("the password itself, without TLS", |tcp| {
            greeted(tcp, "caching_sha2_password")?;
            tcp.write_all(&packet(2, &[1, 4]))?;
            let mut rest = Vec::new();
            tcp.read_to_end(&mut rest)?;
            assert!(rest.is_empty(), "neither a password nor the request for a key");
            Ok(())
        }),
        with(
            "ssl-mode=preferred",
            fails("TLS is offered and ends at once", |tcp| {
                tcp.write_all(&greeting(PLAIN | 0x800, NATIVE))?;
                read_packet(tcp).map(drop)
            }),
        ),
        fails("more data, and none", |tcp| proved(tcp, &[1])),
        with(ACCEPTS_KEY, fails("a key that is none", |tcp| key(tcp, b"hello"))),
        with(
            ACCEPTS_KEY,
            fails("a key without content", |tcp| {
                key(tcp, b"-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n")
            }),
        ),
        with(
            ACCEPTS_KEY,
            fails("a key that is cut", |tcp| {
                key(
                    tcp,
                    b"-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOC\n-----END PUBLIC KEY-----\n",
                )
            }),
        ),
        with(ACCEPTS_KEY, fails("a key of 1 MiB", |tcp| key(tcp, &vec![b'A'; 1 << 20]))),
        with(
            "ssl-mode=required",
            fails("TLS is refused", |tcp| tcp.write_all(&greeting(PLAIN, NATIVE)).and_then(|()| silent(tcp))),
        ),
        with(
            "ssl-mode=required",
            fails("TLS is garbage", |tcp| {
                tcp.write_all(&greeting(PLAIN | 0x800, NATIVE))?;
                read_packet(tcp)?;
                endlessly(tcp, &[0x16, 3, 3, 0x40, 0])
            }),
        ),
        with(
            "ssl-mode=required",
            fails("TLS ends at once", |tcp| {
                tcp.write_all(&greeting(PLAIN | 0x800, NATIVE))?;
                read_packet(tcp).map(drop)
            }),
        ),
        fails("closes at the first query", logged_in),
        fails("2^64 - 1 columns", |tcp| answered(tcp, &[0xFE, 255, 255, 255, 255, 255, 255, 255, 255])),
        fails("2^40 columns", |tcp| answered(tcp, &[0xFE, 0, 0, 0, 0, 0, 1, 0, 0])),
        fails("2^31 columns", |tcp| answered(tcp, &[0xFE, 0, 0, 0, 128, 0, 0, 0, 0])),
        fails("columns without end", |tcp| {
            logged_in(tcp)?;
            tcp.write_all(&packet(1, &[0xFC, 0, 0x10]))?;
            let many: Vec<u8> = (0..=255u8).flat_map(|at| packet(at.wrapping_add(2), DEFINITION)).collect();
            endlessly(tcp, &many)
        }),
        fails("a column that is cut", |tcp| {
            logged_in(tcp)?;
            tcp.write_all(&[packet(1, &[2]), packet(2, b"\x03def\0\0")].concat())?;
            silent(tcp)
        }),
        fails("a count of columns that is cut", |tcp| answered(tcp, &[0xFE, 0])),
        fails("no columns", |tcp| answered(tcp, &[0, 0, 0, 2, 0, 0, 0])),
        fails("a column that is empty", |tcp| {
            logged_in(tcp)?;
            tcp.write_all(&[packet(1, &[2]), packet(2, &[])].concat())?;
            silent(tcp)
        }),
        fails("a file of this machine is wanted", |tcp| answered(tcp, b"\xfb/etc/shadow")),
        fails("packets out of order", |tcp| {
            logged_in(tcp)?;
            tcp.write_all(&[packet(1, &[2]), packet(7, DEFINITION)].concat())?;
            silent(tcp)
        }),
        fails("more columns than announced", |tcp| {
            logged_in(tcp)?;
            let three = [2, 3, 4].map(|number| packet(number, DEFINITION)).concat();
            tcp.write_all(&[packet(1, &[2]), three].concat())?;
            silent(tcp)
        }),
        fails("a value longer than its packet", |tcp| {
            table(tcp, 2, &[0xFE, 255, 255, 255, 255, 255, 255, 255, 127, 1])
        }),
        fails("a row that is cut", |tcp| table(tcp, 2, &[3, b'a'])),
        fails("a row that is too long", |tcp| table(tcp, 2, &[1, b'a', 1, b'b', 1, b'c'])),
        fails("rows without end", |tcp| {
            logged_in(tcp)?;
            tcp.write_all(&head(2))?;
            let value = [b'x'; 200];
            let row = [&[200], value.as_slice(), &[200], &value].concat();
            let mut many = Vec::new();
            (0..=255u8).for_each(|at| many.extend(packet(at.wrapping_add(5), &row)));
            endlessly(tcp, &many)
        }),
        survives("the largest numbers", |tcp| absurd(tcp, b"18446744073709551615")),
        survives("negative numbers", |tcp| absurd(tcp, b"-1")),
        survives("numbers that are none, and no UTF-8", |tcp| absurd(tcp, UGLY)),
        survives("zero", |tcp| absurd(tcp, b"0")),
    ];
    try_all(&behaviours, open);
}
