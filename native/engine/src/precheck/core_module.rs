//! Imports and exports of ABI v1.

use std::time::Duration;

use host::{CancelToken, Deadline, Output, RunConfig, RunState};
use wasmparser::types::{EntityType, TypesRef};
use wasmparser::{FuncType, ValType};
use wasmtime::{Engine, Linker, Store};

use super::{invalid, refuse_unknown};
use crate::failure::LoadError;

/// The host functions of ABI v1 and their types, asked of the linker itself.
pub(super) struct CoreHost {
    linker: Linker<RunState>,
    store: Store<RunState>,
}

impl CoreHost {
    pub(super) fn new(engine: &Engine) -> Result<Self, LoadError> {
        let linker = host::core_linker(engine)
            .map_err(|error| LoadError::Io(format!("cannot link the host: {error:#}")))?;
        let state = RunState::new(RunConfig {
            env: &[],
            memory_limit_bytes: 0,
            deadline: Deadline::new(Duration::ZERO, None, CancelToken::default()),
            output: Output::default(),
        });
        Ok(Self {
            linker,
            store: Store::new(engine, state),
        })
    }

    /// `None` when there is no such function.
    fn signature(&mut self, module: &str, name: &str) -> Option<String> {
        let function = self
            .linker
            .get(&mut self.store, module, name)
            .ok()?
            .into_func()?;
        let ty = function.ty(&self.store);
        let list = |types: &mut dyn Iterator<Item = wasmtime::ValType>| {
            types.map(|ty| ty.to_string()).collect::<Vec<_>>()
        };
        Some(signature_text(
            &list(&mut ty.params()),
            &list(&mut ty.results()),
        ))
    }
}

pub(super) fn check_core(types: TypesRef<'_>, host: &mut CoreHost) -> Result<(), LoadError> {
    let mut unknown = Vec::new();
    for (module, name, ty) in types.core_imports().into_iter().flatten() {
        let (EntityType::Func(id), Some(expected)) = (ty, host.signature(module, name)) else {
            unknown.push(format!("{module}.{name} ({})", entity_kind(&ty)));
            continue;
        };
        let found = signature(types[id].composite_type.unwrap_func());
        if found != expected {
            return Err(invalid(format!(
                "import {module}.{name}: expected a function {expected}, got a function {found}"
            )));
        }
    }
    refuse_unknown(
        &unknown,
        "wasi_snapshot_preview1 functions, wasmfn.log and wasmfn.http",
    )?;

    let exports: Vec<_> = types.core_exports().into_iter().flatten().collect();
    let find = |name: &str| {
        exports
            .iter()
            .find(|(found, _)| *found == name)
            .map(|(_, ty)| *ty)
    };
    let i32s = [ValType::I32; 2];
    let functions: [(&str, &[ValType], &[ValType], bool); 3] = [
        ("wasmfn_run", &i32s, &[ValType::I64], true),
        ("wasmfn_alloc", &i32s[..1], &[ValType::I32], true),
        ("_initialize", &[], &[], false),
    ];
    for (name, params, results, required) in functions {
        let expected = FuncType::new(params.iter().copied(), results.iter().copied());
        let found = match find(name) {
            None if required => "no such export".to_owned(),
            None => continue,
            Some(EntityType::Func(id)) => {
                let found = types[id].composite_type.unwrap_func();
                if *found == expected {
                    continue;
                }
                format!("a function {}", signature(found))
            }
            Some(other) => format!("a {}", entity_kind(&other)),
        };
        return Err(invalid(format!(
            "export {name}: expected a function {} (ABI v1), got {found}",
            signature(&expected)
        )));
    }
    match find("memory") {
        Some(EntityType::Memory(_)) => Ok(()),
        None => Err(invalid(
            "export memory: expected a memory (ABI v1), got no such export".to_owned(),
        )),
        Some(other) => Err(invalid(format!(
            "export memory: expected a memory (ABI v1), got a {}",
            entity_kind(&other)
        ))),
    }
}

fn entity_kind(ty: &EntityType) -> &'static str {
    match ty {
        EntityType::Func(_) | EntityType::FuncExact(_) => "function",
        EntityType::Table(_) => "table",
        EntityType::Memory(_) => "memory",
        EntityType::Global(_) => "global",
        EntityType::Tag(_) => "tag",
    }
}

fn signature(ty: &FuncType) -> String {
    let list = |types: &[ValType]| types.iter().map(ToString::to_string).collect::<Vec<_>>();
    signature_text(&list(ty.params()), &list(ty.results()))
}

/// At most 1,000 parameters and results, by the validator.
fn signature_text(params: &[String], results: &[String]) -> String {
    let shown = |types: &[String]| {
        let text = types
            .iter()
            .take(16)
            .cloned()
            .collect::<Vec<_>>()
            .join(", ");
        match types.len().saturating_sub(16) {
            0 => text,
            more => format!("{text} and {more} more"),
        }
    };
    let results = if results.is_empty() {
        "()".to_owned()
    } else {
        shown(results)
    };
    format!("({}) -> {results}", shown(params))
}
