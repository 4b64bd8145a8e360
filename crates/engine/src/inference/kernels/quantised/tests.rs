//! Products of random blocks of every format, on every kind of registers that this CPU has.

use candle_core::{
    Device,
    quantized::{GgmlDType, QStorage, QTensor},
};

use super::{
    FEW, Format, Input, Quantised,
    activations::{Activations, BlockActivations},
    batch::Batch,
    few_vectors, many_vectors,
    registers::Portable,
};

/// Bytes of every value, with factors of any sign that are small numbers.
fn random_bytes(format: Format, rows: usize, columns: usize) -> Vec<u8> {
    let mut state = 7_u32;
    let mut byte = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_le_bytes()[3]
    };
    let mut bytes: Vec<u8> = (0..rows * format.row_bytes(columns)).map(|_| byte()).collect();
    let (_, size) = format.block();
    let factors = match format {
        Format::F32 => 2..4,
        Format::F16 | Format::BF16 => 0..2,
        Format::Q4_1 | Format::Q5_1 | Format::Q4_K | Format::Q5_K => 0..4,
        Format::Q2_K => 80..84,
        Format::Q3_K => 108..110,
        Format::Q6_K => 208..210,
        _ => 0..2,
    };
    for block in bytes.chunks_exact_mut(size) {
        for factor in block[factors.clone()].chunks_exact_mut(2) {
            factor[1] = if matches!(format, Format::F32 | Format::BF16) {
                factor[1] & 0x80 | 0x3d
            } else {
                factor[1] & 0x83 | 0x2c
            };
        }
    }
    bytes
}

/// The numbers that blocks stand for, by candle or, of formats that it does not have, by their definition.
fn plainly(format: Format, bytes: &[u8]) -> Vec<f32> {
    let kind = match format {
        Format::F32 => GgmlDType::F32,
        Format::F16 => GgmlDType::F16,
        Format::BF16 => GgmlDType::BF16,
        Format::Q4_0 => GgmlDType::Q4_0,
        Format::Q4_1 => GgmlDType::Q4_1,
        Format::Q5_0 => GgmlDType::Q5_0,
        Format::Q5_1 => GgmlDType::Q5_1,
        Format::Q8_0 => GgmlDType::Q8_0,
        Format::Q2_K => GgmlDType::Q2K,
        Format::Q3_K => GgmlDType::Q3K,
        Format::Q4_K => GgmlDType::Q4K,
        Format::Q5_K => GgmlDType::Q5K,
        Format::Q6_K => GgmlDType::Q6K,
        Format::IQ4_NL => return bytes.chunks(18).flat_map(|block| values(block, 2, 1)).collect(),
        Format::IQ4_XS => return bytes.chunks(136).flat_map(small_blocks).collect(),
    };
    let (numbers, size) = format.block();
    let storage = QStorage::from_data(bytes.to_vec().into(), &Device::Cpu, kind).unwrap();
    let tensor = QTensor::new(storage, bytes.len() / size * numbers).unwrap();
    tensor.dequantize(&Device::Cpu).unwrap().to_vec1().unwrap()
}

/// 32 numbers of four bits, which begin at a place, with the factor of the block.
fn values(block: &[u8], at: usize, scale: i32) -> Vec<f32> {
    const VALUES: [i16; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
    let factor = half::f16::from_le_bytes([block[0], block[1]]).to_f32();
    let value = |number: u8| factor * scale as f32 * f32::from(VALUES[usize::from(number)]);
    let packed = &block[at..at + 16];
    packed.iter().map(|byte| value(byte & 15)).chain(packed.iter().map(|byte| value(byte >> 4))).collect()
}

fn small_blocks(block: &[u8]) -> Vec<f32> {
    let group = |group: usize| {
        let low = block[4 + group / 2] >> (4 * (group % 2)) & 15;
        let high = u16::from_le_bytes([block[2], block[3]]) >> (2 * group) & 3;
        values(block, 8 + 16 * group, i32::from(low) + 16 * i32::from(high) - 32)
    };
    (0..8).flat_map(group).collect()
}

/// The products in doubles, and the sums of the sizes of what was added.
fn expected(matrix: &[f32], vectors: &[f32], columns: usize) -> Vec<(f64, f64)> {
    let mut all = Vec::new();
    for vector in vectors.chunks_exact(columns) {
        for row in matrix.chunks_exact(columns) {
            let products = row.iter().zip(vector).map(|(left, right)| f64::from(*left) * f64::from(*right));
            all.push(products.fold((0.0, 0.0), |(sum, size), product| (sum + product, size + product.abs())));
        }
    }
    all
}

#[track_caller]
fn close(found: &[f32], expected: &[(f64, f64)], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, (sum, size)) in found.iter().zip(expected) {
        // One vector is rounded to eight bits, which is ten times as coarse.
        let most = if what.ends_with("many") { 4e-4 } else { 4e-3 };
        let apart = (f64::from(*found) - sum).abs() / size;
        assert!(apart < most, "{what}: {found} for {sum}, {apart}");
    }
}

