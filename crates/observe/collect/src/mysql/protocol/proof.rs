//! Proofs that the client knows the password, without the password.

use ring::digest::{Algorithm, Context, Digest, SHA1_FOR_LEGACY_USE_ONLY, SHA256};

/// `mysql_native_password`: SHA1(password) XOR SHA1(nonce, SHA1(SHA1(password))).
pub(super) fn native(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let once = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[password]);
    let twice = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[once.as_ref()]);
    xor(&once, &digest(&SHA1_FOR_LEGACY_USE_ONLY, &[nonce, twice.as_ref()]))
}

/// `caching_sha2_password`: SHA256(password) XOR SHA256(SHA256(SHA256(password)), nonce).
pub(super) fn sha256(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let once = digest(&SHA256, &[password]);
    let twice = digest(&SHA256, &[once.as_ref()]);
    xor(&once, &digest(&SHA256, &[twice.as_ref(), nonce]))
}

fn digest(algorithm: &'static Algorithm, parts: &[&[u8]]) -> Digest {
    let mut context = Context::new(algorithm);
    parts.iter().for_each(|part| context.update(part));
    context.finish()
}

fn xor(a: &Digest, b: &Digest) -> Vec<u8> {
    a.as_ref().iter().zip(b.as_ref()).map(|(a, b)| a ^ b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the crate `mysql_common` 0.37.
    #[test]
    fn proofs_equal_those_of_another_client() {
        let (password, nonce) = (b"G!ider27", b"NR3HP:qIYa_9=db?Sd{`");
        let hex = |proof: &[u8]| proof.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(&native(password, nonce)), "09cff8855e9e705340ff2270d8fb9fadba906b70");
        let expected = "4f97bbfd202401c42a69deaae53bda077ed7578563c1a80eb816c82119b68d2e";
        assert_eq!(hex(&sha256(password, nonce)), expected);
    }
}
