//! The store data of one run.

use wasmtime::component::ResourceTable;
use wasmtime_wasi::p1::WasiP1Ctx;
use wasmtime_wasi::{WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::deadline::Deadline;
use crate::egress::RefusedEgress;
use crate::limiter::MemoryBudget;
use crate::output::{Output, Source};

/// Host objects (streams, pollables, fields…) a guest may hold at once.
const MAX_RESOURCES: usize = 10_000;
/// Random bytes a guest may ask for in one call.
const MAX_RANDOM_BYTES: u64 = 1 << 20;
/// In-memory size of one `wasi:http` fields object.
const MAX_HTTP_FIELDS_BYTES: usize = 128 << 10;

/// What a run is given.
pub struct RunConfig<'a> {
    /// Names and values of the environment, all of it.
    pub env: &'a [(String, String)],
    pub memory_limit_bytes: usize,
    pub deadline: Deadline,
    pub output: Output,
}

/// The data of one store. Made for one run and dropped with it; nothing of it is shared but the
/// captured output.
pub struct RunState {
    wasi: WasiP1Ctx,
    http: WasiHttpCtx,
    egress: RefusedEgress,
    /// `wasmfn.http` has re-entered the guest.
    pub(crate) writing_reply: bool,
    pub budget: MemoryBudget,
    pub deadline: Deadline,
    pub output: Output,
}

impl RunState {
    /// A state with nothing granted but `env`: argv is `["function"]`, no files, no sockets.
    #[must_use]
    pub fn new(config: RunConfig<'_>) -> Self {
        let mut builder = WasiCtxBuilder::new();
        builder
            // Go's klog reads os.Args[0].
            .args(&["function"])
            .envs(config.env)
            .stdout(config.output.stream(Source::Stdout))
            .stderr(config.output.stream(Source::Stderr))
            .max_random_size(MAX_RANDOM_BYTES)
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .socket_addr_check(|_, _| Box::pin(async { false }));
        let mut wasi = builder.build_p1();
        wasi.ctx().table.set_max_capacity(MAX_RESOURCES);
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(MAX_HTTP_FIELDS_BYTES);
        Self {
            wasi,
            http,
            egress: RefusedEgress,
            writing_reply: false,
            budget: MemoryBudget::new(config.memory_limit_bytes),
            deadline: config.deadline,
            output: config.output,
        }
    }

    pub(crate) fn p1(&mut self) -> &mut WasiP1Ctx {
        &mut self.wasi
    }
}

impl WasiView for RunState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.wasi.ctx()
    }
}

impl WasiHttpView for RunState {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        let table: &mut ResourceTable = self.wasi.ctx().table;
        WasiHttpCtxView {
            hooks: &mut self.egress,
            table,
            ctx: &mut self.http,
        }
    }
}
