//! The search of a node by heads, against a sorted list.

use crate::PageNo;
use crate::engine::tree::node::{Node, NodeFormat, NodeKind, NodeMut};
use crashlab::Chance;
use proptest::prelude::*;

/// Keys of which many have a long beginning in common, and that differ by zeros at their end.
fn draw_key(chance: &mut Chance, common: u64) -> Vec<u8> {
    let mut key = vec![b'p'; common as usize];
    if chance.once_in(20) {
        key.truncate(chance.below(common + 1) as usize);
    }
    let rest = chance.below(7);
    key.extend((0..rest).map(|_| [0, 0, 1, b'p', 255][chance.below(5) as usize]));
    key
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_node_finds_its_keys_whatever_they_have_in_common(
        seed in any::<u64>(), common in 0..300_u64, has_heads in any::<bool>(),
    ) {
        let format = if has_heads { NodeFormat::Heads } else { NodeFormat::Plain };
        let (page, mut bytes) = (PageNo(1), vec![0; 16384]);
        NodeMut::format(&mut bytes, NodeKind::Leaf, format, 16);
        let mut chance = Chance::new(seed);
        let mut model: Vec<Vec<u8>> = Vec::new();
        for _ in 0..400 {
            let key = draw_key(&mut chance, common);
            let node = Node::open(&bytes, page).unwrap();
            let found = node.search(&key).unwrap();
            prop_assert_eq!(found, model.binary_search(&key), "{:?}", key);
            match found {
                Ok(index) => {
                    NodeMut::new(&mut bytes, page).remove(index).unwrap();
                    model.remove(index);
                }
                Err(index) => {
                    if NodeMut::new(&mut bytes, page).insert_leaf(index, &key, b"value").unwrap() {
                        model.insert(index, key);
                    }
                }
            }
        }
        let node = Node::open(&bytes, page).unwrap();
        let keys: Vec<_> = (0..node.count()).map(|index| node.key(index).unwrap().to_vec()).collect();
        prop_assert_eq!(keys, model);
    }
}
