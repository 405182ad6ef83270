//! HTTP from a guest. Nothing is granted yet, so every request gets an in-band refusal.

use wasmtime::{Caller, Extern, Result, bail};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

use crate::state::RunState;

/// A v1 request document larger than this is refused unread.
const MAX_REQUEST_BYTES: u32 = 4 << 20;
const REFUSAL: &str = "sandbox.egress: no egress is granted to this module";

/// Answers `wasi:http` requests, 0.2 and 0.3 alike, with a refusal.
pub(crate) struct RefusedEgress;

type Io = Box<dyn Future<Output = Result<(), Error>> + Send>;
type Sent = Result<(http::Response<WasiBody>, Io), Error>;

impl WasiHttpHooks for RefusedEgress {
    fn send_request(
        &mut self,
        _request: http::Request<WasiBody>,
        _options: Option<RequestOptions>,
        _fut: Io,
    ) -> Box<dyn Future<Output = Sent> + Send> {
        Box::new(async { Err(Error::HttpRequestDenied) })
    }
}

/// `wasmfn.http(ptr, len) -> i64`: reads a JSON request, answers with the place of a JSON reply
/// that was written through the guest's own `wasmfn_alloc`.
///
/// # Errors
///
/// Traps the run when the request lies outside memory, when `wasmfn_alloc` traps or returns a place
/// outside memory, or when it calls this function itself: each level would take a stack of its own.
pub(crate) async fn http_v1(mut caller: Caller<'_, RunState>, ptr: i32, len: i32) -> Result<i64> {
    if std::mem::replace(&mut caller.data_mut().writing_reply, true) {
        bail!("wasmfn.http: called from wasmfn_alloc while a reply is being written");
    }
    read_request(&mut caller, ptr.cast_unsigned(), len.cast_unsigned())?;
    let credit = caller.data().deadline.credit();
    let reply = credit
        .host_wait(async { serde_json::json!({ "status": 0, "error": REFUSAL }).to_string() })
        .await;
    let place = write_reply(&mut caller, reply.as_bytes()).await?;
    caller.data_mut().writing_reply = false;
    Ok(place)
}

fn read_request(caller: &mut Caller<'_, RunState>, ptr: u32, len: u32) -> Result<Vec<u8>> {
    if len > MAX_REQUEST_BYTES {
        bail!("wasmfn.http: a request of {len} bytes exceeds {MAX_REQUEST_BYTES}");
    }
    let Some(Extern::Memory(memory)) = caller.get_export("memory") else {
        bail!("wasmfn.http: the module exports no memory");
    };
    let range = ptr as usize..ptr as usize + len as usize;
    match memory.data(&*caller).get(range) {
        Some(bytes) => Ok(bytes.to_vec()),
        None => bail!("wasmfn.http: the request at {ptr}+{len} lies outside memory"),
    }
}

async fn write_reply(caller: &mut Caller<'_, RunState>, reply: &[u8]) -> Result<i64> {
    let Some(Extern::Func(alloc)) = caller.get_export("wasmfn_alloc") else {
        bail!("wasmfn.http: the module exports no wasmfn_alloc");
    };
    let alloc = alloc.typed::<i32, i32>(&*caller)?;
    let len = i32::try_from(reply.len())?;
    let ptr = alloc.call_async(&mut *caller, len).await?.cast_unsigned();
    let Some(Extern::Memory(memory)) = caller.get_export("memory") else {
        bail!("wasmfn.http: the module exports no memory");
    };
    if memory.write(&mut *caller, ptr as usize, reply).is_err() {
        bail!("wasmfn.http: wasmfn_alloc({len}) returned {ptr}, which lies outside memory");
    }
    Ok((i64::from(ptr) << 32) | i64::from(len))
}
