//! The hand-written gradients against finite differences, and the network against itself.

use super::{Memory, Packs, Row, Shape, Weights, backward, forward, initial};
use crate::data::Encoded;
use crate::matmul::Precision;

const SHAPE: Shape = Shape { width: 64, layers: 2, ffn: 96 };

fn conversations() -> [Encoded; 3] {
    let mut rng = fastrand::Rng::with_seed(5);
    [40, 170, 5].map(|length| {
        let ids: Vec<u16> = (0..length).map(|_| rng.u16(..260)).collect();
        let said = ids.iter().map(|id| id % 3 != 0).collect();
        Encoded { ids, said }
    })
}

/// Bytes that are not the assistant's have the weight `other`.
fn row(conversations: &[Encoded], other: f32) -> Row {
    let mut row = Row::default();
    for conversation in conversations {
        row.push(conversation, other);
    }
    row
}

fn loss(numbers: &[f32], row: &Row, precision: Precision) -> f64 {
    forward(&Weights::new(SHAPE, numbers, precision, &mut Packs::default()), row, &mut Memory::new(precision))
        .0
}

/// A small step in some direction changes the loss by as much as the slopes say, for each kind of matrix.
#[test]
fn slopes_agree_with_differences() {
    let numbers = initial(SHAPE, 1);
    for (precision, other) in [(Precision::Exact, 0.1), (Precision::Exact, 0.0), (Precision::Fast, 0.0)] {
        let row = row(&conversations(), other);
        let mut memory = Memory::new(precision);
        let mut slopes = vec![0.0; SHAPE.size()];
        let mut packs = Packs::default();
        let weights = Weights::new(SHAPE, &numbers, precision, &mut packs);
        forward(&weights, &row, &mut memory);
        backward(&weights, &row, &mut memory, &mut slopes);

        let first = SHAPE.layer(0);
        let last = SHAPE.layer(1);
        let ranges = [
            SHAPE.embedding(),
            first.norm1,
            first.qkv,
            first.out,
            first.norm2,
            first.gate_up,
            first.down,
            last.norm1,
            last.qkv,
            last.out,
            last.norm2,
            last.gate_up,
            last.down,
            SHAPE.norm(),
            SHAPE.head(),
        ];
        for (which, range) in ranges.into_iter().enumerate() {
            // Along the slopes themselves: the largest change there is for a step of this length.
            let length = slopes[range.clone()].iter().map(|s| f64::from(s * s)).sum::<f64>().sqrt();
            let step = 0.005;
            let mut moved = [numbers.clone(), numbers.clone()];
            for at in range {
                let part = (f64::from(slopes[at]) / length * step) as f32;
                moved[0][at] -= part;
                moved[1][at] += part;
            }
            let [low, high] = moved.map(|numbers| loss(&numbers, &row, Precision::Exact));
            let seen = (high - low) / (2.0 * step);
            let allowed = if precision == Precision::Exact { 0.005 } else { 0.03 };
            assert!(
                (seen / length - 1.0).abs() < allowed,
                "{precision:?} {which}: {seen}, expected {length}"
            );
        }
    }
}

/// The other conversations in a row do not change the answer to a conversation.
#[test]
fn conversations_do_not_see_each_other() {
    let numbers = initial(SHAPE, 1);
    let whole = conversations();
    let apart: f64 =
        whole.iter().map(|one| loss(&numbers, &row(std::slice::from_ref(one), 0.0), Precision::Exact)).sum();
    let together = loss(&numbers, &row(&whole, 0.0), Precision::Exact);
    assert!((together - apart).abs() < 1e-3 * apart, "{together} {apart}");
}
