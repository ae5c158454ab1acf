use super::*;
use collect::sqlserver::{ANSWER_SECONDS, SqlServerError};
use responder::Trouble;
use std::time::{Duration, Instant};

fn grant_of(version: Version, number: i32, text: &'static str) -> String {
    let responder = server(version);
    let mut source = open(&responder);
    responder.state().trouble = Trouble::Error(number, text);
    let error = failure(&mut source);
    assert!(matches!(error.downcast_ref(), Some(SqlServerError::Denied { .. })), "{error}");
    assert!(error.to_string().contains(text), "{error}");
    error.facts().concat()
}

#[test]
fn a_login_without_permission_gets_the_statement_that_grants_it() {
    let denied = "VIEW SERVER STATE permission was denied on object 'server', database 'master'.";
    let facts = grant_of(Version::V2019, 300, denied);
    assert!(facts.ends_with(": USE master; GRANT VIEW SERVER STATE TO [watcher];"), "{facts}");
    let facts = grant_of(Version::V2012, 297, "The user does not have permission to perform this action.");
    assert!(facts.ends_with(": USE master; GRANT VIEW SERVER STATE TO [watcher];"), "{facts}");
    let denied = "VIEW SERVER PERFORMANCE STATE permission was denied on object 'server', database 'master'.";
    let facts = grant_of(Version::V2022, 300, denied);
    assert!(facts.ends_with(": USE master; GRANT VIEW SERVER PERFORMANCE STATE TO [watcher];"), "{facts}");
    let facts =
        grant_of(Version::AzureDatabase, 262, "VIEW DATABASE STATE permission denied in database 'shop'.");
    assert!(facts.contains(": GRANT VIEW DATABASE STATE TO [guest];"), "{facts}");
}

#[test]
fn a_refused_login_says_why_without_the_password() {
    let responder = server(Version::V2019);
    let wrong = |name: &str| (name == "SQLCMDPASSWORD").then(|| "hunter2".to_owned());
    let error = SqlServer::open_in(&responder.url("?encrypt=off"), &wrong).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(SqlServerError::Refused { .. })), "{error:?}");
    assert!(error.to_string().ends_with("refuses the login: Login failed for user 'watcher'."), "{error}");
    assert!(!format!("{error:?} {:?} {:?}", error.facts(), error.remedy()).contains("hunter2"));
    assert_eq!(responder.state().logins[0].password, "hunter2", "what the server was told");
    assert!(error.remedy().unwrap().contains("SQLCMDPASSWORD"));
}

#[test]
fn an_unknown_database_is_refused_and_one_that_starts_is_unreachable() {
    let refuse = |number, text| {
        let responder = server(Version::AzureDatabase);
        responder.state().login_error = Some((number, text));
        let url = responder.url("shop?encrypt=off");
        let error = SqlServer::open_in(&url, &variables).unwrap_err();
        assert_eq!(responder.state().logins[0].database, "shop");
        error
    };
    let unknown = refuse(4060, "Cannot open database \"shop\" requested by the login.");
    assert!(matches!(unknown.downcast_ref(), Some(SqlServerError::Refused { .. })));
    let starting = refuse(40613, "Database 'shop' on server 's' is not currently available.");
    assert!(
        matches!(starting.downcast_ref(), Some(SqlServerError::Unreachable { .. })),
        "it may be there the next time"
    );
}

#[test]
fn a_truncated_answer_is_an_error() {
    let responder = server(Version::V2019);
    let mut source = open(&responder);
    let before = take_snapshot(&mut source);
    responder.state().trouble = Trouble::Cut;
    let error = failure(&mut source);
    assert!(matches!(error.downcast_ref(), Some(SqlServerError::Unreachable { .. })), "{error}");
    responder.state().trouble = Trouble::None;
    responder.state().ms_ticks += 1_000;
    let after = take_snapshot(&mut source);
    assert_eq!(reason(&interval(&before, &after, "shop.mdf")), None);
}

#[test]
fn a_malformed_answer_is_an_error_and_never_an_empty_list_of_waits() {
    for question in ["dm_os_wait_stats", "CROSS JOIN sys.dm_os_sys_info"] {
        let responder = server(Version::V2019);
        let mut source = open(&responder);
        responder.state().trouble = Trouble::Garbled(question);
        let error = failure(&mut source);
        assert!(matches!(error.downcast_ref(), Some(SqlServerError::NotUnderstood { .. })), "{error:?}");
        responder.state().trouble = Trouble::None;
        assert_eq!(responder.state().logins.len(), 1);
        let snapshot = take_snapshot(&mut source);
        assert_eq!(responder.state().logins.len(), 2, "of that connection nothing more is understood");
        assert!(snapshot.waits.len() > 2 && snapshot.samples.len() == 4);
    }
}

