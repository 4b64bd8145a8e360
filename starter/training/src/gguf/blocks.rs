//! Numbers as blocks of eight bits.

use half::f16;

/// Numbers in a block.
pub const BLOCK: usize = 32;

/// Q8_0: per block the largest size as a 16-bit float of 127 parts, then each number as so many of them.
pub fn pack(numbers: &[f32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(numbers.len() / BLOCK * (BLOCK + 2));
    for block in numbers.chunks_exact(BLOCK) {
        let largest = block.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
        let part = f16::from_f32(largest / 127.0);
        let inverse = if part == f16::ZERO { 0.0 } else { 1.0 / part.to_f32() };
        bytes.extend(part.to_le_bytes());
        bytes.extend(
            block
                .iter()
                .map(|number| ((number * inverse).round().clamp(-127.0, 127.0) as i8).cast_unsigned()),
        );
    }
    bytes
}

pub fn unpack(bytes: &[u8]) -> Vec<f32> {
    let blocks = bytes.chunks_exact(BLOCK + 2);
    blocks
        .flat_map(|block| {
            let part = f16::from_le_bytes([block[0], block[1]]).to_f32();
            block[2..].iter().map(move |byte| f32::from(byte.cast_signed()) * part)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{pack, unpack};

    #[test]
    fn comes_back_within_half_a_part() {
        let numbers: Vec<f32> =
            (0..96).map(|i| if i < 32 { 0.0 } else { (i as f32 * 0.7).sin() * i as f32 }).collect();
        for (number, again) in numbers.iter().zip(unpack(&pack(&numbers))) {
            assert!((number - again).abs() <= 96.0 / 127.0 * 0.51, "{number} {again}");
        }
    }
}
