//! Promises that our own threads settle.

use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use napi::bindgen_prelude::{Object, ToNapiValue};
use napi::{Env, Error};
use tokio::runtime::Runtime;

use crate::error::{EngineError, EngineResult};

type Resolver<T> = Box<dyn FnOnce(Env) -> napi::Result<T> + Send>;

/// Runs `work` on `runtime` and returns the promise of its result. An error rejects it with an
/// `Error` whose message is `[code] text`, because napi's deferreds carry no code of our own; so
/// does a panic, with code `internal`.
pub fn settle<'env, T>(
    env: &'env Env,
    runtime: &Runtime,
    work: impl Future<Output = EngineResult<T>> + Send + 'static,
) -> napi::Result<Object<'env>>
where
    T: ToNapiValue + Send + 'static,
{
    let (deferred, promise) = env.create_deferred::<T, Resolver<T>>()?;
    runtime.spawn(async move {
        let result = AssertUnwindSafe(work)
            .catch_unwind()
            .await
            .unwrap_or_else(|_| Err(EngineError::internal("the sandbox panicked")));
        match result {
            Ok(value) => deferred.resolve(Box::new(move |_| Ok(value))),
            Err(error) => deferred.reject(Error::from_reason(error.to_string())),
        }
    });
    Ok(promise)
}
