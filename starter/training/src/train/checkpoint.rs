//! The state of the training, in a file.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::net::Shape;

const MAGIC: &[u8; 8] = b"kontekst";

/// All that training goes on from.
#[derive(Clone)]
pub struct Checkpoint {
    pub shape: Shape,
    /// Steps done, tokens read and seconds spent so far.
    pub step: u64,
    pub tokens: u64,
    pub seconds: f64,
    /// The network, and the running means of the slopes and of their squares.
    pub numbers: Vec<f32>,
    pub means: Vec<f32>,
    pub squares: Vec<f32>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {path}")]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot write {path}")]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("not a checkpoint: {path}")]
    Foreign { path: PathBuf },
}

impl Checkpoint {
    pub fn new(shape: Shape, numbers: Vec<f32>) -> Self {
        let zeros = vec![0.0; numbers.len()];
        Self { shape, step: 0, tokens: 0, seconds: 0.0, numbers, means: zeros.clone(), squares: zeros }
    }

    /// # Errors
    /// [`Error::Read`], and [`Error::Foreign`] for another file or a shortened one.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let mut bytes = Vec::new();
        let read = fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
        read.map_err(|source| Error::Read { path: path.to_owned(), source })?;
        parse(&bytes).ok_or_else(|| Error::Foreign { path: path.to_owned() })
    }

    /// Whole or not at all.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let mut bytes = MAGIC.to_vec();
        for number in [
            self.shape.width as u64,
            self.shape.layers as u64,
            self.shape.ffn as u64,
            self.step,
            self.tokens,
            self.seconds.to_bits(),
        ] {
            bytes.extend(number.to_le_bytes());
        }
        for number in self.numbers.iter().chain(&self.means).chain(&self.squares) {
            bytes.extend(number.to_le_bytes());
        }
        let beside = path.with_extension("new");
        let written = || -> io::Result<()> {
            if let Some(directory) = path.parent() {
                fs::create_dir_all(directory)?;
            }
            let mut file = fs::File::create(&beside)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&beside, path)
        };
        written().map_err(|source| Error::Write { path: path.to_owned(), source })
    }
}

fn parse(bytes: &[u8]) -> Option<Checkpoint> {
    let (head, body) = bytes.strip_prefix(MAGIC)?.split_at_checked(48)?;
    let head: Vec<u64> =
        head.chunks_exact(8).map(|eight| u64::from_le_bytes(eight.try_into().expect("8 bytes"))).collect();
    let side = |at: usize| usize::try_from(head[at]).ok().filter(|&side| side <= 4096);
    let shape = Shape { width: side(0)?, layers: side(1)?, ffn: side(2)? };
    if body.len() != 12 * shape.size() {
        return None;
    }
    let numbers: Vec<f32> =
        body.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().expect("4 bytes"))).collect();
    let mut thirds = numbers.chunks_exact(shape.size()).map(<[f32]>::to_vec);
    Some(Checkpoint {
        shape,
        step: head[3],
        tokens: head[4],
        seconds: f64::from_bits(head[5]),
        numbers: thirds.next()?,
        means: thirds.next()?,
        squares: thirds.next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::{Checkpoint, Error};
    use crate::net::{Shape, initial};

    #[test]
    fn comes_back_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/checkpoint");
        let shape = Shape { width: 32, layers: 1, ffn: 32 };
        let mut state = Checkpoint::new(shape, initial(shape, 1));
        (state.step, state.tokens, state.seconds) = (3, 4, 5.5);
        state.means[7] = 0.25;
        state.write(&path).unwrap();
        let again = Checkpoint::read(&path).unwrap();
        assert_eq!((again.shape, again.step, again.tokens), (shape, 3, 4));
        assert_eq!(
            (&again.numbers, &again.means, &again.squares),
            (&state.numbers, &state.means, &state.squares)
        );

        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert!(matches!(Checkpoint::read(&path), Err(Error::Foreign { .. })));
    }
}
