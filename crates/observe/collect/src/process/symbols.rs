//! Addresses of the kernel's functions and tables (/proc/kallsyms), by which the programs identify an I/O's kind and file.

use std::collections::HashMap;

/// The addresses, by name and module; "" is the kernel itself.
pub(super) struct Symbols(HashMap<(String, String), Vec<u64>>);

impl Symbols {
    /// Reads those that are wanted; none where the kernel hides them.
    pub fn read(is_wanted: impl Fn(&str) -> bool) -> Symbols {
        Symbols::parse(&std::fs::read_to_string("/proc/kallsyms").unwrap_or_default(), is_wanted)
    }

    /// Lines "ADDRESS TYPE NAME", with "\t[MODULE]" behind it.
    fn parse(text: &str, is_wanted: impl Fn(&str) -> bool) -> Symbols {
        let mut symbols: HashMap<(String, String), Vec<u64>> = HashMap::new();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(name)) = (words.next(), words.nth(1)) else { continue };
            if !is_wanted(name) {
                continue;
            }
            let module =
                words.next().and_then(|text| text.strip_prefix('[')?.strip_suffix(']')).unwrap_or("");
            match u64::from_str_radix(address, 16) {
                Ok(address) if address != 0 => {
                    symbols.entry((name.to_owned(), module.to_owned())).or_default().push(address);
                }
                _ => {}
            }
        }
        Symbols(symbols)
    }

    /// The address of a function or table of a module, which may be built into the kernel. `None` where there is none, where it is
    /// hidden, or where several have that name.
    pub fn address(&self, name: &str, module: &str) -> Option<u64> {
        let of = |module: &str| self.0.get(&(name.to_owned(), module.to_owned()));
        match of(module).or_else(|| of(""))?.as_slice() {
            [address] => Some(*address),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_found_by_name_and_module_and_never_by_a_name_that_several_have() {
        let symbols = Symbols::parse(
            "ffffffff81000010 t endio\nffffffff81000020 t endio\nffffffff81000030 T bio_chain_endio\n\
             ffffffffc0000010 t clone_endio\t[dm_mod]\nffffffffc0000020 t clone_endio\t[dm_flakey]\n\
             0000000000000000 t hidden\nffffffff81000050 t other\n",
            |name| name != "other",
        );
        assert_eq!(symbols.address("clone_endio", "dm_mod"), Some(0xffff_ffff_c000_0010));
        // Device mapper that is built into the kernel has no module of its own.
        assert_eq!(symbols.address("bio_chain_endio", "dm_mod"), Some(0xffff_ffff_8100_0030));
        for (name, module) in [("endio", ""), ("hidden", ""), ("clone_endio", ""), ("other", "")] {
            assert_eq!(symbols.address(name, module), None, "{name}");
        }
    }
}