/// Multiplies with every kind of registers that this CPU has.
fn all_products(matrix: &Quantised, vectors: &[f32]) -> Vec<(&'static str, Vec<f32>)> {
    let mut found =
        vec![("chosen", matrix.apply(&Input::new(vectors, vectors.len() / matrix.columns)).all())];
    let batch = Batch::new(vectors, matrix.columns);
    macro_rules! check {
        ($name: literal, $registers: expr, $rows: literal, $groups: literal) => {{
            let few = |count: usize| -> Vec<f32> {
                let products = vectors.chunks(count * matrix.columns).map(|vectors| {
                    let input = Input::new(vectors, vectors.len() / matrix.columns);
                    few_vectors::products_in($registers, matrix, &input).all()
                });
                products.collect::<Vec<_>>().concat()
            };
            let one = few(1);
            for count in 2..=FEW {
                let (few, one) = (few(count), one.iter());
                let same =
                    |(few, one): (&f32, &f32)| few.to_bits() == one.to_bits() || few.is_nan() && one.is_nan();
                assert!(few.iter().zip(one).all(same), "{:?}, {count} at a time", matrix.format);
            }
            found.push((concat!($name, ", one"), one));
            let many = many_vectors::products_in::<_, $rows, $groups>($registers, matrix, &batch);
            found.push((concat!($name, ", many"), many.all()));
        }};
    }
    check!("portable", Portable, 4, 1);
    #[cfg(target_arch = "x86_64")]
    {
        use super::registers::{Avx2, Avx512};
        if let Some(registers) = Avx2::try_new() {
            check!("AVX2", registers, 5, 1);
        }
        if let Some(registers) = Avx512::try_new() {
            check!("AVX-512", registers, 12, 2);
        }
    }
    found
}

#[test]
fn multiplies_what_the_blocks_stand_for() {
    for format in Format::ALL {
        let block = format.block().0;
        for (rows, columns, count) in
            [(1, 256, 1), (13, 256, 3), (30, 768, 17), (5, 96, 40), (3, 7, 2), (12, 1120, 33)]
        {
            let columns = if columns < block { block } else { columns / block * block };
            let bytes = random_bytes(format, rows, columns);
            let plain = plainly(format, &bytes);
            let matrix = Quantised::new(format, rows, columns, bytes);
            let vectors: Vec<f32> =
                (0..count * columns).map(|at| ((at * 7919) % 251) as f32 / 50.0 - 2.5).collect();
            let expected = expected(&plain, &vectors, columns);
            for (name, found) in all_products(&matrix, &vectors) {
                close(&found, &expected, &format!("{format:?}, {rows} by {columns}, {count}, {name}"));
            }
            let last = u32::try_from(rows - 1).unwrap();
            let most = plain.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
            for (found, expected) in matrix.lookup(&[last]).iter().zip(&plain[(rows - 1) * columns..]) {
                assert!((found - expected).abs() <= most / 3000.0, "{format:?}: {found} for {expected}");
            }
        }
    }
}

#[test]
fn one_vector_of_whole_numbers_is_multiplied_exactly() {
    for format in Format::ALL {
        let block = format.block().0;
        for columns in [256, 96, 1120].map(|columns: usize| columns.next_multiple_of(block)) {
            let bytes = random_bytes(format, 7, columns);
            let plain = plainly(format, &bytes);
            let matrix = Quantised::new(format, 7, columns, bytes);
            // Of each 32 the largest is 127, so that they are the same in eight bits.
            let number = |at: usize| if at % 32 == 9 { -127.0 } else { ((at * 7919) % 251) as f32 - 125.0 };
            let vector: Vec<f32> = (0..columns).map(number).collect();
            let expected = expected(&plain, &vector, columns);
            for (name, found) in all_products(&matrix, &vector) {
                if name.ends_with("many") {
                    continue;
                }
                for (found, (sum, size)) in found.iter().zip(&expected) {
                    let apart = (f64::from(*found) - sum).abs() / size;
                    assert!(apart < 2e-6, "{format:?}, {columns}, {name}: {found} for {sum}, {apart}");
                }
            }
        }
    }
}

