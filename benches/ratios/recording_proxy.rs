//! A proxy that records the requests to a server.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use crate::Failure;

/// Passes every connection on to a server. It runs until the program ends.
pub(crate) struct RecordingProxy {
    pub address: SocketAddr,
    /// The bytes that clients sent on each connection. kontekst opens a new one for each request.
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl RecordingProxy {
    pub(crate) fn before(server: SocketAddr) -> Result<Self, Failure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let sent = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&sent);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let all = Arc::clone(&all);
                thread::spawn(move || pass_on(&client, server, &all));
            }
        });
        Ok(Self { address, sent })
    }

    /// Returns the bodies of the requests for `path` since the last call.
    pub(crate) fn bodies(&self, path: &str) -> Vec<String> {
        let sent = std::mem::take(&mut *self.sent.lock().unwrap_or_else(PoisonError::into_inner));
        let start = format!("POST {path} ");
        let asked = sent.iter().map(|bytes| String::from_utf8_lossy(bytes));
        asked
            .filter(|request| request.starts_with(&start))
            .filter_map(|request| Some(request.split_once("\r\n\r\n")?.1.to_owned()))
            .collect()
    }
}

fn pass_on(mut client: &TcpStream, server: SocketAddr, all: &Mutex<Vec<Vec<u8>>>) -> io::Result<()> {
    let mut upstream = TcpStream::connect(server)?;
    let at = {
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Vec::new());
        all.len() - 1
    };
    let (mut answers, mut back) = (upstream.try_clone()?, client.try_clone()?);
    thread::spawn(move || {
        io::copy(&mut answers, &mut back).ok();
        back.shutdown(Shutdown::Both).ok();
    });
    let mut block = [0; 16 * 1024];
    loop {
        let read = client.read(&mut block)?;
        if read == 0 {
            return upstream.shutdown(Shutdown::Both);
        }
        // The entry is missing if `bodies` was called in the meantime.
        if let Some(sent) = all.lock().unwrap_or_else(PoisonError::into_inner).get_mut(at) {
            sent.extend_from_slice(&block[..read]);
        }
        upstream.write_all(&block[..read])?;
    }
}
