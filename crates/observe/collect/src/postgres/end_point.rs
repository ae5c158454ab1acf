//! The hash of a server's certificate for channel binding (RFC 5929, tls-server-end-point).
//!
//! ```text
//! Certificate ::= SEQUENCE { tbsCertificate SEQUENCE, signatureAlgorithm SEQUENCE { OID, ... }, signature }
//! ```

use crate::der::{OBJECT_IDENTIFIER, SEQUENCE, element};
use ring::digest::{Algorithm, SHA256, SHA384, SHA512, digest};

/// 1.2.840.113549.1.1, of RSA with a hash.
const RSA: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01];
/// 1.2.840.10045.4, of ECDSA with a hash.
const ECDSA: &[u8] = &[0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04];

/// The hash by the algorithm of the certificate's signature; `None` if that has no hash or is unknown.
pub(super) fn hash(certificate: &[u8]) -> Option<Vec<u8>> {
    let algorithm = algorithm(signature_algorithm(certificate)?)?;
    Some(digest(algorithm, certificate).as_ref().to_vec())
}

/// The RFC replaces MD5 and SHA-1 by SHA-256.
fn algorithm(identifier: &[u8]) -> Option<&'static Algorithm> {
    let rsa = identifier.strip_prefix(RSA);
    let ecdsa = identifier.strip_prefix(ECDSA);
    match (rsa, ecdsa) {
        (Some([0x04 | 0x05 | 0x0B]), _) | (_, Some([0x01] | [0x03, 0x02])) => Some(&SHA256),
        (Some([0x0C]), _) | (_, Some([0x03, 0x03])) => Some(&SHA384),
        (Some([0x0D]), _) | (_, Some([0x03, 0x04])) => Some(&SHA512),
        _ => None,
    }
}

fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (_, after_tbs) = element(certificate, SEQUENCE)?;
    let (algorithm, _) = element(after_tbs, SEQUENCE)?;
    Some(element(algorithm, OBJECT_IDENTIFIER)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A certificate with empty content.
    fn signed_by(identifier: &[u8]) -> Vec<u8> {
        let wrap = |tag: u8, content: &[u8]| [&[tag, content.len() as u8], content].concat();
        let algorithm = wrap(SEQUENCE, &wrap(OBJECT_IDENTIFIER, identifier));
        // A length of two bytes, as in real certificates.
        let tbs = [&[SEQUENCE, 0x82, 0x00, 0x02], [0x05, 0x00].as_slice()].concat();
        wrap(SEQUENCE, &[tbs, algorithm, vec![0x03, 0x00]].concat())
    }

    #[test]
    fn the_hash_is_that_of_the_signature() {
        let bytes =
            |last: &[u8], family: &[u8]| hash(&signed_by(&[family, last].concat())).map(|hash| hash.len());
        assert_eq!(bytes(&[0x0B], RSA), Some(32));
        assert_eq!(bytes(&[0x05], RSA), Some(32), "SHA-1 is not used");
        assert_eq!(bytes(&[0x03, 0x03], ECDSA), Some(48));
        assert_eq!(bytes(&[0x0D], RSA), Some(64));
        assert_eq!(bytes(&[], &[0x2B, 0x65, 0x70]), None, "Ed25519 has none of its own");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in any::<Vec<u8>>()) {
            let _ = hash(&bytes);
            let _ = hash(&[vec![SEQUENCE, 0x84, 0xFF, 0xFF, 0xFF, 0xFF], bytes].concat());
        }
    }
}
