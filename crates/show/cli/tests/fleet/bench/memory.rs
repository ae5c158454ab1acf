//! Memory of a series, in servers that scrape.

use super::{SCRAPE_S, hosts};
use crate::servers::Server;
use crate::synthetic::now_unix_s;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// Enough that what a server takes without series does not count.
const SCRAPED: usize = 200;
/// Each target is scraped several times.
const SCRAPES: u64 = 8;

fn answer(stream: &TcpStream, text: &str) -> std::io::Result<()> {
    let (mut reader, mut line, mut stream) = (BufReader::new(stream), String::new(), stream);
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close";
    write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{text}", text.len())
}

/// Answers each request as an agent would; returns the port.
fn agent() -> u16 {
    let text = hosts()[0].exposition(now_unix_s());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // A server that has enough goes away.
            let _ = answer(&stream.unwrap(), &text);
        }
    });
    port
}

#[test]
#[ignore = "a benchmark: scripts/bench fleet"]
fn memory_of_a_series() {
    let port = agent();
    let target = |at: usize| {
        format!("      - targets: ['127.0.0.1:{port}']\n        labels: {{instance: 'db{at}:9187'}}\n")
    };
    let targets: String = (0..SCRAPED).map(target).collect();
    let config = format!(
        "global: {{scrape_interval: {SCRAPE_S}s}}\nscrape_configs:\n  - job_name: headroom\n    static_configs:\n{targets}"
    );
    let started = [
        ("Prometheus", Server::prometheus(tempfile::tempdir().unwrap(), &config)),
        ("VictoriaMetrics", Server::victoria_metrics_that_scrapes(&config)),
    ];
    let started = started.map(|(name, server)| (name, server.unwrap()));
    let before = started.each_ref().map(|(_, server)| server.resident_bytes());
    std::thread::sleep(Duration::from_secs(SCRAPE_S * SCRAPES));
    for ((name, server), before) in started.iter().zip(before) {
        let counted = server.query("count({__name__=~\".+\"})", now_unix_s());
        let series: u64 = counted[0]["value"][1].as_str().unwrap().parse().unwrap();
        let took = server.resident_bytes() - before;
        println!(
            "{name}: {series} series of {SCRAPED} hosts, scraped {SCRAPES} times: {:.1} KiB of memory a series, {:.0} % of a core",
            took as f64 / series as f64 / 1024.0,
            server.cpu_s() / (SCRAPE_S * SCRAPES) as f64 * 100.0
        );
    }
}