#[test]
fn volumes_are_kept_until_the_server_reports_them_again() {
    let responder = server(Version::V2019);
    let mut source = open(&responder);
    let drive = |snapshot: &Snapshot, end: &str| sample(snapshot, end).file.drive.clone();
    assert_eq!(drive(&take_snapshot(&mut source), "shop.mdf").as_deref(), Some("D:\\"));
    let new = File { file_id: 3, path: "D:\\data\\more.ndf".into(), ..responder.state().files[0].clone() };
    responder.state().files.push(new);
    responder.state().trouble = Trouble::Garbled("dm_os_volume_stats");
    failure(&mut source);
    let snapshot = take_snapshot(&mut source);
    assert_eq!(drive(&snapshot, "shop.mdf").as_deref(), Some("D:\\"), "kept");
    assert_eq!(drive(&snapshot, "more.ndf"), None, "and not asked again, as if it hung");
    let newer = File { file_id: 4, path: "D:\\data\\most.ndf".into(), ..responder.state().files[0].clone() };
    responder.state().files.push(newer);
    responder.state().trouble = Trouble::None;
    assert_eq!(drive(&take_snapshot(&mut source), "more.ndf").as_deref(), Some("D:\\"));
}

#[test]
fn a_server_that_hangs_times_out_and_gets_an_attention() {
    let responder = server(Version::V2019);
    let mut source = open(&responder);
    responder.state().trouble = Trouble::Hang;
    let begun = Instant::now();
    let error = failure(&mut source);
    assert!(matches!(error.downcast_ref(), Some(SqlServerError::TimedOut { .. })), "{error}");
    assert!(begun.elapsed() >= Duration::from_secs(ANSWER_SECONDS - 1));
    assert!(begun.elapsed() < Duration::from_secs(ANSWER_SECONDS + 2), "{:?}", begun.elapsed());
    let deadline = Instant::now() + Duration::from_secs(5);
    while responder.state().attentions == 0 {
        assert!(Instant::now() < deadline, "the server was not told");
        std::thread::yield_now();
    }
    responder.state().trouble = Trouble::None;
    assert_eq!(take_snapshot(&mut source).samples.len(), 4, "over a new connection");
}

#[test]
fn an_answer_that_arrives_byte_by_byte_times_out() {
    let responder = server(Version::V2019);
    let mut source = open(&responder);
    responder.state().trouble = Trouble::Trickle;
    let begun = Instant::now();
    let error = failure(&mut source);
    assert!(matches!(error.downcast_ref(), Some(SqlServerError::TimedOut { .. })), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(ANSWER_SECONDS + 2), "{:?}", begun.elapsed());
}

#[test]
fn a_closed_port_and_another_protocol_have_their_own_errors() {
    let nobody = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("sqlserver://watcher@{}?encrypt=off", nobody.local_addr().unwrap());
    let other = std::thread::spawn(move || {
        let (mut tcp, _) = nobody.accept().unwrap();
        std::io::Write::write_all(&mut tcp, b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n").unwrap();
        // Read first: closing with unread data would reset the connection.
        std::io::Read::read(&mut tcp, &mut [0; 512]).unwrap();
    });
    let error = SqlServer::open_in(&url, &variables).unwrap_err();
    assert!(
        matches!(
            error.downcast_ref(),
            Some(SqlServerError::NotUnderstood { .. } | SqlServerError::Unreachable { .. })
        ),
        "{error}"
    );
    other.join().unwrap();
    let error = SqlServer::open_in(&url, &variables).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(SqlServerError::Unreachable { .. })), "{error}");
}

#[test]
fn a_redirect_is_followed_and_a_loop_of_redirects_is_not() {
    let there = server(Version::AzureDatabase);
    let gateway = server(Version::AzureDatabase);
    gateway.state().route = Some(("127.0.0.1", there.port));
    let mut source = open(&gateway);
    assert_eq!(take_snapshot(&mut source).samples.len(), 4);
    assert_eq!((gateway.state().requests.len(), there.state().logins.len()), (0, 1));
    there.state().route = Some(("127.0.0.1", gateway.port));
    let error = open_with(&gateway, "?encrypt=off").unwrap_err();
    assert!(error.to_string().contains("from server to server"), "{error}");
}
