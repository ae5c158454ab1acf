use super::number::leading;
use crate::profile::Cpu;

/// `-a`, `-ag`: the default, all CPUs. `-a0,1,2`, `-ag0,0,1,g1,0,1`: these, in this order; a group stands for
/// all CPUs after it.
pub fn parse(text: &str) -> Result<Vec<Cpu>, String> {
    if text.is_empty() || text == "g" {
        return Ok(Vec::new());
    }
    let (mut cpus, mut group, mut after_group) = (Vec::new(), 0_u16, false);
    for item in text.split(',') {
        let named_group = item.strip_prefix('g');
        let (number, rest) = leading(named_group.unwrap_or(item))?;
        if !rest.is_empty() {
            return Err(format!("'{rest}' stands after the number"));
        }
        if named_group.is_some() {
            if after_group {
                return Err("a group without a CPU".into());
            }
            group = u16::try_from(number).map_err(|_| format!("group {number} is above 65535"))?;
        } else {
            let too_large = || format!("CPU {number} is above {CPU_MAX}");
            let processor = u32::try_from(number).ok().filter(|cpu| *cpu <= CPU_MAX).ok_or_else(too_large)?;
            cpus.push(Cpu { group, processor });
        }
        after_group = named_group.is_some();
    }
    if after_group { Err("the last group has no CPU".into()) } else { Ok(cpus) }
}

/// More CPUs than any Linux is built for.
const CPU_MAX: u32 = 65_535;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_a_list_and_groups_hold_until_the_next() {
        let cpus = |list: &[(u16, u32)]| -> Result<Vec<Cpu>, String> {
            Ok(list.iter().map(|&(group, processor)| Cpu { group, processor }).collect())
        };
        assert_eq!(parse(""), cpus(&[]));
        assert_eq!(parse("g"), cpus(&[]));
        assert_eq!(parse("1,4,6"), cpus(&[(0, 1), (0, 4), (0, 6)]));
        assert_eq!(parse("g0,1,4,g1,2"), cpus(&[(0, 1), (0, 4), (1, 2)]));
        for wrong in [
            "1,", "x", "gg", "g0", "g,0,1", "g1,0,", "g1,0,g", "g1,0,g2", "g70000,1", "g1,g2,1", "1x",
            "70000",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
