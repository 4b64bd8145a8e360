//! A checkpoint under examination, by the trainer's own decoder.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use super::Model;
use crate::{
    data::{Role, prompt},
    decode,
    net::Shape,
};

/// Most bytes of one answer.
const LONGEST: usize = 1200;

pub struct Own {
    pub shape: Shape,
    pub numbers: Vec<f32>,
    pub threads: usize,
}

impl Own {
    fn said(&self, conversation: &[(Role, String)]) -> String {
        decode::answer(self.shape, &self.numbers, &prompt(conversation), LONGEST)
    }
}

impl Model for Own {
    fn answer(&mut self, conversation: &[(Role, String)]) -> String {
        self.said(conversation)
    }

    fn answers(&mut self, conversations: &[&[(Role, String)]]) -> Vec<String> {
        let next = AtomicUsize::new(0);
        let mut answers = vec![String::new(); conversations.len()];
        let own = &*self;
        let work = || {
            let mut done = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(conversation) = conversations.get(at) else { return done };
                done.push((at, own.said(conversation)));
            }
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..own.threads.max(1)).map(|_| scope.spawn(work)).collect();
            for worker in workers {
                let done = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                for (at, answer) in done {
                    answers[at] = answer;
                }
            }
        });
        answers
    }
}
