//! Each installed engine keeps what was committed, and nothing else.

use experiments::Durability;
use peers::{Engine, Error, Peer};

/// The installed engines, with a directory each.
fn all(test: impl Fn(Engine, &dyn Fn() -> Box<dyn Peer>)) {
    for engine in Engine::ALL {
        let dir = tempfile::tempdir().unwrap();
        match engine.open(dir.path()) {
            Err(Error::NotInstalled { engine, package, .. }) if engine != "redb" => {
                println!("skipped: no {engine} here ({package})");
            }
            opened => {
                drop(opened.unwrap());
                test(engine, &|| engine.open(dir.path()).unwrap());
            }
        }
    }
}

fn value(row: u32) -> [u8; 200] {
    [row as u8; 200]
}

#[test]
fn what_was_committed_is_there_after_it_was_opened_again() {
    all(|engine, open| {
        let peer = open();
        let put = |durability, rows: std::ops::Range<u32>| {
            peer.commit(durability, &mut |batch| {
                rows.clone().try_for_each(|row| batch.put(&row.to_be_bytes(), &value(row)))
            })
            .unwrap();
        };
        put(Durability::Full, 0..1);
        put(Durability::Full, 1..500);
        put(Durability::Delayed, 500..501);
        put(Durability::Delayed, 501..600);
        peer.settle().unwrap();
        drop(peer);
        let peer = open();
        for row in 0..600_u32 {
            let found = peer.get(&row.to_be_bytes()).unwrap();
            assert_eq!(found.as_deref(), Some(&value(row)[..]), "{engine:?} {row}");
        }
        assert_eq!(peer.get(&600_u32.to_be_bytes()).unwrap(), None);
        peer.in_place().unwrap();
        assert_eq!(peer.get(&7_u32.to_be_bytes()).unwrap().as_deref(), Some(&value(7)[..]));
    });
}

#[test]
fn a_transaction_that_fails_leaves_nothing_and_the_next_one_goes_on() {
    all(|engine, open| {
        let peer = open();
        let failed =
            || Error::Engine { engine: "test", doing: "go on", dir: "/".into(), why: "it is one".into() };
        let ended = peer.commit(Durability::Full, &mut |rows| {
            rows.put(b"half", b"done")?;
            Err(failed())
        });
        assert_eq!(ended.unwrap_err().to_string(), failed().to_string(), "{engine:?}");
        assert_eq!(peer.get(b"half").unwrap(), None, "{engine:?}");
        peer.commit(Durability::Full, &mut |rows| rows.put(b"whole", b"")).unwrap();
        assert_eq!(peer.get(b"whole").unwrap().as_deref(), Some(&b""[..]), "{engine:?}");
    });
}

#[test]
fn threads_share_a_database() {
    all(|engine, open| {
        let peer = open();
        std::thread::scope(|scope| {
            for thread in 0..4_u32 {
                let peer = &peer;
                scope.spawn(move || {
                    for row in (thread * 10)..(thread * 10 + 10) {
                        peer.commit(Durability::Full, &mut |rows| rows.put(&row.to_be_bytes(), b"x"))
                            .unwrap();
                    }
                });
            }
        });
        let found = (0..40_u32).filter(|row| peer.get(&row.to_be_bytes()).unwrap().is_some()).count();
        assert_eq!(found, 40, "{engine:?}");
    });
}

#[test]
fn the_log_is_known_by_its_name() {
    use std::path::Path;
    assert!(Engine::Rocksdb.is_log(Path::new("/db/000004.log")));
    for data in ["000005.sst", "MANIFEST-000004", "LOG", "CURRENT"] {
        assert!(!Engine::Rocksdb.is_log(&Path::new("/db").join(data)), "{data}");
    }
    assert!(
        !Engine::Lmdb.is_log(Path::new("/db/data.mdb")) && !Engine::Redb.is_log(Path::new("/db/data.redb"))
    );
}
