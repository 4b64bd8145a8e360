//! Saying something, the plain way: one token after the other, the likeliest each time.

use crate::data::END;
use crate::net::ops::exp;
use crate::net::ops::{Rope, norm, swiglu};
use crate::net::{HEAD, LOGITS, Shape, VOCABULARY};
use crate::wide::wide;

/// Tokens that a conversation may have.
pub const LONGEST: usize = 4096;

/// Returns the answer to a prompt, at most `limit` bytes. Bytes that are no UTF-8 become `U+FFFD`.
pub fn answer(shape: Shape, numbers: &[f32], prompt: &[u16], limit: usize) -> String {
    let mut reader = Reader::new(shape, numbers);
    for &token in prompt {
        reader.read(token);
    }
    let mut bytes = Vec::new();
    while bytes.len() < limit {
        let token = reader.likeliest();
        let Ok(byte) = u8::try_from(token) else { break };
        bytes.push(byte);
        if reader.places == LONGEST {
            break;
        }
        reader.read(token);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads tokens and knows what may follow.
pub struct Reader<'a> {
    shape: Shape,
    numbers: &'a [f32],
    rope: Rope,
    places: usize,
    /// Per layer, a row of keys and one of values per token.
    keys: Vec<Vec<f32>>,
    values: Vec<Vec<f32>>,
    logits: Vec<f32>,
}

impl<'a> Reader<'a> {
    pub fn new(shape: Shape, numbers: &'a [f32]) -> Self {
        let (keys, values) = (vec![Vec::new(); shape.layers], vec![Vec::new(); shape.layers]);
        Self { shape, numbers, rope: Rope::new(LONGEST), places: 0, keys, values, logits: vec![0.0; LOGITS] }
    }

    /// # Panics
    /// After [`LONGEST`] tokens.
    pub fn read(&mut self, token: u16) {
        let (d, ffn, numbers) = (self.shape.width, self.shape.ffn, self.numbers);
        let mut x = numbers[usize::from(token) * d..][..d].to_vec();
        let (mut normed, mut qkv, mut seen, mut made) =
            (vec![0.0; d], vec![0.0; 3 * d], vec![0.0; d], vec![0.0; d]);
        let (mut gate_up, mut hidden) = (vec![0.0; 2 * ffn], vec![0.0; ffn]);
        for number in 0..self.shape.layers {
            let layer = self.shape.layer(number);
            norm(&mut normed, &mut [0.0], &x, &numbers[layer.norm1]);
            times(&mut qkv, &normed, &numbers[layer.qkv]);
            self.rope.turn(&mut qkv[..2 * d], 2 * d, 2 * d, self.places, 1.0);
            self.keys[number].extend(&qkv[d..2 * d]);
            self.values[number].extend(&qkv[2 * d..]);
            attend(&mut seen, &qkv[..d], &self.keys[number], &self.values[number]);
            times(&mut made, &seen, &numbers[layer.out]);
            x.iter_mut().zip(&made).for_each(|(x, made)| *x += made);
            norm(&mut normed, &mut [0.0], &x, &numbers[layer.norm2]);
            times(&mut gate_up, &normed, &numbers[layer.gate_up]);
            swiglu(&mut hidden, &gate_up, ffn);
            times(&mut made, &hidden, &numbers[layer.down]);
            x.iter_mut().zip(&made).for_each(|(x, made)| *x += made);
        }
        norm(&mut normed, &mut [0.0], &x, &numbers[self.shape.norm()]);
        times(&mut self.logits, &normed, &numbers[self.shape.head()]);
        self.places += 1;
    }

    pub fn likeliest(&self) -> u16 {
        let logits = self.logits[..VOCABULARY].iter().zip(0..);
        logits.max_by(|a, b| a.0.total_cmp(b.0)).map_or(END, |(_, token)| token)
    }
}

wide! {
/// `out = x · w`.
fn times(out: &mut [f32], x: &[f32], w: &[f32]) {
    let columns = out.len();
    out.fill(0.0);
    for (x, row) in x.iter().zip(w.chunks_exact(columns)) {
        for (out, w) in out.iter_mut().zip(row) {
            *out = x.mul_add(*w, *out);
        }
    }
}

fn attend(out: &mut [f32], query: &[f32], keys: &[f32], values: &[f32]) {
    let d = out.len();
    let scale = (HEAD as f32).powf(-0.5);
        for head in (0..d).step_by(HEAD) {
            let query = &query[head..head + HEAD];
            let score = |key: &[f32]| key[head..head + HEAD].iter().zip(query).map(|(k, q)| k * q).sum::<f32>() * scale;
            let scores: Vec<f32> = keys.chunks_exact(d).map(score).collect();
            let top = scores.iter().fold(f32::NEG_INFINITY, |a, &b| a.max(b));
            let shares: Vec<f32> = scores.iter().map(|score| exp(score - top)).collect();
            let sum: f32 = shares.iter().sum();
            let out = &mut out[head..head + HEAD];
            out.fill(0.0);
            for (share, value) in shares.iter().zip(values.chunks_exact(d)) {
                for (out, value) in out.iter_mut().zip(&value[head..]) {
                    *out += share / sum * value;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Reader;
    use crate::data::{Encoded, USER};
    use crate::matmul::Precision;
    use crate::net::{LOGITS, Memory, Packs, Row, Shape, Weights, forward, initial};

    /// Token by token it says what training says in one go.
    #[test]
    fn reads_as_training_does() {
        let shape = Shape { width: 64, layers: 2, ffn: 64 };
        let numbers = initial(shape, 2);
        let mut ids = vec![USER];
        ids.extend(b"what is in notes.txt?".map(u16::from));
        let mut reader = Reader::new(shape, &numbers);
        let mut loss = 0.0;
        for two in ids.windows(2) {
            reader.read(two[0]);
            let sum: f32 = reader.logits[..260].iter().map(|logit| logit.exp()).sum();
            loss += f64::from(sum.ln() - reader.logits[usize::from(two[1])]);
        }
        let mut row = Row::default();
        row.push(&Encoded { said: vec![true; ids.len()], ids }, 0.0);
        let (expected, _) = forward(
            &Weights::new(shape, &numbers, Precision::Exact, &mut Packs::default()),
            &row,
            &mut Memory::new(Precision::Exact),
        );
        assert!((loss - expected).abs() < 1e-3 * expected, "{loss} {expected}");
        assert_eq!(reader.logits.len(), LOGITS);
    }
}
