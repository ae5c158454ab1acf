//! Interim answers (1xx) without end neither hold a request up nor outlast its time.

use http_client::{Call, Endpoint, exchange};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn interim_answers_without_end_are_no_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let _ = client.read(&mut [0; 4096]);
        let interim = b"HTTP/1.1 102 P\r\n\r\n".repeat(10_000);
        while client.write_all(&interim).is_ok() {}
    });
    let call = Call {
        headers: Vec::new(),
        body: Vec::new(),
        patience: Duration::from_secs(5),
        answer_bytes_max: 1 << 20,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let began = Instant::now();
    let answered = runtime.block_on(exchange(
        &Endpoint::new(&url, None, "http://host", "no credential").unwrap(),
        call,
        None,
    ));
    assert!(answered.is_err());
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}
