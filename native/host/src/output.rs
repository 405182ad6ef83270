//! What a guest says: log calls, stdout and stderr, captured line by line within one cap.

use std::fmt::Write as _;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

/// Lines kept of one run; the rest is counted.
const MAX_LINES: usize = 1_000;
/// Text kept of one run, keys and values included.
const MAX_TOTAL_BYTES: usize = 256 << 10;
/// One message or value; longer ones are cut.
const MAX_TEXT_BYTES: usize = 4 << 10;
/// Key-value pairs kept of one line.
pub(crate) const MAX_PAIRS: usize = 32;
/// What a stream accepts in one write.
const STREAM_CHUNK_BYTES: usize = 64 << 10;

/// Where a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Debug,
    Info,
    Warn,
    Error,
    Stdout,
    Stderr,
}

/// One line, free of control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub source: Source,
    pub message: String,
    pub pairs: Vec<(String, String)>,
}

/// The captured output of one run. Clones share it.
#[derive(Clone, Default)]
pub struct Output(Arc<Mutex<Captured>>);

#[derive(Default)]
struct Captured {
    lines: Vec<Line>,
    bytes: usize,
    dropped: u64,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Output {
    /// Adds a log line; past the caps it is only counted.
    pub fn log(&self, source: Source, message: &str, pairs: Vec<(String, String)>) {
        self.lock().push(source, message, pairs);
    }

    /// Ends the run's output: the lines, and how many were dropped.
    #[must_use]
    pub fn take(&self) -> (Vec<Line>, u64) {
        let mut captured = self.lock();
        for source in [Source::Stdout, Source::Stderr] {
            captured.flush_line(source);
        }
        (std::mem::take(&mut captured.lines), captured.dropped)
    }

    #[must_use]
    pub fn stream(&self, source: Source) -> Stream {
        Stream {
            output: self.clone(),
            source,
        }
    }

    fn write(&self, source: Source, bytes: &[u8]) {
        let mut captured = self.lock();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (piece, false),
            };
            let partial = captured.partial(source);
            let room = (MAX_TEXT_BYTES + 1).saturating_sub(partial.len());
            partial.extend_from_slice(&text[..text.len().min(room)]);
            if ends {
                captured.flush_line(source);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Captured> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Captured {
    fn partial(&mut self, source: Source) -> &mut Vec<u8> {
        if source == Source::Stderr {
            &mut self.stderr
        } else {
            &mut self.stdout
        }
    }

    fn flush_line(&mut self, source: Source) {
        let line = std::mem::take(self.partial(source));
        if !line.is_empty() {
            self.push(source, &String::from_utf8_lossy(&line), Vec::new());
        }
    }

    fn push(&mut self, source: Source, message: &str, pairs: Vec<(String, String)>) {
        if self.lines.len() >= MAX_LINES || self.bytes >= MAX_TOTAL_BYTES {
            self.dropped += 1;
            return;
        }
        let line = Line {
            source,
            message: printable(message, MAX_TEXT_BYTES),
            pairs: pairs
                .into_iter()
                .take(MAX_PAIRS)
                .map(|(key, value)| (printable(&key, 256), printable(&value, MAX_TEXT_BYTES)))
                .collect(),
        };
        self.bytes += line.message.len();
        self.bytes += line
            .pairs
            .iter()
            .map(|(k, v)| k.len() + v.len())
            .sum::<usize>();
        self.lines.push(line);
    }
}

/// `text` on one line and at most `max_bytes` of it: control characters, line separators and
/// characters that reorder or hide text are written as `\u{…}`.
#[must_use]
pub fn printable(text: &str, max_bytes: usize) -> String {
    let mut printed = String::with_capacity(text.len().min(max_bytes));
    for c in text.chars() {
        if printed.len() + c.len_utf8() > max_bytes {
            printed.push('…');
            break;
        }
        match c {
            '\u{0}'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}' => {
                let _ = write!(printed, "\\u{{{:x}}}", u32::from(c));
            }
            _ => printed.push(c),
        }
    }
    printed
}

/// A stdout or stderr of the guest.
#[derive(Clone)]
pub struct Stream {
    output: Output,
    source: Source,
}

impl IsTerminal for Stream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Stream {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.output.write(self.source, bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl OutputStream for Stream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.output.write(self.source, &bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(STREAM_CHUNK_BYTES)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Stream {
    async fn ready(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_streams_into_lines_and_keeps_the_last_partial_one() {
        let output = Output::default();

        output.write(Source::Stdout, b"one\ntw");
        output.write(Source::Stderr, b"err");
        output.write(Source::Stdout, b"o\n\nthree");

        let (lines, dropped) = output.take();
        let texts: Vec<_> = lines
            .iter()
            .map(|l| (l.source, l.message.as_str()))
            .collect();
        assert_eq!(
            texts,
            [
                (Source::Stdout, "one"),
                (Source::Stdout, "two"),
                (Source::Stdout, "three"),
                (Source::Stderr, "err"),
            ]
        );
        assert_eq!(dropped, 0);
    }

    #[test]
    fn bounds_lines_bytes_pairs_and_what_it_buffers() {
        let output = Output::default();
        for _ in 0..MAX_LINES + 5 {
            output.log(Source::Info, "x", Vec::new());
        }
        assert_eq!(output.take().1, 5);

        let output = Output::default();
        output.write(Source::Stdout, &vec![b'a'; 10 << 20]);
        assert!(output.lock().stdout.len() <= MAX_TEXT_BYTES + 1);
        assert!(output.take().0[0].message.len() <= MAX_TEXT_BYTES + '…'.len_utf8());

        let output = Output::default();
        let pairs = vec![("k".to_owned(), "v".repeat(1 << 20)); 100];
        for _ in 0..10 {
            output.log(Source::Info, "x", pairs.clone());
        }
        let (lines, dropped) = output.take();
        assert_eq!(lines[0].pairs.len(), MAX_PAIRS);
        assert!(dropped > 0);
    }

    #[test]
    fn escapes_what_could_forge_or_hide_a_line() {
        assert_eq!(
            printable("a\nb\u{1b}[2J\u{202e}c\u{2028}é", 100),
            "a\\u{a}b\\u{1b}[2J\\u{202e}c\\u{2028}é"
        );
        assert_eq!(printable("éé", 3), "é…");
    }
}
