//! Numbers of a few bits packed side by side, the lowest bit first.

/// Bytes for `count` numbers of `bits` bits.
pub(super) fn packed_bytes(count: usize, bits: u32) -> usize {
    (count * bits as usize).div_ceil(8)
}

/// Appends the lowest `bits` bits (at most 32) of every number; the last byte is filled with zeros.
pub(super) fn pack(numbers: impl Iterator<Item = u32>, bits: u32, bytes: &mut Vec<u8>) {
    let (mut held, mut n_held) = (0u64, 0);
    for number in numbers {
        held |= u64::from(number) << n_held;
        n_held += bits;
        while n_held >= 8 {
            bytes.push(held as u8);
            held >>= 8;
            n_held -= 8;
        }
    }
    if n_held > 0 {
        bytes.push(held as u8);
    }
}

/// Reads numbers of `bits` bits (at most 32) until the bytes end.
pub(super) fn unpack(bytes: &[u8], bits: u32) -> impl Iterator<Item = u32> {
    let mut source = bytes.iter();
    let (mut held, mut n_held) = (0u64, 0);
    let mask = (1u64 << bits) - 1;
    std::iter::from_fn(move || {
        while n_held < bits {
            held |= u64::from(*source.next()?) << n_held;
            n_held += 8;
        }
        let number = (held & mask) as u32;
        held >>= bits;
        n_held -= bits;
        Some(number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_and_unpacking_give_the_same_numbers() {
        for bits in 1..=32 {
            let mask = ((1u64 << bits) - 1) as u32;
            let numbers: Vec<u32> =
                (0..77u32).map(|n| n.wrapping_mul(2_654_435_769) & mask).collect();
            let mut bytes = Vec::new();
            pack(numbers.iter().copied(), bits, &mut bytes);
            assert_eq!(bytes.len(), packed_bytes(77, bits));
            assert_eq!(unpack(&bytes, bits).take(77).collect::<Vec<_>>(), numbers);
        }
    }
}
