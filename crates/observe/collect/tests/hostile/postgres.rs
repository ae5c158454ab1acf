use super::*;
use collect::postgres::Postgres;

fn open(port: u16, options: &str) -> Result<Box<dyn Source>, SourceError> {
    let mode = if options.is_empty() { "sslmode=disable" } else { options };
    let text = format!("host=127.0.0.1 port={port} user=watcher password=secret dbname=shop {mode}");
    Ok(Box::new(Postgres::open(&text)?))
}

fn message(tag: u8, content: &[u8]) -> Vec<u8> {
    [&[tag], (content.len() as u32 + 4).to_be_bytes().as_slice(), content].concat()
}

fn startup(tcp: &mut TcpStream) -> io::Result<()> {
    let length = u32::from_be_bytes(take(tcp, 4)?.try_into().unwrap());
    take(tcp, length as usize - 4).map(drop)
}

fn after_startup(tcp: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    startup(tcp)?;
    tcp.write_all(bytes)?;
    silent(tcp)
}

fn logged_in(tcp: &mut TcpStream) -> io::Result<()> {
    startup(tcp)?;
    tcp.write_all(&[message(b'R', &[0; 4]), ready()].concat())?;
    take(tcp, 5).map(drop)
}

fn answered(tcp: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    logged_in(tcp)?;
    tcp.write_all(bytes)?;
    silent(tcp)
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

fn columns(names: &[&[u8]]) -> Vec<u8> {
    let mut content = (names.len() as u16).to_be_bytes().to_vec();
    for name in names {
        content.extend(*name);
        content.extend([0; 19]);
    }
    message(b'T', &content)
}

fn row(values: &[&str]) -> Vec<u8> {
    let mut content = (values.len() as u16).to_be_bytes().to_vec();
    for value in values {
        content.extend((value.len() as u32).to_be_bytes());
        content.extend(value.as_bytes());
    }
    message(b'D', &content)
}

fn sasl(challenge: &str) -> Vec<u8> {
    message(b'R', &[&[0, 0, 0, 11], challenge.as_bytes()].concat())
}

fn scram(tcp: &mut TcpStream, rest: &str) -> io::Result<()> {
    startup(tcp)?;
    tcp.write_all(&message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"))?;
    let header = take(tcp, 5)?;
    let response = take(tcp, u32::from_be_bytes(header[1..].try_into().unwrap()) as usize - 4)?;
    let response = String::from_utf8_lossy(&response).into_owned();
    let nonce = response.rsplit_once("r=").map_or("", |(_, nonce)| nonce);
    tcp.write_all(&sasl(&format!("r={nonce}x,{rest}")))?;
    silent(tcp)
}

/// Every statement of a batch gets this table.
fn tables(tcp: &mut TcpStream, table: &[u8]) -> io::Result<()> {
    logged_in(tcp)?;
    let done = message(b'C', b"SELECT 1\0");
    let one = [table, &done].concat();
    loop {
        tcp.write_all(&[done.repeat(5), one.repeat(6), ready()].concat())?;
        take(tcp, 1)?;
        std::thread::sleep(Duration::from_millis(20));
        tcp.set_nonblocking(true)?;
        let mut rest = [0; 1 << 16];
        while matches!(tcp.read(&mut rest), Ok(1..)) {}
        tcp.set_nonblocking(false)?;
    }
}

fn absurd(tcp: &mut TcpStream, number: &str) -> io::Result<()> {
    let names = "version block_bytes wal_block_bytes pid cluster started object backend_type context reads read_bytes \
                 read_time writes write_bytes write_time extends extend_bytes fsyncs fsync_time stats_reset sessions";
    let names: Vec<&[u8]> = names.split(' ').map(str::as_bytes).collect();
    let values = vec![number; names.len()];
    tables(tcp, &[columns(&names), row(&values)].concat())
}

#[test]
fn no_server_of_postgresql_ends_more_than_its_own_source() {
    let server_error = |tcp: &mut TcpStream| {
        let content = [b"SFATAL\0C28000\0M".as_slice(), UGLY, b"\0\0"].concat();
        after_startup(tcp, &message(b'E', &content))
    };
    let behaviours = [
        fails("closes at once", close),
        fails("is silent", silent),
        fails("another protocol", another_protocol),
        fails("closes after the startup", startup),
        fails("a length of 2 GiB before the login, and the bytes", |tcp| {
            startup(tcp)?;
            tcp.write_all(&[b'R', 0x7F, 0xFF, 0xFF, 0xFF])?;
            endlessly(tcp, &[0])
        }),
        fails("a negative length", |tcp| after_startup(tcp, &[b'R', 0xFF, 0xFF, 0xFF, 0xFF])),
        fails("a length of 0", |tcp| after_startup(tcp, &[b'R', 0, 0, 0, 0])),
        fails("a length shorter than itself", |tcp| after_startup(tcp, &[b'E', 0, 0, 0, 3])),
        fails("an error of 1 MiB", |tcp| after_startup(tcp, &message(b'E', &vec![b'M'; 1 << 20]))),
        fails("a byte now and then", |tcp| slowly(tcp, &message(b'N', &[b'x'; 1000]))),
        fails("notices without end before the login", |tcp| {
            startup(tcp)?;
            tcp.write_all(&message(b'R', &[0; 4]))?;
            endlessly(tcp, &message(b'N', b"SNOTICE\0C00000\0Mhello\0\0"))
        }),
        fails("parameters without end", |tcp| {
            startup(tcp)?;
            tcp.write_all(&message(b'R', &[0; 4]))?;
            (0u64..).try_for_each(|at| tcp.write_all(&message(b'S', format!("name{at}\0value\0").as_bytes())))
        }),
        fails("an unknown authentication", |tcp| after_startup(tcp, &message(b'R', &[0, 0, 0, 99]))),
        fails("an authentication that is cut", |tcp| after_startup(tcp, &message(b'R', &[0, 0]))),
        fails("two billion iterations", |tcp| scram(tcp, "s=QSXCR+Q6sek8bf92,i=2147483647")),
        fails("a salt that is no base64", |tcp| scram(tcp, "s=!!!!,i=4096")),
        fails("no iterations", |tcp| scram(tcp, "s=QSXCR+Q6sek8bf92,i=0")),
        fails("a proof without a login", |tcp| after_startup(tcp, &sasl("r=x,s=QSXC,i=1"))),
        fails("an error with escapes", server_error),
        fails("ready before the login", |tcp| after_startup(tcp, &ready())),
        with("sslmode=require", fails("TLS is refused", |tcp| after_startup(tcp, b"N"))),
        with(
            "sslmode=require",
            fails("TLS ends at once", |tcp| {
                startup(tcp)?;
                tcp.write_all(b"S")
            }),
        ),
        with(
            "sslmode=require",
            fails("TLS is garbage", |tcp| {
                startup(tcp)?;
                tcp.write_all(b"S")?;
                endlessly(tcp, &[0x16, 3, 3, 0x40, 0])
            }),
        ),
        with("sslmode=prefer", fails("neither TLS nor none", |tcp| after_startup(tcp, b"E"))),
        fails("closes at the first query", logged_in),
        fails("a length of 2 GiB after the login, and the bytes", |tcp| {
            logged_in(tcp)?;
            tcp.write_all(&[b'D', 0x7F, 0xFF, 0xFF, 0xFF])?;
            endlessly(tcp, &[0])
        }),
        fails("rows without columns", |tcp| answered(tcp, &row(&["1"]))),
        fails("rows without end", |tcp| {
            logged_in(tcp)?;
            tcp.write_all(&columns(&[b"a"]))?;
            endlessly(tcp, &row(&["1"]))
        }),
        fails("empty rows without end", |tcp| {
            logged_in(tcp)?;
            tcp.write_all(&columns(&[]))?;
            endlessly(tcp, &row(&[]))
        }),
        fails("statements without end", |tcp| {
            logged_in(tcp)?;
            endlessly(tcp, &message(b'C', b"\0"))
        }),
        fails("a row longer than its columns", |tcp| {
            answered(tcp, &[columns(&[b"a"]), row(&["1", "2", "3"]), ready()].concat())
        }),
        fails("a value longer than its message", |tcp| {
            answered(
                tcp,
                &[columns(&[b"a"]), message(b'D', &[0, 1, 0x7F, 0xFF, 0xFF, 0xFF]), ready()].concat(),
            )
        }),
        fails("a value of a negative length", |tcp| {
            answered(tcp, &[columns(&[b"a"]), message(b'D', &[0, 1, 0x80, 0, 0, 0]), ready()].concat())
        }),
        fails("a name that is not UTF-8", |tcp| answered(tcp, &[columns(&[UGLY]), ready()].concat())),
        fails("65,535 columns that are not there", |tcp| {
            answered(tcp, &[message(b'T', &[0xFF, 0xFF]), ready()].concat())
        }),
        fails("a copy that nobody asked for", |tcp| answered(tcp, &message(b'G', &[0, 0, 0]))),
        fails("no table at all", |tcp| answered(tcp, &ready())),
        survives("the largest numbers", |tcp| absurd(tcp, "18446744073709551615")),
        survives("negative numbers", |tcp| absurd(tcp, "-9223372036854775808")),
        survives("numbers that are none", |tcp| absurd(tcp, "NaN")),
        survives("numbers with a long tail", |tcp| absurd(tcp, "1e308")),
        survives("a plausible version, and sums at the edge", |tcp| absurd(tcp, "170000")),
    ];
    try_all(&behaviours, open);
}
