//! Basic authentication: passwords are compared with bcrypt hashes, in a thread that serves no client.
//!
//! A hash takes 70 ms on purpose, and a scrape sends its password each time: what was right is remembered, by a hash with
//! a key of this process that takes a microsecond.

use ring::hmac;
use ring::rand::SystemRandom;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// Passwords that are remembered: as many as exporter-toolkit does.
const REMEMBERED_MAX: usize = 100;
/// Hashes at a time: guesses of passwords take at most one processor, and the right ones of others wait.
pub(crate) const HASHES_MAX: usize = 1;

/// Users and the bcrypt hashes of their passwords.
pub(super) type Users = BTreeMap<String, String>;

/// Compares passwords, and remembers those that were right.
pub(super) struct Passwords {
    key: hmac::Key,
    /// Oldest first.
    right: Mutex<VecDeque<[u8; 32]>>,
    hashing: Arc<Semaphore>,
}

impl Passwords {
    pub fn new(random: &SystemRandom) -> Result<Passwords, ring::error::Unspecified> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, random)?;
        Ok(Passwords { key, right: Mutex::default(), hashing: Arc::new(Semaphore::new(HASHES_MAX)) })
    }

    /// Whether it is the password of that user. An unknown user takes as long as a wrong password.
    pub async fn verify(&self, users: &Users, user: &str, password: &[u8]) -> bool {
        let known = users.get(user);
        let Some(hash) = known.or_else(|| users.values().next()) else { return false };
        let tag = self.tag(user, password, hash);
        if known.is_some() && self.is_remembered(&tag) {
            return true;
        }
        let Ok(permit) = self.hashing.clone().acquire_owned().await else { return false };
        // Clients of the same user that came together wait for one hash.
        if known.is_some() && self.is_remembered(&tag) {
            return true;
        }
        let (password, hash) = (password.to_owned(), hash.clone());
        let compared = tokio::task::spawn_blocking(move || {
            // Held also where the client is gone meanwhile.
            let _permit = permit;
            bcrypt::verify(&password, &hash)
        });
        let is_right = matches!(compared.await, Ok(Ok(true))) && known.is_some();
        if is_right {
            self.remember(tag);
        }
        is_right
    }

    /// A changed hash makes another tag: passwords that were replaced are not remembered.
    fn tag(&self, user: &str, password: &[u8], hash: &str) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.key);
        for part in [user.as_bytes(), password, hash.as_bytes()] {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
        let mut tag = [0; 32];
        tag.copy_from_slice(context.sign().as_ref());
        tag
    }

    /// Not in constant time: the time depends on tags, and a tag reveals nothing about a password without the key.
    fn is_remembered(&self, tag: &[u8; 32]) -> bool {
        self.right.lock().unwrap_or_else(PoisonError::into_inner).contains(tag)
    }

    fn remember(&self, tag: [u8; 32]) {
        let mut right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
        if right.len() >= REMEMBERED_MAX {
            right.pop_front();
        }
        right.push_back(tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// The lowest cost.
    const COST: u32 = 4;

    fn check(passwords: &Passwords, users: &Users, user: &str, password: &str) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(passwords.verify(users, user, password.as_bytes()))
    }

    #[test]
    fn a_password_is_right_for_its_user_only_and_until_it_is_replaced() {
        let passwords = Passwords::new(&SystemRandom::new()).unwrap();
        let hash = |password| bcrypt::hash(password, COST).unwrap();
        let mut users = Users::from([("alice".to_owned(), hash("sesame")), ("bob".to_owned(), hash("open"))]);
        // Twice: the second time from memory.
        for _ in 0..2 {
            assert!(check(&passwords, &users, "alice", "sesame"));
            assert!(!check(&passwords, &users, "alice", "open"));
            assert!(!check(&passwords, &users, "bob", "sesame"));
            assert!(!check(&passwords, &users, "carol", "sesame"));
            assert!(!check(&passwords, &users, "", ""));
        }
        users.insert("alice".into(), hash("other"));
        assert!(!check(&passwords, &users, "alice", "sesame"));
        assert!(check(&passwords, &users, "alice", "other"));
        assert!(!check(&passwords, &Users::new(), "alice", "other"));
    }

    #[test]
    fn a_right_password_is_hashed_once_and_few_are_remembered() {
        let passwords = Passwords::new(&SystemRandom::new()).unwrap();
        // Seconds where each were hashed.
        let users = Users::from([("alice".to_owned(), bcrypt::hash("sesame", 10).unwrap())]);
        assert!(check(&passwords, &users, "alice", "sesame"));
        let began = Instant::now();
        for _ in 0..1000 {
            assert!(check(&passwords, &users, "alice", "sesame"));
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        for number in 0..u8::MAX {
            passwords.remember([number; 32]);
        }
        assert_eq!(passwords.right.lock().unwrap().len(), REMEMBERED_MAX);
    }
}
