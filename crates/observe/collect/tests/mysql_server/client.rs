use super::{server, take_snapshot};
use collect::mysql::{Client, Mysql, Parameter};

#[test]
fn a_client_runs_prepared_statements_and_reads_values_as_they_are() {
    let Some(server) = server(&[]) else { return };
    let mut client = Client::connect(&server.url()).unwrap();
    assert_eq!(client.process, Some(server.pid()));
    client
        .execute(&[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.goods (id INT PRIMARY KEY, body VARBINARY(300), price DECIMAL(9,2))",
        ])
        .unwrap();
    client.use_database("shop").unwrap();
    let insert = client.prepare("INSERT INTO goods (id, body) VALUES (?, ?)").unwrap();
    assert_eq!((insert.columns, insert.parameters), (0, 2));
    let body: Vec<u8> = (0..=255).collect();
    client.execute_prepared(&insert, &[Parameter::Number(7), Parameter::Bytes(&body)]).unwrap();
    client.execute_prepared(&insert, &[Parameter::Number(8), Parameter::Bytes(b"")]).unwrap();
    let twice = client.execute_prepared(&insert, &[Parameter::Number(8), Parameter::Bytes(b"")]).unwrap_err();
    assert!(twice.to_string().contains("Duplicate entry '8'"), "{twice}");
    client.close(insert).unwrap();

    let select = client.prepare("SELECT id, body, price FROM goods WHERE id > ?").unwrap();
    assert_eq!((select.columns, select.parameters), (3, 1));
    let mut rows = Vec::new();
    client
        .for_each_row("SELECT id, body, price FROM goods ORDER BY id", |columns, row| {
            let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            assert_eq!(names, ["id", "body", "price"]);
            // MYSQL_TYPE_LONG, VAR_STRING and NEWDECIMAL.
            assert_eq!(columns.iter().map(|column| column.type_code).collect::<Vec<_>>(), [3, 253, 246]);
            rows.push(row.into_iter().map(|value| value.map(<[u8]>::to_vec)).collect::<Vec<_>>());
        })
        .unwrap();
    assert_eq!(rows[0], [Some(b"7".to_vec()), Some(body), None]);
    assert_eq!(rows[1], [Some(b"8".to_vec()), Some(Vec::new()), None]);
    assert_eq!(client.query("SELECT COUNT(*) FROM goods", 1).unwrap(), [["2"]]);
    client.for_each_row("DELETE FROM goods", |_, _| panic!("no rows")).unwrap();
    let wrong = client.execute(&["no statement"]).unwrap_err();
    assert!(wrong.to_string().contains("You have an error in your SQL syntax"), "{wrong}");
}

#[test]
fn a_value_may_be_longer_than_a_packet() {
    let Some(server) = server(&["max_allowed_packet=64M"]) else { return };
    let mut client = Client::connect(&server.url()).unwrap();
    // A packet holds 16,777,215 bytes. Behind a row that fills its last packet there is an empty one.
    for bytes in [16_777_210, 16_777_211, 16_777_212, 40_000_000, 2 * 16_777_215 - 9] {
        let mut lengths = Vec::new();
        client
            .for_each_row(&format!("SELECT REPEAT('x', {bytes}) UNION ALL SELECT 'y'"), |_, row| {
                lengths.push(row[0].map_or(0, <[u8]>::len));
            })
            .unwrap();
        assert_eq!(lengths, [bytes, 1]);
    }
}

#[test]
fn a_source_that_is_closed_leaves_no_aborted_connection() {
    let Some(server) = server(&[]) else { return };
    let aborted = || server.sql("SHOW GLOBAL STATUS LIKE 'Aborted_clients'");
    let before = aborted();
    for _ in 0..3 {
        take_snapshot(&mut Mysql::open(&server.url()).unwrap());
        drop(Client::connect(&server.url()).unwrap());
    }
    let sessions = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND <> 'Daemon'";
    while server.sql(sessions).trim() != "1" {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(aborted(), before);
}