#[test]
fn the_largest_numbers_fit_into_a_sum() {
    for (format, bytes) in [
        // The scale -128 times the number -32, 256 times.
        (Format::Q6_K, [vec![0; 192], vec![0x80; 16], vec![0, 0x3c]].concat()),
        // The same scale times the number 31, which is 63 before 32 is taken from it.
        (Format::Q6_K, [vec![0xff; 192], vec![0x80; 16], vec![0, 0x3c]].concat()),
        // The scale 63 times the number 31.
        (Format::Q5_K, [vec![0, 0x3c, 0, 0x3c], vec![0xff; 172]].concat()),
        (Format::Q8_0, [vec![0, 0x3c], vec![0x80; 32]].concat().repeat(8)),
        (Format::F32, (-3e38_f32).to_le_bytes().repeat(256)),
        (Format::F16, half::f16::MAX.to_le_bytes().repeat(256)),
    ] {
        let plain = plainly(format, &bytes);
        let matrix = Quantised::new(format, 1, 256, bytes);
        for sign in [1.0, -1.0] {
            let vectors = vec![sign * 1e-3; 3 * 256];
            let expected = expected(&plain, &vectors, 256);
            for (name, found) in all_products(&matrix, &vectors) {
                close(&found, &expected, &format!("{format:?}, {sign}, {name}"));
            }
        }
    }
}

#[test]
fn zeros_and_numbers_that_are_none_give_no_panic() {
    for format in Format::ALL {
        let columns = 256;
        for byte in [0, 0xff] {
            let matrix = Quantised::new(format, 2, columns, vec![byte; 2 * format.row_bytes(columns)]);
            for number in [0.0, f32::NAN, f32::INFINITY, 1e-40, f32::MAX] {
                for (name, found) in all_products(&matrix, &vec![number; 3 * columns]) {
                    if byte == 0 && number.is_finite() {
                        assert!(found.iter().all(|found| *found == 0.0), "{format:?}, {number}, {name}");
                    }
                }
            }
        }
    }
}

#[test]
fn groups_of_a_block_are_rounded_nearly_as_finely_as_alone() {
    // Each group has numbers a third as large as those of the one before it.
    let number = |at: usize| ((at * 7919) % 251) as f32 / 50.0 - 2.5;
    let vector: Vec<f32> = (0..256).map(|at| number(at) * 3.0_f32.powi(-(at as i32 / 32))).collect();
    let [block] = &BlockActivations::of(&vector)[..] else { panic!("256 numbers are one block") };
    let step = 2.5 / 63.0 / 127.0;
    for (at, number) in vector.iter().enumerate() {
        let (group, place) = (at / 32, at % 32);
        let scale = block.scale * f32::from(block.ratios[group]);
        let most = vector[32 * group..][..32].iter().fold(0.0_f32, |most, number| most.max(number.abs()));
        assert!(scale <= most / 127.0 + step, "group {group} has steps of {scale}");
        let rounded = scale * f32::from(block.numbers[group][place]);
        assert!((rounded - number).abs() <= 0.501 * scale, "{rounded} for {number}");
    }
    let sums = |numbers: &[i8]| numbers.iter().map(|number| i16::from(*number)).sum::<i16>();
    for group in 0..8 {
        let (low, high) = block.numbers[group].split_at(16);
        let found = [block.half_sums[group], block.half_sums[8 + group], block.sums[8 + group]];
        assert_eq!(found, [sums(low), sums(high), sums(low) + sums(high)]);
        assert_eq!((block.sums[group], block.ratios[group]), (0, block.ratios[8 + group]));
    }
}

#[test]
fn a_matrix_without_rows_has_no_products() {
    let matrix = Quantised::new(Format::Q8_0, 0, 32, Vec::new());
    for count in [1, 3] {
        assert!(matrix.apply(&Input::new(&vec![1.0; count * 32], count)).all().is_empty());
    }
}
