//! The server's RSA key, with which a password is encrypted on a connection that is not.
//!
//! ```text
//! SubjectPublicKeyInfo ::= SEQUENCE { SEQUENCE { OID, ... }, BIT STRING { 0, SEQUENCE { modulus, exponent } } }
//! padded (OAEP with SHA-1, PKCS #1 v2) = 0 | seed 20, masked | SHA1("") 20, zeros, 1, secret, masked
//! ```

use crate::der::{BIT_STRING, INTEGER, SEQUENCE, element};
use num_bigint::BigUint;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA1_OUTPUT_LEN, digest};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;
use std::ops::RangeInclusive;

/// 1024 to 8192 bits; a longer key would only cost time.
const MODULUS_BYTES: RangeInclusive<usize> = 128..=1024;
/// Exponents are small, 65,537 as a rule: each of their bits costs a multiplication.
const EXPONENT_BYTES_MAX: usize = 4;
const SEED_BYTES: usize = SHA1_OUTPUT_LEN;
/// Bytes of the modulus that are not for the secret.
const PADDING_BYTES: usize = 1 + SEED_BYTES + SHA1_OUTPUT_LEN + 1;

/// Encrypts a short text; `None` if the key is malformed, of another kind or of an unusual size.
pub(super) fn encrypt(secret: &[u8], pem: &[u8]) -> Option<Vec<u8>> {
    let mut seed = [0; SEED_BYTES];
    SystemRandom::new().fill(&mut seed).ok()?;
    encrypt_with(seed, secret, pem)
}

fn encrypt_with(mut seed: [u8; SEED_BYTES], secret: &[u8], pem: &[u8]) -> Option<Vec<u8>> {
    let der = SubjectPublicKeyInfoDer::from_pem_slice(pem).ok()?;
    let (modulus, exponent) = parse(&der)?;
    let zeros = modulus.len().checked_sub(PADDING_BYTES + secret.len())?;
    let nothing = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[]);
    let mut block = [nothing.as_ref(), &vec![0; zeros], &[1], secret].concat();
    mask(&mut block, &seed);
    mask(&mut seed, &block);
    let padded = BigUint::from_bytes_be(&[seed.as_slice(), &block].concat());
    let encrypted = padded.modpow(&BigUint::from_bytes_be(exponent), &BigUint::from_bytes_be(modulus));
    let encrypted = encrypted.to_bytes_be();
    Some([vec![0; modulus.len() - encrypted.len()], encrypted].concat())
}

/// Modulus and exponent.
fn parse(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (all, []) = element(der, SEQUENCE)? else { return None };
    let (_, key) = element(all, SEQUENCE)?;
    let (key, []) = element(key, BIT_STRING)? else { return None };
    let (key, []) = element(key.strip_prefix(&[0])?, SEQUENCE)? else { return None };
    let (modulus, exponent) = element(key, INTEGER)?;
    let (exponent, []) = element(exponent, INTEGER)? else { return None };
    // Without the sign, which stands before a first bit that is set.
    let modulus = modulus.strip_prefix(&[0])?;
    let is_usual = MODULUS_BYTES.contains(&modulus.len())
        && modulus[0] >> 7 == 1
        && (1..=EXPONENT_BYTES_MAX).contains(&exponent.len());
    is_usual.then_some((modulus, exponent))
}

/// MGF1: XOR with the hashes of seed and counter.
fn mask(block: &mut [u8], seed: &[u8]) {
    for (counter, piece) in block.chunks_mut(SHA1_OUTPUT_LEN).enumerate() {
        let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[seed, &(counter as u32).to_be_bytes()].concat());
        piece.iter_mut().zip(hash.as_ref()).for_each(|(byte, mask)| *byte ^= mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: &str = "-----BEGIN PUBLIC KEY-----
MIGdMA0GCSqGSIb3DQEBAQUAA4GLADCBhwKBgQC7+C8JBoLOnCM4rCudqHH3No0H
7tQQQ6RA1rbwdFT1H7jfuq8DXAKrYepIzutvzUh27VINYOHsRhlxnYpbi4B/r7jg
o9/HN3I+5rS32TolhO5qZJ0GCVN0iDSyRUWYOU7gqrEte2GlH1J6mkH2wWh/4lNy
mMoqj1lG+OX9CR29ywIBEQ==
-----END PUBLIC KEY-----
";

    fn bytes(hex: &str) -> Vec<u8> {
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(byte).collect()
    }

    /// RSA Laboratories' example for OAEP.
    #[test]
    fn a_text_is_encrypted_as_in_the_example_of_the_standard() {
        let secret = bytes("d436e99569fd32a7c8a05bbc90d32c49");
        let seed = bytes("aafd12f659cae63489b479e5076ddec2f06cb58f").try_into().unwrap();
        let encrypted = bytes(
            "1253e04dc0a5397bb44a7ab87e9bf2a039a33d1e996fc82a94ccd30074c95df763722017069e5268da5d1c0b4f872cf653c11df8\
             2314a67968dfeae28def04bb6d84b1c31d654a1970e5783bd6eb96a024c2ca2f4a90fe9f2ef5c9c140e5bb48da9536ad8700c84f\
             c9130adea74e558d51a74ddf85d8b50de96838d6063e0955",
        );
        assert_eq!(encrypt_with(seed, &secret, KEY.as_bytes()), Some(encrypted));
    }

    #[test]
    fn a_text_that_is_too_long_for_the_key_is_refused() {
        assert!(encrypt(&[b'x'; 128 - PADDING_BYTES], KEY.as_bytes()).is_some());
        assert_eq!(encrypt(&[b'x'; 129 - PADDING_BYTES], KEY.as_bytes()), None);
    }

    proptest! {
        #[test]
        fn any_key_is_used_or_refused(der in any::<Vec<u8>>(), pem in any::<Vec<u8>>()) {
            let _ = parse(&der);
            let _ = encrypt(b"secret", &pem);
        }
    }
}
