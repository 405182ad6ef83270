//! The one place that says how wasmtime is configured.

use std::num::NonZeroUsize;

use wasmtime::{
    Config, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, Result,
    Strategy, WasmBacktraceDetails, WasmFeatures,
};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const WASM_PAGE_BYTES: usize = 64 * KIB;
const MAX_MEMORY_BYTES: usize = 4 << 30;
/// What host functions get on a fiber beside the guest's own stack.
const HOST_STACK_BYTES: usize = 1536 * KIB;
/// Memory a pooled slot keeps between runs: more makes mid-size guests slower (it is cleared).
const KEEP_RESIDENT_BYTES: usize = 64 * KIB;
/// Frames of a guest backtrace that reach the operator's log.
const BACKTRACE_FRAMES: NonZeroUsize = NonZeroUsize::new(20).unwrap();

/// What the operator sets of the engine.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Wasm stack of one run.
    pub stack_limit_bytes: usize,
    /// Ceiling of one run's memory, and so the size of a pooled memory.
    pub memory_limit_bytes: usize,
    /// Runs the pool has room for at once.
    pub pool_slots: u32,
}

/// The settings that machine code depends on, with the on-demand allocator. The allocator is not
/// part of an artifact, so the compiler and both of the server's engines use this one.
#[must_use]
pub fn compiler_config(stack_limit_bytes: usize) -> Config {
    let mut config = Config::new();
    config
        .strategy(Strategy::Cranelift)
        .cranelift_opt_level(OptLevel::Speed)
        .parallel_compilation(true)
        .epoch_interruption(true)
        .max_wasm_stack(stack_limit_bytes)
        .async_stack_size(stack_limit_bytes + HOST_STACK_BYTES)
        .memory_reservation(MAX_MEMORY_BYTES as u64)
        .memory_guard_size(32 << 20)
        .memory_init_cow(true)
        // Above the heap image of a large Go guest, or its pages are copied at each instantiation.
        .memory_guaranteed_dense_image_size(64 << 20)
        // Explicit bounds checks cost 12-26 % and would need Spectre mitigations off.
        .signals_based_traps(true)
        // Never parse the guest's DWARF in our process.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .wasm_backtrace_max_frames(Some(BACKTRACE_FRAMES))
        .native_unwind_info(false)
        .wasm_simd(true)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        .wasm_tail_call(false)
        .wasm_features(WasmFeatures::FUNCTION_REFERENCES, false)
        // wasmtime's adapters between the parts of a component need it; the pre-check refuses it
        // in guests.
        .wasm_multi_memory(true)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false)
        .wasm_component_model(true)
        // `run: async func` needs it even in a component that never waits.
        .wasm_component_model_async(true)
        .concurrency_support(true)
        .shared_memory(false);
    #[cfg(target_os = "macos")]
    config.macos_use_mach_ports(false);
    config
}

/// Names every setting and the version that an artifact depends on, as 16 hex digits.
///
/// # Errors
///
/// When the engine cannot be made on this machine.
pub fn compatibility_hash(stack_limit_bytes: usize) -> Result<String> {
    use std::hash::{DefaultHasher, Hash, Hasher};

    let engine = Engine::new(&compiler_config(stack_limit_bytes))?;
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

/// An engine that takes memory for each run from the operating system.
///
/// # Errors
///
/// When the settings do not fit this machine.
pub(crate) fn on_demand_engine(config: &EngineConfig) -> Result<Engine> {
    Engine::new(&compiler_config(config.stack_limit_bytes))
}

/// An engine whose runs take memory from slots reserved at start.
///
/// # Errors
///
/// When the address space for the slots cannot be reserved, for example under `ulimit -v`.
pub(crate) fn pooling_engine(config: &EngineConfig) -> Result<Engine> {
    let slots = config.pool_slots.max(1);
    let max_memory_bytes = config
        .memory_limit_bytes
        .next_multiple_of(WASM_PAGE_BYTES)
        .min(MAX_MEMORY_BYTES);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(slots)
        .total_core_instances(slots.saturating_mul(8))
        .total_memories(slots.saturating_mul(2))
        .total_tables(slots.saturating_mul(4))
        .total_stacks(slots.saturating_mul(2))
        // A 77 MB Go guest needs 1.5 MB.
        .max_core_instance_size(8 * MIB)
        .max_component_instance_size(8 * MIB)
        .max_core_instances_per_component(64)
        .max_memories_per_component(16)
        .max_tables_per_component(64)
        .table_elements(200_000)
        .max_memory_size(max_memory_bytes)
        .linear_memory_keep_resident(KEEP_RESIDENT_BYTES)
        .table_keep_resident(KEEP_RESIDENT_BYTES);
    let mut wasmtime = compiler_config(config.stack_limit_bytes);
    wasmtime.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&wasmtime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pool_accepts_what_the_compiler_makes() {
        let config = EngineConfig {
            stack_limit_bytes: 512 * KIB,
            memory_limit_bytes: 64 * MIB,
            pool_slots: 2,
        };
        let compiler = on_demand_engine(&config).unwrap();
        let pool = pooling_engine(&config).unwrap();

        let artifact = compiler.precompile_module(b"\0asm\x01\0\0\0").unwrap();

        // SAFETY: the bytes are wasmtime's own, from the line above.
        unsafe { wasmtime::Module::deserialize(&pool, &artifact) }.unwrap();
    }
}
