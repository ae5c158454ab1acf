//! A Prometheus that speaks TLS and asks for a certificate.

use crate::servers::{Server, has_prometheus};
use programs::Headroom;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn openssl(dir: &Path, arguments: &[&str]) {
    let output = Command::new("openssl").args(arguments).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "openssl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

const KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

/// An authority, and a certificate of it for the server and one for the client.
fn make_certificates(dir: &Path) {
    let authority = ["-x509", "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem"];
    openssl(dir, &[&["req"], &KEY[..], &authority].concat());
    for (name, extension) in
        [("server", "subjectAltName=IP:127.0.0.1"), ("client", "extendedKeyUsage=clientAuth")]
    {
        let (key, request, certificate) =
            (format!("{name}.key"), format!("{name}.csr"), format!("{name}.pem"));
        let subject = format!("/CN={name}");
        let own = ["-subj", &subject, "-addext", extension, "-keyout", &key, "-out", &request];
        openssl(dir, &[&["req"], &KEY[..], &own].concat());
        let signed =
            ["x509", "-req", "-in", &request, "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"];
        let more = ["-days", "2", "-copy_extensions", "copy", "-out", &certificate];
        openssl(dir, &[&signed[..], &more].concat());
    }
}

#[test]
fn a_client_certificate_and_an_authority_of_ones_own_are_used() {
    if !has_prometheus() || Command::new("openssl").arg("version").output().is_err() {
        return println!("skipped: no openssl or no prometheus");
    }
    let dir = tempfile::tempdir().unwrap();
    make_certificates(dir.path());
    let server = Server::prometheus_with_tls(dir).unwrap();
    let url = server.url().replace("http://", "https://");
    let headroom = Headroom::new();
    let path = |name: &str| server.dir.path().join(name).display().to_string();
    let (ca, cert, key) = (path("ca.pem"), path("client.pem"), path("client.key"));
    let run = |further: &[&str]| {
        let output = headroom.run(&[&["fleet", "--prometheus", &url, "--json"], further].concat());
        (!output.stdout.is_empty(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let all = ["--ca", &ca, "--cert", &cert, "--key", &key];
    // It accepts connections a moment before it answers.
    let began = Instant::now();
    while !run(&all).0 {
        assert!(began.elapsed() < Duration::from_secs(30), "{}", run(&all).1);
        std::thread::sleep(Duration::from_millis(200));
    }
    let (answered, said) = run(&["--cert", &cert, "--key", &key]);
    assert!(!answered && said.contains("certificate or TLS is not accepted"), "{said}");
    let (answered, said) = run(&["--ca", &ca]);
    assert!(!answered, "without a certificate of its own: {said}");
    let (answered, said) = run(&["--ca", &key]);
    assert!(!answered && said.contains("no certificate can be read"), "{said}");
}
